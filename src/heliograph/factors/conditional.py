"""A category given others: ``P(child | parents)`` as a table of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.factors.base import Factor, Incoming
from heliograph.families import Bernoulli, Categorical, Family

__all__ = ["ConditionalTable"]

_KINDS = (Categorical, Bernoulli)


class ConditionalTable(Factor):
    """``P(child = j | parent = k) = table[k, j]``, exact sums over categories.

    With several parents, at the ports parent0, parent1, ..., the table has an axis for each of them before the child's. A
    Bernoulli counts as a category of two values.
    """

    name = "conditional_table"
    families = {"parent": _KINDS, "table": (), "child": _KINDS}  # noqa: RUF012  (each instance has its own)
    data_ranks = {"table": 2}  # noqa: RUF012
    how = {"parent": "closed form", "child": "closed form"}  # noqa: RUF012

    def __init__(self, n_parents: int = 1) -> None:
        self.parents = ("parent",) if n_parents == 1 else tuple(f"parent{k}" for k in range(n_parents))
        self.ports = (*self.parents, "table", "child")  # type: ignore[misc]
        self.families = {**dict.fromkeys(self.parents, _KINDS), "table": (), "child": _KINDS}  # type: ignore[misc]
        self.data_ranks = {"table": n_parents + 1}  # type: ignore[misc]
        self.how = dict.fromkeys((*self.parents, "child"), "closed form")  # type: ignore[misc]
        self.ignores_own = self.ports  # type: ignore[misc]

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The table, summed over the other ends' categories with their messages' weights."""
        ends = (*self.parents, "child")
        table = np.moveaxis(np.asarray(incoming["table"], dtype=float), ends.index(to) - len(ends), -1)
        log_weight = _log_sums([incoming[p] for p in ends if p != to], table)
        if np.isneginf(log_weight).all(axis=-1).any():
            raise ContradictionError(
                f"factor 'conditional_table': the table gives no category of the {to} a positive probability"
            )
        return _kind(incoming, to).from_log_weights(log_weight, strict=False)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the sum of the table under all messages."""
        table = np.asarray(incoming["table"], dtype=float)
        return _log_sum(_log_sums([incoming[p] for p in self.parents], table) + incoming["child"].log_p)


def _kind(incoming: Incoming, to: str) -> type[Categorical] | type[Bernoulli]:
    try:
        return Bernoulli if isinstance(incoming[to], Bernoulli) else Categorical
    except KeyError:  # a direction does not read what came in at its own port
        return Categorical


def _log_sums(others: list[Any], table: np.ndarray) -> np.ndarray:
    """``log sum_k p_k table[k, j]`` for each j, to full precision also where every p_k that counts underflows."""
    weight = table
    for k, m in enumerate(others):  # an axis of the table goes with every message, the first one first
        p = np.exp(m.log_p)
        weight = (weight * p.reshape(*p.shape, *(1,) * (len(others) - k))).sum(axis=k - len(others) - 1)
    small = np.asarray(~(weight > 1e-280).all(axis=-1))
    log_weight = np.log(np.where(small[..., None], 1.0, weight))
    if not small.any():
        return log_weight
    exact = np.log(table)
    for k, m in enumerate(others):
        log_p = m.log_p
        exact = exact + log_p.reshape(*log_p.shape, *(1,) * (len(others) - k))
        exact = _log_sum(np.moveaxis(exact, k - len(others) - 1, -1))
    return np.where(small[..., None], exact, log_weight)


def _log_sum(a: np.ndarray) -> np.ndarray:
    """``log sum exp`` over the last axis, -inf where all terms are."""
    top = a.max(axis=-1, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    return top[..., 0] + np.log(np.exp(a - top).sum(axis=-1))
