# ruff: noqa: D102  (what each method gives is said once, at `Chart`)
"""Charts of the families of tables of probabilities: Bernoulli, Categorical and Dirichlet."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logsumexp, softmax

from heliograph.families.bernoulli import Bernoulli
from heliograph.families.categorical import Categorical
from heliograph.families.charts.chart import Unchanged
from heliograph.families.dirichlet import Dirichlet
from heliograph.numerics.gamma_function import trigamma
from heliograph.numerics.logarithms import log_or_minus_inf

__all__ = ["LogConcentrationChart", "LogOddsChart", "LogProbabilityChart"]

_MOST = 20.0  # |log ratio| beyond which a correction is cut, as for numbers
_TINY = float(np.finfo(float).tiny)


class LogOddsChart(Unchanged):
    """Bernoulli: log odds."""

    n_outputs, scalar = 1, False

    def log_jacobian(self, u):
        return np.zeros(np.shape(u))

    def moments(self, message):
        return (message.log_odds,)

    def plain(self, n):
        return (np.zeros(n),)

    def features(self, message):
        return message.naturals[0][:, None]

    def gap(self, moments, reference):
        return (moments[0] - reference[0])[:, None]

    def belief(self, target, reference):
        return Bernoulli.from_naturals((reference[0] + target[:, 0],))

    def weights(self, target, reference):
        l = reference[0] + target[:, 0]
        return (0.5 * expit(l) * expit(-l))[:, None]

    def noise(self, belief, covariance, reference):
        return covariance[:, 0, :1]


class LogProbabilityChart(Unchanged):
    """Categorical: log probabilities, centred (a common constant means nothing)."""

    def __init__(self, size: int) -> None:
        self.n_outputs, self.scalar = size, False

    def log_jacobian(self, u):
        return np.zeros(np.shape(u))

    def moments(self, message):
        return (_centred(message.log_p),)

    def plain(self, n):
        return (np.zeros((n, self.n_outputs)),)

    def features(self, message):
        return _centred(message.log_p)

    def gap(self, moments, reference):
        return moments[0] - reference[0]

    def belief(self, target, reference):
        return Categorical.from_naturals((reference[0] + target,))

    def weights(self, target, reference):
        p = softmax(reference[0] + target, axis=1)
        return 0.5 * p * (1.0 - p)

    def noise(self, belief, covariance, reference):
        centring = np.eye(self.n_outputs) - 1.0 / self.n_outputs
        return np.einsum("ij,njk,ik->ni", centring, covariance, centring)


class LogConcentrationChart:
    """Dirichlet: the logarithms of its concentrations; of a value, the log ratios to its last component."""

    def __init__(self, size: int) -> None:
        self.n_outputs, self.scalar = size, False

    def coordinates(self, x):
        logs = log_or_minus_inf(x)
        return logs[..., :-1] - logs[..., -1:]

    def value(self, u):
        x = self.inside(np.exp(self._log_value(u)))
        return x / x.sum(axis=-1, keepdims=True)

    def inside(self, x):
        return np.maximum(x, _TINY)

    def log_jacobian(self, u):
        return self._log_value(u).sum(axis=-1)

    def _log_value(self, u):
        full = np.concatenate([u, np.zeros((*u.shape[:-1], 1))], axis=-1)
        return full - np.asarray(logsumexp(full, axis=-1, keepdims=True))

    def moments(self, message):
        return (np.log(message.naturals[0] + 1.0),)

    def plain(self, n):
        return (np.zeros((n, self.n_outputs)),)

    def features(self, message):
        return np.log(message.naturals[0] + 1.0)

    def gap(self, moments, reference):
        return moments[0] - reference[0]

    def belief(self, target, reference):
        return Dirichlet.from_naturals((np.exp(reference[0] + np.clip(target, -_MOST, _MOST)) - 1.0,))

    def weights(self, target, reference):
        c = np.exp(reference[0] + np.clip(target, -_MOST, _MOST))
        return 0.5 * c**2 * (trigamma(c) - trigamma(c.sum(axis=1))[:, None])

    def noise(self, belief, covariance, reference):
        c = belief.naturals[0] + 1.0
        # E log p = psi(c_k) - psi(sum c): its slope is the Fisher information in c, a diagonal less a constant
        information = trigamma(c)[:, :, None] * np.eye(self.n_outputs) - trigamma(c.sum(axis=1))[:, None, None]
        slope = np.linalg.inv(information) / c[:, :, None]
        return np.einsum("nij,njk,nik->ni", slope, covariance, slope)


def _centred(log_p: np.ndarray) -> np.ndarray:
    return log_p - log_p.mean(axis=-1, keepdims=True)
