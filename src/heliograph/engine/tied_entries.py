"""Which entries of a run's beliefs settle together: those that its messages tie to one another.

Near a fixed point, all entries that reach one another by messages slow down at one rate, that of the slowest mode they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from heliograph.graph.records import Graph, Node, Plate
from heliograph.graph.sparse import connected_parts
from heliograph.numerics.joined_sets import joined_sets

__all__ = ["tied_entries"]

_MANY = 64  # tied entries of a variable, from which on some of them have a rate near 1 by chance


def tied_entries(graph: Graph, plates: Iterable[int], watched: Sequence[Node]) -> list[np.ndarray | None]:
    """For every watched variable, the set of tied entries that each of its entries is in; None where all sets are small.

    Entries are tied by the elements of `plates`, unless they were observed. Entries in small sets are sets of their own.
    """
    found: list[np.ndarray | None] = [None] * len(watched)
    if not any(node.size >= _MANY for node in watched):
        return found
    used = [graph.plates[k] for k in sorted(set(plates))]
    n = len(graph.nodes)
    plain = [[e.node, n + p.position] for p in used for port, e in p.edges.items() if _is_plain(graph, p, port)]
    alone = [[node.position] for node in graph.nodes] + [[n + p.position] for p in used]
    first: dict[int, int] = {}  # of a node's entries, and of a plate's elements, among the vertices
    count = 0
    for group in joined_sets([*alone, *plain]):
        first.update(dict.fromkeys(group, count))
        count += max(graph.nodes[k].size if k < n else graph.plates[k - n].n_elements for k in group)
    rows, columns = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)]
    for plate in used:
        for port, edge in plate.edges.items():
            node = graph.nodes[edge.node]
            if node.fully_observed or _is_plain(graph, plate, port):
                continue
            entries, elements = plate.touches(port)
            if node.observed is not None:
                free = ~node.observed.is_point[entries]
                entries, elements = entries[free], elements[free]
            rows.append(first[edge.node] + entries)
            columns.append(first[n + plate.position] + elements)
    part = connected_parts(count, np.concatenate(rows), np.concatenate(columns))
    for k, node in enumerate(watched):
        found[k] = _large(part[first[node.position] : first[node.position] + node.size])
    return found


def _is_plain(graph: Graph, plate: Plate, port: str) -> bool:
    """Whether every element touches the entry of its own number, none of which was seen."""
    edge = plate.edges[port]
    node = graph.nodes[edge.node]
    in_order = edge.index is None and not edge.shared and not edge.joint
    return in_order and node.observed is None and node.size == plate.size


def _large(part: np.ndarray) -> np.ndarray | None:
    """Sets numbered from 0, each of _MANY entries or of one; None where there are only sets of one."""
    size = np.bincount(part)
    large = size >= _MANY
    if not large.any():
        return None
    number = np.cumsum(large) - 1
    inside = large[part]
    return np.where(inside, number[part], large.sum() + np.cumsum(~inside) - 1)
