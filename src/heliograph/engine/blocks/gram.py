# pyright: basic
"""``A' diag(weight) A`` of rows, added to a dense matrix: where the entries go is found once, the weights change in every sweep."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from heliograph.engine.blocks.rows import Rows
from heliograph.factors import dot_backward

__all__ = ["Gram", "gram_of"]

_LONGEST = 8  # entries of a row, on average, up to which its pairs are kept
_MOST_PAIRS = 2_000_000  # pairs of entries in a row, up to which the places of all are kept


class Gram(Protocol):
    """``A' diag(weight) A`` of some rows."""

    def add(self, total: np.ndarray, weight: np.ndarray) -> None:
        """Add it to a matrix, in place."""
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

    def add(self, total: np.ndarray, weight: np.ndarray) -> None:
        """Add it to a matrix, in place."""
        total.reshape(-1)[self._places] += self._matrix @ weight


class _Products:
    """Any rows: BLAS for the dense parts of them, SciPy for the rest."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def add(self, total: np.ndarray, weight: np.ndarray) -> None:
        """Add it to a matrix, in place."""
        rows, s = self._rows, self._rows.sparse
        n_columns = rows.n_columns
        if s.nnz:
            weighted = sp.csr_array((s.data * np.repeat(weight, np.diff(s.indptr)), s.indices, s.indptr), shape=s.shape)
            part = (s.T @ weighted).tocoo()
            total[part.coords[0], part.coords[1]] += part.data
        zero = np.zeros(len(rows))
        for k, (x, columns) in enumerate(rows.dense):
            own = dot_backward(x, zero, weight)[1]
            if len(columns) == n_columns and columns[0] == 0 and columns[-1] == n_columns - 1:
                total += own
            else:
                total[np.ix_(columns, columns)] += own
            if s.nnz:
                across = s.T @ (weight[:, None] * x)
                total[:, columns] += across
                total[columns] += across.T
            for other, its in rows.dense[:k]:
                across = other.T @ (weight[:, None] * x)
                total[np.ix_(its, columns)] += across
                total[np.ix_(columns, its)] += across.T
