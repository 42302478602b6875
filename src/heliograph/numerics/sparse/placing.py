"""Rows placed in a plan: from weights of rows to values of the precision, and from the inverse to variances of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from heliograph.numerics.sparse.pairs import pairs_of
from heliograph.numerics.sparse.plan import Plan, TooExpensiveError, find
from heliograph.numerics.sparse.rows import Dense, Rows, weigh

__all__ = ["Placed", "core_precision", "gram", "place"]

CHUNK = 4096  # rows: a weighed block of 50 columns stays in the second-level cache


@dataclass(frozen=True)
class Placed:
    """Rows, and where their pairs of entries lie in the values of a plan."""

    plan: Plan
    rows: Rows
    matrix: sparse.csr_array  # (m, n) the sparse part of A, columns in the order of elimination
    to_values: sparse.csr_array  # (fill, weights)
    from_inverse: sparse.csr_array  # (weights, values up to the border)
    from_core: sparse.csr_array  # (weights, D D)
    core_alone: bool  # no row has an entry outside the core, nor a dense part
    dense: tuple[Dense, ...]  # whole sites, `start` counted in the core


def place(plan: Plan, rows: Rows) -> Placed:
    """Find the places of `rows` in the values; every site must join only variables that the analysed rows join."""
    if plan.layout is None:
        raise TooExpensiveError(f"a joint solve takes {plan.flops:.1e} operations and {plan.bytes:.1e} bytes")
    q = rows.width
    number = plan.number[rows.indices]
    part = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr)) % q  # the entry's row in its site
    sites, places, values, halves = [], [], [], []
    for pairs in pairs_of(rows):
        x, y = number[pairs.first].ravel(), number[pairs.second].ravel()
        i, j = part[pairs.first].ravel(), part[pairs.second].ravel()
        product = (rows.values[pairs.first] * rows.values[pairs.second]).ravel()
        itself = (pairs.first == pairs.second).ravel()
        where = _find(plan, np.minimum(x, y), np.maximum(x, y))
        half = np.where(x == y, 1.0, 0.5)  # an entry off the diagonal is stored once and counts twice
        site = np.repeat(pairs.site, pairs.first.shape[1]) * q * q
        sites.append(site + i * q + j)
        values.append(np.where(~itself & (i == j), 2 * product, product))
        places.append(where)
        halves.append(half)
        if q > 1:
            other = np.flatnonzero(i != j)
            sites.append((site + j * q + i)[other])
            values.append(product[other])
            places.append(where[other])
            halves.append(half[other])
    weight, where = _join(sites, np.int64), _join(places, np.int64)
    value, half = _join(values, float), _join(halves, float)
    n_weights = rows.n_sites * q * q
    return Placed(
        plan,
        rows,
        sparse.csr_array((rows.values, number, rows.indptr), shape=(rows.n_rows, len(plan.order))),
        sparse.csr_array((value * half, (where, weight)), shape=(plan.fill, n_weights)),
        _columns_of(value, weight, where, n_weights, slice(0, plan.border.start)),
        _columns_of(value, weight, where, n_weights, plan.core),
        not rows.dense and bool((number >= plan.n_sparse).all()),
        tuple(_whole_sites(plan, rows, d) for d in rows.dense),
    )


def _join(arrays: list[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)


def _columns_of(value: np.ndarray, row: np.ndarray, column: np.ndarray, n_rows: int, wanted: slice) -> sparse.csr_array:
    """The sparse matrix of the entries whose column is `wanted`, these columns alone."""
    shape = (n_rows, wanted.stop - wanted.start)
    kept = (column >= wanted.start) & (column < wanted.stop)
    if not kept.all():
        value, row, column = value[kept], row[kept], column[kept]
    return sparse.csr_array((value, (row, column - wanted.start)), shape=shape)


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
    values = placed.to_values @ tau.ravel()
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


def core_precision(plan: Plan, variables: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Values of a dense precision over some variables of the core: a vector's prior, or the message of another part."""
    at = plan.number[np.asarray(variables)] - plan.n_sparse
    if (at < 0).any():
        raise ValueError("a dense precision over variables that are not all in the core")
    values = np.zeros(plan.fill)
    values[plan.core].reshape(plan.n_core, plan.n_core)[np.ix_(at, at)] += precision
    return values
