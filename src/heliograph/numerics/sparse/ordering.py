"""The order of elimination: minimum degree in rounds, found once for a pattern.

A round eliminates many variables of low degree at once, no two of them neighbours, so that the numeric work of a round is a
few batched calls. Variables with the same closed neighbourhood become one supernode; in what follows a *node* is a supernode
of the graph that is left, numbered anew in each round, and its *members* are variables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.numerics.sparse.bitsets import MOST_VARIABLES, eliminate_densely
from heliograph.numerics.sparse.expanders import least_tail
from heliograph.numerics.sparse.rounds import LOW_DEGREE, Elimination, Pivots, best_left_dense, low_degrees, stuck

__all__ = ["eliminate", "sorted_unique"]

MOST_EDGES = 20_000_000  # the graph of the search itself must stay small; what is left then is the tail, and expensive
SMALL_CODES = 46_340  # nodes up to which a pair is a number of 32 bits, which takes half the time to sort
PASSES = 3  # one pass of local minima leaves many free nodes that are next to none of them


class _Graph(NamedTuple):
    """The graph that is left: nodes 0..L-1, each edge once, smaller node first."""

    size: np.ndarray  # (L,) members per node
    a: np.ndarray  # (E,)
    b: np.ndarray  # (E,)
    salt: np.ndarray  # (L,) random numbers by which neighbourhoods are compared
    members: np.ndarray  # the variables, node after node


def sorted_unique(x: np.ndarray) -> np.ndarray:
    """``np.unique`` by sorting; NumPy's own hashes integers, which takes six times as long."""
    x = np.sort(x)
    return x[np.r_[True, x[1:] != x[:-1]]] if len(x) else x


def eliminate(n: int, i: np.ndarray, j: np.ndarray, most_flops: float = np.inf) -> Elimination:
    """An order in which `n` variables with edges ``i - j`` (any order, repeats and loops allowed) are eliminated.

    The search ends early, with a tail that is larger than it could be, where the best tail would take more than `most_flops`.

    >>> eliminate(40, np.arange(39), np.arange(1, 40)).groups[0].members.shape[1]
    1
    """
    rng = np.random.default_rng(0)  # breaks ties; the same pattern always gets the same order
    low, high = np.minimum(i, j), np.maximum(i, j)
    if n <= SMALL_CODES:
        low, high = low.astype(np.int32), high.astype(np.int32)
    a, b = (x.astype(np.int64) for x in np.divmod(sorted_unique((low * n + high)[low != high]), max(n, 1)))
    graph = _Graph(np.ones(n, dtype=np.int64), a, b, rng.integers(1 << 62, size=n), np.arange(n))
    groups: list[Pivots] = []
    n_rounds = 0
    while True:
        graph = _merge_equals(graph)
        degree = _degrees(graph)
        if best_left_dense(graph.size, degree):
            break
        if len(graph.members) <= MOST_VARIABLES and degree.min() > LOW_DEGREE:
            if least_tail(len(graph.size), graph.a, graph.b) ** 3 > most_flops:
                return Elimination(tuple(groups), np.sort(graph.members), max(n_rounds, 1))
            rest = eliminate_densely(rng, *graph[:3], graph.members, most_flops)
            return Elimination((*groups, *rest.groups), rest.tail, n_rounds + rest.n_rounds)
        chosen = _independent(rng, graph, degree)
        near, first = _neighbours(graph, chosen)
        counts = np.diff(first)
        if len(graph.a) + (counts * (counts - 1) // 2).sum() > MOST_EDGES:
            break
        groups += _pivots(graph, np.flatnonzero(chosen), near, first)
        before = len(graph.members)
        graph = _without(graph, chosen, near, first)
        n_rounds += 1
        left = len(graph.members)
        if stuck(before, left, 2 * len(graph.a) / max(left, 1) ** 2, most_flops):
            break
    return Elimination(tuple(groups), np.sort(graph.members), n_rounds)


def _starts(counts: np.ndarray) -> np.ndarray:
    """Where each run of `counts` things begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(counts)])


def _runs(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The indices ``start[0] .. start[0] + count[0] - 1, start[1] ..``, one run after the other."""
    ends = _starts(count)
    return np.arange(ends[-1]) + np.repeat(start - ends[:-1], count)


def _degrees(graph: _Graph) -> np.ndarray:
    """Number of variables next to each node."""
    n = len(graph.size)
    both = np.bincount(graph.a, graph.size[graph.b], n) + np.bincount(graph.b, graph.size[graph.a], n)
    return both.astype(np.int64)


def _merge_equals(graph: _Graph) -> _Graph:
    """Nodes with the same closed neighbourhood become one; it is neighbours that do, so the edges tell."""
    size, a, b, salt, members = graph
    n = len(size)
    mark = salt.copy()  # sums of 62 bits that wrap: equal by chance once in 1e18 pairs
    np.add.at(mark, a, salt[b])
    np.add.at(mark, b, salt[a])
    same = mark[a] == mark[b]
    if not same.any():
        return graph
    into = np.arange(n)
    np.minimum.at(into, b[same], a[same])  # equals form a clique: each of them sees the smallest
    kept = into == np.arange(n)
    number = np.cumsum(kept) - 1
    owner = number[into][np.repeat(np.arange(n), size)]
    edges = kept[a] & kept[b]
    return _Graph(
        np.bincount(owner, minlength=int(kept.sum())),
        number[a[edges]],
        number[b[edges]],
        salt[kept],
        members[np.argsort(owner, kind="stable")],
    )


def _independent(rng: np.random.Generator, graph: _Graph, degree: np.ndarray) -> np.ndarray:
    """A large set of nodes of low degree, no two of them neighbours, as a mask."""
    n, a, b = len(degree), graph.a, graph.b
    free = low_degrees(degree)
    chosen = np.zeros(n, dtype=bool)
    key = degree + rng.random(n)
    for _ in range(PASSES):
        rank = np.where(free, key, np.inf)
        best = np.full(n, np.inf)  # among the neighbours
        np.minimum.at(best, a, rank[b])
        np.minimum.at(best, b, rank[a])
        new = free & (rank < best)
        chosen |= new
        free &= ~new
        free[b[new[a]]] = False
        free[a[new[b]]] = False
        if not free.any():
            break
    return chosen


def _neighbours(graph: _Graph, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes next to each chosen node, node after node, and where each one's begin."""
    left, right = chosen[graph.a], chosen[graph.b]
    node = np.concatenate([graph.a[left], graph.b[right]])
    near = np.concatenate([graph.b[left], graph.a[right]])
    counts = np.bincount(node, minlength=len(chosen))[chosen]
    return near[np.argsort(node, kind="stable")], _starts(counts)


def _pivots(graph: _Graph, nodes: np.ndarray, near: np.ndarray, first: np.ndarray) -> list[Pivots]:
    """The chosen nodes in groups of the same size and degree."""
    begin = _starts(graph.size)
    beside = graph.members[_runs(begin[near], graph.size[near])]
    reach = _starts(graph.size[near])[first]  # where the variables beside each node begin
    size, degree = graph.size[nodes], np.diff(reach)
    kind = size * (len(graph.members) + 1) + degree
    order = np.argsort(kind, kind="stable")
    groups = []
    for at in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1):
        d, k = int(size[at[0]]), int(degree[at[0]])
        members = graph.members[begin[nodes[at]][:, None] + np.arange(d)]
        groups.append(Pivots(members, beside[reach[at][:, None] + np.arange(k)]))
    return groups


def _without(graph: _Graph, chosen: np.ndarray, near: np.ndarray, first: np.ndarray) -> _Graph:
    """The graph after the chosen nodes are gone and the neighbours of each are joined."""
    size, a, b, salt, members = graph
    number = np.cumsum(~chosen) - 1
    n = int(number[-1]) + 1
    if n <= SMALL_CODES:
        number = number.astype(np.int32)
    kept = ~(chosen[a] | chosen[b])
    codes = [number[a[kept]] * n + number[b[kept]]]
    near = number[near]
    counts = np.diff(first)
    for count in np.unique(counts[counts > 1]):
        group = near[first[:-1][counts == count][:, None] + np.arange(count)]
        p, q = np.triu_indices(int(count), 1)
        x, y = group[:, p].ravel(), group[:, q].ravel()
        codes.append(sorted_unique(np.minimum(x, y) * n + np.maximum(x, y)))
    code = sorted_unique(np.concatenate(codes)) if len(codes) > 1 else codes[0]
    a, b = (x.astype(np.int64) for x in np.divmod(code, max(n, 1)))
    return _Graph(size[~chosen], a, b, salt[~chosen], members[np.repeat(~chosen, size)])
