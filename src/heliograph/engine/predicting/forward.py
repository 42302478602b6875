"""Draws carried down a graph: every variable from its parents, as the model says, and none from what was observed below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.graph.records import Affine, Graph, Inner, Node, Plate, Stacked
from heliograph.graph.support import makers_of

__all__ = ["Drawn", "Forward"]

_CHUNK = 500_000  # rows that a factor is asked for at once


class Drawn(NamedTuple):
    """Draws of a variable, and the mean and variance of each given its parents."""

    values: np.ndarray  # (n, size) or (n, size, d)
    mean: np.ndarray  # (n, size, ...): of a category, the probabilities
    variance: np.ndarray


class Forward:
    """Draws of the nodes of one graph, made when they are asked for.

    Parameters
    ----------
    rng
        The source of the draws.
    graph
        The graph to be carried down.
    kept
        Draws of some nodes, by position: ``(n, size)`` or ``(n, size, d)``.
    n
        The number of draws.
    """

    def __init__(self, rng: np.random.Generator, graph: Graph, kept: Mapping[int, np.ndarray], n: int) -> None:
        self.rng, self.graph, self.n = rng, graph, n
        self._values = dict(kept)
        self._formed: dict[int, np.ndarray] = {}  # expressions that are not in the graph, by the order of writing

    def values(self, node: Node) -> np.ndarray:
        """The draws of a node, and before it of all that it is made of."""
        stack: list[Node] = [node]
        while stack:
            one = stack[-1]
            missing = [p for p in self._parents(one) if not self.has(p)]
            if self.has(one):
                stack.pop()
            elif missing:
                stack.extend(missing)
            else:
                stack.pop()
                self._keep(one, self._made(one))
        return self._get(node)

    def again(self, node: Node) -> Drawn:
        """Draws of a node from its parents, whether it was observed or not."""
        if node.maker is None:
            raise ModelError(f"variable {node.name!r} cannot be predicted: nothing in the model says how it is made")
        return self.of_plate(node.maker, node)

    def of_plate(self, plate: Plate, node: Node | None) -> Drawn:
        """What a plate says of its child, given draws of its parents; `node` is the child where that is a variable."""
        for port, edge in plate.edges.items():
            if port not in plate.factor.children:
                self.values(self.graph.nodes[edge.node])
        parts = np.array_split(np.arange(self.n), max(1, -(-self.n * plate.size // _CHUNK)))
        found = [self._chunk(plate, node, at) for at in parts]
        return Drawn(*(np.concatenate(column) for column in zip(*found, strict=True)))

    # ---- one node -----------------------------------------------------------------------------------------------
    def has(self, node: Node) -> bool:
        """Return whether there are draws of a node already."""
        return node.position in self._values if node.position >= 0 else node.order in self._formed

    def _get(self, node: Node) -> np.ndarray:
        return self._values[node.position] if node.position >= 0 else self._formed[node.order]

    def _keep(self, node: Node, values: np.ndarray) -> None:
        if node.position >= 0:
            self._values[node.position] = values
        else:
            self._formed[node.order] = values

    def _parents(self, node: Node) -> list[Node]:
        if node.made is not None:
            return makers_of(node)
        if node.maker is None or node.fully_observed:
            return []
        children = node.maker.factor.children
        return [self.graph.nodes[e.node] for port, e in node.maker.edges.items() if port not in children]

    def _made(self, node: Node) -> np.ndarray:
        if node.made is not None:
            return self._expression(node)
        seen = None if node.observed is None else node.observed.point
        if seen is not None and node.fully_observed:
            return np.broadcast_to(seen, (self.n, *seen.shape))
        values = self.again(node).values
        return values if seen is None else np.where(np.isnan(seen), values, seen)

    def _expression(self, node: Node) -> np.ndarray:
        made = node.made
        if isinstance(made, Affine):
            total = np.broadcast_to(made.constant, (self.n, *made.constant.shape)).copy()
            for term in made.terms:
                part = self.values(term.node)[:, term.entries]
                total += (term.coefficients[:, None] if part.ndim == 3 else term.coefficients) * part
            return total
        if isinstance(made, Inner):
            return np.asarray((made.x @ self.values(made.node)[:, made.entry].T).T)
        assert isinstance(made, Stacked)
        return np.stack([self.values(part)[:, at] for part, at in made.parts], axis=-1)

    # ---- one plate ----------------------------------------------------------------------------------------------
    def _chunk(self, plate: Plate, node: Node | None, at: np.ndarray) -> Drawn:
        m, size = len(at), plate.size
        rows = np.tile(np.arange(size), m)
        incoming: dict[str, Any] = {port: _tiled(data, rows, size) for port, data in plate.data.items()}
        for port, edge in plate.edges.items():
            parent = self.graph.nodes[edge.node]
            if port in plate.factor.children:
                incoming[port] = parent.uniform(m * size)
                continue
            values = self._get(parent)[at][:, edge.entries(size)]
            incoming[port] = _points(parent, values.reshape(m * size, *values.shape[2:]))
        if node is not None:
            incoming.setdefault(plate.factor.child, node.uniform(m * size))
        drawn, mean, variance = plate.factor.draw(self.rng, incoming)
        order = slice(None) if node is None else _order(plate, node)
        return Drawn(*(a.reshape(m, size, *a.shape[1:])[:, order] for a in (drawn, mean, variance)))


def _order(plate: Plate, node: Node) -> Any:
    """The elements of a plate in the order of the entries of its child."""
    index = plate.edges[plate.factor.child].index
    return slice(None) if index is None else np.argsort(index)


def _points(parent: Node, values: np.ndarray) -> Family:
    if parent.family.discrete and parent.dimension is not None:
        return parent.uniform(len(values)).point_like(values)
    return parent.family.point_mass(values)


def _tiled(data: Any, rows: np.ndarray, size: int) -> Any:
    """Data of a plate for every draw."""
    if isinstance(data, Family):
        return data.reshape((data.size,))[rows]
    array = np.asarray(data)
    return array[rows] if array.ndim and array.shape[0] == size else array
