"""A category given another: ``P(child | parent)`` as a table of probabilities."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.errors import ContradictionError
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
        other, table = (incoming["parent"], table) if to == "child" else (incoming["child"], np.swapaxes(table, -1, -2))
        log_weight = _log_sums(other, table)
        if np.isneginf(log_weight).all(axis=-1).any():
            raise ContradictionError(
                f"factor 'conditional_table': the table gives no category of the {to} a positive probability"
            )
        return Categorical.from_log_p(log_weight, strict=False)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the sum of the table under both messages."""
        table = np.asarray(incoming["table"], dtype=float)
        return _log_sum(_log_sums(incoming["parent"], table) + incoming["child"].log_p)

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """The other end and the table."""
        return frozenset(self.ports) - {to}


def _log_sums(other: Categorical, table: np.ndarray) -> np.ndarray:
    """``log sum_k p_k table[k, j]`` for each j, to full precision also where every p_k that counts underflows."""
    weight = np.einsum("...k,...kj->...j", other.p, table)
    small = ~(weight > 1e-280).all(axis=-1)
    log_weight = np.log(np.where(small[..., None], 1.0, weight))
    if not small.any():
        return log_weight
    exact = _log_sum(other.log_p[..., None, :] + np.log(np.swapaxes(table, -1, -2)))
    return np.where(small[..., None], exact, log_weight)


def _log_sum(a: np.ndarray) -> np.ndarray:
    """``log sum exp`` over the last axis, -inf where all terms are."""
    top = a.max(axis=-1, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    return top[..., 0] + np.log(np.exp(a - top).sum(axis=-1))
