# pyright: basic
"""``out = a b`` where some of the three are jointly Gaussian."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.forms.messages import message_from_moments, proper_moments, scalar_message_from_moments
from heliograph.factors import Factor, Incoming
from heliograph.factors.integrals.joint_product import Triple, free_product, product_triple
from heliograph.families import Family, Gaussian, MultivariateGaussian

__all__ = ["JointProduct"]

_ALL = ("a", "b", "out")


class _Tilted(NamedTuple):
    triple: Triple
    good: np.ndarray  # (n,) rows that have a tilted distribution
    free: np.ndarray  # (n,) rows in which nothing is known of the product


class JointProduct(Factor):
    """``out = a b`` with a vector port for two or three of them.

    Where a message that comes in is improper, or exact, the message is uniform; nothing may be known of the product by itself.
    """

    name = "product"

    def __init__(self, joined: tuple[str, ...]) -> None:
        self.joined = joined
        self.port = "+".join(joined)
        rest = tuple(p for p in _ALL if p not in joined)
        self.ports = (self.port, *rest) if "out" in rest else (*rest, self.port)  # type: ignore[misc]
        self.families = {**dict.fromkeys(rest, (Gaussian,)), self.port: (MultivariateGaussian,)}  # type: ignore[misc]
        self.how = dict.fromkeys(self.ports, "quadrature over b")  # type: ignore[misc]
        self._at = np.array([_ALL.index(p) for p in joined])

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity."""
        (_, mean, covariance), good, free = self._tilted(incoming)
        if to == self.port:
            at = self._at
            return message_from_moments(incoming[to], mean[:, at], covariance[:, at[:, None], at], good & ~free)
        k = _ALL.index(to)
        return scalar_message_from_moments(
            incoming[to], mean[:, k], covariance[:, k, k], good & (~free | (to == "out"))
        )

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of all messages with a b for the product."""
        triple, good, _ = self._tilted(incoming)
        return np.where(good, triple.log_z, np.inf)

    def bends(self, incoming: Incoming) -> bool:
        """Return whether the belief of the vector may be bent; it is not where nothing is known of any product."""
        _, _, good, free = self._assembled(incoming)
        return bool((good & ~free).any())

    def log_at(self, incoming: Incoming, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``log`` of the factor at draws (n, S, d) of the vector, and of which components it is a function.

        The product is integrated out: given a and b, or one of them, it is Gaussian under what comes in.
        """
        mean, covariance, good, free = self._assembled(incoming)
        kept = np.array([k for k, p in enumerate(self.joined) if p != "out"])
        known = self._at[kept]  # among (a, b, out)
        u = values[..., kept]
        centre, variance = _given(mean, covariance, known, u)
        if len(known) == 2:
            product, spread = u[..., 0] * u[..., 1], 0.0
        else:
            other = 1 - known[0]
            product, spread = u[..., 0] * mean[:, other, None], u[..., 0] ** 2 * covariance[:, other, other, None]
        total = variance[:, None] + spread
        log_t = -0.5 * (product - centre) ** 2 / total - 0.5 * np.log(total)
        return np.where(good[:, None], np.where(free[:, None], 0.0, log_t), -np.inf), kept

    def _tilted(self, incoming: Incoming) -> _Tilted:
        mean, covariance, good, free = self._assembled(incoming)
        found = Triple(np.zeros(len(mean)), np.zeros_like(mean), np.zeros_like(covariance))
        for rows, triple in (
            (good & free, lambda r: free_product(mean[r][:, :2], covariance[r][:, :2, :2])),
            (good & ~free, lambda r: product_triple(mean[r], covariance[r])),
        ):
            at = np.flatnonzero(rows)
            if len(at):
                for whole, part in zip(found, triple(at), strict=True):
                    whole[at] = part
        return _Tilted(found, good, free)

    def _assembled(self, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Moments of (a, b, out) before the product is known, where they are a distribution, and where out is free."""
        joint = incoming[self.port]
        n, at = joint.size, self._at
        mean, covariance = np.zeros((n, 3)), np.broadcast_to(np.eye(3), (n, 3, 3)).copy()
        free = np.zeros(n, dtype=bool)
        good, mean[:, at], covariance[:, at[:, None], at] = proper_moments(joint)
        for k, port in enumerate(_ALL):
            if port in self.joined:
                continue
            message = incoming[port]
            proper = message.proper & ~message.is_point
            if port == "out":
                free = message.is_uniform
                good = good & (proper | free)
            else:
                good = good & proper
            mean[:, k] = np.where(proper, message.mean, 0.0)
            covariance[:, k, k] = np.where(proper, message.variance, 1.0)
        return mean, covariance, good, free


def _given(mean: np.ndarray, covariance: np.ndarray, known: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (n, S) and variance (n,) of the third number before the product is known, given draws of some others."""
    own = covariance[:, known[:, None], known]
    gain = np.linalg.solve(own, covariance[:, known, 2][..., None])[..., 0]
    centre = mean[:, 2, None] + np.einsum("nsk,nk->ns", u - mean[:, None, known], gain)
    return centre, covariance[:, 2, 2] - np.sum(gain * covariance[:, known, 2], axis=1)
