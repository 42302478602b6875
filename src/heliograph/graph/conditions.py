"""Under which condition a part of a model holds: a switch has one of some values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from heliograph.graph.records import Node

__all__ = ["Condition", "Gate"]


class Condition(NamedTuple):
    """A switch has one of these values."""

    switch: Node
    values: frozenset[int]


@dataclass(eq=False)
class Gate:
    """One `with model.when(...)` block: all of its conditions hold in the branches that it is part of."""

    conditions: tuple[Condition, ...]
    words: str
    start: int = 0  # what is written inside has this number in the order of writing, or a later one

    def holds(self, values: Mapping[Node, int]) -> bool:
        """Whether it is part of the branch in which the switches have these values."""
        return all(values.get(c.switch) in c.values for c in self.conditions)

    def __str__(self) -> str:
        return self.words
