# ruff: noqa: D102  (what each method gives is said once, at `Chart`)
"""Charts of the families of one real number: Gaussian on the line, Gamma on ``log x``, Beta on ``logit p``."""

# Each chart takes messages of its own family.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from heliograph.families.base import Family
from heliograph.families.beta import Beta
from heliograph.families.charts.chart import FAR, BaseChart, Moments, Unchanged
from heliograph.families.gamma import Gamma
from heliograph.families.gaussian import Gaussian
from heliograph.numerics.gamma_function import trigamma, trigamma_excess, trigammas
from heliograph.numerics.logarithms import LOG_2PI, log_or_minus_inf
from heliograph.numerics.special import expit, log_expit

__all__ = ["IdentityChart", "LogChart", "LogitChart", "ScalarChart"]

# |log ratio| beyond which a correction is cut: no belief is e^20 times narrower than a fair reference of it
_MOST = 20.0
_TINY = float(np.finfo(float).tiny)
_BELOW_ONE = float(np.nextafter(1.0, 0.0))


class ScalarChart(BaseChart):
    """What Gaussian, Gamma and Beta share: a mean and a variance on the chart."""

    n_outputs, scalar = 2, True
    n_coordinates, gaussian = 1, False
    family: ClassVar[type[Family]]

    def moments(self, message: Family) -> Moments:
        return message.chart_moments()

    def plain(self, n: int) -> Moments:
        return np.zeros(n), np.ones(n)

    def gap(self, moments: Moments, reference: Moments) -> np.ndarray:
        mean, variance = reference
        m, v = moments
        out = np.empty((len(mean), 2))
        np.subtract(m, mean, out=out[:, 0])
        out[:, 0] /= np.sqrt(variance)
        np.log(v / variance, out=out[:, 1])
        return out

    def _corrected(self, target: np.ndarray, reference: Moments) -> tuple[np.ndarray, np.ndarray]:
        mean, variance = reference
        ratio = np.exp(np.clip(target[:, 1], -_MOST, _MOST))
        return mean + np.sqrt(variance) * target[:, 0], variance * ratio

    def belief(self, target: np.ndarray, reference: Moments) -> Family:
        return self.family.from_chart_moments(*self._corrected(target, reference))

    def log_constant(self, message: Family) -> np.ndarray:
        return -message.log_normaliser()

    def noise(self, belief: Family, covariance: np.ndarray, reference: Moments) -> np.ndarray:
        return np.stack([covariance[:, 0, 0] / reference[1], covariance[:, 1, 1]], axis=1)


class IdentityChart(Unchanged, ScalarChart):
    """Gaussian: the line itself."""

    family, gaussian = Gaussian, True

    def log_jacobian(self, u: ArrayLike) -> np.ndarray:
        return np.zeros(np.shape(u))

    def moments(self, message: Gaussian) -> Moments:
        if message.point is not None:
            return message.chart_moments()
        variance = 1.0 / message.naturals[1]
        return message.naturals[0] * variance, variance

    def features(self, message: Gaussian) -> np.ndarray:
        shift, tau = message.naturals
        out = np.empty((len(tau), 2))
        np.divide(shift, tau, out=out[:, 0])
        np.log(tau, out=out[:, 1])
        return out

    def information_share(self, message: Gaussian, cavity: Gaussian) -> np.ndarray:
        tau, before = message.naturals[1], cavity.naturals[1]
        return np.abs(tau) / np.maximum(np.abs(tau + before), np.abs(tau))

    def from_features(self, features: np.ndarray) -> Gaussian:
        tau = np.exp(features[:, 1])
        return Gaussian.from_naturals((features[:, 0] * tau, tau))

    def belief(self, target: np.ndarray, reference: Moments) -> Gaussian:
        m, v = self._corrected(target, reference)
        tau = 1.0 / v
        return Gaussian.from_naturals((m * tau, tau))

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        out = np.empty(target.shape)
        np.exp(-np.clip(target[:, 1], -_MOST, _MOST), out=out[:, 0])
        out[:, 0] *= 0.5
        out[:, 1] = 0.25
        return out

    def log_density(self, message: Gaussian, u: np.ndarray) -> np.ndarray:
        return -0.5 * message.naturals[1] * (u - message.mean) ** 2

    def log_constant(self, message: Gaussian) -> np.ndarray:
        return -0.5 * (LOG_2PI + np.log(message.variance))

    def project(self, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, d = _centred(u, w)
        return mean, np.maximum((w * d * d).sum(axis=0), _least_variance(mean))


class LogChart(ScalarChart):
    """Gamma: ``log x``."""

    family = Gamma

    def coordinates(self, x: ArrayLike) -> np.ndarray:
        return log_or_minus_inf(x)

    def value(self, u: ArrayLike) -> np.ndarray:
        return np.exp(np.clip(u, -708.0, 709.0))  # the ends of double precision

    def inside(self, x: ArrayLike) -> np.ndarray:
        return np.maximum(x, _TINY)

    def log_jacobian(self, u: ArrayLike) -> np.ndarray:
        return np.asarray(u)

    def features(self, message: Gamma) -> np.ndarray:
        log_shape = np.log(message.naturals[0] + 1.0)
        return np.stack([log_shape - np.log(message.naturals[1]), -log_shape], axis=1)

    def from_features(self, features: np.ndarray) -> Gamma:
        shape = np.exp(-features[:, 1])
        return Gamma.from_naturals((shape - 1.0, shape * np.exp(-features[:, 0])))

    def belief(self, target: np.ndarray, reference: Moments) -> Gamma:
        mean, variance = self._corrected(target, reference)
        belief = Gamma.from_chart_moments(np.clip(mean, -600.0, 600.0), variance)
        power, rate = belief.naturals
        return Gamma.from_naturals((power, np.clip(rate, 1e-300, 1e300)))  # a wild target must not underflow to rate 0

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        belief = self.belief(target, reference)
        s = belief.naturals[0] + 1.0
        psi1, psi2 = trigammas(s)
        # the Fisher form in (log shape, log rate) seen through mean = psi(s) - log r and log variance = log psi'(s)
        by_mean = 0.5 * s * reference[1]
        by_log_variance = 0.5 * psi1**3 * trigamma_excess(s) / psi2**2
        return np.stack([by_mean, by_log_variance], axis=1)

    def log_density(self, message: Gamma, u: np.ndarray) -> np.ndarray:
        first, second = message.naturals
        return (first + 1.0) * u - second * np.exp(np.minimum(u, 700.0))

    def project(self, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, d = _centred(u, w)
        # what Jensen's inequality leaves, term by term: nothing cancels
        gap = np.log1p((w * (np.expm1(np.clip(d, -700.0, 700.0)) - d)).sum(axis=0))
        gap_or_least = np.maximum(gap, _least_variance(mean))
        return Gamma.from_mean_and_log_gap(np.exp(np.clip(mean + gap, -700.0, 700.0)), gap_or_least).chart_moments()


class LogitChart(ScalarChart):
    """Beta: ``logit p``."""

    family = Beta

    def coordinates(self, x: ArrayLike) -> np.ndarray:
        x = np.asarray(x, dtype=float)
        inside = (x > 0) & (x < 1)
        safe = np.where(inside, x, 0.5)
        return np.where(inside, np.log(safe) - np.log1p(-safe), np.where(x <= 0, -np.inf, np.inf))

    def value(self, u: ArrayLike) -> np.ndarray:
        return self.inside(expit(u))

    def inside(self, x: ArrayLike) -> np.ndarray:
        return np.clip(x, _TINY, _BELOW_ONE)

    def log_jacobian(self, u: ArrayLike) -> np.ndarray:
        return log_expit(u) + log_expit(np.negative(u))

    def features(self, message: Beta) -> np.ndarray:
        a, b = message.naturals[0] + 1.0, message.naturals[1] + 1.0
        return np.stack([np.log(a / b), np.log(1.0 / a + 1.0 / b)], axis=1)

    def point_features(self, message: Beta) -> np.ndarray:
        return np.clip(super().point_features(message), -FAR, FAR)

    def from_features(self, features: np.ndarray) -> Beta:
        # 1/a + 1/b = (1 + a/b) / a = (1 + b/a) / b
        log_odds, spread = features.T
        return Beta.from_naturals(
            ((1.0 + np.exp(log_odds)) * np.exp(-spread) - 1.0, (1.0 + np.exp(-log_odds)) * np.exp(-spread) - 1.0)
        )

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        belief = self.belief(target, reference)
        a, b = belief.naturals[0] + 1.0, belief.naturals[1] + 1.0
        (a1, a2), (b1, b2), s1 = trigammas(a), trigammas(b), trigamma(a + b)
        variance = a1 + b1
        # how (a, b) move with the chart mean and with the log chart variance: columns of the inverse of the
        # Jacobian [[a1, -b1], [-a2 / variance, -b2 / variance]]
        det = a1 * b2 + b1 * a2
        moves = ((b2 / det, -a2 / det), (-variance * b1 / det, -variance * a1 / det))
        forms = [0.5 * (a1 * x**2 + b1 * y**2 - s1 * (x + y) ** 2) for x, y in moves]
        return np.stack([forms[0] * reference[1], forms[1]], axis=1)

    def log_density(self, message: Beta, u: np.ndarray) -> np.ndarray:
        first, second = message.naturals
        return (first + 1.0) * log_expit(u) + (second + 1.0) * log_expit(-u)

    def project(self, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, d = _centred(u, w)
        q = expit(mean)
        # what Jensen's inequality leaves, term by term: nothing cancels
        with np.errstate(divide="ignore"):  # log(1 - q) is -inf where q rounds to 1, and counts for nothing there
            rest = np.log1p(-q)
        gap = (w * (np.logaddexp(rest, np.log(np.maximum(q, _TINY)) + d) - q * d)).sum(axis=0)
        gap = np.maximum(gap, _least_variance(mean) * q * (1 - q) + 1e-14)
        return Beta.from_mean_logit_and_gap(mean, gap).chart_moments()


def _centred(u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean ``(n,)`` of weighted positions ``(k, n)``, and their distances from it."""
    mean = (w * u).sum(axis=0)
    return mean, u - mean


def _least_variance(mean: np.ndarray) -> np.ndarray:
    """A variance below this is rounding."""
    return 1e-12 * (1 + mean**2)
