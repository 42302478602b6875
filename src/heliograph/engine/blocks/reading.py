"""Expressions over a block that were not part of the run: their joint belief follows from the block's."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from heliograph.engine.blocks.plate import BlockFactor, Joint
from heliograph.engine.blocks.records import Block, components
from heliograph.engine.blocks.rows import Rows, add, apply, constants, joined, scale, take
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.graph.records import Affine, Graph, Inner, Node, Stacked

__all__ = ["belief_in_block", "rows_in_block"]


def belief_in_block(factor: BlockFactor, joint: Joint, form: Affine, rows: Rows) -> Family:
    """The belief of an expression from its rows over the base scalars of a block."""
    d = form.constant.shape[1] if form.constant.ndim == 2 else None
    mean, variance = factor.system.moments(rows, joint.solution, d)
    if d is None:
        return Gaussian.from_mean_variance(mean, variance).reshape(form.shape)
    return MultivariateGaussian(mean.reshape(-1, d), variance).reshape(form.shape)


def rows_in_block(graph: Graph, block: Block, form: Affine) -> Rows | None:
    """An expression as rows over the base scalars of a block; None where it has parts that are not of the block."""
    n = block.n_columns
    d = form.constant.shape[1] if form.constant.ndim == 2 else 1
    total = constants(form.constant, n)
    for term in form.terms:
        part = _rows_of(graph, block, term.node, term.entries)
        if part is None:
            return None
        total = add(total, scale(part, np.repeat(term.coefficients, d)))
    return total


def _rows_of(graph: Graph, block: Block, node: Node, entries: np.ndarray) -> Rows | None:
    """The rows of some entries of a node of the model, which may be newer than the run."""
    d = node.dimension or 1
    if 0 <= node.position < len(graph.nodes):
        if node.position in block.rows:
            return take(block.rows[node.position], components(np.asarray(entries), d))
        seen = graph.nodes[node.position].observed
        if seen is None or seen.point is None or not seen.is_point[entries].all():
            return None
        return constants(np.asarray(seen.point)[entries], block.n_columns)
    if isinstance(node.made, Inner):
        vector = _rows_of(graph, block, node.made.node, np.array([node.made.entry]))
        return None if vector is None else apply(node.made.x[entries], vector)
    if isinstance(node.made, Stacked):
        return _side_by_side((_rows_of(graph, block, part, at[entries]) for part, at in node.made.parts), block)
    return None


def _side_by_side(columns: Iterable[Rows | None], block: Block) -> Rows | None:
    """Scalars as the components of vectors."""
    parts = list(columns)
    found = [p for p in parts if p is not None]
    if len(found) < len(parts):
        return None
    whole = joined(found, block.n_columns)
    return take(whole, np.arange(len(whole)).reshape(len(found), -1).T.reshape(-1))
