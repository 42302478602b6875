"""Draws of the variables of a run: joint within a block of jointly Gaussian variables, independent between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heliograph.engine.blocks.rows import Rows, over
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.tables import Tables
from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.graph.records import Node

__all__ = ["drawn"]


def drawn(
    rng: np.random.Generator,
    compiled: CompiledModel,
    tables: Tables,
    belief: Callable[[Node], Family],
    nodes: Sequence[int],
    n: int,
) -> dict[int, np.ndarray]:
    """`n` draws of some nodes of a run, each of shape ``(n, size)`` or ``(n, size, d)``, by their positions.

    Parameters
    ----------
    rng
        The source of the draws.
    compiled, tables
        The run and its messages.
    belief
        The belief of a node that is in no block.
    nodes
        The positions of the nodes.
    n
        The number of draws.
    """
    found: dict[int, np.ndarray] = {}
    for kind in compiled.blocks:
        inside = [k for k in nodes if k in kind.factor.block.rows and not compiled.graph.nodes[k].fully_observed]
        joint = kind.joint(tables) if inside else None
        if joint is None:
            continue
        base = kind.factor.system.sample(rng, joint.solution, n)
        for k in inside:
            found[k] = _of_rows(kind.factor.block.rows[k], base, compiled.graph.nodes[k].dimension)
    for k in nodes:
        if k not in found:
            node = compiled.graph.nodes[k]
            one = belief(node)
            if not np.all(one.proper):
                raise ModelError(
                    f"variable {node.name!r} cannot be drawn: its belief is improper; give it a proper prior"
                )
            found[k] = one.sample(rng, n)
    return found


def _of_rows(rows: Rows, base: np.ndarray, d: int | None) -> np.ndarray:
    """Expressions of draws ``(n, N)`` of the base scalars."""
    values = over(rows, base.T).T + rows.constant
    return values if d is None else values.reshape(len(base), -1, d)
