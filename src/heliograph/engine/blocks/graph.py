"""The graph that a run works on: blocks in the place of the plates that are linear in Gaussian variables."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from heliograph.engine.blocks.absorbing import with_absorbed_terms
from heliograph.engine.blocks.bounds import with_merged_bounds
from heliograph.engine.blocks.choosing import Limits
from heliograph.engine.blocks.compile import find_blocks
from heliograph.engine.blocks.estimated import EXPECTED_ERROR, GOOD
from heliograph.engine.blocks.grouping import is_product, with_differences
from heliograph.engine.blocks.joining import with_joint_ports
from heliograph.engine.blocks.pairing import with_paired_constraints
from heliograph.engine.blocks.plate import BlockFactor
from heliograph.engine.blocks.records import Block
from heliograph.engine.blocks.scoring import with_scored_products
from heliograph.engine.joint_plates import joint_but, met_outside, refuse_block, with_joint_plates
from heliograph.errors import AccuracyWarning
from heliograph.graph.records import Graph
from heliograph.numerics.sparse import TooExpensiveError

__all__ = ["with_blocks", "with_products"]

_AT_ANY_PRICE = Limits(np.inf, estimated=False)


def with_blocks(graph: Graph, must: bool = False, budget: float = 2.0) -> Graph:
    """The same model with one plate for every Gaussian block; the nodes keep their positions.

    A block that would take more than `budget` seconds a sweep is estimated by conjugate gradients, or, where that is too
    expensive too, stays factorised; a warning says so. With `must` either is an error.
    """
    graph = with_differences(graph)
    blocks = find_blocks(graph)
    for rewrite in (
        with_merged_bounds,
        with_scored_products,
        with_absorbed_terms,
        with_joint_ports,
        with_paired_constraints,
    ):
        rewritten = rewrite(graph, blocks)
        if rewritten is not graph:
            graph, blocks = rewritten, find_blocks(rewritten)
    factors = _factors(graph, blocks, must, Limits(budget, not must))
    return with_products(_with_factors(graph, factors))


def with_products(graph: Graph) -> Graph:
    """The same model with a block for every vector of which there are products ``X @ w``: itself and the rows, nothing else.

    This much is joint in a factorised model, too, whatever it costs: n rows that share a vector send it one message.
    """
    if not any(is_product(graph, plate) for plate in graph.plates):
        return graph
    blocks = [replace(b, alone=True) for b in find_blocks(graph, is_product)]
    return _with_factors(graph, [_factor(graph, b, _AT_ANY_PRICE) for b in blocks])


def _with_factors(graph: Graph, factors: list[BlockFactor]) -> Graph:
    return with_joint_plates(graph, [(f, f.block.plates, [p.node for p in f.at.values()]) for f in factors])


def _factor(graph: Graph, block: Block, limits: Limits) -> BlockFactor:
    return BlockFactor(graph, block, met_outside(graph, block.plates, block.nodes), limits)


def _factors(graph: Graph, blocks: list[Block], must: bool, limits: Limits) -> list[BlockFactor]:
    """The blocks as factors, but for those that are too expensive; a warning says what becomes of a block beyond the limits."""
    factors: list[BlockFactor] = []
    for block in blocks:
        try:
            factors.append(_factor(graph, block, limits))
        except TooExpensiveError as error:
            lost = ": correlations are lost, and their standard deviations may be too small"
            refuse_block(_too_expensive(graph, block, error), lost, must)
    for factor in factors:
        if factor.refused is not None:
            warnings.warn(
                f"{_too_expensive(graph, factor.block, factor.refused)}; their means are found by conjugate gradients, and their "
                f"standard deviations by messages between pairs, if these are within {GOOD:.0%} in a sample that is checked, or "
                f"estimated from random probes, each with an expected error of at most {EXPECTED_ERROR:.0%} "
                "(posterior.structure has it); there is no evidence. A larger budget= solves them jointly",
                AccuracyWarning,
                stacklevel=2,
            )
    return factors


def _too_expensive(graph: Graph, block: Block, error: TooExpensiveError) -> str:
    names = [graph.nodes[k].name for k in block.nodes if graph.nodes[k].given and not graph.nodes[k].fully_observed]
    return joint_but(names, "jointly Gaussian", error)
