# ruff: noqa: D102  (what each method gives is said once, at `Chart`)
"""Charts of the families of tables of probabilities: Bernoulli, Categorical and Dirichlet."""

# Each chart takes messages of its own family.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from heliograph.families.bernoulli import Bernoulli
from heliograph.families.categorical import Categorical
from heliograph.families.charts.chart import FAR, BaseChart, Moments, Unchanged
from heliograph.families.dirichlet import Dirichlet
from heliograph.numerics.gamma_function import trigamma
from heliograph.numerics.logarithms import log_or_minus_inf
from heliograph.numerics.special import expit, logsumexp, softmax

__all__ = ["LogConcentrationChart", "LogOddsChart", "LogProbabilityChart"]

_MOST = 20.0  # |log ratio| beyond which a correction is cut, as for numbers
_TINY = float(np.finfo(float).tiny)


class LogOddsChart(Unchanged):
    """Bernoulli: log odds."""

    n_outputs, scalar = 1, False

    def log_jacobian(self, u: ArrayLike) -> np.ndarray:
        return np.zeros(np.shape(u))

    def moments(self, message: Bernoulli) -> Moments:
        return (message.log_odds,)

    def plain(self, n: int) -> Moments:
        return (np.zeros(n),)

    def features(self, message: Bernoulli) -> np.ndarray:
        return message.naturals[0][:, None]

    def point_features(self, message: Bernoulli) -> np.ndarray:
        return message.p[:, None]

    def gap(self, moments: Moments, reference: Moments) -> np.ndarray:
        return (moments[0] - reference[0])[:, None]

    def belief(self, target: np.ndarray, reference: Moments) -> Bernoulli:
        return Bernoulli.from_naturals((reference[0] + target[:, 0],))

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        l = reference[0] + target[:, 0]
        return (0.5 * expit(l) * expit(-l))[:, None]

    def noise(self, belief: Bernoulli, covariance: np.ndarray, reference: Moments) -> np.ndarray:
        return covariance[:, 0, :1]


class _OfSize(BaseChart):
    """What charts of several probabilities share."""

    scalar = False

    def __init__(self, size: int) -> None:
        self.n_outputs = size

    def plain(self, n: int) -> Moments:
        return (np.zeros((n, self.n_outputs)),)

    def gap(self, moments: Moments, reference: Moments) -> np.ndarray:
        return moments[0] - reference[0]


class LogProbabilityChart(Unchanged, _OfSize):
    """Categorical: log probabilities, centred (a common constant means nothing)."""

    def log_jacobian(self, u: ArrayLike) -> np.ndarray:
        return np.zeros(np.shape(u))

    def moments(self, message: Categorical) -> Moments:
        return (_centred(message.log_p),)

    def features(self, message: Categorical) -> np.ndarray:
        return _centred(message.log_p)

    def point_features(self, message: Categorical) -> np.ndarray:
        return message.p

    def charted(self, message: Categorical) -> np.ndarray:
        return np.asarray(
            np.isfinite(message.naturals[0]).all(axis=-1)
        )  # an impossible category has no log probability

    def belief(self, target: np.ndarray, reference: Moments) -> Categorical:
        return Categorical.from_naturals((reference[0] + target,))

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        p = softmax(reference[0] + target, axis=1)
        return 0.5 * p * (1.0 - p)

    def noise(self, belief: Categorical, covariance: np.ndarray, reference: Moments) -> np.ndarray:
        centring = np.eye(self.n_outputs) - 1.0 / self.n_outputs
        return np.einsum("ij,njk,ik->ni", centring, covariance, centring)


class LogConcentrationChart(_OfSize):
    """Dirichlet: the logarithms of its concentrations; of a value, the log ratios to its last component."""

    def coordinates(self, x: ArrayLike) -> np.ndarray:
        logs = log_or_minus_inf(x)
        return logs[..., :-1] - logs[..., -1:]

    def value(self, u: ArrayLike) -> np.ndarray:
        x = self.inside(np.exp(self.log_value(u)))
        return x / x.sum(axis=-1, keepdims=True)

    def inside(self, x: ArrayLike) -> np.ndarray:
        return np.maximum(x, _TINY)

    def log_jacobian(self, u: ArrayLike) -> np.ndarray:
        return self.log_value(u).sum(axis=-1)

    def log_value(self, u: ArrayLike) -> np.ndarray:
        """The logarithms of all components at coordinates u."""
        u = np.asarray(u)
        full = np.concatenate([u, np.zeros((*u.shape[:-1], 1))], axis=-1)
        return full - logsumexp(full, axis=-1, keepdims=True)

    def moments(self, message: Dirichlet) -> Moments:
        return (np.log(message.naturals[0] + 1.0),)

    def features(self, message: Dirichlet) -> np.ndarray:
        return np.log(message.naturals[0] + 1.0)

    def point_features(self, message: Dirichlet) -> np.ndarray:
        return np.log(np.maximum(message.mean, np.exp(-FAR)))

    def belief(self, target: np.ndarray, reference: Moments) -> Dirichlet:
        return Dirichlet.from_naturals((np.exp(reference[0] + np.clip(target, -_MOST, _MOST)) - 1.0,))

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        c = np.exp(reference[0] + np.clip(target, -_MOST, _MOST))
        return 0.5 * c**2 * (trigamma(c) - trigamma(c.sum(axis=1))[:, None])

    def noise(self, belief: Dirichlet, covariance: np.ndarray, reference: Moments) -> np.ndarray:
        c = belief.naturals[0] + 1.0
        # E log p = psi(c_k) - psi(sum c): its slope is the Fisher information in c, a diagonal less a constant
        information = trigamma(c)[:, :, None] * np.eye(self.n_outputs) - trigamma(c.sum(axis=1))[:, None, None]
        slope = np.linalg.inv(information) / c[:, :, None]
        return np.einsum("nij,njk,nik->ni", slope, covariance, slope)


def _centred(log_p: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # an impossible category makes its row NaN (`charted`)
        return log_p - log_p.mean(axis=-1, keepdims=True)
