"""The plan: all that is known of a pattern before any number is touched, its cost first of all.

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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heliograph.errors import HeliographError
from heliograph.numerics.sparse.ordering import Elimination, eliminate, sorted_unique
from heliograph.numerics.sparse.pairs import count_pairs, pairs_of
from heliograph.numerics.sparse.rows import Rows

__all__ = ["Budget", "Group", "Layout", "Plan", "TooExpensiveError", "analyse", "find", "layout_of", "without_fill"]

MANY_PAIRS = 50_000_000  # pairs of entries beyond which even looking at the pattern takes gigabytes


class TooExpensiveError(HeliographError, RuntimeError):
    """A joint solve was asked of a plan beyond its budget."""


@dataclass(frozen=True)
class Budget:
    """What a sweep may cost. The defaults are about two seconds of one core, and 2 GB."""

    flops: float = 4e10
    bytes: float = 2e9


@dataclass(frozen=True)
class Group:
    """m supernodes of d variables, beside k later ones; in the numbers of the elimination."""

    rows: slice  # the variables, supernode after supernode: m d of them
    shape: tuple[int, int, int]  # (m, d, k)
    diagonal: slice  # where the blocks (m, d, d) lie in the values
    beside: slice  # and the blocks (m, d, k)
    neighbours: np.ndarray  # (m, k) ascending
    upper: np.ndarray  # (P,) pairs p <= q of neighbours, as p k + q
    full: np.ndarray  # (k, k) number of the pair of each entry
    targets: np.ndarray  # (m, P) where the pairs lie in the values


@dataclass(frozen=True)
class Layout:
    """Where each entry of the precision lies in the flat array of values."""

    groups: tuple[Group, ...]
    pivot_of: np.ndarray  # (n_sparse,) the supernode of a variable; the tail is the last
    first: np.ndarray  # (p,) a supernode's first variable
    size: np.ndarray  # (p,) d
    n_beside: np.ndarray  # (p,) k
    diagonal: np.ndarray  # (p,) where its diagonal block begins
    beside: np.ndarray  # (p,) where its block (d, k) begins
    keys: np.ndarray  # pivot * n_sparse + neighbour, ascending
    key_start: np.ndarray  # (p,)


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
    n = parts[0].n_variables
    in_core = _core(n, parts, vectors, core)
    core_variables, outside = np.flatnonzero(in_core), np.flatnonzero(~in_core)
    n_core = len(core_variables)
    longest = max((int(np.diff(p.indptr[:: p.width]).max(initial=0)) for p in parts), default=0)
    if sum(count_pairs(p) for p in parts) > MANY_PAIRS:
        order, costs = np.r_[outside, core_variables], (float(longest) ** 3, 8.0 * longest**2, longest**2)
        return Plan(order, np.argsort(order), n_core, longest, *costs, 0, budget, None)
    elimination = eliminate(len(outside), *_edges(parts, in_core), most_flops=budget.flops)
    inside = np.concatenate([g.members.ravel() for g in elimination.groups] + [elimination.tail])
    order = np.concatenate([outside[inside], core_variables])
    number = np.empty(n, dtype=np.int64)
    number[order] = np.arange(n)
    n_core_rows = sum(p.n_rows for p in parts if p.dense or in_core[p.indices].any())
    flops, size, fill = _costs(elimination, len(outside), n_core, n_core_rows)
    within = flops <= budget.flops and size <= budget.bytes
    layout = layout_of(elimination) if within else None
    return Plan(order, number, n_core, len(elimination.tail), flops, size, fill, elimination.n_rounds, budget, layout)


def without_fill(plan: Plan, parts: Sequence[Rows]) -> Plan:
    """The same variables in a layout of the precision alone, for methods that only multiply by it."""
    in_core = np.zeros(len(plan.order), dtype=bool)
    in_core[plan.order[plan.n_sparse :]] = True
    order = np.concatenate([np.flatnonzero(~in_core), np.flatnonzero(in_core)])
    n, n_core = plan.n_sparse, plan.n_core
    i, j = _edges(parts, in_core)
    x, y = np.divmod(sorted_unique((np.minimum(i, j) * n + np.maximum(i, j))[i != j]), max(n, 1))
    every, n_beside = np.arange(n), np.bincount(x, minlength=n)
    start = np.cumsum(n_beside) - n_beside
    keys = np.append(x * n + y, np.iinfo(np.int64).max)
    layout = Layout((), every, every, np.ones(n, dtype=np.int64), n_beside, every, n + start, keys, start)
    fill = n + len(x) + n * n_core + n_core**2
    flops = 4.0 * (len(x) + n) + 2.0 * n * n_core
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
    return flops, 8.0 * (4.0 * fill + targets + 2.0 * n_tail**2), fill


def layout_of(elimination: Elimination) -> Layout:
    """Give every number of the factor its place."""
    shapes = np.array(
        [(*g.members.shape, g.neighbours.shape[1]) for g in elimination.groups] or np.zeros((0, 3)), dtype=np.int64
    ).reshape(-1, 3)
    n_tail = len(elimination.tail)
    n = int((shapes[:, 0] * shapes[:, 1]).sum()) + n_tail
    order = np.concatenate([g.members.ravel() for g in elimination.groups] + [elimination.tail])
    number = np.empty(n, dtype=np.int64)
    number[order] = np.arange(n)
    m, d, k = shapes.T
    group_start = np.concatenate([[0], np.cumsum(m * d * (d + k))])
    group = np.repeat(np.arange(len(m)), m)  # of each supernode
    within = np.arange(len(group)) - np.repeat(np.cumsum(m) - m, m)
    size, n_beside = np.r_[d[group], n_tail], np.r_[k[group], 0]
    diagonal = np.r_[group_start[group] + within * d[group] ** 2, group_start[-1]]
    beside = np.r_[(group_start[:-1] + m * d * d)[group] + within * (d * k)[group], 0]
    first = np.concatenate([[0], np.cumsum(size)[:-1]])
    near = [np.sort(number[g.neighbours], axis=1) for g in elimination.groups]
    pivot = np.repeat(np.arange(len(size)), n_beside)
    beyond = np.iinfo(np.int64).max  # closes the keys, so that a search never ends outside
    keys = np.append(pivot * n + np.concatenate([np.zeros(0, dtype=np.int64), *(x.ravel() for x in near)]), beyond)
    key_start = np.concatenate([[0], np.cumsum(n_beside)[:-1]])
    bare = Layout((), np.repeat(np.arange(len(size)), size), first, size, n_beside, diagonal, beside, keys, key_start)
    groups, row = [], 0
    for shape, start, neighbours in zip(shapes.tolist(), group_start.tolist(), near, strict=False):
        groups.append(_group(bare, tuple(shape), row, start, neighbours))
        row = groups[-1].rows.stop
    return Layout(tuple(groups), bare.pivot_of, first, size, n_beside, diagonal, beside, keys, key_start)


def _group(layout: Layout, shape: tuple[int, int, int], row: int, start: int, neighbours: np.ndarray) -> Group:
    """One group, with the places that its elimination changes."""
    m, d, k = shape
    middle = start + m * d * d
    p, q = np.triu_indices(k)
    full = np.empty((k, k), dtype=np.int64)
    full[p, q] = full[q, p] = np.arange(len(p))
    targets = find(layout, neighbours[:, p], neighbours[:, q])
    rows, diagonal, beside = slice(row, row + m * d), slice(start, middle), slice(middle, middle + m * d * k)
    return Group(rows, shape, diagonal, beside, neighbours, p * k + q, full, targets)


def find(layout: Layout, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Places of the entries (x, y), x not after y, of the sparse part; they must be in the filled pattern."""
    pivot = layout.pivot_of[x]
    inner, d = x - layout.first[pivot], layout.size[pivot]
    place = layout.diagonal[pivot] + (y - layout.first[pivot]) * d + inner
    apart = layout.pivot_of[y] != pivot
    if apart.any():
        pivot, inner = pivot[apart], inner[apart]
        key = pivot * len(layout.pivot_of) + y[apart]
        at = np.searchsorted(layout.keys, key)
        if not np.array_equal(layout.keys[at], key):
            raise ValueError("an expression joins variables that the analysed rows do not join")
        column = at - layout.key_start[pivot]
        place[apart] = layout.beside[pivot] + inner * layout.n_beside[pivot] + column
    return place
