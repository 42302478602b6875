"""Beta messages on the unit interval."""

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
from heliograph.numerics.inverse_dirichlet import dirichlet_mean_log, inverse_dirichlet
from heliograph.numerics.inverse_logit_moments import inverse_logit_moments
from heliograph.numerics.logarithms import LOG_2PI, log_or_minus_inf
from heliograph.numerics.special import betainc, betaincinv, betaln, expit, log_expit, psi, xlog1py, xlogy

__all__ = ["Beta"]


class Beta(Family):
    """``Beta(p; a, b)``, kept as ``exp((a - 1) log p + (b - 1) log(1 - p))``.

    Uniform: ``a = b = 1``, the constant 1, which on the unit interval is also proper. Point mass: all mass at one
    value in ``[0, 1]``. Improper: an a or b that is not positive (its mean is NaN, its variance infinite).

    >>> Beta(2.0, 1.0) * Beta(3.0, 1.0)
    Beta(a 4., b 1.)
    >>> Beta.from_statistics(*Beta(2.0, 3.0).expected_statistics())
    Beta(a 2., b 3.)
    """

    __slots__ = ()
    chart = "logit"
    ranks = (0, 0)
    statistics = ("log p", "log(1 - p)")
    parameters = ("a", "b")
    support = (0.0, 1.0)
    unsampled = "improper"
    values = "between 0 and 1"

    def __init__(self, a: Any, b: Any) -> None:
        a, b = positive_pair("Beta", "a", a, "b", b, "(a - 1, b - 1))")
        self._init((stored(a), stored(b)))

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def from_statistics(cls, mean_log: Any, mean_log1m: Any) -> Self:
        """The EP projection: the member with these ``E log p`` and ``E log(1 - p)``.

        What is known of a large ``a + b`` is a small difference of the two; where that is rounding (above 1e8) supply
        it accurately to `from_mean_logit_and_gap` instead.
        """
        t = np.stack(np.broadcast_arrays(np.asarray(mean_log, float), np.asarray(mean_log1m, float)))
        if not (t <= 0).all():
            raise ModelError(f"a Beta's E log p and E log(1 - p) are negative, not {short(t[0])} and {short(t[1])}")
        gap = -t.max(axis=0) - np.log1p(np.exp(-np.abs(t[0] - t[1])))
        gap = np.where(np.abs(gap) <= 4e-16, 0.0, gap)  # rounding of log 2: a point mass, not an error
        return cls.from_mean_logit_and_gap(t[0] - t[1], gap)

    @classmethod
    def from_mean_logit_and_gap(cls, mean_logit: Any, gap: Any, *, strict: bool = True) -> Self:
        """The EP projection from ``E logit p`` and ``gap = -log(exp(E log p) + exp(E log(1 - p))) >= 0``.

        A quadrature over ``z = logit p`` finds the gap without cancellation: with ``q = sigmoid(E z)`` and
        ``d = z - E z`` it is the mean of ``log(1 + q (exp(d) - 1)) - q d``, nowhere negative. A gap of 0 is a point
        mass. Numbers that no Beta has are an error, or with ``strict=False`` an entry of NaN.
        """
        z, gap = np.broadcast_arrays(np.asarray(mean_logit, dtype=float), np.asarray(gap, dtype=float))
        possible = (gap >= 0) & np.isfinite(z)
        if not possible.all():
            if not strict:
                made = cls.from_mean_logit_and_gap(np.where(possible, z, 0.0), np.where(possible, gap, 1.0))
                return made.without(~possible)
            raise ModelError(f"no Beta has E logit p = {short(z)} with gap {short(gap)}; the gap is never negative")
        is_point = gap == 0
        ab = inverse_dirichlet(np.stack([log_expit(z), log_expit(-z)], axis=-1), np.where(is_point, 1.0, gap))
        return cls.with_points_at(is_point, expit(z), (stored(ab[..., 0]), stored(ab[..., 1])))

    @classmethod
    def from_mean_variance(cls, mean: Any, variance: Any) -> Self:
        """The member with this mean and variance: a named alternative to the EP projection."""
        mean, variance = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
        spread = mean * (1.0 - mean)
        is_point = variance == 0
        if not (((mean > 0) & (mean < 1) & (variance < spread) | is_point) & (variance >= 0)).all():
            raise ModelError(
                "a Beta needs a mean between 0 and 1 and a variance below mean (1 - mean), not mean "
                f"{short(mean)} and variance {short(variance)}"
            )
        total = (spread - variance) / np.where(is_point, 1.0, variance)
        return cls.with_points_at(is_point, mean, (stored(mean * total), stored((1.0 - mean) * total)))

    @classmethod
    def from_chart_moments(cls, mean: Any, variance: Any) -> Self:
        """The member whose logit has this mean and variance."""
        mean, variance = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
        if not (variance >= 0).all():
            raise ModelError(f"the variance of logit p is 0 or more, not {short(variance)}")
        is_point = variance == 0
        a, b = inverse_logit_moments(mean, np.where(is_point, 1.0, variance))
        return cls.with_points_at(is_point, expit(mean), (stored(a), stored(b)))

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def a(self) -> np.ndarray:
        """The first parameter; infinite at a point mass."""
        a = self.naturals[0] + 1.0
        return self._or_at_points(a, np.inf)

    @property
    def b(self) -> np.ndarray:
        """The second parameter; infinite at a point mass."""
        b = self.naturals[1] + 1.0
        return self._or_at_points(b, np.inf)

    @property
    def _soft(self) -> np.ndarray:
        soft = (self.naturals[0] > -1.0) & (self.naturals[1] > -1.0)
        return soft if self.point is None else soft & ~self.is_point

    @property
    def proper(self) -> np.ndarray:
        """Where a and b are positive, or the entry is a point mass."""
        return (self.naturals[0] > -1.0) & (self.naturals[1] > -1.0)

    def _safe(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        soft = self._soft
        if soft.all():
            return soft, self.naturals[0] + 1.0, self.naturals[1] + 1.0
        return soft, np.where(soft, self.naturals[0] + 1.0, 1.0), np.where(soft, self.naturals[1] + 1.0, 1.0)

    @property
    def mean(self) -> np.ndarray:
        """``a / (a + b)``; NaN where the message is improper."""
        if self.point is None and np.minimum(*self.naturals).min(initial=0.0) > -1.0:
            a = self.naturals[0] + 1.0
            return a / (a + (self.naturals[1] + 1.0))
        soft, a, b = self._safe()
        mean = np.where(soft, a / (a + b), np.nan)
        return self._or_at_points(mean, self.point)

    @property
    def variance(self) -> np.ndarray:
        """``a b / ((a + b)^2 (a + b + 1))``; infinite where the message is improper."""
        soft, a, b = self._safe()
        s = a + b
        variance = (a / s) * (b / s) / (s + 1.0)
        if not soft.all():
            variance = np.where(soft, variance, np.inf)
        return self._or_at_points(variance, 0.0)

    def expected_statistics(self) -> tuple[np.ndarray, np.ndarray]:
        """``E log p`` and ``E log(1 - p)``; -inf at a point mass on the border."""
        soft, a, b = self._safe()
        mean_log = np.where(soft[..., None], dirichlet_mean_log(np.stack([a, b], axis=-1)), np.nan)
        first, second = mean_log[..., 0], mean_log[..., 1]
        if self.point is not None:
            is_point = self.is_point
            x = np.where(is_point, self.point, 0.5)
            first = np.where(is_point, log_or_minus_inf(x), first)
            second = np.where(is_point, log_or_minus_inf(1.0 - x), second)
        return first, second

    def chart_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of ``logit p``; NaN and infinite where the message is improper."""
        soft, a, b = self._safe()
        mean, variance = np.where(soft, psi(a) - psi(b), np.nan), np.where(soft, trigamma(a) + trigamma(b), np.inf)
        if self.point is not None:
            is_point = self.is_point
            x = np.where(is_point, self.point, 0.5)
            mean, variance = (
                np.where(is_point, log_or_minus_inf(x) - log_or_minus_inf(1.0 - x), mean),
                np.where(is_point, 0.0, variance),
            )
        return mean, variance

    @property
    def mode(self) -> np.ndarray:
        """Where the density is largest, or the mean where that is at 0 or 1."""
        soft, a, b = self._safe()
        peaked = soft & (a > 1) & (b > 1)
        return np.where(peaked, (a - 1) / np.where(peaked, a + b - 2, 1.0), self.mean)

    def somewhere(self) -> np.ndarray:
        """The middle."""
        return np.asarray(0.5)

    @classmethod
    def in_support(cls, x: Any) -> np.ndarray:
        """Where a value lies in ``[0, 1]``."""
        x = as_real("in_support: x", x)
        return (x >= 0) & (x <= 1)

    # ---- densities ----------------------------------------------------------------------------------------------
    def log_normaliser(self) -> np.ndarray:
        """``log B(a, b)``; 0 where improper or a point (and where uniform, by its own value)."""
        soft, a, b = self._safe()
        return np.where(soft, betaln(a, b), 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """``log Beta(x)``; an improper entry is read as ``exp((a - 1) log x + (b - 1) log(1 - x))``."""
        x = as_real("log_density: x", x)
        soft, a, b = self._safe()
        border = (x <= 0) | (x >= 1) | np.isnan(x)
        safe = np.where(border, 0.5, x)
        s = a + b
        # the large terms of large a and b cancel on paper: what is left is s KL(mean || x) and Binet's remainders
        log_p = (
            -a * log_excess((safe * s - a) / a, safe * s / a)
            - b * log_excess(((1.0 - safe) * s - b) / b, (1.0 - safe) * s / b)
            - np.log(safe)
            - np.log1p(-safe)
            + 0.5 * (np.log(a) + np.log(b) - np.log(s) - LOG_2PI)
            - binet(a)
            - binet(b)
            + binet(s)
        )
        plain = xlogy(self.naturals[0], safe) + xlog1py(self.naturals[1], -safe)
        edge = np.clip(x, 0.0, 1.0)
        at_border = xlogy(self.naturals[0], edge) + xlog1py(self.naturals[1], -edge) - self.log_normaliser()
        at_border = np.where(self.in_support(x), at_border, -np.inf)
        log_p = np.where(border, at_border, np.where(soft, log_p, plain))
        return self._log_density_at_points(log_p, x)

    def entropy(self) -> np.ndarray:
        """``-E log Beta(p)`` in nats; -inf at a point mass, NaN where there is no distribution."""
        soft, a, b = self._safe()
        s = a + b
        # as in `log_density`; with E log p = log(a / s) - gap(a) + gap(s) no term grows with s
        gap_a, gap_b, gap_s = digamma_gap(a), digamma_gap(b), digamma_gap(s)
        h = (a - 1.0) * gap_a + (b - 1.0) * gap_b - (s - 2.0) * gap_s + binet(a) + binet(b) - binet(s)
        h = np.where(soft, h + 0.5 * (np.log(a) + np.log(b) - 3.0 * np.log(s) + LOG_2PI), np.nan)
        return self._or_at_points(h, -np.inf)

    def _kl(self, other: Self) -> np.ndarray:
        soft1, a1, b1 = self._safe()
        soft2, a2, b2 = other._safe()
        s1, s2 = a1 + b1, a2 + b2
        cross = (a1 * b2 - a2 * b1) / s1  # m1 / m2 - 1 = cross / a2, and for 1 - m it is -cross / b2
        kl = a2 * log_excess(cross / a2, (a1 / a2) * (s2 / s1)) + b2 * log_excess(-cross / b2, (b1 / b2) * (s2 / s1))
        shape = np.broadcast_shapes(self.shape, other.shape)
        first, second = (np.stack([np.broadcast_to(x, shape) for x in xs]) for xs in ((a1, b1, s1), (a2, b2, s2)))
        part_a, part_b, part_s = stirling_divergence(first, second)
        kl, both = np.maximum(kl + part_a + part_b - part_s, 0.0), soft1 & soft2  # rounding may take it below 0
        return kl if both.all() else np.where(both, kl, self._kl_at_limits(other))

    def _quantile(self, q: np.ndarray) -> np.ndarray:
        _, a, b = self._safe()
        return betaincinv(a, b, q)

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        _, a, b = self._safe()
        return betainc(a, b, np.clip(x, 0.0, 1.0))

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        _, a, b = self._safe()
        draws = rng.beta(a, b, size)
        return self._or_at_points(draws, self.point)
