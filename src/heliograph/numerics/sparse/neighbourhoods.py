"""The variables of each site outside the core, and the block of the precision over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from heliograph.numerics.sparse.layout import Layout, find
from heliograph.numerics.sparse.plan import Plan
from heliograph.numerics.sparse.rows import Rows

__all__ = ["Neighbourhood", "neighbourhoods"]

CHUNK = 2048  # variables: their values under 64 probes stay in the cache
MOST = 24  # variables: the blocks of larger sites would cost more than they save


class Neighbourhood(NamedTuple):
    """Sites of L variables each."""

    sites: np.ndarray  # (k,)
    variables: np.ndarray  # (k, L) numbers of the plan, ascending
    where: np.ndarray | None  # (k, L, L) places of the precision over them; None for large sites
    coefficients: np.ndarray  # (k, q, L)


def neighbourhoods(plan: Plan, rows: Rows) -> Iterator[Neighbourhood]:
    """The sites of `rows` with their variables outside the core, in batches of equally many."""
    assert plan.layout is not None
    q, n = rows.width, max(plan.n_sparse, 1)
    row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
    number = plan.number[rows.indices]
    outside = number < plan.n_sparse
    row, number, value = row[outside], number[outside], rows.values[outside]
    key, local = np.unique((row // q) * n + number, return_inverse=True)
    length = np.bincount(key // n, minlength=rows.n_sites)
    begin = np.cumsum(length) - length
    table = np.zeros((q, len(key)))
    table[row % q, local] = value  # a variable occurs once in a row
    for count in np.flatnonzero(np.bincount(length)):
        if count == 0:
            continue
        every = np.flatnonzero(length == count)
        step = max(1, CHUNK // int(count))
        for low in range(0, len(every), step):
            sites = every[low : low + step]
            at = begin[sites][:, None] + np.arange(count)
            variables = key[at] % n
            coefficients = np.ascontiguousarray(table[:, at].transpose(1, 0, 2))
            where = _block(plan.layout, variables) if count <= MOST else None
            yield Neighbourhood(sites, variables, where, coefficients)


def _block(layout: Layout, variables: np.ndarray) -> np.ndarray:
    """Places (k, L, L) of all pairs of the variables (k, L), which ascend."""
    count = variables.shape[1]
    p, q = np.triu_indices(count)
    where = np.empty((len(variables), count, count), dtype=np.int64)
    found = find(layout, variables[:, p].ravel(), variables[:, q].ravel())
    where[:, p, q] = where[:, q, p] = found.reshape(-1, len(p))
    return where
