"""The targets of the default operator: how a belief differs from a reference, in numbers that can take any value.

On the chart of its family (the line, ``log x``, ``logit p``) a belief has a mean and a variance, and the target is
``d1 = (mean_b - mean_r) / sd_r`` and ``d2 = log(variance_b / variance_r)``. Vectors are whitened by the symmetric root
of the reference's covariance, with the matrix logarithm for d2; Bernoulli and Categorical beliefs differ by log odds, a
Dirichlet by the logarithms of its concentrations. Every real target gives a member of the family, so no prediction
can leave it.

A reference is a tuple of arrays, made by `moments` from a message or computed elsewhere; here nothing is asked of it
but to be proper.
"""

# ruff: noqa: D102 (what the methods do is said once, at `Chart`)
from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy.special import expit, softmax

from heliograph.errors import UnsupportedError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.numerics.gamma_function import trigamma, trigamma_excess, trigammas
from heliograph.operators.vector_chart import VectorChart

__all__ = ["Chart", "EvidenceChart", "Moments", "chart_of"]

Moments = tuple[np.ndarray, ...]  # a reference: chart mean and variance (n,), or what stands for them in other families

_MOST = 20.0  # |log ratio| beyond which a target is cut: no belief is e^20 times narrower than a fair reference of it


class Chart(Protocol):
    """One family seen by the default operator."""

    n_outputs: int  # q
    scalar: bool  # the target is (d1, d2)

    def moments(self, message: Any) -> Moments:
        """A proper message as a reference."""
        ...

    def plain(self, n: int) -> Moments:
        """The reference where there is none: targets relative to it are the belief's own coordinates."""
        ...

    def features(self, message: Any) -> np.ndarray:
        """What the regression sees of a proper message, ``(n, k)``: its centre and log spread on the chart.

        Not the exact chart moments, where those are dear: any smooth coordinates with the same meaning will do.
        """
        ...

    def gap(self, moments: Moments, reference: Moments) -> np.ndarray:
        """The correction that makes a belief with these `moments` of the reference, ``(n, q)``."""
        ...

    def belief(self, target: np.ndarray, reference: Moments) -> Any:
        """The reverse of `gap`; always a proper member of the family."""
        ...

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        """``(n, q)``: the expected KL of errors with variances v in the target is ``sum_j weights_j v_j``.

        Half the diagonal of the Fisher information in the target's coordinates.
        """
        ...

    def noise(self, belief: Any, covariance: np.ndarray, reference: Moments) -> np.ndarray:
        """Variances ``(n, q)`` of the target, from the oracle's covariance in its chart coordinates (delta method)."""
        ...


class _Scalar:
    """What Gaussian, Gamma and Beta share: a mean and a variance on the chart."""

    n_outputs, scalar = 2, True
    family: Any

    def moments(self, message):
        return message.chart_moments()

    def plain(self, n):
        return np.zeros(n), np.ones(n)

    def gap(self, moments, reference):
        mean, variance = reference
        m, v = moments
        out = np.empty((len(mean), 2))
        np.subtract(m, mean, out=out[:, 0])
        out[:, 0] /= np.sqrt(variance)
        np.log(v / variance, out=out[:, 1])
        return out

    def _corrected(self, target, reference):
        mean, variance = reference
        ratio = np.exp(np.clip(target[:, 1], -_MOST, _MOST))
        return mean + np.sqrt(variance) * target[:, 0], variance * ratio

    def belief(self, target, reference):
        return self.family.from_chart_moments(*self._corrected(target, reference))

    def noise(self, belief, covariance, reference):
        return np.stack([covariance[:, 0, 0] / reference[1], covariance[:, 1, 1]], axis=1)


class LineChart(_Scalar):
    """Gaussian: the line itself."""

    family = Gaussian

    def moments(self, message):
        if message.point is not None:
            return message.chart_moments()
        variance = 1.0 / message.naturals[1]
        return message.naturals[0] * variance, variance

    def features(self, message):
        shift, tau = message.naturals
        out = np.empty((len(tau), 2))
        np.divide(shift, tau, out=out[:, 0])
        np.log(tau, out=out[:, 1])
        return out

    def from_features(self, features):
        tau = np.exp(features[:, 1])
        return Gaussian.from_naturals((features[:, 0] * tau, tau))

    def belief(self, target, reference):
        m, v = self._corrected(target, reference)
        tau = 1.0 / v
        return Gaussian.from_naturals((m * tau, tau))

    def weights(self, target, reference):
        out = np.empty(target.shape)
        np.exp(-np.clip(target[:, 1], -_MOST, _MOST), out=out[:, 0])
        out[:, 0] *= 0.5
        out[:, 1] = 0.25
        return out


class LogChart(_Scalar):
    """Gamma: ``log x``."""

    family = Gamma

    def features(self, message):
        log_shape = np.log(message.naturals[0] + 1.0)
        return np.stack([log_shape - np.log(message.naturals[1]), -log_shape], axis=1)

    def from_features(self, features):
        shape = np.exp(-features[:, 1])
        return Gamma.from_naturals((shape - 1.0, shape * np.exp(-features[:, 0])))

    def belief(self, target, reference):
        mean, variance = self._corrected(target, reference)
        belief = Gamma.from_chart_moments(np.clip(mean, -600.0, 600.0), variance)
        power, rate = belief.naturals
        return Gamma.from_naturals((power, np.clip(rate, 1e-300, 1e300)))  # a wild target must not underflow to rate 0

    def weights(self, target, reference):
        belief = self.belief(target, reference)
        s = belief.naturals[0] + 1.0
        psi1, psi2 = trigammas(s)
        # the Fisher form in (log shape, log rate) seen through mean = psi(s) - log r and log variance = log psi'(s)
        by_mean = 0.5 * s * reference[1]
        by_log_variance = 0.5 * psi1**3 * trigamma_excess(s) / psi2**2
        return np.stack([by_mean, by_log_variance], axis=1)


class LogitChart(_Scalar):
    """Beta: ``logit p``."""

    family = Beta

    def features(self, message):
        a, b = message.naturals[0] + 1.0, message.naturals[1] + 1.0
        return np.stack([np.log(a / b), np.log(1.0 / a + 1.0 / b)], axis=1)

    def from_features(self, features):
        # 1/a + 1/b = (1 + a/b) / a = (1 + b/a) / b
        log_odds, spread = features.T
        return Beta.from_naturals(
            ((1.0 + np.exp(log_odds)) * np.exp(-spread) - 1.0, (1.0 + np.exp(-log_odds)) * np.exp(-spread) - 1.0)
        )

    def weights(self, target, reference):
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


class CoinChart:
    """Bernoulli: log odds."""

    n_outputs, scalar = 1, False

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


class LabelChart:
    """Categorical: log probabilities, centred (a common constant means nothing)."""

    def __init__(self, size: int) -> None:
        self.n_outputs, self.scalar = size, False

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


class SimplexChart:
    """Dirichlet: the logarithms of its concentrations."""

    def __init__(self, size: int) -> None:
        self.n_outputs, self.scalar = size, False

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


class EvidenceChart:
    """Not a family: the log normaliser of a tuple, learned like one more direction. Errors count by their square."""

    n_outputs, scalar = 1, False

    def moments(self, log_z):
        return (log_z,)

    def gap(self, moments, reference):
        return (moments[0] - reference[0])[:, None]

    def belief(self, target, reference):
        return reference[0] + target[:, 0]

    def weights(self, target, reference):
        return np.ones(target.shape)

    def noise(self, log_z, variance, reference):
        return variance[:, None]


def chart_of(message: Family) -> Any:
    """The chart on which beliefs of this message's family are compared."""
    plain = {Gaussian: LineChart, Gamma: LogChart, Beta: LogitChart, Bernoulli: CoinChart}.get(type(message))
    if plain is not None:
        return plain()
    sized = {MultivariateGaussian: VectorChart, Categorical: LabelChart, Dirichlet: SimplexChart}.get(type(message))
    if sized is None:
        raise UnsupportedError(
            f"the learned operator has no chart for {type(message).__name__} messages; use operator='ask'"
        )
    return sized(message.naturals[0].shape[-1])


def _centred(log_p: np.ndarray) -> np.ndarray:
    return log_p - log_p.mean(axis=-1, keepdims=True)
