"""Large unknown tables of observed categories: rows that receive counts of single entries instead of whole vectors.

A projection on every ``E log p_j`` sends each row of the table as many numbers as there are categories, for every observation:
for 1e5 words, 10 topics and a vocabulary of 1,000 that is 1e9. Here an observation sees only the entry of the row that it is
about, a Beta, and sends it a fraction of one count (docs/decisions/0049).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from heliograph.factors import CategoricalDirichlet, ChosenProbability, DirichletTable, Equal, Factor
from heliograph.families import Beta
from heliograph.graph.records import Edge, Graph, Node, Plate

__all__ = ["CountsFactor", "with_counts"]

_MANY = 1000  # observations of one table, above which projections on E log p overshoot and become improper
_LARGE = 5e6  # numbers in the messages of one table, above which its rows receive counts


class _Entries(NamedTuple):
    """Which entry of the table each element of a port is about."""

    row: np.ndarray  # (n,) of the Dirichlet node
    category: np.ndarray  # (n,)
    times: np.ndarray | None  # (n,) how many alike observations each stands for; None: one


class CountsFactor(Factor):
    """The rows of one table as a factor: a port at their node, and one at every node of entries."""

    name = "counts"
    families: ClassVar = {}

    def __init__(self, table: int, n_rows: int, entries: dict[int, _Entries]) -> None:
        self.table = f"n{table}"
        self.entries = {f"n{k}": e for k, e in entries.items()}
        self.ports = (self.table, *self.entries)  # type: ignore[misc]
        self.ignores_own = (self.table,)  # type: ignore[misc]
        parts = {self.table: np.zeros(n_rows, dtype=int)}
        self._parts = parts | {p: np.zeros(len(e.row), dtype=int) for p, e in self.entries.items()}

    @property
    def parts(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        """Everything in one part."""
        return self._parts


def with_counts(graph: Graph) -> Graph:
    """The graph with large unknown tables of observed categories written as counts of their entries."""
    large = [p for p in graph.plates if _is_large(graph, p)]
    if not large:
        return graph
    graph, large = _taken_together(graph, large)
    made = replace(graph, nodes=list(graph.nodes), plates=[])
    parents = {p.edges["parent0"].node for p in large}
    for plate in graph.plates:
        if plate in large:
            _add_counts(made, graph, plate)
            continue
        if isinstance(plate.factor, CategoricalDirichlet) and plate.edges["x"].node in parents:
            plate = replace(plate, factor=CategoricalDirichlet(by_mean=True))
        made.plates.append(replace(plate, position=len(made.plates)))
    return made


def _is_large(graph: Graph, plate: Plate) -> bool:
    factor = plate.factor
    if not isinstance(factor, DirichletTable) or len(factor.parents) > 1 or "child" not in plate.edges:
        return False
    child = graph.nodes[plate.edges["child"].node]
    nodes = {plate.edges[row].node for row in factor.rows}
    if not child.fully_observed or len(nodes) > 1 or graph.nodes[plate.edges["parent0"].node].dimension is None:
        return False
    return plate.size > _MANY or plate.size * len(factor.rows) * (child.dimension or 2) > _LARGE


def _add_counts(made: Graph, graph: Graph, plate: Plate) -> None:
    factor = plate.factor
    assert isinstance(factor, DirichletTable)
    child = plate.edges["child"]
    category = _observed_categories(graph, plate)
    table = plate.edges["row0"].node
    entries: dict[int, _Entries] = {}
    edges: dict[str, Edge] = {}
    for k, row in enumerate(factor.rows):
        name = f"({graph.nodes[table].name}, row {k}, of each {graph.nodes[child.node].name})"
        node = Node(len(made.nodes), name, Beta, (plate.size,), None, False, times=plate.times)
        made.nodes.append(node)
        entries[node.position] = _Entries(plate.edges[row].entries(plate.size), category, plate.times)
        edges[f"q{k}"] = Edge(node.position, None, True)
    edges["parent"] = plate.edges["parent0"]
    chosen = ChosenProbability(len(factor.rows))
    made.plates.append(Plate(len(made.plates), chosen.name, chosen, (plate.size,), edges, times=plate.times))
    counts = CountsFactor(table, graph.nodes[table].size, entries)
    joint = {f"n{k}": Edge(k, None, True, joint=True) for k in (table, *entries)}
    made.plates.append(Plate(len(made.plates), "counts", counts, (), joint))


# ---- elements that are alike, as one that counts several times -------------------------------------------------------
class _Kinds(NamedTuple):
    """Elements of a plate by kind."""

    first: np.ndarray  # (m,) the first element of each kind, in their order
    kind: np.ndarray  # (n,) of every element
    times: np.ndarray  # (m,) elements of each kind


def _observed_categories(graph: Graph, plate: Plate) -> np.ndarray:
    """The child's category in every element of a table whose child was observed."""
    child = plate.edges["child"]
    seen = graph.nodes[child.node].observed
    assert seen is not None and seen.point is not None
    return seen.point[child.entries(plate.size)].astype(int)


def _taken_together(graph: Graph, tables: Sequence[Plate]) -> tuple[Graph, list[Plate]]:
    """The graph with one element for all alike elements of some tables and of what their parents are drawn from, and these tables.

    Elements whose edges touch the same entries, and that were observed alike (the same word twice in one document), send equal
    messages in every sweep. One of them is enough: its message counts as often as it occurs (`Plate.times`), and its cavity lacks
    it only once, so that beliefs are those of the elements one by one (docs/decisions/0049). A parent that meets anything else,
    or was observed in part, is left as it is.
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
    """The kinds of elements: those of one kind have the same vector of probabilities, observed category and rows."""
    assert isinstance(table.factor, DirichletTable)
    code = np.zeros(table.size, dtype=int)
    edges = (source.edges["p"], *(table.edges[row] for row in table.factor.rows))
    for column in (_observed_categories(graph, table), *(e.entries(table.size) for e in edges)):
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
