"""Affine expressions of many variables, as the rows of a sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

__all__ = ["Dense", "Rows", "apply", "apply_transposed", "concatenate", "entries", "information", "make_rows", "weigh"]


@dataclass(frozen=True)
class Dense:
    """``matrix @ x[start : start + d]``, added to the rows ``first, first + 1, ...``: a design matrix, kept dense."""

    first: int
    start: int
    matrix: np.ndarray  # (k, d)

    @property
    def stop(self) -> int:
        """The row after the last."""
        return self.first + len(self.matrix)


@dataclass(frozen=True)
class Rows:
    """Expressions ``z = A x + constant``; `make_rows` builds them from entries in any order.

    Rows come in sites of `width` consecutive rows. The numbers of one site are weighed, and known, jointly: the weight of a
    site is a number where `width` is 1, and a symmetric matrix otherwise.
    """

    n_variables: int
    indptr: np.ndarray  # (m + 1,) the entries of row i are indptr[i] : indptr[i + 1]
    indices: np.ndarray  # (nnz,) variables, ascending in each row and without repeats
    values: np.ndarray  # (nnz,) coefficients, none of them zero
    constant: np.ndarray  # (m,)
    width: int = 1
    dense: tuple[Dense, ...] = ()

    @property
    def n_rows(self) -> int:
        """How many expressions there are."""
        return len(self.constant)

    @property
    def n_sites(self) -> int:
        """How many sites there are, of `width` rows each."""
        return len(self.constant) // self.width


def make_rows(
    n_variables: int,
    row: ArrayLike,
    variable: ArrayLike,
    coefficient: ArrayLike = 1.0,
    *,
    n_rows: int | None = None,
    constant: ArrayLike = 0.0,
    width: int = 1,
    dense: Sequence[Dense] = (),
) -> Rows:
    """Expressions from their entries: row, variable and coefficient, in any order.

    Repeated entries are summed and zeros are dropped, so that ``x - x`` is the constant 0.

    Parameters
    ----------
    n_variables : int
        Length of x.
    row, variable, coefficient : array_like
        Entries of A; they are broadcast against each other.
    n_rows : int, optional
        Number of expressions; one more than the largest row if it is left out.
    constant : array_like
        What is added to ``A x``.
    width : int
        Rows per site.
    dense : sequence of Dense
        Design matrices over contiguous variables, added to A.

    Examples
    --------
    >>> rows = make_rows(3, [0, 0, 1, 0, 1], [2, 0, 1, 2, 1], [1.0, 5.0, 1.0, 1.0, -1.0])
    >>> rows.indptr, rows.indices, rows.values
    (array([0, 2, 2]), array([0, 2]), array([5., 2.]))
    """
    row, variable, coefficient = np.broadcast_arrays(
        np.asarray(row, dtype=np.int64), np.asarray(variable, dtype=np.int64), np.asarray(coefficient, dtype=float)
    )
    row, variable, coefficient = row.ravel(), variable.ravel(), coefficient.ravel()
    if n_rows is None:
        n_rows = int(row.max(initial=-1)) + 1
    _check(n_variables, row, variable, n_rows, width, dense)
    key = row * n_variables + variable
    if (key[1:] <= key[:-1]).any():
        order = np.argsort(key, kind="stable")
        key = key[order]
        fresh = np.r_[True, key[1:] != key[:-1]]
        first = np.flatnonzero(fresh)
        coefficient = np.add.reduceat(coefficient[order], first)
        key = key[first]
    kept = np.flatnonzero(coefficient)
    row, variable = np.divmod(key[kept], n_variables) if n_variables else (key[kept], key[kept])
    indptr = np.r_[0, np.cumsum(np.bincount(row, minlength=n_rows))]
    constant = np.array(np.broadcast_to(np.asarray(constant, dtype=float), n_rows))
    return Rows(n_variables, indptr, variable, coefficient[kept], constant, width, tuple(dense))


def _check(
    n_variables: int, row: np.ndarray, variable: np.ndarray, n_rows: int, width: int, dense: Sequence[Dense]
) -> None:
    if row.size and (row.min() < 0 or row.max() >= n_rows):
        raise ValueError(f"a row outside 0..{n_rows - 1}")
    if variable.size and (variable.min() < 0 or variable.max() >= n_variables):
        raise ValueError(f"a variable outside 0..{n_variables - 1}")
    if width < 1 or n_rows % width:
        raise ValueError(f"{n_rows} rows do not make sites of {width}")
    for part in dense:
        if part.first < 0 or part.stop > n_rows:
            raise ValueError(f"dense rows {part.first}..{part.stop - 1} outside 0..{n_rows - 1}")
        if part.start < 0 or part.start + part.matrix.shape[1] > n_variables:
            raise ValueError(f"a dense part over variables outside 0..{n_variables - 1}")


def concatenate(parts: Sequence[Rows]) -> Rows:
    """The rows of all `parts`, one after the other; they share their variables and their width."""
    head = parts[0]
    if any(p.n_variables != head.n_variables or p.width != head.width for p in parts):
        raise ValueError("rows of different variables or widths")
    ends = np.cumsum([0] + [len(p.indices) for p in parts])
    firsts = np.cumsum([0] + [p.n_rows for p in parts])
    return Rows(
        head.n_variables,
        np.concatenate([[0]] + [p.indptr[1:] + end for p, end in zip(parts, ends, strict=False)]),
        np.concatenate([p.indices for p in parts]),
        np.concatenate([p.values for p in parts]),
        np.concatenate([p.constant for p in parts]),
        head.width,
        tuple(
            Dense(int(first) + d.first, d.start, d.matrix)
            for p, first in zip(parts, firsts, strict=False)
            for d in p.dense
        ),
    )


def entries(rows: Rows) -> sparse.csr_array:
    """The sparse part of A."""
    return sparse.csr_array((rows.values, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_variables))


def apply(rows: Rows, x: np.ndarray) -> np.ndarray:
    """Values ``A x + constant`` of the expressions.

    >>> apply(make_rows(2, [0, 0, 1], [0, 1, 1], [1.0, -1.0, 2.0], constant=[0.0, 10.0]), np.array([5.0, 3.0]))
    array([ 2., 16.])
    """
    z = entries(rows) @ x + rows.constant
    for part in rows.dense:
        z[part.first : part.stop] += part.matrix @ x[part.start : part.start + part.matrix.shape[1]]
    return z


def apply_transposed(rows: Rows, r: np.ndarray) -> np.ndarray:
    """``A' r``, over the variables."""
    x = entries(rows).T @ r
    for part in rows.dense:
        x[part.start : part.start + part.matrix.shape[1]] += part.matrix.T @ r[part.first : part.stop]
    return x


def weigh(width: int, tau: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Multiply rows ``z`` of shape (m, ...) by the weights of their sites: (m,) numbers, or (m / q, q, q) matrices."""
    if width == 1:
        return np.reshape(tau, (-1,) + (1,) * (z.ndim - 1)) * z
    by_site = z.reshape(-1, width, int(np.prod(z.shape[1:])))
    return (tau @ by_site).reshape(z.shape)


def information(rows: Rows, tau: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Information vector ``A' (nu - tau constant)`` of sites ``exp(nu'z - z' tau z / 2)`` on ``z = A x + constant``.

    >>> information(make_rows(1, 0, 0, 2.0, constant=3.0), np.array([1.0]), np.array([4.0]))
    array([2.])
    """
    return apply_transposed(rows, np.ravel(nu) - weigh(rows.width, tau, rows.constant))
