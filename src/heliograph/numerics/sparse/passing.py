"""Means and variances where a joint factor is too expensive and expressions are of two variables: leagues, pairs, differences.

The mean is that of conjugate gradients. Variances are those of messages between neighbours (Weiss and Freeman, 2001): with the
precision Q scaled to a unit diagonal, every variable i sends its neighbour j what it knows without j,

    sent[i -> j] = Q_ij^2 / (1 - sum over k other than j of sent[k -> i]),

until these converge. On a tree this is elimination, and exact. Where there are loops, what comes back around one counts twice,
and standard deviations are too small, by the less the longer the loops and the more neighbours share in them: by .03 % (rms) in
the league of 10,000 players and 100,000 games, where 128 random probes are off by .3 % and the whole run takes six times as long
(docs/decisions/0061). A caller checks a sample of them by single solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from heliograph.numerics.chunks import chunks
from heliograph.numerics.sparse.bare import Bare, scaled, values_of
from heliograph.numerics.sparse.gradients import conjugate_gradients
from heliograph.numerics.sparse.pairs import Alike, PairRows, on_links
from heliograph.numerics.sparse.rows import Rows

__all__ = ["Passed", "Passing", "pass_messages", "passed_variances", "prepare_passing"]

EXACT = 1e-10  # relative residual of means
FURTHER = 1e-4  # of the residual that a previous solution leaves: sweeps come nearer by a factor of 3 or so
STILL = 1e-6  # relative change of every precision in one round: variances are wrong by far more than that
MOST = 200  # rounds
CHUNK = 8192  # rows whose variances are computed at a time


@dataclass(frozen=True)
class Passing:
    """All that is known before numbers."""

    bare: Bare
    queried: tuple[PairRows | None, ...]  # None for parts whose variances are not wanted
    alike: tuple[Alike | None, ...]  # of each of them, what its rows have in common


class Passed(NamedTuple):
    """Means, variances, and what the next call may begin with."""

    mean: np.ndarray  # (n,)
    variances: tuple[np.ndarray | None, ...]  # by part, (m,)
    precision: np.ndarray  # (n,) of every variable, in units of the scale
    sent: tuple[np.ndarray, np.ndarray]  # (E,) each: by the second variable of a link to the first, and back
    link: np.ndarray  # (E,) of the scaled precision
    scale: np.ndarray  # (n,)


def prepare_passing(bare: Bare, queried: Sequence[bool]) -> Passing | None:
    """Prepare messages for rows that were placed; None where they do not fit: a core, or expressions of three variables."""
    plan = bare.plan
    if bare.pairs is None or plan.layout is None:
        return None
    pairs = tuple(part if wanted else None for part, wanted in zip(bare.pairs, queried, strict=True))
    return Passing(bare, pairs, tuple(None if p is None or not len(p.one) else p.alike for p in pairs))


def pass_messages(
    passing: Passing, taus: Sequence[np.ndarray], right: np.ndarray, *, previous: Passed | None = None
) -> Passed | None:
    """Mean ``inv(precision) right`` and the variances of all queried rows, as `estimate`; None where messages do not settle.

    Raises
    ------
    NotPositiveDefiniteError
        Where conjugate gradients meet a direction of negative curvature.
    """
    bare, n = passing.bare, passing.bare.plan.n_sparse
    values = values_of(bare, taus)
    scale, matrix, link = scaled(bare, values)
    b, start, tolerance = (scale * right[bare.plan.order])[:, None], None, EXACT
    if previous is not None:
        start = (previous.mean[bare.plan.order] / scale)[:, None]
        left = float(np.linalg.norm(b - matrix @ start))
        tolerance = max(EXACT, FURTHER * left / max(float(np.linalg.norm(b)), left, 1e-300))  # 0 where both are
    solved, _ = conjugate_gradients(matrix, b, start, tolerance)
    mean = np.empty(n)
    mean[bare.plan.order] = scale * solved[:, 0]
    settled = None if previous is None else _settled(passing, link, previous.sent)
    settled = settled or _settled(passing, link, None)
    if settled is None:
        return None
    found = Passed(mean, (), *settled, link, scale)
    every = zip(passing.queried, passing.alike, strict=True)
    return found._replace(variances=tuple(None if p is None else _queried(passing, p, a, found) for p, a in every))


def passed_variances(passing: Passing, passed: Passed, rows: Rows) -> np.ndarray | None:
    """Variances of any rows of one variable, or of two that are linked; None where some are not so."""
    layout = passing.bare.plan.layout
    assert layout is not None
    pairs = on_links(passing.bare.plan.n_sparse, layout.keys, rows)
    return None if pairs is None else _variances(pairs, passed)


def _settled(
    passing: Passing, link: np.ndarray, start: tuple[np.ndarray, np.ndarray] | None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None:
    """The precision of every variable and the messages over each link, once they have converged; None where they do not."""
    (low, high), n = passing.bare.links, passing.bare.plan.n_sparse
    square = link**2
    down, up = (np.zeros_like(link), np.zeros_like(link)) if start is None else start
    precision = 1.0 - np.bincount(low, down, n) - np.bincount(high, up, n)
    for _ in range(MOST):
        by_high, by_low = precision[high], precision[low]
        by_high += up
        by_low += down
        if not min(by_high.min(initial=1.0), by_low.min(initial=1.0), precision.min(initial=1.0)) > 0:
            return None
        down, up = np.divide(square, by_high, out=by_high), np.divide(square, by_low, out=by_low)
        before, precision = precision, 1.0 - np.bincount(low, down, n) - np.bincount(high, up, n)
        if (np.abs(precision - before) <= STILL * precision).all():
            return precision, (down, up)
    return None


def _queried(passing: Passing, pairs: PairRows, alike: Alike | None, passed: Passed) -> np.ndarray:
    """Variances of rows; those of two variables with equal coefficients have the variance of their link."""
    if alike is None:
        return _variances(pairs, passed)
    (low, high), (one, two, single) = passing.bare.links, alike
    by_link = np.zeros(len(low) + 1)
    for part in chunks(len(low), CHUNK):
        x, y, c = low[part], high[part], passed.link[part]
        a, b = one * passed.scale[x], two * passed.scale[y]
        p, q = passed.precision[x] + passed.sent[0][part], passed.precision[y] + passed.sent[1][part]
        by_link[part] = (a * a * q + b * b * p - 2.0 * a * b * c) / (p * q - c * c)
    found = by_link[pairs.link]
    x = pairs.first[single]
    found[single] = (pairs.one[single] * passed.scale[x]) ** 2 / passed.precision[x]
    return found


def _variances(pairs: PairRows, passed: Passed) -> np.ndarray:
    """Variances from the belief of each pair: each variable without the other's message, and their link."""
    n = len(pairs.first)
    if n > CHUNK:  # fresh memory for many rows takes longer than the arithmetic
        return np.concatenate([_variances(PairRows(*(a[part] for a in pairs)), passed) for part in chunks(n, CHUNK)])
    x, y, link, one, two = pairs
    a, b = one * passed.scale[x], two * passed.scale[y]
    single = link >= len(passed.link)
    if single.all():
        return a**2 / passed.precision[x]
    link = np.minimum(link, len(passed.link) - 1)
    down, up = passed.sent
    p, q = passed.precision[x] + down[link], passed.precision[y] + up[link]
    c = passed.link[link]
    pair = (a * a * q + b * b * p - 2.0 * a * b * c) / (p * q - c * c)
    return np.where(single, a**2 / passed.precision[x], pair) if single.any() else pair
