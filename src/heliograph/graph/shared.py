"""Shared unknowns of a learning plate's elements: their number, and how many elements are connected through them.

Errors of learned messages about the same unknowns add up; those of rows without common unknowns do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heliograph.graph.records import Graph, Plate
from heliograph.graph.sparse import connected_parts

__all__ = ["Shared", "shared_by_factor"]


class Shared(NamedTuple):
    """The unknowns that the elements of one learning factor share, in all its plates."""

    size: int  # elements
    unknowns: int  # scalars of the user's variables that they depend on, at most one for each element
    together: int  # the most learning elements that are connected with one another through unobserved variables


def shared_by_factor(graph: Graph, learning: Sequence[int]) -> dict[int, Shared]:
    """Count shared unknowns for each learning factor, by its ``id``; `learning` holds the positions of their plates."""
    plates = [graph.plates[k] for k in learning]
    if not plates:
        return {}
    together = _together(graph, plates)
    found: dict[int, Shared] = {}
    for plate in plates:
        old = found.get(id(plate.factor), Shared(0, 0, 0))
        unknowns = old.unknowns + min(plate.size, _unknowns(graph, plate, set(learning)))
        found[id(plate.factor)] = Shared(
            old.size + plate.size, unknowns, max(old.together, together[plate.position], 1)
        )
    return found


def _unknowns(graph: Graph, plate: Plate, learning: set[int]) -> int:
    """Scalars of the user's unobserved variables that a plate's own inputs and output are made of."""
    seen: set[int] = set()
    waiting = [edge.node for edge in plate.edges.values()]
    total = 0
    while waiting:
        node = graph.nodes[waiting.pop()]
        if node.position in seen or node.fully_observed:
            continue
        seen.add(node.position)
        if node.given:
            total += node.size * (node.dimension or 1)
            continue
        for other, _ in graph.edges_of(node.position):
            if other is not plate and other.position not in learning:
                waiting += [edge.node for edge in other.edges.values()]
    return max(total, 1)


def _together(graph: Graph, plates: list[Plate]) -> dict[int, int]:
    """The largest number of learning elements that an element of each learning plate is connected with."""
    if _meet_in_one(graph, plates):
        return dict.fromkeys((plate.position for plate in plates), sum(plate.size for plate in plates))
    first = np.cumsum([0, *(node.size for node in graph.nodes)])
    open_nodes = {n.position for n in graph.nodes if not n.fully_observed}
    seen = np.zeros(first[-1], dtype=bool)  # an observed entry connects nothing
    for node in graph.nodes:
        if node.observed is not None:
            seen[first[node.position] : first[node.position + 1]] = node.observed.is_point
    pairs: list[np.ndarray] = [np.zeros((2, 0), dtype=int)]
    n = int(first[-1])  # vertices: the entries, then the elements of every plate
    for plate in graph.plates:
        for port, edge in plate.edges.items():
            if edge.node in open_nodes:
                entries, element = plate.touches(port)
                entries = first[edge.node] + entries
                free = ~seen[entries]
                pairs.append(np.stack([entries[free], n + element[free]]))
        n += plate.n_elements
    part = connected_parts(n, *np.concatenate(pairs, axis=1))
    elements: dict[int, list[np.ndarray]] = {}
    for plate in plates:
        ends = [first[e.node] + e.entries(plate.size) for e in plate.edges.values() if e.node in open_nodes]
        elements[plate.position] = [np.broadcast_to(part[e], (plate.size,)) for e in ends]
    counts = np.zeros(n, dtype=int)  # of every part
    for parts in elements.values():
        if parts:
            np.add.at(counts, parts[0], 1)
    return {
        position: int(max((counts[p].max(initial=1) for p in parts), default=1)) for position, parts in elements.items()
    }


def _meet_in_one(graph: Graph, plates: list[Plate]) -> bool:
    """Whether all elements of some plates are plainly connected by one element, as by the block of a regression.

    Then no entry needs to be looked at. If not, they may be connected all the same.
    """
    ends = [{e.node for e in plate.edges.values() if not graph.nodes[e.node].fully_observed} for plate in plates]
    if any(graph.nodes[k].observed is not None for nodes in ends for k in nodes):
        return False
    for plate in graph.plates:
        if plate.n_elements == 1:
            touched = {
                e.node for port, e in plate.edges.items() if len(plate.touches(port)[0]) == graph.nodes[e.node].size
            }
            if not any(touched.isdisjoint(nodes) for nodes in ends):
                return True
    return False
