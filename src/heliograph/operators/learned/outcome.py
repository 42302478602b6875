"""What a call found about some of its rows, put together to what it found about all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heliograph.families import Family
from heliograph.operators.learned.records import Costs, Settled, Statement
from heliograph.operators.protocol import Reply

__all__ = ["answered", "log_z_of", "reply_of"]


def answered(rows: np.ndarray, statement: Statement) -> Settled:
    """Settle rows as an oracle says; what it does not know is wrong by infinitely much (docs/decisions/0225)."""
    kl = np.where(statement.failed, np.inf, statement.kl)
    return Settled(rows, statement.value, kl, failed=statement.failed)


def reply_of(found: Sequence[Settled], cavity: Family, costs: Costs) -> Reply:
    """The messages of all rows, eq. (1): beliefs divided by what came in."""
    n = len(cavity)
    asked, failed, expected_kl = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), np.zeros(n)
    log_variance: np.ndarray | None = None
    for part in found:
        expected_kl[part.rows] = part.expected_kl
        if part.failed is not None:
            asked[part.rows], failed[part.rows] = True, part.failed
        if part.log_variance is not None:
            if log_variance is None:
                log_variance = np.full((n, part.log_variance.shape[1]), np.nan)
            log_variance[part.rows] = part.log_variance
    belief = _joined(found, n) if n else cavity
    return Reply(
        belief / cavity,
        failed,
        asked,
        log_variance,
        expected_kl,
        n_evaluations=costs.n_evaluations,
        seconds_learning=costs.seconds_learning,
        seconds_prediction=costs.seconds_prediction,
    )


def log_z_of(found: Sequence[Settled], n: int) -> np.ndarray:
    """The log normalisers of n rows."""
    log_z = np.zeros(n)
    for part in found:
        log_z[part.rows] = part.belief
    return log_z


def _joined(found: Sequence[Settled], n: int) -> Family:
    """Beliefs of all rows from those of some, of which the later count; one part may hold all rows in another order."""
    if len(found) == 1 and np.array_equal(found[0].rows, np.arange(n)):
        return found[0].belief
    kind = type(found[0].belief)
    naturals = tuple(np.empty((n, *a.shape[1:])) for a in found[0].belief.naturals)
    point = None
    for part in found:
        for a, b in zip(naturals, part.belief.naturals, strict=True):
            a[part.rows] = b
        if part.belief.point is not None and point is None:
            point = np.full((n, *part.belief.point.shape[1:]), np.nan)
        if point is not None:
            point[part.rows] = np.nan if part.belief.point is None else part.belief.point
    return kind.from_naturals(naturals, point)
