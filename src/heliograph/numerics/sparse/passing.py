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
from heliograph.numerics.sparse.plan import Plan
from heliograph.numerics.sparse.rows import Rows

__all__ = ["Passed", "Passing", "pass_messages", "passed_variances", "prepare_passing"]

EXACT = 1e-10  # relative residual of means
FURTHER = 1e-4  # of the residual that a previous solution leaves: sweeps come nearer by a factor of 3 or so
STILL = 1e-6  # relative change of every precision in one round: variances are wrong by far more than that
MOST = 200  # rounds
CHUNK = 8192  # rows whose variances are computed at a time


class _Pairs(NamedTuple):
    """Rows of at most two variables, numbered as in the plan, the first before the second."""

    first: np.ndarray  # (m,)
    second: np.ndarray  # (m,) the first again where there is one only
    link: np.ndarray  # (m,) the link between them; -1 where there is one variable only
    one: np.ndarray  # (m,) coefficients
    two: np.ndarray  # (m,) 0 where there is one variable only


@dataclass(frozen=True)
class Passing:
    """All that is known before numbers."""

    bare: Bare
    low: np.ndarray  # (E,) variables of every link, the first before the second
    high: np.ndarray  # (E,)
    queried: tuple[_Pairs | None, ...]  # None for parts whose variances are not wanted


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
    if plan.n_core or plan.layout is None:
        return None
    pairs = [_pairs(plan, part.rows) if wanted else None for part, wanted in zip(bare.parts, queried, strict=True)]
    if any(wanted and one is None for one, wanted in zip(pairs, queried, strict=True)):
        return None
    low, high = np.divmod(plan.layout.keys[:-1], max(plan.n_sparse, 1))
    return Passing(bare, low, high, tuple(pairs))


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
    scale, matrix = scaled(bare, values)
    b, start, tolerance = (scale * right[bare.plan.order])[:, None], None, EXACT
    if previous is not None:
        start = (previous.mean[bare.plan.order] / scale)[:, None]
        left = float(np.linalg.norm(b - matrix @ start))
        tolerance = max(EXACT, FURTHER * left / max(float(np.linalg.norm(b)), left, 1e-300))  # 0 where both are
    solved, _ = conjugate_gradients(matrix, b, start, tolerance)
    mean = np.empty(n)
    mean[bare.plan.order] = scale * solved[:, 0]
    link = values[n : n + len(passing.low)] * scale[passing.low] * scale[passing.high]
    settled = None if previous is None else _settled(passing, link, previous.sent)
    settled = settled or _settled(passing, link, None)
    if settled is None:
        return None
    found = Passed(mean, (), *settled, link, scale)
    return found._replace(variances=tuple(None if p is None else _variances(p, found) for p in passing.queried))


def passed_variances(passing: Passing, passed: Passed, rows: Rows) -> np.ndarray | None:
    """Variances of any rows of one variable, or of two that are linked; None where some are not so."""
    pairs = _pairs(passing.bare.plan, rows)
    return None if pairs is None else _variances(pairs, passed)


def _pairs(plan: Plan, rows: Rows) -> _Pairs | None:
    """Rows as pairs; None where one has more entries, or joins variables that are not linked."""
    count = np.diff(rows.indptr)
    if rows.width != 1 or rows.dense or plan.layout is None or not ((count > 0) & (count < 3)).all():
        return None
    at, more = rows.indptr[:-1], count - 1
    x, y = plan.number[rows.indices[at]], plan.number[rows.indices[at + more]]
    one, two = rows.values[at], np.where(more, rows.values[at + more], 0.0)
    swap = x > y
    x, y, one, two = np.where(swap, y, x), np.where(swap, x, y), np.where(swap, two, one), np.where(swap, one, two)
    key, keys = x * plan.n_sparse + y, plan.layout.keys
    link = np.searchsorted(keys, key)
    if not ((keys[link] == key) | (more == 0)).all():
        return None
    return _Pairs(x, y, np.where(more, link, -1), one, two)


def _settled(
    passing: Passing, link: np.ndarray, start: tuple[np.ndarray, np.ndarray] | None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None:
    """The precision of every variable and the messages over each link, once they have converged; None where they do not."""
    low, high, n = passing.low, passing.high, passing.bare.plan.n_sparse
    square = link**2
    down, up = (np.zeros_like(link), np.zeros_like(link)) if start is None else start
    precision = 1.0 - np.bincount(low, down, n) - np.bincount(high, up, n)
    for _ in range(MOST):
        by_high, by_low = precision[high] + up, precision[low] + down
        if not min(by_high.min(initial=1.0), by_low.min(initial=1.0), precision.min(initial=1.0)) > 0:
            return None
        down, up = square / by_high, square / by_low
        before, precision = precision, 1.0 - np.bincount(low, down, n) - np.bincount(high, up, n)
        if (np.abs(precision - before) <= STILL * precision).all():
            return precision, (down, up)
    return None


def _variances(pairs: _Pairs, passed: Passed) -> np.ndarray:
    """Variances from the belief of each pair: each variable without the other's message, and their link."""
    n = len(pairs.first)
    if n > CHUNK:  # fresh memory for many rows takes longer than the arithmetic
        return np.concatenate([_variances(_Pairs(*(a[part] for a in pairs)), passed) for part in chunks(n, CHUNK)])
    x, y, link, one, two = pairs
    a, b = one * passed.scale[x], two * passed.scale[y]
    single = link < 0
    if single.all():
        return a**2 / passed.precision[x]
    down, up = passed.sent
    p, q = passed.precision[x] + down[link], passed.precision[y] + up[link]
    c = passed.link[link]
    pair = (a * a * q + b * b * p - 2.0 * a * b * c) / (p * q - c * c)
    return np.where(single, a**2 / passed.precision[x], pair) if single.any() else pair
