"""One of several unknown probabilities is chosen: ``f = q_parent``, the likelihood of an observed category of a large table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.families import Beta, Categorical, Family

__all__ = ["ChosenProbability"]


class _Tilted(NamedTuple):
    log_mean: np.ndarray  # (K, n) log E q_k
    total: np.ndarray  # (K, n) a + b
    weight: np.ndarray  # (K, n) the probability that k was chosen
    log_z: np.ndarray  # (n,)


class ChosenProbability(Factor):
    """``f = q_k`` where ``parent = k``, for Beta variables at the ports q0, q1, ...

    What goes to q_k is a fraction of one success: the one that gives q_k the mean of its tilted distribution,
    ``p A / (A + 1 - p)`` with p the probability that it was chosen and ``A = a + b``. Where q_k is an entry of a Dirichlet
    this keeps the means of all its entries, with one number where a projection on ``E log`` has as many as the Dirichlet.
    """

    name = "chosen_probability"
    families = {"q0": (Beta,), "q1": (Beta,), "parent": (Categorical,)}  # noqa: RUF012  (each instance has its own)
    how = {"q0": "closed form, mean matched", "q1": "closed form, mean matched", "parent": "closed form"}  # noqa: RUF012
    ignores_own = ("parent",)

    def __init__(self, n: int = 2) -> None:
        self.n = n
        self.q = tuple(f"q{k}" for k in range(n))
        self.ports = (*self.q, "parent")  # type: ignore[misc]
        self.families = {**dict.fromkeys(self.q, (Beta,)), "parent": (Categorical,)}  # type: ignore[misc]
        self.how = {**dict.fromkeys(self.q, type(self).how["q0"]), "parent": "closed form"}  # type: ignore[misc]
        self._latest: tuple[list[np.ndarray], _Tilted] | None = None

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """To the parent the means of the probabilities; to each of these its share of one success."""
        if to == "parent":
            return Categorical.from_log_weights(self._log_means(incoming)[0].T, strict=False)
        k = self.q.index(to)
        q = as_message(self, incoming, to)
        tilted = self._tilted(incoming)
        p, total = tilted.weight[k], tilted.total[k]
        share = np.where(q.proper & ~q.is_point & np.isfinite(tilted.log_z), p * total / (total + 1.0 - p), 0.0)
        return Beta.from_naturals((share, np.zeros_like(share)))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log sum_k P(parent = k) E q_k``."""
        proper = np.all([as_message(self, incoming, port).proper for port in self.q], axis=0)
        return np.where(proper, self._tilted(incoming).log_z, np.inf)

    def _log_means(self, incoming: Incoming) -> tuple[np.ndarray, np.ndarray]:
        means, totals = [], []
        for port in self.q:
            q = as_message(self, incoming, port)
            good = q.proper & ~q.is_point
            total = np.where(good, q.naturals[0] + q.naturals[1] + 2.0, 2.0)
            mean = np.where(good, np.log(np.where(good, q.naturals[0] + 1.0, 1.0)) - np.log(total), -np.log(2.0))
            if q.point is not None:
                mean = np.where(q.is_point, np.log(np.where(q.is_point, q.point, 1.0)), mean)
            means.append(mean)
            totals.append(total)
        return np.stack(means), np.stack(totals)

    def _tilted(self, incoming: Incoming) -> _Tilted:
        """The part that all directions share; the latest one is reused if the messages are the same."""
        messages = [as_message(self, incoming, port) for port in self.ports]
        arrays = [a for m in messages for a in (*m.naturals, *(() if m.point is None else (m.point,)))]
        before = [] if self._latest is None else self._latest[0]
        if self._latest is not None and len(before) == len(arrays) and all(map(_equal, arrays, before)):
            return self._latest[1]
        log_mean, total = self._log_means(incoming)
        joint = log_mean + np.ascontiguousarray(messages[-1].log_p.T)
        top = joint.max(axis=0)
        weight = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
        total_weight = weight.sum(axis=0)
        weight /= np.where(total_weight > 0, total_weight, 1.0)
        log_z = np.log(total_weight) + top
        made = _Tilted(log_mean, total, weight, log_z)
        self._latest = [a.copy() for a in arrays], made
        return made


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a is b or np.array_equal(a, b)
