"""Whether the oracles are right, or say so: hard incoming tuples of five kinds, against dense grids.

    python benchmarks/bench_oracle_audit.py              # 200 tuples for each factor; some ten minutes
    python benchmarks/bench_oracle_audit.py --quick      # 25 tuples for each
    python benchmarks/bench_oracle_audit.py --factors square ratio --oracles importance --worst 5

The contract: no belief with a KL above 1e-3 that is also above 20 times what its answer states ("silent"); under 1 % of
the directions refused, each with its reason. A direction whose exact belief is a point (a constant function) is no refusal.
"in 10" is the share of stated KLs within a factor of ten of the realised one, "sd" that of standard errors (their square roots). A
KL of two degrees of freedom is below a tenth of its mean in 9.5 % of cases, one of one degree in 25 %, however well that is known.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "oracles"))

from audit_factors import DETERMINISTIC, KINDS, STOCHASTIC, Factor, incoming, truth
from audit_truth import degenerate

from heliograph.families import Family, concatenate
from heliograph.oracles import ImportanceOracle, QuadratureOracle

ORACLES = {"importance": ImportanceOracle(), "quadrature": QuadratureOracle()}
PLANE = QuadratureOracle(tolerance=1e-7)  # two unknown: 1e-10 costs ten times as much


class Verdict(NamedTuple):
    """One direction of one tuple."""

    kind: str
    tuple_: int
    port: str
    kl: float  # nan if refused
    stated: float
    reason: str  # why it was refused; empty if it was not


def plate(factor: Factor, n: int, seed: int = 0) -> tuple[dict[str, Family], list[str]]:
    """Incoming tuples of all kinds, and the kind of each."""
    rng = np.random.default_rng([seed, *factor.sampler.name.encode()])
    sizes = [len(part) for part in np.array_split(np.arange(n), len(KINDS))]
    parts = [incoming(factor, kind, rng, size) for kind, size in zip(KINDS, sizes, strict=True) if size]
    kinds = [kind for kind, size in zip(KINDS, sizes, strict=True) for _ in range(size)]
    return {port: concatenate([p[port] for p in parts]) for port in parts[0]}, kinds


def exact_beliefs(factor: Factor, messages: dict[str, Family]) -> list[dict[str, Family]]:
    """The exact beliefs, row by row."""
    n = len(messages["out"])
    return [truth(factor, {k: m[i : i + 1] for k, m in messages.items()}) for i in range(n)]


def judge(answer, exact: list[dict[str, Family]], kinds: list[str]) -> list[Verdict]:
    """Every direction of every tuple against the truth."""
    found = []
    for i, beliefs in enumerate(exact):
        for port, belief in beliefs.items():
            if degenerate(belief):
                continue
            if answer.failed_at(port)[i]:
                found.append(Verdict(kinds[i], i, port, np.nan, np.inf, reason(answer, i, port)))
            else:
                kl = float(belief.kl(answer.beliefs[port][i : i + 1])[0])
                found.append(Verdict(kinds[i], i, port, kl, float(answer.expected_kl[port][i]), ""))
    return found


def reason(answer, i: int, port: str) -> str:
    """Why a direction was refused, as far as the answer tells."""
    if not answer.failed[i]:
        return f"{port} unknown"
    if answer.ess[i] < 50:
        return "too few effective draws"
    return "heavy tail" if answer.pareto_k[i] > 0.7 else "not resolved"


def silent(v: Verdict) -> bool:
    """Wrong by more than a thousandth of a nat, and by more than 20 times what was said."""
    return not v.reason and v.kl > 1e-3 and v.kl > 20 * v.stated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuples", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="25 tuples for each factor")
    parser.add_argument("--factors", nargs="*", default=[*DETERMINISTIC, *STOCHASTIC])
    parser.add_argument("--oracles", nargs="*", default=list(ORACLES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=0, help="print so many of the worst directions of each line")
    given = parser.parse_args()
    n = 25 if given.quick else given.tuples
    heads = f"{'refused':>8} {'silent':>6} {'KL 50 %':>8} {'99 %':>8} {'KL / stated 50, 90, 99 %':>26} {'in 10':>6} {'sd':>6}"
    heads += f" {'calls':>8} {'ms':>6}"
    print(f"{'factor':16} {'oracle':10} {heads}")
    everything: dict[str, list[Verdict]] = {name: [] for name in given.oracles}
    for name in given.factors:
        factor = DETERMINISTIC.get(name) or STOCHASTIC[name]
        messages, kinds = plate(factor, n, given.seed)
        exact = exact_beliefs(factor, messages)
        for label in given.oracles:
            if label == "quadrature" and name in STOCHASTIC:
                continue
            oracle = PLANE if label == "quadrature" and len(factor.sampler.inputs) == 2 else ORACLES[label]
            start = time.process_time()
            answer = oracle.ask(np.random.default_rng(given.seed + 1), factor.sampler, messages)
            ms = 1e3 * (time.process_time() - start) / n
            verdicts = judge(answer, exact, kinds)
            everything[label] += verdicts
            print(f"{name:16} {label:10} {line(verdicts)} {answer.n_evaluations // n:8d} {ms:6.1f}", flush=True)
            order = sorted(verdicts, key=lambda v: -v.kl / max(v.stated, 1e-12) if v.kl > 1e-6 else 0.0)
            for v in [*(v for v in verdicts if silent(v) or v.reason), *order][: given.worst]:
                rows = {k: m[v.tuple_] for k, m in messages.items()}
                print(f"    {v.kind} {v.port} {v.reason} KL {v.kl:.1e} stated {v.stated:.1e} {rows}")
    for label, verdicts in everything.items():
        print(f"{'all':16} {label:10} {line(verdicts)}", dict(Counter(v.reason for v in verdicts if v.reason)))
        for kind in KINDS:
            print(f"  {kind:14} {label:10} {line([v for v in verdicts if v.kind == kind])}")


def line(verdicts: list[Verdict]) -> str:
    """One line of the table."""
    if not verdicts:
        return ""
    kept = [v for v in verdicts if not v.reason]
    kl = np.array([v.kl for v in kept] or [np.nan])
    ratio = np.array([(v.kl + 1e-9) / (v.stated + 1e-9) for v in kept] or [np.nan])  # below 1e-9 all is alike
    parts = [f"{len(verdicts) - len(kept):3d}/{len(verdicts):4d}", f"{sum(map(silent, kept)):6d}"]
    parts += [f"{np.median(kl):8.1e}", f"{np.quantile(kl, 0.99):8.1e}"]
    parts += [f"{np.quantile(ratio, q):8.2g}" for q in (0.5, 0.9, 0.99)]
    parts += [f"{((ratio < 10) & (ratio > 0.1)).mean():6.1%}", f"{((ratio < 100) & (ratio > 0.01)).mean():6.1%}"]
    return " ".join(parts)


if __name__ == "__main__":
    main()
