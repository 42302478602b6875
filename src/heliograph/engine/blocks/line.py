# pyright: basic
"""The precision of a block whose scalars lie on a line, each tied only to its neighbours: random walks, AR(1), local levels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.records import Known
from heliograph.engine.blocks.rows import Rows, transposed
from heliograph.engine.blocks.system import Sites
from heliograph.numerics import tridiagonal
from heliograph.numerics.tridiagonal import LineFactor

__all__ = ["LineSolver", "line_solver"]


class _Links(NamedTuple):
    """Rows of at most two scalars, which are neighbours."""

    n_rows: int
    row: np.ndarray  # (entries,) of every entry
    column: np.ndarray  # (entries,)
    square: np.ndarray  # (entries,) of its coefficient
    pair: np.ndarray  # (pairs,) rows of two entries
    left: np.ndarray  # (pairs,) the first of the two scalars
    product: np.ndarray  # (pairs,) of the two coefficients


def line_solver(known: Known, rows: Rows, n_sites: int, vectors: tuple[tuple[Rows, int], ...]) -> LineSolver | None:
    """A solver for scalars on a line; None where any row joins others than neighbours."""
    if vectors or known.rows.dense or rows.dense or not rows.n_columns:
        return None
    links = _links(known.rows), _links(rows)
    return (
        None
        if links[0] is None or links[1] is None
        else LineSolver(links[0], links[1], known.weight, n_sites, rows.n_columns)
    )


class LineSolver:
    """A `Solver` by `heliograph.numerics.tridiagonal`."""

    def __init__(self, known: _Links, rows: _Links, weight: np.ndarray, n_sites: int, n: int) -> None:
        self._rows, self._n_sites, self._n = rows, n_sites, n
        self._known = _gram(known, weight, n)
        self.flops = 20.0 * n

    def factorise(self, sites: Sites) -> LineFactor:
        """The precision under the sites, factorised; raises `NotPositiveDefiniteError`."""
        diagonal, beside = self._known
        if self._n_sites:
            tau = np.zeros(self._rows.n_rows)
            tau[: self._n_sites] = sites.tau
            more = _gram(self._rows, tau, self._n)
            diagonal, beside = diagonal + more[0], beside + more[1]
        return tridiagonal.factorise(diagonal, beside)

    def log_determinant(self, factor: LineFactor) -> float:
        """Of the precision."""
        return tridiagonal.log_determinant(factor)

    def solve(self, factor: LineFactor, right: np.ndarray) -> np.ndarray:
        """Solve for right-hand sides (N,) or (N, c)."""
        return tridiagonal.solve(factor, right)

    def variances(self, factor: LineFactor) -> np.ndarray:
        """Variances of the rows that are wanted in every sweep."""
        own, beside = tridiagonal.neighbours(factor)
        rows = self._rows
        total = np.bincount(rows.row, rows.square * own[rows.column], rows.n_rows)
        total[rows.pair] += 2.0 * rows.product * beside[rows.left]
        return total

    def covariance(self, factor: LineFactor, rows: Rows, others: Rows) -> np.ndarray:
        """Covariances of a few rows with others."""
        half = tridiagonal.half_solve(factor, transposed(rows))
        return half.T @ (half if others is rows else tridiagonal.half_solve(factor, transposed(others)))

    def sample(self, rng: np.random.Generator, factor: LineFactor, n: int) -> np.ndarray:
        """Draws (n, N) around 0."""
        return tridiagonal.sample(rng, factor, n)


def _links(rows: Rows) -> _Links | None:
    """The rows as links of a line; None where one has more than two scalars, or two that are not neighbours."""
    s = rows.sparse
    count = np.diff(s.indptr)
    if count.max(initial=0) > 2:
        return None
    pair = np.flatnonzero(count == 2)
    first = s.indptr[pair]
    a, b = s.indices[first], s.indices[first + 1]
    if not (np.abs(a - b) == 1).all():
        return None
    row = np.repeat(np.arange(len(rows)), count)
    return _Links(len(rows), row, s.indices, s.data**2, pair, np.minimum(a, b), s.data[first] * s.data[first + 1])


def _gram(links: _Links, weight: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The diagonals of ``A' diag(weight) A``."""
    diagonal = np.bincount(links.column, weight[links.row] * links.square, n)
    return diagonal, np.bincount(links.left, weight[links.pair] * links.product, n - 1)
