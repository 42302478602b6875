"""Observations of a large table that are alike, taken together: the same word twice in one document.

Elements of a plate whose edges touch the same entries, and that were observed alike, send equal messages in every sweep. One of
them is enough: its message counts as often as it occurs (`Plate.times`), and its cavity lacks it only once, so that beliefs
are those of the elements one by one (docs/decisions/0049).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from heliograph.factors import CategoricalDirichlet, DirichletTable, Equal
from heliograph.graph.records import Edge, Graph, Node, Plate

__all__ = ["observed_categories", "taken_together"]


class _Kinds(NamedTuple):
    """Elements of a plate by kind."""

    first: np.ndarray  # (m,) the first element of each kind, in order
    kind: np.ndarray  # (n,) of every element
    times: np.ndarray  # (m,) elements of each kind


def observed_categories(graph: Graph, plate: Plate) -> np.ndarray:
    """The child's category in every element of a table whose child was observed."""
    child = plate.edges["child"]
    seen = graph.nodes[child.node].observed
    assert seen is not None and seen.point is not None
    return seen.point[child.entries(plate.size)].astype(int)


def taken_together(graph: Graph, tables: Sequence[Plate]) -> tuple[Graph, list[Plate]]:
    """The graph with one element for all alike elements of some tables and of what their parents are drawn from, and these tables.

    A parent that meets anything else, or was observed in part, is left as it is.
    """
    made = replace(graph, nodes=list(graph.nodes), plates=list(graph.plates))
    found = [_with_kinds(made, plate) for plate in tables]
    return made, found


def _with_kinds(graph: Graph, table: Plate) -> Plate:
    """Put a table with one element of every kind into a graph in the place of this one, and return it."""
    source = _source(graph, table)
    if source is None:
        return table
    kinds = _kinds(graph, table, source)
    if len(kinds.first) == table.size:
        return table
    parent = graph.nodes[table.edges["parent0"].node]
    name = f"({parent.name}, one of a kind)"
    node = Node(len(graph.nodes), name, parent.family, kinds.first.shape, parent.dimension, False, times=kinds.times)
    graph.nodes.append(node)
    made = _fewer(table, kinds, "parent0", node)
    graph.plates[source.position], graph.plates[table.position] = _fewer(source, kinds, "x", node), made
    edges = {"a": Edge(node.position, kinds.kind, False), "b": Edge(parent.position, None, True)}
    graph.plates.append(Plate(len(graph.plates), "one of a kind", Equal(), parent.shape, edges))
    return made


def _source(graph: Graph, table: Plate) -> Plate | None:
    """The plate that draws the table's parents, if both meet them entry by entry and nothing else does."""
    parent = graph.nodes[table.edges["parent0"].node]
    others = [(p, port) for p, port in graph.edges_of(parent.position) if p is not table]
    if parent.observed is not None or len(others) != 1:
        return None
    source, port = others[0]
    if not isinstance(source.factor, CategoricalDirichlet) or port != "x" or "p" not in source.edges:
        return None
    plain = table.edges["parent0"].index is None and source.edges["x"].index is None
    return source if plain and source.size == table.size else None


def _kinds(graph: Graph, table: Plate, source: Plate) -> _Kinds:
    """Which elements are alike: drawn from one vector of probabilities, seen as one category of the same rows."""
    assert isinstance(table.factor, DirichletTable)
    code = np.zeros(table.size, dtype=int)
    edges = (source.edges["p"], *(table.edges[row] for row in table.factor.rows))
    for column in (observed_categories(graph, table), *(e.entries(table.size) for e in edges)):
        if (column != column[0]).any():
            code = np.unique(code * (column.max() + 1) + column, return_inverse=True)[1]
    _, first, kind, times = np.unique(code, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)  # by their first appearance, so that elements added at the end leave the others in place
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return _Kinds(first[order], rank[kind], times[order].astype(float))


def _fewer(plate: Plate, kinds: _Kinds, to: str, node: Node) -> Plate:
    """The plate with one element of every kind, and `node` at the port `to`."""
    edges = {
        port: replace(e, index=e.entries(plate.size)[kinds.first], unique=False) for port, e in plate.edges.items()
    }
    edges[to] = Edge(node.position, None, True)
    return replace(plate, shape=kinds.first.shape, edges=edges, times=kinds.times)
