"""``A' diag(weight) A`` and ``A' value`` of rows, added to a dense system in every sweep; the places of entries are found once."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.sparse as sp  # pyright: ignore[reportMissingTypeStubs]

from heliograph.engine.blocks.rows import Rows
from heliograph.factors import dot_backward

__all__ = ["Gram", "gram_of"]

_LONGEST = 8  # entries of a row, on average, up to which its pairs are kept
_FULL = 8  # places per pair up to which a whole matrix is added
_MOST_PAIRS = 2_000_000  # pairs of entries in a row, up to which the places of all are kept


class Gram(Protocol):
    """``A' diag(weight) A`` and ``A' value`` of some rows."""

    def add(self, matrix: np.ndarray, vector: np.ndarray, weight: np.ndarray, value: np.ndarray) -> None:
        """Add them to a matrix and a vector, in place."""
        ...


def gram_of(rows: Rows) -> Gram:
    """Choose the cheaper of two ways: pairs of entries with known places where rows are short, else products of matrices."""
    length = np.diff(rows.sparse.indptr)
    n_pairs = int((length**2).sum())
    short = n_pairs <= min(_MOST_PAIRS, _LONGEST * rows.n_entries)
    return _Pairs(rows) if short and not rows.dense else _Products(rows)


class _Pairs:
    """Rows of a few scalars: the place of every pair of entries of a row, and its product."""

    def __init__(self, rows: Rows) -> None:
        s, n = rows.sparse, rows.n_columns
        length = np.diff(s.indptr)
        self._row = np.repeat(np.arange(len(rows)), length)
        self._columns, self._values = s.indices, s.data
        pairs = length**2
        self._pair_row = np.repeat(np.arange(len(rows)), pairs)
        within = np.arange(len(self._pair_row)) - np.repeat(
            np.cumsum(pairs) - pairs, pairs
        )  # number of the pair in its row
        a, b = np.divmod(within, np.maximum(length, 1)[self._pair_row])
        a, b = s.indptr[self._pair_row] + a, s.indptr[self._pair_row] + b
        self._products = s.data[a] * s.data[b]
        places = s.indices[a].astype(np.int64) * n + s.indices[b]
        # where most places occur, the whole matrix is added; else only the places that occur
        self._places, self._numbers = (None, places) if n * n <= _FULL * len(places) else _numbered(places)

    def add(self, matrix: np.ndarray, vector: np.ndarray, weight: np.ndarray, value: np.ndarray) -> None:
        """Add them to a matrix and a vector, in place."""
        products = self._products * weight[self._pair_row]
        if self._places is None:
            matrix += np.bincount(self._numbers, products, matrix.size).reshape(matrix.shape)
        else:
            matrix.reshape(-1)[self._places] += np.bincount(self._numbers, products, len(self._places))
        vector += np.bincount(self._columns, self._values * value[self._row], len(vector))


def _numbered(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places that occur, and the number of each one's place among them."""
    found, number = np.unique(places, return_inverse=True)
    return found, number.reshape(-1)


class _Products:
    """Any rows: BLAS for the dense parts of them, SciPy for the rest."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def add(self, matrix: np.ndarray, vector: np.ndarray, weight: np.ndarray, value: np.ndarray) -> None:
        """Add them to a matrix and a vector, in place."""
        rows, s = self._rows, self._rows.sparse
        n_columns = rows.n_columns
        if s.nnz:
            weighted = sp.csr_array((s.data * np.repeat(weight, np.diff(s.indptr)), s.indices, s.indptr), shape=s.shape)
            part = (s.T @ weighted).tocoo()
            matrix[part.coords[0], part.coords[1]] += part.data
            vector += s.T @ value
        for k, (x, columns) in enumerate(rows.dense):
            pulled, own = dot_backward(x, value, weight)
            vector[columns] += pulled
            if len(columns) == n_columns and columns[0] == 0 and columns[-1] == n_columns - 1:
                matrix += own
            else:
                matrix[np.ix_(columns, columns)] += own
            if s.nnz:
                across = s.T @ (weight[:, None] * x)
                matrix[:, columns] += across
                matrix[columns] += across.T
            for other, its in rows.dense[:k]:
                across = other.T @ (weight[:, None] * x)
                matrix[np.ix_(its, columns)] += across
                matrix[np.ix_(columns, its)] += across.T
