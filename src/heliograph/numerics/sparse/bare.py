"""The precision itself as a sparse matrix, without a factor: for methods that only multiply by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from heliograph.numerics.sparse.batched import NotPositiveDefiniteError
from heliograph.numerics.sparse.pairs import PairRows, add_gram_of_pairs, find_links
from heliograph.numerics.sparse.placing import Placed, gram, place
from heliograph.numerics.sparse.plan import Plan, without_fill
from heliograph.numerics.sparse.rows import Rows

__all__ = ["Bare", "bare_of", "scaled", "values_of"]


@dataclass(frozen=True)
class Bare:
    """The pattern of the precision, before its numbers are known."""

    plan: Plan  # without fill
    rows: tuple[Rows, ...]
    indptr: np.ndarray  # the sparse part as CSR, both triangles
    indices: np.ndarray
    source: np.ndarray  # where each entry lies in the values
    pairs: tuple[PairRows, ...] | None  # the rows, if all are of one or two variables and there is no core

    @cached_property
    def parts(self) -> tuple[Placed, ...]:
        """The rows with their places in the values."""
        return tuple(place(self.plan, part, queried=False) for part in self.rows)

    @cached_property
    def links(self) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of variables that the precision has entries for, the first before the second."""
        assert self.plan.layout is not None
        return np.divmod(self.plan.layout.keys[:-1], max(self.plan.n_sparse, 1))


def bare_of(plan: Plan, parts: Sequence[Rows]) -> Bare:
    """Prepare the rows that were analysed; the plan may be beyond its budget."""
    links = None if plan.n_core else find_links(plan.n_sparse, parts)
    bare = without_fill(plan, parts, None if links is None else links.keys)
    assert bare.layout is not None
    n = bare.n_sparse
    x, y = np.divmod(bare.layout.keys[:-1], max(n, 1))
    every = np.arange(n)
    row, column = np.concatenate([every, x, y]), np.concatenate([every, y, x])
    where = n + np.arange(len(x))
    # counted from 1, since a sparse matrix may drop what is 0; its transposition sorts each row
    numbered = np.concatenate([every, where, where]) + 1
    entries = sparse.csr_array((numbered, (column, row)), shape=(n, n)).T.tocsr()
    pairs = None if links is None else links.parts
    return Bare(bare, tuple(parts), entries.indptr, entries.indices, entries.data - 1, pairs)


def values_of(bare: Bare, taus: Sequence[np.ndarray]) -> np.ndarray:
    """The values of the precision for weights of each part's sites."""
    total = np.zeros(bare.plan.fill)
    if bare.pairs is None:
        return sum((gram(part, tau) for part, tau in zip(bare.parts, taus, strict=True)), total)
    for part, tau in zip(bare.pairs, taus, strict=True):
        add_gram_of_pairs(total, bare.plan.n_sparse, part, tau)
    return total


def scaled(bare: Bare, values: np.ndarray) -> tuple[np.ndarray, sparse.csr_array, np.ndarray]:
    """The scale that gives the sparse part a unit diagonal, which is a preconditioner; that matrix; and its entries at links."""
    n = bare.plan.n_sparse
    diagonal = values[:n]
    if not ((diagonal > 0) & (diagonal < np.inf)).all():
        raise NotPositiveDefiniteError("the precision has a diagonal that is not positive")
    scale = 1.0 / np.sqrt(diagonal)
    low, high = bare.links
    every = np.ones(n + len(low))
    link = every[n:]
    np.multiply(values[n : len(every)], scale[low], out=link)
    link *= scale[high]
    return scale, sparse.csr_array((every[bare.source], bare.indices, bare.indptr), shape=(n, n)), link
