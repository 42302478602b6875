"""Bernoulli messages on {0, 1}."""

# A family meets only itself, and has statistics of its own.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from typing import Any, Self

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.base import Discrete
from heliograph.numerics.checks import as_real, short
from heliograph.numerics.special import expit, log_expit

__all__ = ["Bernoulli"]


class Bernoulli(Discrete):
    """``p`` at 1 and ``1 - p`` at 0, kept as ``exp(log_odds x)``.

    Uniform: ``p = 1/2``, log odds 0; being a distribution on two values it is also proper, and its normaliser is 2.
    Point mass: certainty of 0 or of 1, which is also what ``p = 0`` or ``p = 1`` become. No entry is ever improper.

    >>> Bernoulli(0.8) * Bernoulli(0.5)
    Bernoulli(p 0.8)
    >>> Bernoulli([0.0, 0.5, 0.75])
    Bernoulli[point 0., uniform, p 0.75]
    """

    __slots__ = ()
    ranks = (0,)
    statistics = ("x",)
    support = (0.0, 1.0)
    values = "at 0 or 1"

    def __init__(self, p: Any) -> None:
        p = as_real("a Bernoulli's probability", p)
        if not ((p >= 0) & (p <= 1)).all():
            raise ModelError(f"a Bernoulli needs a probability between 0 and 1, not {short(p)}")
        certain = (p == 0) | (p == 1)
        inside = np.where(certain, 0.5, p)
        self._init((np.log(inside) - np.log1p(-inside),), np.where(certain, p, np.nan) if certain.any() else None)

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def from_log_odds(cls, log_odds: Any, *, strict: bool = True) -> Self:
        """From ``log(p / (1 - p))``, which holds probabilities that p itself rounds to 1; infinite means certain.

        NaN is an error, or with ``strict=False`` an entry of NaN.
        """
        l = np.array(as_real("a Bernoulli's log odds", log_odds))
        if strict and np.isnan(l).any():
            raise ModelError("a Bernoulli's log odds are NaN somewhere")
        certain = np.isinf(l)
        if not certain.any():
            return cls.from_naturals((l,))
        return cls.from_naturals((np.where(certain, 0.0, l),), np.where(certain, (l > 0) * 1.0, np.nan))

    @classmethod
    def from_log_weights(cls, log_weights: Any, *, strict: bool = True) -> Self:
        """From the logarithms of weights of 0 and 1 along the last axis, known up to a constant."""
        log_weights = np.asarray(log_weights, dtype=float)
        return cls.from_log_odds(log_weights[..., 1] - log_weights[..., 0], strict=strict)

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def log_odds(self) -> np.ndarray:
        """``log(p / (1 - p))``; infinite at a point mass."""
        l = self.naturals[0]
        return l if self.point is None else np.where(np.isnan(self.point), l, (self.point - 0.5) * np.inf)

    @property
    def log_p(self) -> np.ndarray:
        """The log probabilities of 0 and of 1, along a last axis."""
        l = self.log_odds
        return np.stack([log_expit(-l), log_expit(l)], axis=-1)

    @property
    def p(self) -> np.ndarray:
        """The probability of 1."""
        p = expit(self.naturals[0])
        return self._or_at_points(p, self.point)

    @property
    def variance(self) -> np.ndarray:
        """``p (1 - p)``."""
        v = expit(self.naturals[0]) * expit(-self.naturals[0])
        return self._or_at_points(v, 0.0)

    @property
    def proper(self) -> np.ndarray:
        """Everywhere: two values always have a finite sum. Only an entry of NaN is no distribution."""
        return ~np.isnan(self.naturals[0])

    @classmethod
    def in_support(cls, x: Any) -> np.ndarray:
        """Where a value is 0 or 1."""
        x = as_real("in_support: x", x)
        return (x == 0) | (x == 1)

    # ---- densities ----------------------------------------------------------------------------------------------
    def log_normaliser(self) -> np.ndarray:
        """``log(1 + exp(log_odds))``, so log 2 where uniform; 0 at a point mass."""
        n = -log_expit(-self.naturals[0])
        return self._or_at_points(n, 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """``log p`` at 1, ``log(1 - p)`` at 0, -inf elsewhere."""
        x = as_real("log_density: x", x)
        l = self.naturals[0]
        log_p = np.where(x == 1, log_expit(l), np.where(x == 0, log_expit(-l), -np.inf))
        return self._log_density_at_points(log_p, x)

    def entropy(self) -> np.ndarray:
        """``-p log p - (1 - p) log(1 - p)`` in nats; 0 at a point mass."""
        l = self.naturals[0]
        h = -expit(l) * log_expit(l) - expit(-l) * log_expit(-l)
        return self._or_at_points(h, 0.0)

    def _kl(self, other: Self) -> np.ndarray:
        p, q = (expit(self.naturals[0]), expit(-self.naturals[0])) if self.point is None else (self.p, 1.0 - self.p)
        l, k = self.naturals[0], other.naturals[0]
        kl = p * (log_expit(l) - log_expit(k)) + q * (log_expit(-l) - log_expit(-k))
        if self.point is not None:
            kl = np.where(self.is_point, -other.log_density(np.where(self.is_point, self.point, 1.0)), kl)
        if other.point is not None:
            same = self.is_point & (self.log_odds == other.log_odds)
            kl = np.where(other.is_point, np.where(same, 0.0, np.inf), kl)
        return np.maximum(kl, 0.0)

    def _quantile(self, q: np.ndarray) -> np.ndarray:
        return (q > expit(-self.naturals[0])) * 1.0

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        return np.where(x < 0, 0.0, np.where(x < 1, expit(-self.naturals[0]), 1.0))

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        return (rng.random(size) < self.p).astype(float)
