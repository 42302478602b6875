"""Variables on loops, where messages treat dependent quantities as independent.

Vertices are entries of nodes (a vector is one) and elements of plates. Entries that were observed cut a loop. Families
of parameters (Gamma, Beta, Dirichlet) are left out: what a loop through them costs is in docs/accuracy.md.
"""

from __future__ import annotations

import numpy as np

from heliograph.families import Bernoulli, Categorical, Family, Gaussian, MultivariateGaussian
from heliograph.graph.records import Graph, Node, Plate
from heliograph.graph.sparse import connected_parts

__all__ = ["links_on_loops", "variables_in_loops"]

_COUNTED: tuple[type[Family], ...] = (Gaussian, MultivariateGaussian, Bernoulli, Categorical)
_ROUNDS = 50  # of cutting off leaves; what remains of a longer branch is named with its loop


def variables_in_loops(graph: Graph) -> list[str]:
    """The names of the user's variables with an entry on a loop, in the order in which they were made.

    >>> from heliograph.graph.builder import Builder
    >>> model = Builder()
    >>> a, b = model.gaussian("a", 0.0, variance=1.0), model.gaussian("b", 0.0, variance=1.0)
    >>> y = model.gaussian("y", a + b * np.array([1.0, 2.0]), variance=1.0, observed=[0.0, 1.0])
    >>> variables_in_loops(model.graph)
    ['a', 'b']
    """
    plates = _without_branches(graph)
    if not plates:
        return []
    looped = _looped_throughout(graph, plates)
    if looped is not None:
        return [node.name for node in looped if node.given] or [node.name for node in looped]
    first = np.concatenate([[0], np.cumsum([n.size for n in graph.nodes])])  # each node's first vertex
    entries: list[np.ndarray] = []
    elements: list[np.ndarray] = []
    n_elements = 0
    for plate, ports in plates:
        for port in ports:
            edge = plate.edges[port]
            node = graph.nodes[edge.node]
            index, rows = plate.touches(port)
            if node.observed is not None:
                free = ~node.observed.is_point[index]
                index, rows = index[free], rows[free]
            entries.append(first[edge.node] + index)
            elements.append(n_elements + rows)
        n_elements += plate.n_elements
    at = np.concatenate(entries)
    looped = at[links_on_loops(at, np.concatenate(elements), int(first[-1]), n_elements)]
    among = np.bincount(np.searchsorted(first, looped, side="right") - 1)
    found = [graph.nodes[int(k)] for k in np.flatnonzero(among)]
    return [node.name for node in found if node.given] or [node.name for node in found]


def _looped_throughout(graph: Graph, plates: list[tuple[Plate, list[str]]]) -> list[Node] | None:
    """The nodes of plates, if neither an element nor an entry of theirs is a leaf; None where that cannot be told so soon."""
    count: dict[int, np.ndarray] = {}
    for plate, ports in plates:
        if plate.parts is not None or len(ports) < 2:
            return None
        for port in ports:
            edge = plate.edges[port]
            node = graph.nodes[edge.node]
            if node.observed is not None:
                return None
            met = count.setdefault(edge.node, np.zeros(node.size, dtype=int))
            if edge.index is None and not edge.shared:
                met[: plate.size] += 1
            else:
                met += np.bincount(edge.entries(plate.size), minlength=node.size)
    if any((met == 1).any() for met in count.values()):
        return None
    return [graph.nodes[k] for k in sorted(count) if count[k].any()]


def _without_branches(graph: Graph) -> list[tuple[Plate, list[str]]]:
    """The plates, with the ports of each, that remain when leaves are cut off again and again, plate by plate.

    An element that touches one open entry is a leaf, and so is an entry that one element touches. A whole plate of
    either goes at once, which leaves nothing of a regression, whatever its number of rows.
    """
    open_ports = {
        p.position: [
            port
            for port, e in p.edges.items()
            if issubclass(graph.nodes[e.node].family, _COUNTED) and not graph.nodes[e.node].fully_observed
        ]
        for p in graph.plates
    }
    changed = True
    while changed:
        changed = False
        meets: dict[int, list[tuple[int, str]]] = {}
        for k, ports in open_ports.items():
            for port in ports:
                meets.setdefault(graph.plates[k].edges[port].node, []).append((k, port))
        for ends in meets.values():
            k, port = ends[0]
            if len(ends) == 1 and graph.plates[k].separate(port):
                open_ports[k] = [p for p in open_ports[k] if p != port]
                changed = True
        for k, ports in open_ports.items():
            if len(ports) == 1 and not _joins(graph.plates[k], ports[0]):
                open_ports[k] = []
                changed = True
    return [(graph.plates[k], ports) for k, ports in open_ports.items() if ports]


def links_on_loops(entries: np.ndarray, elements: np.ndarray, n_entries: int, n_elements: int) -> np.ndarray:
    """The numbers of the links ``entries[k] - elements[k]`` that lie on a loop (a branch longer than we cut may remain)."""
    left = np.arange(len(entries))
    for _ in range(_ROUNDS):
        keep = np.bincount(entries[left], minlength=n_entries)[entries[left]] > 1
        keep &= np.bincount(elements[left], minlength=n_elements)[elements[left]] > 1
        if keep.all():
            return left  # no leaf is left, and every connected part has as many links as vertices
        left = left[keep]
    entries, elements = entries[left], elements[left]
    label = connected_parts(n_entries + n_elements, entries, n_entries + elements)
    here = np.zeros(n_entries + n_elements, dtype=bool)  # vertices that are left
    here[entries] = here[n_entries + elements] = True
    n_vertices = np.bincount(label[here], minlength=label.max() + 1)
    n_edges = np.bincount(label[entries], minlength=label.max() + 1)
    return left[(n_edges >= n_vertices)[label[entries]]]


def _joins(plate: Plate, port: str) -> bool:
    """Whether a block joins several entries of the node at a port."""
    return plate.parts is not None and bool((np.bincount(plate.touches(port)[1], minlength=1) > 1).any())
