# pyright: basic
"""Affine expressions of base scalars, many rows at a time: ``z = S x + X x[columns] + ... + constant``.

A sum, a shift, a scaled variable, a gathered entry and ``X @ w`` are all rows over the scalars that have a distribution of
their own. Short rows are sparse; the rows of a long ``X @ w`` keep X as it was given, so that it is multiplied by BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from heliograph.engine.blocks.csr import compressed, empty, even, even_length, stacked

__all__ = [
    "Rows",
    "add",
    "apply",
    "base",
    "constants",
    "image",
    "joined",
    "minus",
    "over",
    "pull",
    "scale",
    "shifted",
    "take",
    "transposed",
]

_SHORT = 8  # entries of a row up to which it is kept sparse
_KEPT = 2048  # base scalars up to which the rows that are all of them are kept for the next block
_FEW = 32  # rows up to which they are kept sparse whatever their length (a small matrix in a long chain)
_SPARSE = 0.1  # share of entries that are not zero, below which a given matrix is kept sparse


@dataclass(frozen=True, eq=False)
class Rows:
    """Affine expressions of n rows over N base scalars."""

    sparse: Any  # (n, N) CSR array
    dense: tuple[tuple[np.ndarray, np.ndarray], ...]  # matrices (n, k) and the (k,) base scalars that they multiply
    constant: np.ndarray  # (n,)

    def __len__(self) -> int:
        return len(self.constant)

    @property
    def n_columns(self) -> int:
        """The number of base scalars."""
        return self.sparse.shape[1]

    @property
    def n_entries(self) -> int:
        """The number of sparse entries."""
        return len(self.sparse.data)

    @cached_property
    def length(self) -> int:
        """The number of sparse entries of every row, where it is the same and not large; otherwise 0."""
        return even_length(self.sparse)

    @cached_property
    def is_base(self) -> bool:
        """Whether every row is one base scalar as it is."""
        s = self.sparse
        plain = not self.dense and len(s.data) == len(self) and not self.constant.any()
        return bool(plain and (s.data == 1.0).all() and (s.indptr == np.arange(len(self) + 1)).all())

    @cached_property
    def in_order(self) -> bool:
        """Whether the rows are all base scalars, each as it is, in their order."""
        every = len(self) == self.n_columns and self.is_base
        return every and bool((self.sparse.indices == np.arange(len(self))).all())


def constants(values: np.ndarray, n_columns: int) -> Rows:
    """Rows without a variable."""
    values = np.asarray(values, dtype=float).reshape(-1)
    return Rows(empty(len(values), n_columns), (), values)


def base(columns: np.ndarray, n_columns: int, known: np.ndarray | None = None) -> Rows:
    """Base scalars as they are; where a column is -1 the row is the known value."""
    columns = np.asarray(columns, dtype=np.int32).reshape(-1)
    n = len(columns)
    if 0 < n == n_columns <= _KEPT and (columns == np.arange(n)).all():
        return _kept_base(n)
    free = columns >= 0
    if free.all():
        return Rows(even(np.ones((n, 1)), columns[:, None], n_columns), (), np.zeros(n))
    indptr = np.concatenate([[0], np.cumsum(free)])
    sparse = compressed(np.ones(int(free.sum())), columns[free], indptr, (n, n_columns))
    constant = np.zeros(n) if known is None else np.where(free, 0.0, np.asarray(known, dtype=float).reshape(-1))
    return Rows(sparse, (), constant)


@lru_cache(maxsize=64)
def _kept_base(n: int) -> Rows:
    """All base scalars in their order."""
    sparse, constant = even(np.ones((n, 1)), np.arange(n, dtype=np.int32)[:, None], n), np.zeros(n)
    for a in (sparse.data, sparse.indices, sparse.indptr, constant):
        a.flags.writeable = False
    return Rows(sparse, (), constant)


def take(rows: Rows, index: np.ndarray | None) -> Rows:
    """Some rows, in the order of `index`; None: all of them."""
    if index is None or (len(index) == len(rows) and bool((index == np.arange(len(index))).all())):
        return rows
    s, k = rows.sparse, rows.length
    if k:
        sparse = even(s.data.reshape(-1, k)[index], s.indices.reshape(-1, k)[index], s.shape[1])
    else:
        first, last = s.indptr[:-1][index], s.indptr[1:][index]
        ends = np.concatenate([[0], np.cumsum(last - first)])
        at = np.arange(ends[-1]) + np.repeat(first - ends[:-1], last - first)
        sparse = compressed(s.data[at], s.indices[at], ends, (len(index), s.shape[1]))
    return Rows(sparse, tuple((x[index], columns) for x, columns in rows.dense), rows.constant[index])


def scale(rows: Rows, factor: np.ndarray | float) -> Rows:
    """Every row times its own number, or all times one."""
    s = rows.sparse
    each = factor if isinstance(factor, float) else np.repeat(factor, np.diff(s.indptr))
    beside = factor if isinstance(factor, float) else np.reshape(factor, (-1, 1))
    sparse = compressed(s.data * each, s.indices, s.indptr, s.shape) if len(s.data) else s
    return Rows(sparse, tuple((beside * x, c) for x, c in rows.dense), factor * rows.constant)


def shifted(rows: Rows, constant: np.ndarray) -> Rows:
    """Every row plus its own number."""
    return Rows(rows.sparse, rows.dense, rows.constant + constant)


def add(a: Rows, b: Rows) -> Rows:
    """The sum, row by row."""
    dense = list(a.dense)
    for x, columns in b.dense:
        same = [k for k, (_, c) in enumerate(dense) if c is columns or np.array_equal(c, columns)]
        if same:
            dense[same[0]] = (dense[same[0]][0] + x, columns)
        else:
            dense.append((x, columns))
    return Rows(_sum(a, b), tuple(dense), a.constant + b.constant)


def _sum(a: Rows, b: Rows) -> Any:
    s, t = a.sparse, b.sparse
    if not len(s.data) or not len(t.data):
        return s if len(s.data) else t
    if a.length == b.length == 1 and not (s.indices == t.indices).any():  # x[i] - x[j], without SciPy's merging
        columns = np.stack([s.indices, t.indices], axis=1)
        return even(np.stack([s.data, t.data], axis=1), columns, s.shape[1])
    return s + t


def minus(a: Rows, b: Rows) -> Rows:
    """The difference, row by row."""
    return add(a, scale(b, -1.0))


def apply(matrix: Any, rows: Rows) -> Rows:
    """``matrix @ rows``, a dense or CSR matrix; a long dense one over many scalars stays dense."""
    constant = np.asarray(matrix @ rows.constant).reshape(-1) if rows.constant.any() else np.zeros(matrix.shape[0])
    if not sp.issparse(matrix) and _worth_dense(matrix) and not rows.dense:
        nothing = empty(matrix.shape[0], rows.n_columns)
        if rows.in_order:
            return Rows(nothing, ((matrix, np.arange(rows.n_columns)),), constant)
        columns = np.flatnonzero(np.bincount(rows.sparse.indices))
        part = rows.sparse[:, columns]
        identity = part.nnz == len(columns) == part.shape[0] and bool((part.data == 1).all())
        if identity and np.array_equal(part.indices, np.arange(len(columns))):
            return Rows(nothing, ((matrix, columns),), constant)
        return Rows(nothing, ((matrix @ part.toarray(), columns),), constant)
    sparse = sp.csr_array(matrix)
    if rows.in_order and not sp.issparse(matrix):
        return Rows(sparse, (), constant)
    dense = tuple((np.asarray(matrix @ x), columns) for x, columns in rows.dense)
    return Rows(_product(sparse, rows), dense, constant)


def _product(matrix: Any, rows: Rows) -> Any:
    """``matrix @ rows.sparse``."""
    k = even_length(matrix) if rows.length == 1 else 0
    if 0 < k <= 2:  # sums of one or two multiples of scalars
        at, s = matrix.indices, rows.sparse
        columns = s.indices[at].reshape(-1, k)
        if k == 1 or (columns[:, 0] != columns[:, 1]).all():
            return even((matrix.data * s.data[at]).reshape(-1, k), columns, rows.n_columns)
    return sp.csr_array(matrix @ rows.sparse)


def _worth_dense(matrix: np.ndarray) -> bool:
    n, k = matrix.shape
    return bool(n > _FEW and k > _SHORT and np.count_nonzero(matrix) > _SPARSE * matrix.size)


def joined(parts: Sequence[Rows], n_columns: int) -> Rows:
    """The rows of all parts, one below the other."""
    parts = [p for p in parts if len(p)]
    if not parts:
        return constants(np.zeros(0), n_columns)
    if len(parts) == 1:
        return parts[0]
    sparse = stacked([p.sparse for p in parts], n_columns)
    groups: list[tuple[np.ndarray, list[tuple[int, np.ndarray]]]] = []  # columns, and the matrices of the parts on them
    for k, part in enumerate(parts):
        for x, columns in part.dense:
            same = next((g for c, g in groups if c is columns or np.array_equal(c, columns)), None)
            if same is None:
                groups.append((columns, [(k, x)]))
            else:
                same.append((k, x))
    starts = np.cumsum([0, *(len(p) for p in parts)])
    dense = []
    for columns, matrices in groups:
        whole = np.zeros((starts[-1], len(columns)))
        for k, x in matrices:
            whole[starts[k] : starts[k + 1]] += x
        dense.append((whole, columns))
    return Rows(sparse, tuple(dense), np.concatenate([p.constant for p in parts]))


def image(rows: Rows, x: np.ndarray) -> np.ndarray:
    """The values of the rows at base scalars x, without the constants; not to be written to."""
    if rows.in_order:
        return x
    value = rows.sparse @ x if rows.n_entries else np.zeros(len(rows))
    for matrix, columns in rows.dense:
        value = value + matrix @ x[columns]
    return value


def over(rows: Rows, matrix: np.ndarray, part: slice | None = None) -> np.ndarray:
    """``A matrix`` for all rows or some of them, without the constants; not to be written to."""
    every = part is None or part == slice(0, len(rows))
    if every and rows.is_base:
        return matrix if rows.in_order else matrix[rows.sparse.indices]
    value = (rows.sparse if every else rows.sparse[part]) @ matrix
    for x, columns in rows.dense:
        value = value + (x if every else x[part]) @ matrix[columns]
    return value


def pull(rows: Rows, value: np.ndarray) -> np.ndarray:
    """``A' value``, over the base scalars; not to be written to."""
    if rows.in_order:
        return value
    total = rows.sparse.T @ value if rows.n_entries else np.zeros(rows.n_columns)
    for x, columns in rows.dense:
        total[columns] += x.T @ value
    return total


def transposed(rows: Rows) -> np.ndarray:
    """``A'``, dense."""
    whole = rows.sparse.T.toarray()
    for x, columns in rows.dense:
        whole[columns] += x.T
    return whole
