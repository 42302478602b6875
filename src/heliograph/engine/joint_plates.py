"""What Gaussian and discrete blocks share: their ports and plates in a graph, and the warning about one that is too expensive."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Sequence

from heliograph.errors import AccuracyWarning, UnsupportedError
from heliograph.factors import Factor
from heliograph.graph.records import Edge, Graph, Plate
from heliograph.numerics.checks import listed

__all__ = ["joint_but", "met_outside", "port_of", "refuse_block", "with_joint_plates"]

_NAMED = 4  # variables that a sentence names


def port_of(node: int) -> str:
    """The name of a block's port at a node."""
    return f"n{node}"


def met_outside(graph: Graph, plates: Collection[int], nodes: Iterable[int]) -> set[int]:
    """The nodes, among these, that plates outside the block touch."""
    met = graph.meetings()
    return {k for k in nodes if any(p.position not in plates for p, _ in met.get(k, ()))}


def with_joint_plates(graph: Graph, blocks: Sequence[tuple[Factor, Collection[int], Iterable[int]]]) -> Graph:
    """The same graph with one plate for every block, in the place of those that it holds: its factor, these, its nodes."""
    made = graph.without({k for _, plates, _ in blocks for k in plates})
    for factor, _, nodes in blocks:
        edges = {port_of(k): Edge(k, None, True, joint=True) for k in nodes}
        made.plates.append(Plate(len(made.plates), factor.name, factor, (), edges))
    return made


def joint_but(names: Sequence[str], why_joint: str, error: Exception) -> str:
    """The sentence that begins with the names of a block's variables."""
    return f"variables {listed(names, _NAMED)} are {why_joint}, but {error}"


def refuse_block(sentence: str, instead: str, must: bool) -> None:
    """Warn that a block is factorised, and of what that costs; with `must`, raise."""
    if must:
        raise UnsupportedError(f"{sentence}; use structure='auto'") from None
    warnings.warn(f"{sentence}; they are factorised instead{instead}", AccuracyWarning, stacklevel=3)
