"""The graph that a run works on: discrete blocks in the place of the tables that join categories."""

from __future__ import annotations

from heliograph.engine.discrete.compile import DiscreteBlock, find_discrete_blocks, with_tuples
from heliograph.engine.discrete.plate import DiscreteFactor
from heliograph.engine.joint_plates import joint_but, met_outside, refuse_block, with_joint_plates
from heliograph.graph.records import Graph
from heliograph.numerics.elimination import TooManyConfigurationsError

__all__ = ["with_discrete_blocks"]


def with_discrete_blocks(graph: Graph, must: bool = False) -> Graph:
    """The same model with one plate for every discrete block (docs/decisions/0045); the nodes keep their positions.

    A block with too many configurations stays as it is, and a warning says so; with `must` that is an error.
    """
    whole, joined = with_tuples(graph)
    blocks = find_discrete_blocks(whole, joined)
    if not blocks:
        return graph
    graph = whole
    factors: list[DiscreteFactor] = []
    for block in blocks:
        try:
            factors.append(DiscreteFactor(graph, block, met_outside(graph, block.plates, _nodes(block))))
        except TooManyConfigurationsError as error:
            names = [graph.nodes[m.node].name for m in block.members if graph.nodes[m.node].given]
            instead = ", by loopy belief propagation: their probabilities are approximate, and may be far off"
            refuse_block(joint_but(names, "joined by tables", error), instead, must)
    return with_joint_plates(graph, [(f, f.block.plates, _nodes(f.block)) for f in factors])


def _nodes(block: DiscreteBlock) -> list[int]:
    return [m.node for m in (*block.members, *block.tuples)]
