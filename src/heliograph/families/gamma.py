"""Gamma messages on the positive numbers."""

# A family meets only itself, and has statistics of its own.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from typing import Any, Self

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.base import Family, positive_pair, stored
from heliograph.numerics.checks import as_real, short
from heliograph.numerics.excess import log_excess
from heliograph.numerics.gamma_function import binet, digamma_gap, stirling_divergence, trigamma
from heliograph.numerics.inverse_digamma import inverse_digamma_gap, inverse_trigamma
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.special import gammainc, gammaincinv, gammaln

__all__ = ["Gamma"]


class Gamma(Family):
    """``Gamma(x; shape, rate)``, kept as ``exp((shape - 1) log x - rate x)``.

    Uniform: ``shape = 1, rate = 0``, the constant 1. Point mass: all mass at one value ``x > 0``. Improper: a
    shape or a rate that is not positive (its mean is NaN, its variance infinite, as for the uniform message).
    The Gamma's own shape is `shape_parameter`; `shape` is the plate's. Since ``shape - 1`` is what is stored, a shape s
    far below 1 is known to 1e-16 / s of itself.

    >>> Gamma(2.0, 1.0) * Gamma(3.0, 1.0)
    Gamma(shape 4., rate 2.)
    >>> Gamma.from_statistics(*Gamma(2.0, 3.0).expected_statistics())
    Gamma(shape 2., rate 3.)
    """

    __slots__ = ()
    chart = "log"
    ranks = (0, 0)
    statistics = ("log x", "-x")
    parameters = ("shape_parameter", "rate")
    support = (0.0, np.inf)
    values = "at a finite positive number"

    def __init__(self, shape: Any, rate: Any) -> None:
        instead = "(shape - 1, rate)), for no information Gamma.uniform()"
        shape, rate = positive_pair("Gamma", "shape", shape, "rate", rate, instead)
        self._init((stored(shape), np.array(rate)))

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def from_statistics(cls, mean: Any, mean_log: Any) -> Self:
        """The EP projection: the member with ``E x = mean`` and ``E log x = mean_log``.

        The difference of the two logarithms is all that is known of the shape; where it is rounding (shapes above
        1e8) supply it accurately to `from_mean_and_log_gap` instead.
        """
        mean = np.asarray(mean, dtype=float)
        if not (mean > 0).all():
            raise ModelError(f"a Gamma needs a positive mean, not {short(mean)}")
        log_mean = np.log(mean)
        gap = log_mean - np.asarray(mean_log, dtype=float)
        # a difference of two roundings is a point mass and not an error
        noise = 4e-16 * np.maximum(1.0, np.abs(log_mean))
        return cls.from_mean_and_log_gap(mean, np.where(np.abs(gap) <= noise, 0.0, gap))

    @classmethod
    def from_mean_and_log_gap(cls, mean: Any, gap: Any, *, strict: bool = True) -> Self:
        """The EP projection from ``E x`` and ``gap = log E x - E log x >= 0``, both to full relative precision.

        A quadrature finds the gap without cancellation, as the mean of ``d - log(1 + d)`` for ``d = x / E x - 1``
        (`numerics.excess.log_excess`). A gap of 0 is a point mass. Numbers that no Gamma has are an error, or with
        ``strict=False`` an entry of NaN, one for each such row.
        """
        mean, gap = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(gap, dtype=float))
        possible = (gap >= 0) & (mean > 0) & (mean < np.inf)
        if not possible.all():
            if not strict:
                made = cls.from_mean_and_log_gap(np.where(possible, mean, 1.0), np.where(possible, gap, 1.0))
                return made.without(~possible)
            raise ModelError(
                f"no Gamma has E x = {short(mean)} and log E x - E log x = {short(gap)}; the first is positive and "
                "the second never negative"
            )
        is_point = gap == 0
        s = inverse_digamma_gap(np.where(is_point, 1.0, gap))
        return cls.with_points_at(is_point, mean, (stored(s), s / mean))

    @classmethod
    def from_mean_variance(cls, mean: Any, variance: Any) -> Self:
        """The member with this mean and variance: a named alternative to the EP projection."""
        mean, variance = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
        if not ((mean > 0) & (variance >= 0)).all():
            raise ModelError(
                f"a Gamma needs a positive mean and a variance of 0 or more, not {short(mean)}, {short(variance)}"
            )
        is_point = variance == 0
        rate = mean / np.where(is_point, 1.0, variance)
        return cls.with_points_at(is_point, mean, (stored(mean * rate), rate))

    @classmethod
    def from_chart_moments(cls, mean: Any, variance: Any) -> Self:
        """The member whose ``log x`` has this mean and variance."""
        mean, variance = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
        if not (variance >= 0).all():
            raise ModelError(f"the variance of log x is 0 or more, not {short(variance)}")
        is_point = variance == 0
        s = inverse_trigamma(np.where(is_point, 1.0, variance))
        # +-690: a rate of 1e+-300, beyond which it is not a number; a shape below 1e-3 takes it there
        rate = np.exp(np.clip(np.log(s) - digamma_gap(s) - mean, -690.0, 690.0))
        return cls.with_points_at(is_point, np.exp(np.clip(mean, -690.0, 690.0)), (stored(s), rate))

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def shape_parameter(self) -> np.ndarray:
        """The Gamma's shape (not the plate's); infinite at a point mass."""
        s = self.naturals[0] + 1.0
        return self._or_at_points(s, np.inf)

    @property
    def rate(self) -> np.ndarray:
        """The rate, one over the scale; infinite at a point mass."""
        return self._or_at_points(self.naturals[1], np.inf)

    @property
    def _soft(self) -> np.ndarray:
        return (self.naturals[0] > -1.0) & (self.naturals[1] > 0)

    @property
    def proper(self) -> np.ndarray:
        """Where shape and rate are positive, or the entry is a point mass."""
        return self._soft if self.point is None else self._soft | self.is_point

    @property
    def mean(self) -> np.ndarray:
        """``shape / rate``; NaN where the message is uniform or improper."""
        s, rate = self.naturals[0] + 1.0, self.naturals[1]
        if self.point is None and np.minimum(s, rate).min(initial=1.0) > 0:
            return s / rate
        mean = np.divide(s, rate, out=np.full(np.shape(s), np.nan), where=self._soft)
        return self._or_at_points(mean, self.point)

    @property
    def variance(self) -> np.ndarray:
        """``shape / rate^2``; infinite where the message is uniform or improper."""
        s, rate = self.naturals[0] + 1.0, self.naturals[1]
        if self.point is None and np.minimum(s, rate).min(initial=1.0) > 0:
            return s / rate / rate
        soft = self._soft
        variance = np.divide(s, rate, out=np.full(np.shape(s), np.inf), where=soft)
        variance = np.divide(variance, rate, out=variance, where=soft)
        return self._or_at_points(variance, 0.0)

    def _safe(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        soft = self._soft
        if soft.all():
            return soft, self.naturals[0] + 1.0, self.naturals[1]
        return soft, np.where(soft, self.naturals[0] + 1.0, 1.0), np.where(soft, self.naturals[1], 1.0)

    def expected_statistics(self) -> tuple[np.ndarray, np.ndarray]:
        """``E x`` and ``E log x``, in the order in which `from_statistics` takes them."""
        soft, s, rate = self._safe()
        mean_log = np.where(soft, np.log(s / rate) - digamma_gap(s), np.nan)  # not psi(s) - log(rate), which may cancel
        if self.point is not None:
            is_point = self.is_point
            mean_log = np.where(is_point, np.log(np.where(is_point, self.point, 1.0)), mean_log)
        return self.mean, mean_log

    def log_gap(self) -> np.ndarray:
        """``log E x - E log x``, which the shape alone decides, to full relative precision; 0 at a point mass."""
        soft, s, _ = self._safe()
        gap = np.where(soft, digamma_gap(s), np.nan)
        return self._or_at_points(gap, 0.0)

    def chart_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of ``log x``; NaN and infinite where the message is uniform or improper."""
        soft, s, _ = self._safe()
        variance = np.where(soft, trigamma(s), np.inf)
        return self.expected_statistics()[1], self._or_at_points(variance, 0.0)

    @property
    def mode(self) -> np.ndarray:
        """Where the density is largest, or the mean where that is at 0."""
        soft, s, rate = self._safe()
        return np.where(soft & (s > 1), (s - 1) / rate, self.mean)

    def somewhere(self) -> np.ndarray:
        """One."""
        return np.asarray(1.0)

    @classmethod
    def in_support(cls, x: Any) -> np.ndarray:
        """Where a value is a finite positive number."""
        x = as_real("in_support: x", x)
        return (x > 0) & (x < np.inf)

    # ---- densities ----------------------------------------------------------------------------------------------
    def log_normaliser(self) -> np.ndarray:
        """``log`` of the integral of ``exp((shape - 1) log x - rate x)``; 0 where uniform, improper or a point."""
        soft, s, rate = self._safe()
        return np.where(soft, gammaln(s) - s * np.log(rate), 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """``log Gamma(x)``; a uniform or improper entry is read as ``exp((shape - 1) log x - rate x)``."""
        x = as_real("log_density: x", x)
        soft, s, rate = self._safe()
        inside = (x > 0) & (x < np.inf)
        safe = np.where(inside, x, 1.0)
        log_x = np.log(safe)
        # the large terms of a large shape cancel on paper: y - 1 - log y of y = x / mean
        y = safe * rate / s
        log_p = -s * log_excess(y - 1.0, y) - log_x + 0.5 * (np.log(s) - LOG_2PI) - binet(s)
        log_p = np.where(soft, log_p, self.naturals[0] * log_x - self.naturals[1] * safe)
        power = np.broadcast_to(self.naturals[0], log_p.shape)
        at_zero = np.where(power == 0, np.where(soft, np.log(rate), 0.0), np.where(power > 0, -np.inf, np.inf))
        log_p = np.where(inside, log_p, np.where(x == 0, at_zero, -np.inf))
        return self._log_density_at_points(log_p, x)

    def entropy(self) -> np.ndarray:
        """``-E log Gamma(x)`` in nats; -inf at a point mass, NaN where there is no distribution."""
        soft, s, rate = self._safe()
        # E[s (y - 1 - log y)] = s gap(s), and E log x = log(s / rate) - gap(s)
        gap = digamma_gap(s)
        h = (s - 1.0) * gap + np.log(s / rate) - 0.5 * (np.log(s) - LOG_2PI) + binet(s)
        h = np.where(soft, h, np.nan)
        return self._or_at_points(h, -np.inf)

    def _kl(self, other: Self) -> np.ndarray:
        soft1, s1, r1 = self._safe()
        soft2, s2, r2 = other._safe()
        ratio = (s1 * r2 - s2 * r1) / (s2 * r1)  # mean over mean, less 1
        kl = s2 * log_excess(ratio, (s1 / s2) * (r2 / r1)) + stirling_divergence(s1, s2)
        kl, both = np.maximum(kl, 0.0), soft1 & soft2  # rounding may take it below 0
        return kl if both.all() else np.where(both, kl, self._kl_at_limits(other))

    def _quantile(self, q: np.ndarray) -> np.ndarray:
        _, s, rate = self._safe()
        return gammaincinv(s, q) / rate

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        _, s, rate = self._safe()
        return gammainc(s, np.maximum(x, 0.0) * rate)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        _, s, rate = self._safe()
        draws = rng.standard_gamma(s, size) / rate
        draws = np.maximum(draws, np.finfo(float).tiny)  # a shape near 0 underflows to 0, which is not in the support
        return self._or_at_points(draws, self.point)
