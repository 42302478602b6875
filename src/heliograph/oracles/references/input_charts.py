"""An unknown input on the chart of its family, as references see it: values, log densities and projections there.

All of this speaks of one family alone. References are called at every message, so the log densities leave out their constants
and nothing is checked.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.special import expit, log_expit

from heliograph.families import Beta, Family, Gamma, Gaussian, MultivariateGaussian

__all__ = ["BELOW_ONE", "TINY", "InputChart", "chart_of"]

TINY = float(np.finfo(float).tiny)
BELOW_ONE = float(np.nextafter(1.0, 0.0))
_LOG_2PI = float(np.log(2 * np.pi))


class InputChart(Protocol):
    """One family on its chart."""

    gaussian: bool  # the chart's moments are those of the projection
    vector: bool

    def size(self, message: Any) -> int:
        """How many numbers the variable is."""
        ...

    def moments(self, message: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance on the chart, the whole covariance for a vector."""
        ...

    def value(self, u: np.ndarray) -> np.ndarray:
        """The variable at positions ``(...)``, or ``(..., d)`` for a vector."""
        ...

    def log_density(self, message: Any, u: np.ndarray) -> np.ndarray:
        """The log density on the chart at positions ``(k, n)``, or ``(k, n, d)``, without its constant."""
        ...

    def log_constant(self, message: Any) -> np.ndarray:
        """The constant that `log_density` leaves out."""
        ...

    def project(self, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Chart moments of the EP projection of weighted positions ``(k, n)``: by its own statistics, not the chart's."""
        ...


class _RealChart:
    gaussian, vector = True, False

    def size(self, message):
        return 1

    def moments(self, message):
        return message.chart_moments()

    def value(self, u):
        return u

    def log_density(self, message, u):
        return -0.5 * message.naturals[1] * (u - message.mean) ** 2

    def log_constant(self, message):
        return -0.5 * (_LOG_2PI + np.log(message.variance))

    def project(self, u, w):
        mean = (w * u).sum(axis=0)
        d = u - mean
        return mean, np.maximum((w * d * d).sum(axis=0), _floor(mean))


class _LogChart:
    gaussian, vector = False, False

    def size(self, message):
        return 1

    def moments(self, message):
        return message.chart_moments()

    def value(self, u):
        return np.exp(np.clip(u, -700.0, 700.0))

    def log_density(self, message, u):
        first, second = message.naturals
        return (first + 1.0) * u - second * np.exp(np.minimum(u, 700.0))

    def log_constant(self, message):
        return -message.log_normaliser()

    def project(self, u, w):
        mean = (w * u).sum(axis=0)
        d = u - mean
        # what Jensen's inequality leaves, term by term: nothing cancels
        gap = np.log1p((w * (np.expm1(np.clip(d, -700.0, 700.0)) - d)).sum(axis=0))
        found = Gamma.from_mean_and_log_gap(np.exp(np.clip(mean + gap, -700.0, 700.0)), np.maximum(gap, _floor(mean)))
        return found.chart_moments()


class _LogitChart:
    gaussian, vector = False, False

    def size(self, message):
        return 1

    def moments(self, message):
        return message.chart_moments()

    def value(self, u):
        return np.clip(expit(u), TINY, BELOW_ONE)

    def log_density(self, message, u):
        first, second = message.naturals
        return (first + 1.0) * log_expit(u) + (second + 1.0) * log_expit(-u)

    def log_constant(self, message):
        return -message.log_normaliser()

    def project(self, u, w):
        mean = (w * u).sum(axis=0)
        d = u - mean
        q = expit(mean)
        # what Jensen's inequality leaves, term by term: nothing cancels
        gap = (w * (np.logaddexp(np.log1p(-q), np.log(np.maximum(q, TINY)) + d) - q * d)).sum(axis=0)
        found = Beta.from_mean_logit_and_gap(mean, np.maximum(gap, _floor(mean) * q * (1 - q) + 1e-14))
        return found.chart_moments()


class _VectorChart:
    gaussian, vector = True, True

    def size(self, message):
        return message.dimension

    def moments(self, message):
        return message.mean, message.covariance

    def value(self, u):
        return u

    def log_density(self, message, u):
        gap = u - message.mean
        return -0.5 * np.einsum("kni,nij,knj->kn", gap, message.naturals[1], gap, optimize=True)

    def log_constant(self, message):
        return -0.5 * message.dimension * _LOG_2PI + 0.5 * np.linalg.slogdet(message.naturals[1])[1]

    def project(self, u, w):
        mean = (w[..., None] * u).sum(axis=0)
        gap = u - mean
        return mean, np.einsum("kn,kni,knj->nij", w, gap, gap)


_CHARTS: dict[type[Family], InputChart] = {
    Gaussian: _RealChart(),
    Gamma: _LogChart(),
    Beta: _LogitChart(),
    MultivariateGaussian: _VectorChart(),
}


def chart_of(family: type[Family]) -> InputChart | None:
    """The chart of a family; None if references know none."""
    return _CHARTS.get(family)


def _floor(mean: np.ndarray) -> np.ndarray:
    return 1e-12 * (1 + mean**2)
