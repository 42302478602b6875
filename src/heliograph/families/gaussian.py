"""Gaussian messages on the real line."""

# A family meets only itself, and has statistics of its own.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from typing import Any, Self

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.base import Family
from heliograph.numerics.checks import as_real, check_fit, short
from heliograph.numerics.chunks import chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.special import ndtr, ndtri

__all__ = ["Gaussian"]

_BLOCK = 8192  # entries of a large plate at a time: fresh memory takes longer than the arithmetic


class Gaussian(Family):
    """``N(x; mean, variance)``, kept as ``exp(shift x - precision x^2 / 2)``.

    Uniform: precision 0 and shift 0 (its mean is NaN, its variance infinite). Point mass: variance 0. Improper:
    precision < 0, or precision 0 with a shift.

    >>> Gaussian(1.0, 2.0) * Gaussian(3.0, 2.0)
    Gaussian(mean 2., variance 1.)
    >>> Gaussian(1.0, 2.0) / Gaussian(1.0, 1.0)
    Gaussian(mean 1., variance -2., improper)
    """

    __slots__ = ()
    gaussian = True
    ranks = (0, 0)
    statistics = ("x", "x^2")

    def __init__(self, mean: Any, variance: Any = None, *, precision: Any = None) -> None:
        if (variance is None) == (precision is None):
            raise ModelError("a Gaussian needs a mean and either a variance or a precision")
        mean = as_real("a Gaussian's mean", mean)
        if not np.isfinite(mean).all():
            raise ModelError(f"a Gaussian needs a finite mean, not {short(mean)}; Gaussian.uniform() says nothing")
        self._set(mean, variance, precision)

    def _set(self, mean: np.ndarray, variance: Any, precision: Any) -> None:
        if precision is None:
            variance = as_real("a Gaussian's variance", variance)
            least = variance.min(initial=np.inf)
            if not least >= 0:
                raise ModelError(f"a Gaussian needs a variance of 0 (a point mass) or more, not {short(variance)}")
            is_point = None if least > 0 else variance == 0
            # 1e-308: the precision of the smallest variance there is still has to be a number
            tau = 1.0 / np.maximum(variance if is_point is None else np.where(is_point, 1.0, variance), 1e-308)
        else:
            tau = np.array(as_real("a Gaussian's precision", precision))
            if not tau.min(initial=np.inf) > -np.inf:
                raise ModelError(f"a Gaussian needs a precision that is a number, not {short(tau)}")
            is_point = None if tau.max(initial=-np.inf) < np.inf else np.isposinf(tau)
            tau = tau if is_point is None else np.where(is_point, 0.0, tau)
        if mean.shape != tau.shape:
            check_fit("Gaussian", "mean", mean, "spread", tau)
            mean, tau = (np.array(a) for a in np.broadcast_arrays(mean, tau))
        if is_point is None:
            self._init((tau * mean, tau))
        else:
            made = self.with_points_at(np.broadcast_to(is_point, mean.shape), mean, (tau * mean, tau))
            self._init(made.naturals, made.point)

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def from_mean_variance(cls, mean: Any, variance: Any) -> Self:
        """The member with this mean and variance; for a Gaussian that is also the EP projection.

        For computed moments: a mean that is NaN makes that entry NaN, which the engine skips, and touches no other.
        """
        self = cls.__new__(cls)
        self._set(as_real("a Gaussian's mean", mean), variance, None)
        return self

    @classmethod
    def from_statistics(cls, first: Any, second: Any) -> Self:
        """The EP projection: the member with ``E x = first`` and ``E x^2 = second``."""
        first, second = as_real("E x", first), as_real("E x^2", second)
        variance = second - first**2
        # a difference of two roundings is a point mass and not an error
        return cls.from_mean_variance(first, np.where(np.abs(variance) <= 4e-16 * second, 0.0, variance))

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def shift(self) -> np.ndarray:
        """Mean times precision."""
        return self.naturals[0]

    @property
    def precision(self) -> np.ndarray:
        """One over the variance; infinite at a point mass."""
        tau = self.naturals[1]
        return self._or_at_points(tau, np.inf)

    @property
    def proper(self) -> np.ndarray:
        """Where the precision is positive, or the entry is a point mass."""
        proper = self.naturals[1] > 0
        return proper if self.point is None else proper | self.is_point

    @property
    def mean(self) -> np.ndarray:
        """The mean; NaN where the message is uniform."""
        shift, tau = self.naturals
        mean = np.divide(shift, tau, out=np.full(np.shape(tau), np.nan), where=tau != 0)
        return self._or_at_points(mean, self.point)

    @property
    def variance(self) -> np.ndarray:
        """The variance; infinite where the message is uniform, negative where it is improper."""
        tau = self.naturals[1]
        variance = np.divide(1.0, tau, out=np.full(np.shape(tau), np.inf), where=tau != 0)
        return self._or_at_points(variance, 0.0)

    def expected_statistics(self) -> tuple[np.ndarray, np.ndarray]:
        """``E x`` and ``E x^2``."""
        mean = self.mean
        return mean, mean**2 + self.variance

    @classmethod
    def in_support(cls, x: Any) -> np.ndarray:
        """Where a value is a finite real number."""
        return np.isfinite(as_real("in_support: x", x))

    # ---- densities ----------------------------------------------------------------------------------------------
    def log_normaliser(self) -> np.ndarray:
        """``log`` of the integral of ``exp(shift x - precision x^2 / 2)``; 0 where uniform, improper or a point."""
        shift, tau = self.naturals
        proper = tau > 0
        tau = np.where(proper, tau, 1.0)
        return np.where(proper, 0.5 * (shift * (shift / tau) + LOG_2PI - np.log(tau)), 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """``log N(x)``; a uniform or improper entry is read as ``exp(shift x - precision x^2 / 2)``."""
        x = as_real("log_density: x", x)
        shift, tau = self.naturals
        # completed square: the plain form loses digits when the mean is many deviations from 0
        mean = np.divide(shift, tau, out=np.zeros(np.shape(tau)), where=tau > 0)
        safe = np.where(tau > 0, tau, 1.0)
        square: np.ndarray = 0.5 * (np.log(safe) - LOG_2PI - safe * (x - mean) ** 2)
        plain: np.ndarray = shift * x - 0.5 * tau * x**2
        return self._log_density_at_points(np.where(tau > 0, square, plain), x)

    def entropy(self) -> np.ndarray:
        """``-E log N(x)`` in nats; -inf at a point mass, NaN where there is no distribution."""
        v = np.where(self.proper, self.variance, np.nan)
        return 0.5 * (LOG_2PI + 1 + np.log(v, out=np.full(v.shape, -np.inf), where=~(v == 0)))

    def _kl(self, other: Self) -> np.ndarray:
        (h1, t1), (h2, t2) = self.naturals, other.naturals
        if t1.min(initial=1.0) > 0 and t2.min(initial=1.0) > 0:
            if t1.ndim == 1 and t1.shape == t2.shape and t1.size > _BLOCK:
                parts = [_proper_kl(h1[k], t1[k], h2[k], t2[k]) for k in chunks(t1.size, _BLOCK)]
                return np.concatenate(parts)
            return _proper_kl(h1, t1, h2, t2)
        both = (t1 > 0) & (t2 > 0)
        kl = _proper_kl(h1, np.where(both, t1, 1.0), h2, np.where(both, t2, 1.0))
        return np.where(both, kl, self._kl_at_limits(other))

    def _quantile(self, q: np.ndarray) -> np.ndarray:
        tau = np.where(self.naturals[1] > 0, self.naturals[1], 1.0)
        return self.naturals[0] / tau + ndtri(q) / np.sqrt(tau)

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        tau = np.where(self.naturals[1] > 0, self.naturals[1], 1.0)
        return ndtr((x - self.naturals[0] / tau) * np.sqrt(tau))

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        return self.mean + np.sqrt(self.variance) * rng.standard_normal(size)


def _proper_kl(h1: np.ndarray, t1: np.ndarray, h2: np.ndarray, t2: np.ndarray) -> np.ndarray:
    """``KL`` of Gaussians of shifts h1 and precisions t1 from those of h2 and t2, all proper."""
    r = t2 / t1
    gap = h1 / t1 - h2 / t2
    gap *= gap
    gap *= t2
    log = np.log(r)
    r -= 1.0
    r -= log
    r += gap
    r *= 0.5
    return np.maximum(r, 0.0)  # rounding may take it below
