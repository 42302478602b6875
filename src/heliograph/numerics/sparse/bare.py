"""The precision itself as a sparse matrix, without a factor: for methods that only multiply by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from heliograph.numerics.sparse.batched import NotPositiveDefiniteError
from heliograph.numerics.sparse.placing import Placed, gram, place
from heliograph.numerics.sparse.plan import Plan, without_fill
from heliograph.numerics.sparse.rows import Rows

__all__ = ["Bare", "bare_of", "scaled", "values_of"]


@dataclass(frozen=True)
class Bare:
    """The pattern of the precision, before its numbers are known."""

    plan: Plan  # without fill
    parts: tuple[Placed, ...]
    indptr: np.ndarray  # the sparse part as CSR, both triangles
    indices: np.ndarray
    source: np.ndarray  # where each entry lies in the values


def bare_of(plan: Plan, parts: Sequence[Rows]) -> Bare:
    """Place the rows that were analysed; the plan may be beyond its budget."""
    bare = without_fill(plan, parts)
    assert bare.layout is not None
    n = bare.n_sparse
    x, y = np.divmod(bare.layout.keys[:-1], max(n, 1))
    every = np.arange(n)
    row, column = np.concatenate([every, x, y]), np.concatenate([every, y, x])
    where = n + np.arange(len(x))
    # counted from 1, since a sparse matrix may drop what is 0; its transposition sorts each row
    numbered = np.concatenate([every, where, where]) + 1
    entries = sparse.csr_array((numbered, (column, row)), shape=(n, n)).T.tocsr()
    placed = tuple(place(bare, part, queried=False) for part in parts)
    return Bare(bare, placed, entries.indptr, entries.indices, entries.data - 1)


def values_of(bare: Bare, taus: Sequence[np.ndarray]) -> np.ndarray:
    """The values of the precision for weights of each part's sites."""
    return sum((gram(part, tau) for part, tau in zip(bare.parts, taus, strict=True)), np.zeros(bare.plan.fill))


def scaled(bare: Bare, values: np.ndarray) -> tuple[np.ndarray, sparse.csr_array]:
    """The sparse part with unit diagonal, and the scale by which it got it: a preconditioner."""
    n = bare.plan.n_sparse
    diagonal = values[:n]
    if not ((diagonal > 0) & (diagonal < np.inf)).all():
        raise NotPositiveDefiniteError("the precision has a diagonal that is not positive")
    scale = 1.0 / np.sqrt(diagonal)
    data = values[bare.source] * np.repeat(scale, np.diff(bare.indptr)) * scale[bare.indices]
    return scale, sparse.csr_array((data, bare.indices, bare.indptr), shape=(n, n))
