# pyright: basic
"""``A' diag(weight) A`` and ``A' value`` of rows, added to a dense system in every sweep; where entries go is found once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from heliograph.engine.blocks.rows import Rows, pull
from heliograph.factors import dot_backward

__all__ = ["Gram", "gram_of"]

_LONGEST = 8  # entries of a row, on average, up to which its pairs are kept
_MOST_PAIRS = 2_000_000  # pairs of entries in a row, up to which the places of all are kept


class Gram(Protocol):
    """``A' diag(weight) A`` and ``A' value`` of some rows."""

    def add(self, matrix: np.ndarray, vector: np.ndarray, weight: np.ndarray, value: np.ndarray) -> None:
        """Add them to a matrix and a vector, in place."""
        ...


def gram_of(rows: Rows) -> Gram:
    """The cheaper of two ways: the places of all pairs of entries where rows are short, else products of matrices."""
    length = np.diff(rows.sparse.indptr)
    n_pairs = int((length**2).sum())
    short = n_pairs <= min(_MOST_PAIRS, _LONGEST * rows.sparse.nnz)
    return _Pairs(rows) if short and not rows.dense else _Products(rows)


class _Pairs:
    """Rows of a few scalars: a sparse matrix from weights to the places of their pairs."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        s, n = rows.sparse, rows.n_columns
        length = np.diff(s.indptr)
        row = np.repeat(np.arange(len(rows)), length**2)
        within = np.arange(len(row)) - np.repeat(
            np.cumsum(length**2) - length**2, length**2
        )  # number of the pair in its row
        a, b = np.divmod(within, np.maximum(length, 1)[row])
        a, b = s.indptr[row] + a, s.indptr[row] + b
        places = s.indices[a].astype(np.int64) * n + s.indices[b]
        self._places, number = np.unique(places, return_inverse=True)
        product = s.data[a] * s.data[b]
        self._matrix: Any = sp.csr_array((product, (number.reshape(-1), row)), shape=(len(self._places), len(rows)))

    def add(self, matrix: np.ndarray, vector: np.ndarray, weight: np.ndarray, value: np.ndarray) -> None:
        """Add them to a matrix and a vector, in place."""
        matrix.reshape(-1)[self._places] += self._matrix @ weight
        vector += pull(self._rows, value)


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
