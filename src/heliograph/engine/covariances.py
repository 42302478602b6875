"""Joint covariances of expressions, from the blocks that hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.linalg import block_diag  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from heliograph.engine.blocks.plate import BlockFactor, Joint
from heliograph.engine.blocks.reading import rows_in_block
from heliograph.engine.blocks.rows import joined
from heliograph.engine.priors import Correlation, correlation_of
from heliograph.engine.reading import groups_of, readable_form
from heliograph.errors import ModelError
from heliograph.graph.records import Affine, Graph
from heliograph.graph.variable import Variable

__all__ = ["check_pair", "covariance_of", "joint_correlation", "joint_covariance"]

_MOST = 3000  # scalars whose joint covariance is written down: 72 MB


def check_pair(a: Any, b: Any) -> None:
    """Raise if these are not two Gaussian variables or expressions."""
    for x in (a, b):
        if not isinstance(x, Variable) or not x.family.gaussian:
            got = f", not {x!r}" if isinstance(x, str) else ""
            raise ModelError(f"a covariance is asked of two Gaussian variables or expressions{got}")


def covariance_of(
    graph: Graph,
    joints: Iterable[tuple[BlockFactor, Joint | None]],
    groups: Callable[[], list[np.ndarray]],
    belief: Callable[[Variable], Any],
    a: Variable,
    b: Variable,
) -> np.ndarray:
    """The covariance of two Gaussian variables or expressions.

    Parameters
    ----------
    graph
        Of the run.
    joints
        Its blocks with their joint beliefs.
    groups
        Gives `dependent_groups` of the graph, when they are needed.
    belief
        The belief of a variable.
    a, b
        The two expressions.
    """
    forms = [readable_form(graph, x.node, x.entries()) for x in (a, b)]
    shapes = [(*x.shape, x.node.dimension) if x.node.dimension is not None else x.shape for x in (a, b)]
    for factor, joint in joints:
        left, right = (rows_in_block(graph, factor.block, form) for form in forms)
        if left is not None and right is not None and joint is not None:
            return factor.system.covariance(left, right, joint.solution).reshape((*shapes[0], *shapes[1]))
    if a.node is b.node and a.size == b.size == 1 and np.array_equal(a.entries(), b.entries()):
        own = belief(a)  # a and b are the same scalar
        return np.reshape(own.covariance if a.node.dimension is not None else own.variance, (*shapes[0], *shapes[1]))
    if _connected(graph, groups(), *forms):
        raise ModelError(
            f"{a.name!r} and {b.name!r} depend on each other, but are not in one block of jointly Gaussian variables, so the "
            "run does not know their covariance"
        )
    return np.zeros((*shapes[0], *shapes[1]))


def joint_covariance(
    graph: Graph, joints: Iterable[tuple[BlockFactor, Joint | None]]
) -> tuple[list[str], np.ndarray] | None:
    """The names of the user's variables in blocks, and their joint covariance; None where they are too many, or none."""
    names: list[str] = []
    parts: list[np.ndarray] = []
    for factor, joint in joints:
        inside = [n for n in graph.nodes if n.given and not n.fully_observed and n.position in factor.block.rows]
        if joint is None or not inside:
            continue
        rows = joined([factor.block.rows[n.position] for n in inside], factor.block.n_columns)
        if len(rows) + sum(len(p) for p in parts) > _MOST:
            return None
        names += [n.name for n in inside]
        parts.append(factor.system.covariance(rows, rows, joint.solution))
    return (names, np.asarray(block_diag(*parts))) if names else None


def joint_correlation(graph: Graph, joints: Iterable[tuple[BlockFactor, Joint | None]]) -> Correlation | None:
    """The correlations of the user's variables in blocks; None where they are too many, or none."""
    found = joint_covariance(graph, joints)
    if found is None:
        return None
    nodes = {n.name: n for n in graph.nodes if n.given}
    sizes = {k: (nodes[k].size * (nodes[k].dimension or 1), nodes[k].dimension or 1) for k in found[0]}
    return correlation_of(found[1], sizes)


def _connected(graph: Graph, groups: list[np.ndarray], a: Affine, b: Affine) -> bool:
    """Whether anything in the model connects two expressions."""
    left, right = ({int(k) for k in groups_of(graph, groups, form)} for form in (a, b))
    return bool(left & right)
