"""The graph that a run works on: blocks in the place of the plates that are linear in Gaussian variables."""

from __future__ import annotations

from dataclasses import replace

from heliograph.engine.blocks.compile import find_blocks, with_differences
from heliograph.engine.blocks.plate import BlockFactor, port_of
from heliograph.graph.records import Edge, Graph, Plate

__all__ = ["with_blocks"]


def with_blocks(graph: Graph) -> Graph:
    """The same model with one plate for every Gaussian block; the nodes keep their positions."""
    graph = with_differences(graph)
    blocks = find_blocks(graph)
    gone = frozenset().union(*(b.plates for b in blocks))
    made = Graph(graph.nodes, [], graph.live)
    for plate in graph.plates:
        if plate.position not in gone:
            made.plates.append(replace(plate, position=len(made.plates)))
    met = {edge.node for plate in made.plates for edge in plate.edges.values()}
    for block in blocks:
        factor = BlockFactor(graph, block, met & set(block.nodes))
        edges = {port_of(p.node): Edge(p.node, None, True, joint=True) for p in factor.at.values()}
        made.plates.append(Plate(len(made.plates), "block", factor, (), edges, parts=factor.parts))
    return made
