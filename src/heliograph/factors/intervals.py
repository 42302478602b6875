"""Lifetimes with a constant hazard, of which only an interval is known, given a Gamma rate: in closed form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.families import Family, Gamma
from heliograph.numerics.excess import log_excess
from heliograph.numerics.gamma_function import digamma_gap

__all__ = ["ExponentialInterval"]


class ExponentialInterval(Factor):
    """``exp(-rate lower) - exp(-rate upper)``, the probability that an exponential lifetime ends between two times.

    Times a Gamma message it is the difference of two Gammas, with ``L = log((b + upper) / (b + lower))`` and
    ``h(x) = (1 - exp(-x)) / x`` in terms that do not cancel. The message is uniform where the rate's message leaves nothing to
    normalise (a lower end and a rate of 0 together).

    >>> f, rate = ExponentialInterval(), Gamma(2.0, 1.0)
    >>> exact = 1.0 / (1.0 + 1.0) ** 2 - 1.0 / (1.0 + 3.0) ** 2
    >>> bool(np.isclose(np.exp(f.log_z({"rate": rate, "lower": 1.0, "upper": 3.0})), exact))
    True
    """

    name = "exponential_interval"
    families: ClassVar = {"rate": (Gamma,), "lower": (), "upper": ()}
    how: ClassVar = {"rate": "closed form"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The belief over the cavity; at a point mass its limit for ever narrower cavities."""
        rate, low, gap = self._read(incoming)
        valid, a, b = _usable(rate, low)
        log_ratio = np.log1p(gap / b)
        x = a * log_ratio
        mean = (a + 1.0) / b * np.exp(_log_h(x + log_ratio) - _log_h(x))
        belief = Gamma.from_mean_and_log_gap(mean, digamma_gap(a + 1.0) + _bend(a, log_ratio), strict=False)
        own = rate.naturals
        naturals = [np.where(valid, n - c, 0.0) for n, c in zip(belief.naturals, own, strict=True)]
        if rate.point is None:
            return Gamma.from_naturals(tuple(naturals))
        r = np.where(rate.is_point, rate.point, 1.0)
        # log f has slope k / r - rate and bend -k / r^2 if it is k log r - rate r
        y = gap * r
        half = np.maximum(0.5 * np.minimum(y, 1400.0), 1e-150)
        k = np.where(y < 1e-4, 1.0 - y * y / 12.0, (half / np.sinh(half)) ** 2)
        limit = k, (k - _odds(y)) / r + low
        return Gamma.from_naturals(tuple(np.where(rate.is_point, l, n) for l, n in zip(limit, naturals, strict=True)))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the interval; infinite where there is none."""
        rate, low, gap = self._read(incoming)
        valid, a, b = _usable(rate, low)
        log_ratio = np.log1p(gap / b)
        proper = valid & rate.proper
        own = np.where(proper, rate.naturals[1], 1.0)
        with_prior = np.log(-np.expm1(-a * log_ratio)) - a * np.log1p(low / own)
        alone = gammaln(a + 1.0) - a * np.log(b) + np.log(log_ratio) + _log_h(a * log_ratio)
        log_z = np.where(proper, with_prior, np.where(valid, alone, np.inf))
        if rate.point is None:
            return log_z
        r = np.where(rate.is_point, rate.point, 1.0)
        return np.where(rate.is_point, np.log(-np.expm1(-gap * r)) - low * r, log_z)

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lifetimes given the rate."""
        mean = 1.0 / as_message(self, incoming, "rate").mean
        return rng.exponential(mean), mean, mean**2

    def _read(self, incoming: Incoming) -> tuple[Gamma, np.ndarray, np.ndarray]:
        """The rate's message, the lower end, and the length of the interval."""
        rate = as_message(self, incoming, "rate")
        low = np.broadcast_to(as_data(self, incoming, "lower"), rate.shape)
        return rate, low, np.broadcast_to(as_data(self, incoming, "upper"), rate.shape) - low


def _usable(rate: Gamma, low: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where there is a tilted distribution, the cavity's shape, and its rate with the lower end; 1 elsewhere."""
    a, b = rate.naturals[0] + 1.0, rate.naturals[1] + low
    valid = (a > -1.0) & (b > 0) & ~rate.is_point
    return valid, np.where(valid, a, 1.0), np.where(valid, b, 1.0)


def _log_h(x: np.ndarray) -> np.ndarray:
    """``log((1 - exp(-x)) / x)``, 0 at 0, for x > -700."""
    small = np.abs(x) < 1e-5
    safe = np.where(small, 1.0, x)
    return np.where(small, -0.5 * x + x * x / 24.0, np.log(-np.expm1(-safe) / safe))


def _odds(y: np.ndarray) -> np.ndarray:
    """``y / (exp(y) - 1)`` for y >= 0, 1 at 0."""
    small = y < 1e-5
    safe = np.clip(np.where(small, 1.0, y), 0.0, 700.0)
    return np.where(small, 1.0 - 0.5 * y, safe / np.expm1(safe))


def _bend(a: np.ndarray, log_ratio: np.ndarray) -> np.ndarray:
    """``log h(x + L) - log h(x) - L (log h)'(x)`` at ``x = a L``, never negative since log h is convex."""
    x = a * log_ratio
    small = np.abs(x) < 1e-4
    safe = np.where(small, 1.0, x)
    slope = np.where(small, x / 12.0 - 0.5, 1.0 / np.expm1(np.clip(safe, -700.0, 700.0)) - 1.0 / safe)
    direct = _log_h(x + log_ratio) - _log_h(x) - log_ratio * slope
    # for large a of terms as small as their difference: those of 1 / x and of 1 - exp(-x), each above its tangent
    large = np.where(a > 1.0, a, 1.0)
    q = 1.0 / np.expm1(np.clip(large * log_ratio, 1e-300, 700.0))
    apart = log_excess(1.0 / large) + np.log1p(-q * np.expm1(-log_ratio)) - log_ratio * q
    return np.maximum(np.where(a > 1.0, apart, direct), 0.0)
