"""Where another mode may be that a belief knows nothing of: at the other sign, or where components have changed their roles."""

from __future__ import annotations

import numpy as np

from heliograph.engine.blocks.records import Block
from heliograph.engine.blocks.rows import over
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.forms.choice import chooser_of
from heliograph.engine.forms.scored_product import ScoredProduct
from heliograph.engine.weighed_proposals import Portion
from heliograph.factors import AbsoluteValue, Product, Select, Square
from heliograph.families import Bernoulli, Gaussian
from heliograph.graph.records import Edge, Plate

__all__ = ["mirrored", "swapped"]

_MOST_MIRRORED = 3  # blocks and nodes whose signs are turned, each by itself and all at once
_MOST_SWAPPED = 3  # pairs of components


def mirrored(compiled: CompiledModel, plates: list[Plate], belief: Portion) -> list[Portion]:
    """Draws at the other sign, where products, squares or magnitudes may make that as good: of each part, and of all."""
    if not any(isinstance(p.factor, (Product, ScoredProduct, Square, AbsoluteValue)) for p in plates):
        return []
    nodes, blocks = compiled.graph.nodes, [b.factor.block for b in compiled.blocks]
    own = [-1 - k for k, b in enumerate(blocks) if any(nodes[node].given for node in b.base)]
    own += [k for k, b in belief.nodes.items() if nodes[k].given and isinstance(b, Gaussian) and not b.is_point.any()]
    own = own[:_MOST_MIRRORED]
    signs = [frozenset([k]) for k in own] + ([frozenset(own)] if len(own) > 1 else [])
    return [_turned(belief, s) for s in signs]


def _turned(belief: Portion, parts: frozenset[int]) -> Portion:
    """The belief with the signs of some parts turned: blocks, which are counted from -1 down, and nodes."""
    blocks = [(-mean if -1 - k in parts else mean, root) for k, (mean, root) in enumerate(belief.blocks)]
    return Portion(blocks, {k: Gaussian(-b.mean, b.variance) if k in parts else b for k, b in belief.nodes.items()})


def swapped(compiled: CompiledModel, plates: list[Plate], belief: Portion) -> list[Portion]:
    """The belief with the numbers of two components exchanged: as good, but for their priors and probabilities."""
    pairs = [pair for p in plates for pair in _pairs(p)]
    found = [_exchanged(compiled, belief, plate, pair) for plate, pair in pairs[:_MOST_SWAPPED]]
    return [f for f in found if f is not None]


def _pairs(plate: Plate) -> list[tuple[Plate, list[tuple[str, str]]]]:
    """For every two components of a choice that is not known, the ports that hold the same of both."""
    if isinstance(plate.factor, Select):
        return [(plate, [("a", "b")])]
    chooser = chooser_of(plate.factor)
    if chooser is None or "s" not in plate.edges:
        return []
    parents = [{inner.rstrip("0123456789"): port for port, inner in chooser.parents(k)} for k in range(chooser.n)]
    every = [(i, j) for i in range(chooser.n) for j in range(i)]
    return [(plate, [(parents[i][p], parents[j][p]) for p in parents[i].keys() & parents[j].keys()]) for i, j in every]


def _exchanged(compiled: CompiledModel, belief: Portion, plate: Plate, pair: list[tuple[str, str]]) -> Portion | None:
    blocks, nodes, changed = list(belief.blocks), dict(belief.nodes), False
    for one, two in pair:
        if not {one, two} <= plate.edges.keys():
            continue
        ends = [plate.edges[p] for p in (one, two)]
        for k, block in enumerate(b.factor.block for b in compiled.blocks):
            at = [_scalars(block, e, plate.size) for e in ends]
            if len(at[0]) == len(at[1]) > 0 and not set(at[0]) & set(at[1]):
                order = np.arange(block.n_columns)
                order[at[0]], order[at[1]] = at[1], at[0]
                blocks[k], changed = (blocks[k][0][order], blocks[k][1][order]), True
        first, second = (nodes.get(e.node) for e in ends)
        if not isinstance(first, Gaussian) or not isinstance(second, Gaussian) or ends[0].node == ends[1].node:
            continue
        if first.size == second.size and not (first.is_point.any() or second.is_point.any()):
            nodes[ends[0].node], nodes[ends[1].node], changed = second, first, True
    switch = nodes.get(plate.edges["s"].node) if isinstance(plate.factor, Select) and "s" in plate.edges else None
    if isinstance(switch, Bernoulli) and not switch.is_point.any():
        nodes[plate.edges["s"].node] = Bernoulli.from_log_odds(
            -switch.log_odds
        )  # it is drawn too, and says the opposite
    return Portion(blocks, nodes) if changed else None


def _scalars(block: Block, edge: Edge, size: int) -> np.ndarray:
    """The scalars of a block that a port meets one by one, in order; none where it meets sums of them."""
    if edge.node not in block.rows:
        return np.zeros(0, dtype=int)
    used = np.not_equal(over(block.rows[edge.node], np.eye(block.n_columns))[edge.entries(size)], 0.0)
    return np.unique(used.argmax(axis=1)) if (used.sum(axis=1) == 1).all() else np.zeros(0, dtype=int)
