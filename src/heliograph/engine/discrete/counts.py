"""Large unknown tables of observed categories: rows that are told counts of single entries, and nothing of the others.

A projection on every ``E log p_j`` sends each row of the table as many numbers as there are categories, for every observation:
for 1e5 words, 10 topics and a vocabulary of 1,000 that is 1e9. Here an observation sees only the entry of the row that it is
about, a Beta, and tells it a fraction of one count (docs/decisions/0049).
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from heliograph.engine.discrete.together import observed_categories, taken_together
from heliograph.factors import CategoricalDirichlet, ChosenProbability, DirichletTable, Factor
from heliograph.families import Beta
from heliograph.graph.records import Edge, Graph, Node, Plate

__all__ = ["CountsFactor", "with_counts"]

_MANY = 1000  # observations of one table, above which projections on E log p overshoot and become improper
_LARGE = 5e6  # numbers in the messages of one table, above which rows are told counts


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
    graph, large = taken_together(graph, large)
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
    category = observed_categories(graph, plate)
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
