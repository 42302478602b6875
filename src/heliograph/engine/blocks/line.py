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

_FIRST = 64  # rows that are looked at before all are


class _Links(NamedTuple):
    """Rows of one scalar, or of two that are neighbours: ``one x[at] + other x[next_to]``."""

    at: np.ndarray  # (n,)
    one: np.ndarray  # (n,)
    next_to: np.ndarray | None = None  # (n,); None where no row has two
    other: np.ndarray | float = 0.0  # (n,)


def line_solver(
    known: tuple[Known, ...], rows: Rows, n_sites: int, vectors: tuple[tuple[Rows, int], ...]
) -> LineSolver | None:
    """A solver for scalars on a line; None where any row joins others than neighbours."""
    n = rows.n_columns
    if vectors or not n:
        return None
    diagonal, beside = np.zeros(n), np.zeros(n - 1)
    for part, weight, *_ in known:
        links = _links(part)
        if links is None:
            return None
        _add(links, weight, diagonal, beside)
    links = _links(rows)
    return None if links is None else LineSolver(links, n_sites, diagonal, beside)


class LineSolver:
    """A `Solver` by `heliograph.numerics.tridiagonal`."""

    def __init__(self, rows: _Links, n_sites: int, diagonal: np.ndarray, beside: np.ndarray) -> None:
        """`rows` are wanted in every sweep, the sites first; the diagonals are of the rows of known weight."""
        self._rows, self._n_sites = rows, n_sites
        self._known = diagonal, beside
        self.flops = 20.0 * len(diagonal)

    def factorise(self, sites: Sites) -> LineFactor:
        """The precision under the sites, factorised; raises `NotPositiveDefiniteError`."""
        diagonal, beside = self._known
        if self._n_sites:
            tau = np.zeros(len(self._rows.at))
            tau[: self._n_sites] = sites.tau
            diagonal, beside = diagonal.copy(), beside.copy()
            _add(self._rows, tau, diagonal, beside)
        return tridiagonal.factorise(diagonal, beside)

    def log_determinant(self, factor: LineFactor) -> float:
        """Of the precision."""
        return tridiagonal.log_determinant(factor)

    def solve(self, factor: LineFactor, right: np.ndarray) -> np.ndarray:
        """Solve for right-hand sides (N,) or (N, c)."""
        return tridiagonal.solve(factor, right)

    def invert(self, factor: LineFactor) -> tuple[np.ndarray, np.ndarray]:
        """Variances, and covariances of neighbours."""
        return tridiagonal.neighbours(factor)

    def vector_covariances(self, inverse: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
        """None: no vector is on a line."""
        return []

    def variances(self, inverse: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Variances of the rows that are wanted in every sweep."""
        own, beside = inverse
        rows = self._rows
        total = rows.one**2 * own[rows.at]
        if rows.next_to is not None:
            total += rows.other**2 * own[rows.next_to]
            total += 2.0 * rows.one * rows.other * np.append(beside, 0.0)[_left(rows)]
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
    s, n = rows.sparse, len(rows)
    count = np.diff(s.indptr)
    if rows.dense or count.max(initial=0) > 2:
        return None
    if s.nnz == n and (count == 1).all():
        return _Links(s.indices, s.data)
    first = s.indptr[:-1][:_FIRST][count[:_FIRST] == 2]
    if (np.abs(s.indices[first] - s.indices[first + 1]) != 1).any():  # as in most models that are no line
        return None
    if s.nnz == 2 * n:
        columns, data = s.indices.reshape(n, 2), s.data.reshape(n, 2)
    else:  # rows of one scalar, or none, beside rows of two
        columns, data = np.zeros((n, 2), dtype=s.indices.dtype), np.zeros((n, 2))
        for k in (0, 1):
            some = np.flatnonzero(count > k)
            columns[some, k:] = s.indices[s.indptr[some] + k][:, None]
            data[some, k] = s.data[s.indptr[some] + k]
    links = _Links(columns[:, 0], data[:, 0], columns[:, 1], data[:, 1])
    apart = np.abs(columns[:, 0] - columns[:, 1])
    return links if (apart == (count == 2)).all() else None


def _add(links: _Links, weight: np.ndarray, diagonal: np.ndarray, beside: np.ndarray) -> None:
    """Add the diagonals of ``A' diag(weight) A``."""
    n = len(diagonal)
    diagonal += np.bincount(links.at, weight * links.one**2, n)
    if links.next_to is not None:
        diagonal += np.bincount(links.next_to, weight * links.other**2, n)
        beside += np.bincount(_left(links), weight * links.one * links.other, n)[: n - 1]


def _left(links: _Links) -> np.ndarray:
    """The first of the two scalars of every row."""
    assert links.next_to is not None
    return np.minimum(links.at, links.next_to)
