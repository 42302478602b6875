"""The graph that a run works on: discrete blocks in the place of the tables that join categories."""

from __future__ import annotations

from heliograph.engine.discrete.compile import find_discrete_blocks
from heliograph.engine.discrete.plate import DiscreteFactor, discrete_port
from heliograph.engine.discrete.tuples import with_tuples
from heliograph.engine.refusing import joint_but, refuse_block
from heliograph.graph.records import Edge, Graph, Plate
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
        outside = {e.node for p in graph.plates if p.position not in block.plates for e in p.edges.values()}
        try:
            own = {m.node for m in (*block.members, *block.tuples)}
            factors.append(DiscreteFactor(graph, block, outside & own))
        except TooManyConfigurationsError as error:
            names = [graph.nodes[m.node].name for m in block.members if graph.nodes[m.node].given]
            instead = ", by loopy belief propagation: their probabilities are approximate, and may be far off"
            refuse_block(joint_but(names, "joined by tables", error), instead, must)
    made = graph.without({k for f in factors for k in f.block.plates})
    for factor in factors:
        nodes = [m.node for m in (*factor.block.members, *factor.block.tuples)]
        edges = {discrete_port(k): Edge(k, None, True, joint=True) for k in nodes}
        made.plates.append(Plate(len(made.plates), "discrete block", factor, (), edges))
    return made
