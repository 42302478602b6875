# pyright: basic
"""Expressions with an exactly known value: each fixes one base scalar in terms of the others and eliminates it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from heliograph.engine.blocks.rows import Rows
from heliograph.errors import ContradictionError, UnsupportedError

__all__ = ["Elimination", "eliminate"]

_RANK = 1e-10  # of the largest coefficient left in a row: less is rounding
_CONSISTENT = 1e-8  # relative: two values of one expression that differ by less count as equal
_LARGEST = 4000  # constraints, or scalars in them, up to which a dense elimination is done


class Elimination(NamedTuple):
    """``x = matrix y + constant`` over the scalars y that are left."""

    matrix: Any  # (N, M) CSR
    constant: np.ndarray  # (N,)
    kept: np.ndarray  # (N,) number of each scalar among those that are left, -1 where it is fixed
    log_constant: float  # log density of the constraints' values is counted in their own units: minus log |pivots|

    @property
    def n_columns(self) -> int:
        """How many are left."""
        return self.matrix.shape[1]

    def substitute(self, rows: Rows) -> Rows:
        """The same expressions over what is left."""
        sparse = rows.sparse @ self.matrix
        constant = rows.constant + rows.sparse @ self.constant
        for x, columns in rows.dense:
            part = self.matrix[columns]
            sparse = sparse + sp.csr_array(sp.csr_array(x) @ part)
            constant = constant + x @ self.constant[columns]
        sparse = sp.csr_array(sparse)
        sparse.data[np.abs(sparse.data) < 1e-14 * np.abs(sparse.data).max(initial=0.0)] = 0.0  # what cancelled
        sparse.eliminate_zeros()
        return Rows(sparse, (), constant)


def eliminate(rows: Rows, values: np.ndarray) -> Elimination:
    """Solve every equation ``rows = values`` for one scalar, by Gauss-Jordan elimination with the largest coefficient as pivot.

    Raises
    ------
    ContradictionError
        Where no values of the variables satisfy them all.
    UnsupportedError
        Where there are too many equations or scalars in them.
    """
    whole = _all_sparse(rows)
    columns = np.unique(whole.indices)
    if max(len(columns), len(rows)) > _LARGEST:
        raise UnsupportedError(
            f"{len(rows)} expressions are observed exactly, more than can be eliminated; observe them through a Gaussian "
            "with a small variance"
        )
    a, b = whole[:, columns].toarray(), np.asarray(values, dtype=float) - rows.constant
    pivots, used, log_pivots = _reduce(a, b, values)
    a, b = a[used], b[used]
    n, fixed = rows.n_columns, columns[pivots]
    left = np.ones(n, dtype=bool)
    left[fixed] = False
    kept = np.where(left, np.cumsum(left) - 1, -1)
    free = np.setdiff1d(np.arange(len(columns)), pivots)
    part: Any = sp.coo_array(a[:, free])
    i = np.concatenate([np.flatnonzero(left), fixed[part.coords[0]]])
    j = np.concatenate([kept[left], kept[columns[free]][part.coords[1]]])
    value = np.concatenate([np.ones(int(left.sum())), -part.data])
    matrix = sp.csr_array(sp.coo_array((value, (i, j)), shape=(n, int(left.sum()))))
    constant = np.zeros(n)
    constant[fixed] = b
    return Elimination(matrix, constant, kept, -log_pivots)


def _reduce(a: np.ndarray, b: np.ndarray, values: np.ndarray) -> tuple[list[int], list[int], float]:
    """Give each row of ``a x = b`` a pivot of its own, in place.

    Gives the columns of the pivots, their rows (a row that follows from others has none), and the log of their product.
    """
    size = np.abs(a).max(axis=1, initial=0.0)
    pivots: list[int] = []
    kept: list[int] = []
    log_pivots = 0.0
    for k in range(len(a)):
        j = int(np.argmax(np.abs(a[k]))) if a.shape[1] else 0
        pivot = a[k, j] if a.shape[1] else 0.0
        if np.abs(pivot) <= _RANK * max(size[k], 1e-300):
            if np.abs(b[k]) > _CONSISTENT * (1.0 + np.abs(values[k])):
                raise ContradictionError(
                    f"an expression was observed as {values[k]:g}, but exactly known values give it another one; take one of the "
                    "statements back"
                )
            continue  # it follows from the others
        log_pivots += float(np.log(np.abs(pivot)))
        a[k] /= pivot
        b[k] /= pivot
        a[k, j] = 1.0
        others = np.flatnonzero(a[:, j])
        others = others[others != k]
        b[others] -= a[others, j] * b[k]
        a[others] -= np.outer(a[others, j], a[k])
        a[others, j] = 0.0
        pivots.append(j)
        kept.append(k)
    return pivots, kept, log_pivots


def _all_sparse(rows: Rows) -> sp.csr_array:
    whole = rows.sparse
    for x, columns in rows.dense:
        part = sp.coo_array(x)
        shape = (len(rows), rows.n_columns)
        whole = whole + sp.csr_array(sp.coo_array((part.data, (part.coords[0], columns[part.coords[1]])), shape=shape))
    return sp.csr_array(whole)
