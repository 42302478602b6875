"""What a call found about some of its rows, put together to what it found about all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.operators.learned.records import Costs, Settled, Statement
from heliograph.operators.protocol import Reply

__all__ = ["Outcome", "answered"]


def answered(rows: np.ndarray, statement: Statement) -> Settled:
    """Settle rows as an oracle says; what it does not know is wrong by infinitely much (docs/decisions/0036)."""
    kl = np.where(statement.failed, np.inf, statement.kl)
    return Settled(rows, statement.value, kl, failed=statement.failed)


class Outcome:
    """What one call has found so far about each of its n rows."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.beliefs: list[tuple[Any, Any]] = []  # rows, and beliefs or log Z; the later count
        self.expected_kl = np.zeros(n)
        self.log_variance: np.ndarray | None = None
        self.asked, self.failed = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)

    def add(self, found: Settled) -> None:
        """Take in what was found about some rows, at once: a plate of millions is settled block by block."""
        rows = found.rows
        self.beliefs.append((rows, found.belief))
        if _whole(rows, self.n) and found.failed is None and self.log_variance is None:  # of a lattice
            self.expected_kl, self.log_variance = found.expected_kl, found.log_variance
            return
        self.expected_kl[rows] = found.expected_kl
        if found.failed is not None:
            self.asked[rows], self.failed[rows] = True, found.failed
        if found.log_variance is not None:
            if self.log_variance is None:
                self.log_variance = np.full((self.n, found.log_variance.shape[1]), np.nan)
            self.log_variance[rows] = found.log_variance

    def reply(self, cavity: Family, costs: Costs) -> Reply:
        """The messages of all rows, eq. (1): beliefs divided by what came in."""
        belief = _joined(self.beliefs, self.n) if self.n else cavity
        return Reply(
            belief / cavity,
            self.failed,
            self.asked,
            self.log_variance,
            self.expected_kl,
            n_evaluations=costs.n_evaluations,
            n_table_evaluations=costs.n_table_evaluations,
            seconds_learning=costs.seconds_learning,
            seconds_prediction=costs.seconds_prediction,
        )

    def log_z(self) -> np.ndarray:
        """The log normalisers of all rows."""
        log_z = np.zeros(self.n)
        for rows, some in self.beliefs:
            log_z[rows] = some
        return log_z


def _whole(rows: Any, n: int) -> bool:
    """Whether it is the slice of all rows."""
    return isinstance(rows, slice) and rows == slice(0, n)


def _joined(parts: Sequence[tuple[Any, Family]], n: int) -> Family:
    """Beliefs of all rows from those of some, of which the later count; one part may hold all rows in another order."""
    if len(parts) == 1 and (_whole(parts[0][0], n) or np.array_equal(parts[0][0], np.arange(n))):
        return parts[0][1]
    kind = type(parts[0][1])
    naturals = tuple(np.empty((n, *a.shape[1:])) for a in parts[0][1].naturals)
    point = None
    for rows, belief in parts:
        for a, b in zip(naturals, belief.naturals, strict=True):
            a[rows] = b
        if belief.point is not None and point is None:
            point = np.full((n, *belief.point.shape[1:]), np.nan)
        if point is not None:
            point[rows] = np.nan if belief.point is None else belief.point
    return kind.from_naturals(naturals, point)
