"""Categories that an unknown table joins, as one category: the table's rows then see them jointly."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from heliograph.factors import DirichletTable, DirichletTuple
from heliograph.families import Categorical
from heliograph.graph.records import Edge, Graph, Node, Plate

__all__ = ["Joined", "with_tuples"]


class Joined(NamedTuple):
    """A node whose entries are several categories at once."""

    node: int
    shape: tuple[int, ...]  # categories of each
    ends: tuple[Edge, ...]  # where each is, the parents first


def with_tuples(graph: Graph) -> tuple[Graph, list[Joined]]:
    """The graph with a node of tuples for every unknown table that joins two open categories or more."""
    made = replace(graph, nodes=list(graph.nodes), plates=[])
    joined: list[Joined] = []
    for plate in graph.plates:
        factor = plate.factor
        if isinstance(factor, DirichletTable) and _n_open(graph, plate, factor) > 1:
            ends = tuple(plate.edges[p] for p in (*factor.parents, "child"))
            size = graph.nodes[ends[-1].node].dimension or 2
            shape = (*factor.sizes, size)
            name = f"({graph.nodes[ends[-1].node].name} and what it is given by)"
            node = Node(len(made.nodes), name, Categorical, (plate.size,), len(factor.rows) * size, False)
            made.nodes.append(node)
            joined.append(Joined(node.position, shape, ends))
            edges = {row: plate.edges[row] for row in factor.rows} | {"x": Edge(node.position, None, True)}
            plate = replace(plate, factor=DirichletTuple(len(factor.rows)), edges=edges)
        made.plates.append(replace(plate, position=len(made.plates)))
    return (made, joined) if joined else (graph, [])


def _n_open(graph: Graph, plate: Plate, factor: DirichletTable) -> int:
    return sum(not graph.nodes[plate.edges[p].node].fully_observed for p in (*factor.parents, "child"))
