"""Rows placed in a plan: from weights of rows to values of the precision, and from the inverse to variances of rows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from heliograph.numerics.remembering import is_remembering, pattern_of, recalled
from heliograph.numerics.sparse.layout import find
from heliograph.numerics.sparse.plan import Plan, TooExpensiveError, count_pairs, pairs_of
from heliograph.numerics.sparse.rows import Dense, Rows, weigh

__all__ = ["Placed", "from_upper_triangles", "gram", "place", "upper_triangles"]

CHUNK = 4096  # rows: a weighed block of 50 columns stays in the second-level cache


@dataclass(frozen=True)
class Placed:
    """Rows, and where their pairs of entries lie in the values of a plan.

    The weights of a site of q rows are taken as the q (q + 1) / 2 numbers of the upper triangle.
    """

    plan: Plan
    rows: Rows
    matrix: sparse.csr_array  # (m, n) the sparse part of A, columns in the order of elimination
    to_values: sparse.csr_array  # (fill, weights)
    from_inverse: sparse.csr_array | None  # (weights, values up to the border)
    from_core: sparse.csr_array | None  # (weights, D D)
    core_alone: bool  # no row has an entry outside the core, nor a dense part
    dense: tuple[Dense, ...]  # whole sites, `start` counted in the core


def _with_numbers(pattern: sparse.csr_array, numbers: np.ndarray) -> sparse.csr_array:
    """The matrix of a pattern with other numbers; SciPy would check the pattern once more, which takes longer than its use."""
    made = copy(pattern)
    made.data = numbers
    return made


class _Pattern(NamedTuple):
    """A sparse matrix without its numbers."""

    entries: tuple[np.ndarray, np.ndarray]  # (row, column) of every number, in any order
    made: sparse.csr_array  # the same matrix with the place of each number among the entries, counted from 1

    def filled(self, value: np.ndarray) -> sparse.csr_array:
        """The matrix with its numbers; those in one place are summed."""
        made = self.made
        if made.nnz < len(value):
            return sparse.csr_array((value, self.entries), shape=made.shape)
        order = np.asarray(made.data, dtype=np.int64) - 1
        return _with_numbers(made, value[order])


_Columns = tuple[np.ndarray | slice, _Pattern]  # the pairs that count, and their matrix


class _Places(NamedTuple):
    """For each pair of entries of rows of one pattern: which they are, how often they meet, and where their product goes."""

    plan: Plan
    first: np.ndarray  # entries
    second: np.ndarray
    up: np.ndarray  # how often a pair meets in the values
    down: np.ndarray  # and in the variance of its row
    to_values: _Pattern
    from_variance: tuple[_Columns, _Columns] | None  # of the values up to the border, and of the core
    matrix: sparse.csr_array  # the pattern of the rows, columns in the order of elimination
    core_alone: bool  # no entry is outside the core


def place(plan: Plan, rows: Rows, *, queried: bool = True) -> Placed:
    """Find the places of `rows` in the values.

    Parameters
    ----------
    plan : Plan
        Within its budget.
    rows : Rows
        Every site must join only variables that the analysed rows join.
    queried : bool
        Whether variances of these rows will be wanted; those of priors and data are not, and are then not prepared.
    """
    if plan.layout is None:
        raise TooExpensiveError(f"a joint solve takes {plan.flops:.1e} operations and {plan.bytes:.1e} bytes")
    key = None
    if is_remembering():
        pattern = pattern_of(rows.indptr, rows.indices)
        key = (
            None if pattern is None else (id(plan), rows.width, queried, pattern)
        )  # the plan is kept, too: its id stays
    places = recalled("places", key, lambda: _places(plan, rows, queried))
    product = rows.values[places.first] * rows.values[places.second]
    to_values = places.to_values.filled(places.up * product)
    from_inverse = from_core = None
    if places.from_variance is not None:
        down = places.down * product
        from_inverse, from_core = (pattern.filled(down[k]) for k, pattern in places.from_variance)
    matrix = _with_numbers(places.matrix, rows.values)
    core_alone = not rows.dense and places.core_alone
    dense = tuple(_whole_sites(plan, rows, d) for d in rows.dense)
    return Placed(plan, rows, matrix, to_values, from_inverse, from_core, core_alone, dense)


def _places(plan: Plan, rows: Rows, queried: bool) -> _Places:
    """Weights and places of all pairs of entries."""
    number, q, n = plan.number[rows.indices], rows.width, count_pairs(rows)
    part = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)) % q  # an entry's row in its site
    upper = np.zeros((q, q), dtype=np.int64)
    upper[np.triu_indices(q)] = np.arange(q * (q + 1) // 2)
    index = np.int32 if max(plan.fill, rows.n_sites * q * q) < 2**31 else np.int64  # what SciPy would convert to
    weight, where, one, two = np.empty(n, index), np.empty(n, index), np.empty(n, np.int64), np.empty(n, np.int64)
    done = 0
    for site, first, second in pairs_of(rows):
        to = slice(done, done + first.size)
        x, y = number[first], number[second]
        weight[to] = (site[:, None] * (q * (q + 1) // 2) + upper[part[first], part[second]]).ravel()
        where[to] = _find(plan, np.minimum(x, y).ravel(), np.maximum(x, y).ravel())
        one[to], two[to] = first.ravel(), second.ravel()
        done = to.stop
    # Off the diagonal an entry is stored once. On it, two entries in two rows of a site meet twice.
    in_two_rows = part[one] != part[two]
    up = np.where((number[one] == number[two]) & in_two_rows, 2.0, 1.0)
    down = np.where(~in_two_rows & (one != two), 2.0, 1.0)
    n_weights = rows.n_sites * (q * (q + 1) // 2)
    variance = None
    if queried:  # two different entries of one row meet twice in its variance
        ends = slice(0, plan.border.start), plan.core
        before, core = (_columns_of(weight, where, n_weights, e) for e in ends)
        variance = before, core
    to_values = _pattern(where, weight, (plan.fill, n_weights))
    matrix = sparse.csr_array((rows.values, number, rows.indptr), shape=(rows.n_rows, len(plan.order)))
    return _Places(plan, one, two, up, down, to_values, variance, matrix, bool((number >= plan.n_sparse).all()))


def _pattern(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> _Pattern:
    """The matrix with entries at these places."""
    return _Pattern((row, column), sparse.csr_array((np.arange(1, len(row) + 1), (row, column)), shape=shape))


def _columns_of(row: np.ndarray, column: np.ndarray, n_rows: int, wanted: slice) -> _Columns:
    """The entries whose column is `wanted`, and the matrix of these columns alone."""
    kept = (column >= wanted.start) & (column < wanted.stop)
    shape = n_rows, wanted.stop - wanted.start
    if kept.all():
        return slice(None), _pattern(row, column - wanted.start, shape)
    return kept, _pattern(row[kept], column[kept] - wanted.start, shape)


def upper_triangles(matrices: np.ndarray) -> np.ndarray:
    """Upper triangles of (k, q, q) symmetric matrices, flat; numbers (k,) stay as they are."""
    if matrices.ndim == 1:
        return matrices
    i, j = np.triu_indices(matrices.shape[1])
    return matrices[:, i, j].ravel()


def from_upper_triangles(flat: np.ndarray, q: int) -> np.ndarray:
    """The symmetric matrices (k, q, q) again; numbers (k,) where q is 1."""
    if q == 1:
        return flat
    i, j = np.triu_indices(q)
    out = np.empty((flat.size // len(i), q, q))
    out[:, i, j] = out[:, j, i] = flat.reshape(-1, len(i))
    return out


def _find(plan: Plan, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Places of the entries (x, y), x not after y, in the sparse part, the border or the core."""
    assert plan.layout is not None
    n, n_core = plan.n_sparse, plan.n_core
    if not n_core:
        return find(plan.layout, x, y)
    out = np.where(
        x >= n,
        plan.core.start + (y - n) * n_core + (x - n),
        plan.border.start + x * n_core + (y - n),
    )
    inner = y < n
    out[inner] = find(plan.layout, x[inner], y[inner])
    return out


def _whole_sites(plan: Plan, rows: Rows, dense: Dense) -> Dense:
    """The same dense part, from the first row of a site to the last row of one."""
    q, width = rows.width, dense.matrix.shape[1]
    start = int(plan.number[dense.start]) - plan.n_sparse if width else 0
    before, after = dense.first % q, -dense.stop % q
    matrix = np.asarray(dense.matrix, dtype=float)
    if before or after:
        matrix = np.concatenate([np.zeros((before, width)), matrix, np.zeros((after, width))])
    return Dense(dense.first - before, start, matrix)


def gram(placed: Placed, tau: np.ndarray) -> np.ndarray:
    """Values of ``A' diag(tau) A``; they add up over parts.

    `tau` has shape (sites,) where the width is 1, otherwise (sites, q, q).
    """
    rows, plan = placed.rows, placed.plan
    tau = np.asarray(tau, dtype=float)
    if tau.shape != (rows.n_sites,) + (() if rows.width == 1 else (rows.width, rows.width)):
        raise ValueError(f"weights of shape {tau.shape} for {rows.n_sites} sites of {rows.width} rows")
    values = placed.to_values @ upper_triangles(tau)
    core = values[plan.core].reshape(plan.n_core, plan.n_core)
    for at, dense in enumerate(placed.dense):
        _add_dense(placed, values, dense, tau)
        for other in placed.dense[:at]:
            low, high = max(dense.first, other.first), min(dense.stop, other.stop)
            if low < high:
                x, y = (d.matrix[low - d.first : high - d.first] for d in (dense, other))
                cross = x.T @ weigh(rows.width, tau[low // rows.width : high // rows.width], y)
                core[_columns(dense), _columns(other)] += cross
                core[_columns(other), _columns(dense)] += cross.T
    return values


def _columns(dense: Dense) -> slice:
    return slice(dense.start, dense.start + dense.matrix.shape[1])


def _add_dense(placed: Placed, values: np.ndarray, dense: Dense, tau: np.ndarray) -> None:
    """Add ``X' diag(tau) X`` and ``S' diag(tau) X``, S being the sparse entries of the same rows."""
    plan, q = placed.plan, placed.rows.width
    n, n_core = plan.n_sparse, plan.n_core
    core, border = values[plan.core].reshape(n_core, n_core), values[plan.border].reshape(n, n_core)
    columns = _columns(dense)
    beside = placed.matrix[dense.first : dense.stop]
    # The cross products cost one pass over the border however many rows there are, so those rows go at once.
    chunk = max(1, CHUNK // q) * q if not beside.nnz else max(1, len(dense.matrix))
    for low in range(0, len(dense.matrix), chunk):
        x = dense.matrix[low : low + chunk]
        first = (dense.first + low) // q
        weighed = weigh(q, tau[first : first + len(x) // q], x)
        core[columns, columns] += x.T @ weighed
        if beside.nnz:
            cross = beside[low : low + chunk].T @ weighed  # (n, d)
            border[:, columns] += cross[:n]
            core[:, columns] += cross[n:]
            core[columns, :] += cross[n:].T
