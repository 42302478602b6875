"""A category given another: ``P(child | parent)`` as a table of probabilities."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.families import Categorical, Family

__all__ = ["ConditionalTable"]


class ConditionalTable(Factor):
    """``P(child = j | parent = k) = table[k, j]``, exact sums over categories."""

    name = "conditional_table"
    ports = ("parent", "table", "child")
    families: ClassVar = {"parent": (Categorical,), "table": (), "child": (Categorical,)}
    data_ranks: ClassVar = {"table": 2}
    how: ClassVar = {"parent": "closed form", "child": "closed form"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The table, summed over the other end's categories with its message's weights."""
        self.check_port(to)
        table = np.asarray(incoming["table"], dtype=float)
        if to == "child":
            weight = np.einsum("...k,...kj->...j", incoming["parent"].p, table)
        else:
            weight = np.einsum("...j,...kj->...k", incoming["child"].p, table)
        return Categorical(weight / weight.sum(axis=-1, keepdims=True))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the sum of the table under both messages."""
        table = np.asarray(incoming["table"], dtype=float)
        return np.log(np.einsum("...k,...kj,...j->...", incoming["parent"].p, table, incoming["child"].p))

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """The other end and the table."""
        return frozenset(self.ports) - {to}
