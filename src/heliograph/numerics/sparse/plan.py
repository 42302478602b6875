"""The plan of a factorisation, made from the pattern alone: an order of elimination, its cost, and a layout.

Variables get new numbers, in the order in which they are eliminated. The precision in these numbers is an arrow,

    +-----------+---+---+
    | groups    |   |   |    groups  supernodes of d variables beside k later ones, m at a time
    |     +-----+---+ b |    tail    what is left of the sparse part, dense, T x T
    |     | tail    | o |    core    vectors and scalars in very many rows, dense, D x D
    +-----+---------+ r |    border  between the sparse part and the core, dense
    | border        | d |
    +---------------+---+

and its numbers, the *values*, are one flat array: for each group m diagonal blocks (d, d) and m blocks (d, k), then the tail, the
border (n_sparse, D) and the core. Of a symmetric block only the lower triangle counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from heliograph.errors import HeliographError
from heliograph.numerics.remembering import is_remembering, pattern_of, recalled
from heliograph.numerics.sparse.layout import Layout, bare_layout, layout_of, layout_with
from heliograph.numerics.sparse.ordering import eliminate
from heliograph.numerics.sparse.rounds import Elimination
from heliograph.numerics.sparse.rows import Rows

__all__ = ["Budget", "Pairs", "Plan", "TooExpensiveError", "analyse", "count_pairs", "pairs_of", "without_fill"]


BYTES_PER_PAIR = 40  # of entries in a site: its place, its weight and its product, in both directions
MANY_PAIRS = 50_000_000  # pairs of entries beyond which even looking at the pattern takes gigabytes


class TooExpensiveError(HeliographError, RuntimeError):
    """A joint solve was asked of a plan beyond its budget."""


@dataclass(frozen=True)
class Budget:
    """What a sweep may cost. The defaults are about two seconds of one core, and 2 GB."""

    flops: float = 4e10
    bytes: float = 2e9


@dataclass(frozen=True)
class Plan:
    """An order of elimination, what it costs, and, if that is within the budget, the layout of the numbers."""

    order: np.ndarray  # (n,) variables as they are eliminated: groups, tail, core
    number: np.ndarray  # (n,) the inverse of `order`
    n_core: int
    tail: int
    flops: float  # of one factorisation with all variances
    bytes: float  # of all arrays in use at once
    fill: int  # numbers in the factor
    n_rounds: int
    budget: Budget
    layout: Layout | None  # None beyond the budget
    filled: bool = True  # whether the layout has room for the factor, or only for the precision itself

    @property
    def n_sparse(self) -> int:
        """How many variables are outside the core."""
        return len(self.order) - self.n_core

    @property
    def affordable(self) -> bool:
        """Whether a joint solve is within the budget."""
        return self.layout is not None

    @property
    def border(self) -> slice:
        """Where the border ``(n_sparse, n_core)`` lies in the values."""
        end = self.fill - self.n_core**2
        return slice(end - self.n_sparse * self.n_core, end)

    @property
    def core(self) -> slice:
        """Where the core ``(n_core, n_core)`` lies in the values."""
        return slice(self.fill - self.n_core**2, self.fill)

    @property
    def tail_values(self) -> slice:
        """Where the tail ``(tail, tail)`` lies in the values."""
        return slice(self.border.start - self.tail**2, self.border.start)


def analyse(
    parts: Sequence[Rows],
    vectors: Sequence[tuple[int, int]] = (),
    *,
    core: Sequence[int] | np.ndarray = (),
    budget: Budget | None = None,
) -> Plan:
    """Plan the elimination for a precision ``sum A' diag(tau) A`` over `parts`.

    Parameters
    ----------
    parts : sequence of Rows
        All rows that will be weighed, or whose variances will be wanted, over the same variables. Coefficients do not matter.
    vectors : sequence of (start, stop)
        Vector variables: each is dense in itself and belongs to the core, as are the variables of dense rows.
    core : sequence of int
        Further variables of the core, such as those that are shared with other parts of the data.
    budget : Budget, optional
        Beyond it the plan has costs and no layout, and its numeric verbs raise `TooExpensiveError`.
    """
    budget = budget or Budget()
    key = _key(parts, tuple(vectors), np.asarray(core, dtype=np.int64), budget) if is_remembering() else None
    return recalled("plan", key, lambda: _analysed(parts, vectors, core, budget))


def _key(parts: Sequence[Rows], vectors: tuple[tuple[int, int], ...], core: np.ndarray, budget: Budget) -> Hashable:
    """All that a plan depends on."""
    rows = pattern_of(core, *(a for p in parts for a in (p.indptr, p.indices)))
    dense = tuple(tuple((d.first, d.start, d.matrix.shape) for d in p.dense) for p in parts)
    shapes = tuple((p.n_variables, p.n_rows, p.width) for p in parts)
    return None if rows is None else (rows, dense, shapes, vectors, budget)


def _analysed(
    parts: Sequence[Rows], vectors: Sequence[tuple[int, int]], core: Sequence[int] | np.ndarray, budget: Budget
) -> Plan:
    """The plan itself."""
    n = parts[0].n_variables
    in_core = _core(n, parts, vectors, core)
    core_variables, outside = np.flatnonzero(in_core), np.flatnonzero(~in_core)
    n_core = len(core_variables)
    longest = max((int(np.diff(p.indptr[:: p.width]).max(initial=0)) for p in parts), default=0)
    n_pairs = sum(count_pairs(p) for p in parts)
    if n_pairs > MANY_PAIRS:
        order, costs = np.r_[outside, core_variables], (float(longest) ** 3, 8.0 * longest**2, longest**2)
        return Plan(order, np.argsort(order), n_core, longest, *costs, 0, budget, None)
    elimination = eliminate(len(outside), *_edges(parts, in_core), most_flops=budget.flops)
    inside = np.concatenate([g.members.ravel() for g in elimination.groups] + [elimination.tail])
    order = np.concatenate([outside[inside], core_variables])
    number = np.empty(n, dtype=np.int64)
    number[order] = np.arange(n)
    n_core_rows = sum(p.n_rows for p in parts if _dense_over_core(p, in_core))
    flops, size, fill = _costs(elimination, len(outside), n_core, n_core_rows)
    size += BYTES_PER_PAIR * n_pairs
    within = flops <= budget.flops and size <= budget.bytes
    layout = layout_of(elimination) if within else None
    return Plan(order, number, n_core, len(elimination.tail), flops, size, fill, elimination.n_rounds, budget, layout)


def without_fill(plan: Plan, parts: Sequence[Rows], keys: np.ndarray | None = None) -> Plan:
    """The same variables in a layout of the precision alone, for methods that only multiply by it; `keys` of it, where known."""
    if sum(count_pairs(p) for p in parts) > MANY_PAIRS:
        raise TooExpensiveError("some sites join too many variables even to write their precision down")
    in_core = np.zeros(len(plan.order), dtype=bool)
    in_core[plan.order[plan.n_sparse :]] = True
    order = np.concatenate([np.flatnonzero(~in_core), np.flatnonzero(in_core)])
    n, n_core = plan.n_sparse, plan.n_core
    layout = bare_layout(n, *_edges(parts, in_core)) if keys is None else layout_with(n, keys)
    n_pairs = len(layout.keys) - 1
    fill = n + n_pairs + n * n_core + n_core**2
    flops = 4.0 * (n_pairs + n) + 2.0 * n * n_core
    return Plan(order, np.argsort(order), n_core, 0, flops, 8.0 * fill, fill, 0, plan.budget, layout, filled=False)


def _core(
    n: int, parts: Sequence[Rows], vectors: Sequence[tuple[int, int]], more: Sequence[int] | np.ndarray
) -> np.ndarray:
    """Mask of the core: vectors, columns of dense rows, and scalars in more than max(50, 2 sqrt(n)) sites."""
    touched = np.zeros(n, dtype=np.int64)
    for part in parts:
        touched += np.bincount(part.indices, minlength=n)
    mask = touched > max(50.0, 2 * np.sqrt(n))
    for start, stop in vectors:
        mask[start:stop] = True
    for part in parts:
        for dense in part.dense:
            mask[dense.start : dense.start + dense.matrix.shape[1]] = True
    mask[np.asarray(more, dtype=np.int64)] = True
    return mask


def _dense_over_core(part: Rows, in_core: np.ndarray) -> bool:
    """Whether variances of these rows take a dense row over the core; entries in the core alone do not."""
    inside = in_core[part.indices]
    return bool(part.dense) or (bool(inside.any()) and not bool(inside.all()))


def _edges(parts: Sequence[Rows], in_core: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of variables outside the core that share a site, numbered without the core."""
    number = np.cumsum(~in_core) - 1
    left, right = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for part in parts:
        for pairs in pairs_of(part):
            i, j = part.indices[pairs.first].ravel(), part.indices[pairs.second].ravel()
            if in_core.any():
                outside = ~(in_core[i] | in_core[j])
                i, j = i[outside], j[outside]
            left.append(number[i])
            right.append(number[j])
    return np.concatenate(left), np.concatenate(right)


def _costs(elimination: Elimination, n_sparse: int, n_core: int, n_core_rows: int) -> tuple[float, float, int]:
    """Operations and bytes of a factorisation with all variances, and the length of the values."""
    flops, fill, targets, n_tail = 0.0, 0, 0, len(elimination.tail)
    for members, neighbours in elimination.groups:
        (m, d), k = members.shape, neighbours.shape[1]
        flops += m * (2.0 * d**3 + 4.0 * d * d * k + 4.0 * d * k * k + 4.0 * d * (d + k) * n_core)
        fill += m * d * (d + k)
        targets += m * k * (k + 1) // 2
    flops += float(n_tail) ** 3 + 2.0 * n_tail**2 * n_core
    flops += 2.0 * n_sparse * n_core**2 + float(n_core) ** 3 + 4.0 * n_core_rows * n_core**2
    fill += n_tail**2 + n_sparse * n_core + n_core**2
    weighed = n_core_rows * n_core if n_sparse else 0
    return flops, 8.0 * (4.0 * fill + targets + 2.0 * n_tail**2 + weighed), fill


CHUNK = 1 << 15  # pairs: the arrays made from a batch stay in the cache


class Pairs(NamedTuple):
    """Pairs of entries, the first not after the second, of sites with equally many entries."""

    site: np.ndarray  # (k,) which sites
    first: np.ndarray  # (k, P) the first entry's place in `Rows.indices`
    second: np.ndarray  # (k, P)


def count_pairs(rows: Rows) -> int:
    """How many pairs `pairs_of` gives, without making them."""
    length = np.diff(rows.indptr[:: rows.width])
    return int((length * (length + 1) // 2).sum())


def pairs_of(rows: Rows) -> Iterator[Pairs]:
    """Every pair of entries in each site (an entry with itself as well), in batches of sites with equally many."""
    begin = rows.indptr[:: rows.width]
    length = np.diff(begin)
    for count in np.flatnonzero(np.bincount(length)):
        if count == 0:
            continue
        sites = np.flatnonzero(length == count)
        p, q = np.triu_indices(int(count))
        step = max(1, CHUNK // len(p))
        for low in range(0, len(sites), step):
            site = sites[low : low + step]
            yield Pairs(site, begin[site][:, None] + p, begin[site][:, None] + q)
