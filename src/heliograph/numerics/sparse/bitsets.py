"""The last rounds of elimination, where few variables are left and each is next to many: neighbourhoods as bits.

To eliminate a supernode is to add its neighbourhood to that of each of its neighbours. As lists of edges these are sorted anew
in every round; as bits, a neighbourhood among 8,000 variables is a kilobyte, and adding it is one operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heliograph.numerics.sparse.rounds import Elimination, Pivots, best_left_dense, low_degrees, stuck, tail_ahead

__all__ = ["MOST_VARIABLES", "eliminate_densely"]

MOST_VARIABLES = 16_384  # whose neighbourhoods take 32 MB
# of an expander: the share of entries filled from which on a round tells what the tail will be, the share of variables within two
# steps of any, and the supernodes that are looked at (chosen on random graphs of 1,000 to 10,000 variables)
_TELLING, _WITHIN_TWO, _LOOKED_AT = 0.008, 0.8, 8


@dataclass
class _Graph:
    """The supernodes that are left. A variable is a number among those that there were at first; its bit keeps its place."""

    near: np.ndarray  # (L, words) bits of the variables that are members of the node, or next to it
    size: np.ndarray  # (L,) members per node
    lead: np.ndarray  # (L,) the first member of each node
    node: np.ndarray  # (n,) of each variable that is left
    merged: dict[int, np.ndarray]  # all members of a node of several, by its lead

    def members(self, k: int) -> np.ndarray:
        """The variables of a node."""
        return self.lead[k : k + 1] if self.size[k] == 1 else self.merged[int(self.lead[k])]

    def keep(self, kept: np.ndarray) -> None:
        """Number anew the nodes that are kept."""
        self.near, self.size, self.lead = self.near[kept], self.size[kept], self.lead[kept]
        self.node = (np.cumsum(kept) - 1)[self.node]


def eliminate_densely(
    rng: np.random.Generator,
    size: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    names: np.ndarray,
    most_flops: float,
) -> Elimination:
    """Go on eliminating supernodes in rounds, as `ordering.eliminate` does.

    Parameters
    ----------
    rng
        It breaks ties.
    size
        Members of every supernode, (L,).
    a, b
        Ends of the edges between supernodes, each edge once, (E,).
    names
        The variables, supernode after supernode, (n,).
    most_flops
        The search ends where the best tail would take more.
    """
    graph = _graph(size, a, b)
    groups: list[Pivots] = []
    left, before, n_rounds = len(names), (len(names), 0.0), 0
    while True:
        _merge_equals(graph)
        degree = np.bitwise_count(graph.near).sum(axis=1, dtype=np.int64) - graph.size
        filled = float((graph.size * (degree + graph.size)).sum()) / max(left, 1) ** 2
        if best_left_dense(graph.size, degree):
            break
        too_dense = filled > _TELLING and (0.8 * tail_ahead(before, left, filled)) ** 3 > most_flops
        too_dense |= n_rounds > 0 and stuck(before[0], left, filled, most_flops)
        if too_dense and _is_expander(graph):
            break
        before = left, filled
        pivots = _eliminate_some(rng, graph, degree)
        groups += _grouped(pivots, names)
        left -= sum(len(members) for members, _ in pivots)
        n_rounds += 1
    tail = [np.zeros(0, dtype=np.int64), *(graph.members(k) for k in range(len(graph.lead)))]
    return Elimination(tuple(groups), np.sort(names[np.concatenate(tail)]), n_rounds)


def _is_expander(graph: _Graph) -> bool:
    """Whether two steps lead from any supernode to most others: nothing separates such a graph but a large part of it."""
    n = int(graph.size.sum())
    for k in np.linspace(0, len(graph.lead) - 1, _LOOKED_AT).astype(int).tolist():
        beside = np.unpackbits(graph.near[k].view(np.uint8), count=len(graph.node), bitorder="little").nonzero()[0]
        reached = np.bitwise_or.reduce(graph.near[graph.node[beside]], axis=0)
        if int(np.bitwise_count(reached).sum()) < _WITHIN_TWO * n:
            return False
    return True


def _graph(size: np.ndarray, a: np.ndarray, b: np.ndarray) -> _Graph:
    """From a list of edges."""
    n_nodes, ends = len(size), np.cumsum(size)
    n = int(ends[-1])
    every = np.arange(n_nodes)
    node = np.repeat(every, size)
    lead = ends - size
    row, column = np.concatenate([a, b, every]), np.concatenate([b, a, every])
    if n > n_nodes:  # all members of a node
        count = size[column]
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        row, variable = np.repeat(row, count), np.repeat(lead[column], count) + within
    else:
        variable = column
    near = np.zeros((n_nodes, -(-n // 64)), dtype=np.uint64)
    octets = near.view(np.uint8)
    # every pair comes once, so that a sum of bits is their union; in octets from the least bit on, as `packbits` has them
    np.add.at(
        octets.reshape(-1), row * octets.shape[1] + (variable >> 3), np.uint8(1) << (variable & 7).astype(np.uint8)
    )
    merged = {int(lead[k]): np.arange(lead[k], ends[k]) for k in np.flatnonzero(size > 1)}
    return _Graph(near, size, lead, node, merged)


def _merge_equals(graph: _Graph) -> None:
    """Nodes with the same members and neighbours together become one, in place."""
    halves = graph.near.view(
        np.uint32
    )  # of a product of 64 bits, the highest bit hangs on nothing but the lowest of the salt
    salt = np.random.default_rng(0).integers(1 << 63, size=halves.shape[1], dtype=np.uint64)
    _, first, which = np.unique(np.einsum("nw,w->n", halves, salt), return_index=True, return_inverse=True)
    into = first[which]
    same = into != np.arange(len(into))
    same[same] = (graph.near[same] == graph.near[into[same]]).all(axis=1)
    if not same.any():
        return
    for k in np.flatnonzero(same).tolist():
        first, members = into[k], np.concatenate([graph.members(into[k]), graph.members(k)])
        graph.node[members], graph.size[first] = first, len(members)
        graph.merged[int(graph.lead[first])] = members
    graph.keep(~same)


def _eliminate_some(rng: np.random.Generator, graph: _Graph, degree: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Eliminate nodes of low degree, no two of them neighbours, in place; their members, and the variables next to them."""
    n = len(graph.node)
    candidates = np.flatnonzero(low_degrees(degree))
    candidates = candidates[np.argsort((degree + rng.random(len(degree)))[candidates])]
    reached = np.zeros(n, dtype=bool)
    left, kept = np.ones(n, dtype=bool), np.ones(len(graph.lead), dtype=bool)
    pivots: list[tuple[np.ndarray, np.ndarray]] = []
    for k in candidates.tolist():
        if reached[graph.lead[k]]:
            continue
        own, members = graph.near[k], graph.members(k)
        beside = np.unpackbits(own.view(np.uint8), count=n, bitorder="little").view(bool)
        reached |= beside
        beside[members] = False
        neighbours = beside.nonzero()[0]
        graph.near[graph.node[neighbours]] |= own
        pivots.append((members, neighbours))
        left[members] = kept[k] = False
    words = np.zeros(graph.near.shape[1], dtype=np.uint64)
    bits = np.packbits(left, bitorder="little")
    words.view(np.uint8)[: len(bits)] = bits
    graph.near &= words
    graph.keep(kept)
    return pivots


def _grouped(pivots: Sequence[tuple[np.ndarray, np.ndarray]], names: np.ndarray) -> list[Pivots]:
    """Those of the same size and degree together."""
    kinds: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for one in pivots:
        kinds.setdefault((len(one[0]), len(one[1])), []).append(one)
    return [Pivots(names[np.array([m for m, _ in g])], names[np.array([b for _, b in g])]) for g in kinds.values()]
