"""Random messages by the thousand to every factor of the package: each answer is finite, or the factor says in a sentence why not.

``python -m benchmarks.fuzz [names] --rows 10000 --seed 0`` prints a table with a row for each factor and family. Half of the rows
are of every kind of message (narrow, wide, point masses, uniform, improper), half of ordinary ones. Factors are found by walking
the package, as the laws of ``tests/factors`` find them, and messages are made as there. An answer that is not a number, a
warning, or an error other than a contradiction and an unsupported combination is a fault, and the command then ends with 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "factors"))
from incoming_messages import every_factor, incoming_of, make, n_families, rows_of, targets
from law_specs import NO_PORTS

from heliograph.errors import ContradictionError, UnsupportedError
from heliograph.factors import Factor
from heliograph.families import Categorical, Family

__all__ = ["Row", "fuzz", "kinds"]

BATCH = 50  # rows that a contradiction in one of them is searched among


class Row(NamedTuple):
    """What became of the messages to one factor."""

    factor: str
    family: int
    rows: int
    refused: int  # contradictions and unsupported combinations, said so
    lost: int  # rows of which a message or log Z is not a number
    faults: tuple[str, ...]  # the first of each warning or other error
    seconds: float


def kinds() -> list[tuple[type[Factor], int]]:
    """Every factor of the package, with the number of each family that it takes."""
    found = [k for k in every_factor() if k.__name__ not in NO_PORTS]
    return [(kind, family) for kind in found for family in range(n_families(kind))]


def fuzz(kind: type[Factor], family: int, rows: int, seed: int) -> Row:
    """Put `rows` rows of random messages to one factor."""
    rng = np.random.default_rng([seed, family, *kind.name.encode()])
    refused = lost = done = 0
    faults: dict[str, None] = {}
    start = time.process_time()
    while done < rows:
        n = min(BATCH, rows - done)
        factor = make(kind, family, rng, n)
        incoming = incoming_of(factor, family, rng, n, wild=done % (2 * BATCH) < BATCH)
        bad, said, why = _ask(factor, incoming, n)
        lost, refused, done = lost + bad, refused + said, done + n
        faults.update(dict.fromkeys(why))
    return Row(kind.name, family, rows, refused, lost, tuple(faults), time.process_time() - start)


def _ask(factor: Factor, incoming: dict[str, Any], n: int) -> tuple[int, int, list[str]]:
    """The rows that are not a number, those that were refused, and what else happened; half by half where the whole is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            bad = np.isnan(factor.log_z(incoming))
            for to in targets(factor):
                bad = bad | ~_finite(factor.message(to, incoming))
        return int(bad.sum()), 0, []
    except (ContradictionError, UnsupportedError):
        if n == 1 or not _by_rows(factor):
            return 0, n, []
    except Exception as error:  # whatever it is, it is what is looked for
        if n == 1 or not _by_rows(factor):
            return 0, 0, [f"{type(error).__name__}: {error}"[:120]]
    halves = slice(0, n // 2), slice(n // 2, n)
    parts = [_ask(factor, rows_of(incoming, half), half.stop - half.start) for half in halves]
    return sum(p[0] for p in parts), sum(p[1] for p in parts), [w for p in parts for w in p[2]]


def _by_rows(factor: Factor) -> bool:
    """Whether a factor answers for some rows of its plate: one that holds a plate of its own does not."""
    return factor.name != "prior"


def _finite(m: Family) -> np.ndarray:
    """Where all natural parameters are numbers, and finite; an impossible category is minus infinity."""
    ok = np.ones(m.shape, dtype=bool)
    for a in m.naturals:
        good = ~np.isnan(a) if isinstance(m, Categorical) else np.isfinite(a)
        ok &= good.reshape((*m.shape, -1)).all(axis=-1)
    return ok


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print("| factor | family | rows | refused | not a number | faults | seconds |", "|" + " --- |" * 7, sep="\n")
    clean = True
    for kind, family in kinds():
        if args.names and kind.name not in args.names:
            continue
        r = fuzz(kind, family, args.rows, args.seed)
        clean &= not r.lost and not r.faults
        print(
            f"| {r.factor} | {r.family} | {r.rows} | {r.refused} | {r.lost} | {'; '.join(r.faults)} | {r.seconds:.1f} |"
        )
        sys.stdout.flush()
    sys.exit(0 if clean else 1)


if __name__ == "__main__":
    main()
