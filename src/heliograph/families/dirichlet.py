"""Dirichlet messages on the simplex."""

# A family meets only itself, and has statistics of its own.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from typing import Any, Self

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.base import Family, stored
from heliograph.families.beta import Beta
from heliograph.numerics.checks import as_real, short
from heliograph.numerics.excess import log_excess
from heliograph.numerics.gamma_function import binet, digamma_gap, stirling_divergence
from heliograph.numerics.inverse_dirichlet import dirichlet_mean_log, inverse_dirichlet, others
from heliograph.numerics.logarithms import LOG_2PI, log_or_minus_inf
from heliograph.numerics.special import logsumexp, xlogy

__all__ = ["Dirichlet"]


class Dirichlet(Family):
    """``Dirichlet(p; concentration)`` on vectors that sum to 1, kept as ``exp(sum_k (concentration_k - 1) log p_k)``.

    Uniform: all concentrations 1, the constant 1, which on the simplex is also proper (its normaliser is
    ``1 / (K - 1)!``). Point mass: all mass at one vector of the simplex. Improper: a concentration that is not positive
    (its mean is NaN, its variance infinite).

    >>> Dirichlet([1.0, 2.0, 3.0]) * Dirichlet([2.0, 1.0, 1.0])
    Dirichlet(concentration [2., 2., 3.])
    """

    __slots__ = ()
    chart = "simplex"
    ranks = (1,)
    point_rank = 1
    statistics = ("log p",)
    parameters = ("concentration",)
    support = (0.0, 1.0)
    unsampled = "improper"
    values = "at a vector of 0 or more that sums to 1"

    def __init__(self, concentration: Any) -> None:
        a = as_real("a Dirichlet's concentration", concentration)
        if a.ndim < 1 or a.shape[-1] < 2 or not ((a > 0) & np.isfinite(a)).all():
            raise ModelError(
                f"a Dirichlet needs a vector of two or more finite positive concentrations, not {short(a)}; for an "
                "improper message use Dirichlet.from_naturals((concentration - 1,))"
            )
        self._init((stored(a),))

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def uniform(cls, shape: tuple[int, ...] | int = (), n_categories: int = 2) -> Self:
        """The constant 1 on the simplex of `n_categories` corners, which is Dirichlet(1, ..., 1)."""
        return cls._zeros(shape, n_categories)

    @classmethod
    def from_statistics(cls, mean_log: Any) -> Self:
        """The EP projection: the member with these ``E log p_k``.

        What is known of a large total concentration is a small difference of them; where that is rounding (above
        1e8) supply it accurately to `from_log_centre_and_gap` instead.
        """
        t = np.asarray(mean_log, dtype=float)
        if not (t <= 0).all():
            raise ModelError(f"a Dirichlet's E log p is negative, not {short(t)}")
        top = t.max(axis=-1, keepdims=True)
        others = np.exp(t - top)
        np.put_along_axis(others, t.argmax(axis=-1)[..., None], 0.0, axis=-1)
        log_total = np.log1p(others.sum(axis=-1))
        gap = -top[..., 0] - log_total
        gap = np.where(np.abs(gap) <= 4e-16 * t.shape[-1], 0.0, gap)  # rounding: a point mass, not an error
        return cls.from_log_centre_and_gap(t - top - log_total[..., None], gap)

    @classmethod
    def from_log_centre_and_gap(cls, log_centre: Any, gap: Any, *, strict: bool = True) -> Self:
        """The EP projection from ``gap = -log sum_k exp(E log p_k) >= 0`` and ``log_centre = E log p + gap``.

        A gap of 0 is a point mass at ``exp(log_centre)``. Numbers that no Dirichlet has are an error, or with
        ``strict=False`` an entry of NaN.
        """
        log_centre, gap = np.asarray(log_centre, dtype=float), np.asarray(gap, dtype=float)
        possible = (gap >= 0) & np.isfinite(log_centre).all(axis=-1)
        if not possible.all():
            if not strict:
                middle = -np.log(log_centre.shape[-1])
                made = cls.from_log_centre_and_gap(
                    np.where(possible[..., None], log_centre, middle), np.where(possible, gap, 1.0)
                )
                return made.without(~possible)
            raise ModelError(f"no Dirichlet has gap {short(gap)} at log centre {short(log_centre)}; it is >= 0")
        is_point = gap == 0
        a = inverse_dirichlet(log_centre, np.where(is_point, 1.0, gap))
        return cls.with_points_at(is_point, np.exp(log_centre), (stored(a),))

    @classmethod
    def from_mean_variance(cls, mean: Any, variance: Any) -> Self:
        """The member with this mean whose variances sum to those given: a named alternative to the EP projection.

        A Dirichlet has one number for all its variances, so only their sum can be matched.
        """
        mean, variance = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
        spread, total = (mean * (1.0 - mean)).sum(axis=-1), variance.sum(axis=-1)
        is_point = total == 0
        ok = cls.in_support(mean) & (variance >= 0).all(-1) & (((mean > 0).all(-1) & (total < spread)) | is_point)
        if not ok.all():
            raise ModelError(
                "a Dirichlet needs a mean inside the simplex and variances that sum to less than those of a single "
                f"draw, not mean {short(mean)} and variance {short(variance)}"
            )
        s = (spread - total) / np.where(is_point, 1.0, total)
        a = mean * np.where(is_point, 1.0, s)[..., None]
        return cls.with_points_at(is_point, mean, (stored(a),))

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def n_categories(self) -> int:
        """The length of the vector."""
        return self.naturals[0].shape[-1]

    @property
    def concentration(self) -> np.ndarray:
        """The parameters; infinite at a point mass."""
        a = self.naturals[0] + 1.0
        return self._or_at_points(a, np.inf, 1)

    @property
    def proper(self) -> np.ndarray:
        """Where all concentrations are positive, or the entry is a point mass."""
        return np.all(self.naturals[0] > -1.0, axis=-1)

    def _safe(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        soft = self.proper if self.point is None else self.proper & ~self.is_point
        a = np.where(soft[..., None], self.naturals[0] + 1.0, 1.0)
        return soft, a, a.sum(axis=-1)

    @property
    def mean(self) -> np.ndarray:
        """The mean vector; NaN where the message is improper."""
        soft, a, s = self._safe()
        mean = np.where(soft[..., None], a / s[..., None], np.nan)
        return self._or_at_points(mean, self.point, 1)

    @property
    def variance(self) -> np.ndarray:
        """The variance of each component; infinite where the message is improper."""
        soft, a, s = self._safe()
        s = s[..., None]
        variance = np.where(soft[..., None], (a / s) * (others(a) / s) / (s + 1.0), np.inf)
        return self._or_at_points(variance, 0.0, 1)

    def expected_statistics(self) -> tuple[np.ndarray]:
        """``E log p_k``, along the last axis."""
        soft, a, _ = self._safe()
        mean_log = np.where(soft[..., None], dirichlet_mean_log(a), np.nan)
        if self.point is not None:
            is_point = self.is_point[..., None]
            x = np.where(is_point, self.point, 1.0)
            mean_log = np.where(is_point, log_or_minus_inf(x), mean_log)
        return (mean_log,)

    def somewhere(self) -> np.ndarray:
        """The middle of the simplex."""
        return np.full(self.n_categories, 1.0 / self.n_categories)

    @classmethod
    def in_support(cls, x: Any) -> np.ndarray:
        """Where a vector has no negative entry and sums to 1 (to 1e-6, for vectors that were typed or rounded)."""
        x = as_real("in_support: x", x)
        return (x >= 0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1.0) <= 1e-6)

    # ---- densities ----------------------------------------------------------------------------------------------
    def log_normaliser(self) -> np.ndarray:
        """``sum_k log Gamma(a_k) - log Gamma(sum a)``; 0 where improper or a point."""
        soft, a, s = self._safe()
        # Stirling's large terms taken together; for large concentrations only -s times an entropy is left of them
        terms = -a * np.log1p(others(a) / a) + 0.5 * (LOG_2PI - np.log(a)) + binet(a)
        return np.where(soft, terms.sum(axis=-1) - 0.5 * (LOG_2PI - np.log(s)) - binet(s), 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """``log Dirichlet(x)`` in the first K - 1 coordinates; an improper entry is read as its exponential."""
        x = as_real("log_density: x", x)
        soft, a, s = self._safe()
        inside = (x > 0).all(axis=-1)
        safe = np.where(inside[..., None], x, 1.0 / self.n_categories)
        # the large terms of large concentrations cancel on paper, as in Beta
        y = (safe * s[..., None] - a) / a
        log_p = (
            (-a * log_excess(y, safe * s[..., None] / a) - np.log(safe) + 0.5 * (np.log(a) - LOG_2PI) - binet(a)).sum(
                axis=-1
            )
            - 0.5 * (np.log(s) - LOG_2PI)
            + binet(s)
        )
        # on the border a concentration above 1 makes the density 0, whatever the others
        nought = ((x == 0) & (self.naturals[0] > 0)).any(axis=-1)
        edge = np.where(nought[..., None], 1.0, np.maximum(x, 0.0))
        plain = xlogy(self.naturals[0], edge).sum(axis=-1) - self.log_normaliser()
        plain = np.where(nought, -np.inf, plain)
        log_p = np.where(self.in_support(x), np.where(inside & soft, log_p, plain), -np.inf)
        return self._log_density_at_points(log_p, x)

    def entropy(self) -> np.ndarray:
        """``-E log Dirichlet(p)`` in nats; -inf at a point mass, NaN where there is no distribution."""
        soft, a, s = self._safe()
        # as in `log_density`; with E log p = log(a / s) - gap(a) + gap(s) no term grows with s
        k = self.n_categories
        terms = (a - 1.0) * digamma_gap(a) + 0.5 * (np.log(a) + LOG_2PI) + binet(a)
        h = terms.sum(axis=-1) - (s - k) * digamma_gap(s) - binet(s) - (k - 0.5) * np.log(s) - 0.5 * LOG_2PI
        h = np.where(soft, h, np.nan)
        return self._or_at_points(h, -np.inf)

    def _kl(self, other: Self) -> np.ndarray:
        soft1, a1, s1 = self._safe()
        soft2, a2, s2 = other._safe()
        ratio = (a1 * s2[..., None] - a2 * s1[..., None]) / (a2 * s1[..., None])  # mean over mean, less 1
        y = (a1 / a2) * (s2 / s1)[..., None]
        kl = (a2 * log_excess(ratio, y) + stirling_divergence(a1, a2)).sum(axis=-1) - stirling_divergence(s1, s2)
        kl, both = np.maximum(kl, 0.0), soft1 & soft2  # rounding may take it below 0
        return kl if both.all() else np.where(both, kl, self._kl_at_limits(other))

    def marginals(self) -> Beta:
        """The components one by one, along a last axis of the plate."""
        soft, a, _ = self._safe()
        nothing = np.where(self.is_point, 0.0, np.nan)[..., None]  # no Beta, where the entry is no distribution
        naturals = [np.where(soft[..., None], stored(v), nothing) for v in (a, others(a))]
        return Beta.from_naturals(tuple(naturals), self.point)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        _, a, _ = self._safe()
        # logarithms of gamma draws, for small concentrations would underflow: Gamma(a) = Gamma(a + 1) U^(1 / a)
        size = (*size, a.shape[-1])
        log_g = np.log(rng.standard_gamma(a + 1.0, size)) - rng.standard_exponential(size) / a
        draws = np.exp(log_g - logsumexp(log_g, axis=-1, keepdims=True))
        return self._or_at_points(draws, self.point, 1)
