"""Axes of the families of a vector: MultivariateGaussian, Dirichlet."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

import numpy as np
from scipy import special

from heliograph.families import Dirichlet, MultivariateGaussian
from heliograph.oracles.axis import Projection, columns, errors_of, half_trace, log_gamma_draws, sandwich

__all__ = ["SimplexAxis", "VectorAxis"]

_TINY = float(np.finfo(float).tiny)


class VectorAxis:
    """A multivariate Gaussian on its own space."""

    discrete, linear = False, True

    def __init__(self, dimension: int) -> None:
        self.n_coordinates = self.n_uniforms = dimension
        self.n_statistics = dimension + dimension**2

    def value(self, u):
        return u

    def coordinates(self, x):
        return x

    def log_message(self, message, u):
        return message.reshape((message.size, 1)).log_density(u)

    def log_jacobian(self, u):
        return np.zeros(u.shape[:-1])

    def draw(self, message, uniforms):
        root = np.linalg.cholesky(message.covariance)
        return message.mean[:, None] + special.ndtri(uniforms) @ np.swapaxes(root, -1, -2)

    def moments(self, message):
        return message.mean, message.covariance

    def broaden(self, message, factor):
        return MultivariateGaussian(message.mean, covariance=factor * message.covariance)

    def statistics(self, u, centre, scale):
        y = (u - centre[:, None]) / scale[:, None]
        squares = (y[..., :, None] * y[..., None, :]).reshape((*y.shape[:-1], -1))
        return np.concatenate([y, squares], axis=-1)

    def project(self, expected, covariance, centre, scale):
        n, d = centre.shape
        mean = expected[:, :d]
        inner = expected[:, d:].reshape(n, d, d) - mean[:, :, None] * mean[:, None, :]
        inner = 0.5 * (inner + np.swapaxes(inner, -1, -2))
        spread = np.linalg.eigvalsh(inner)
        sound = spread[:, 0] > 1e-12 * (1 + (mean**2).sum(-1))  # below that it is rounding, not spread
        inner = np.where(sound[:, None, None], inner, np.eye(d))
        # errors of (mean, covariance), from those of (E y, E y y')
        eye = np.eye(d)
        outer = -(np.einsum("ik,nj->nijk", eye, mean) + np.einsum("jk,ni->nijk", eye, mean)).reshape(n, d * d, d)
        j = np.zeros((n, d + d * d, d + d * d))
        j[:, :d, :d], j[:, d:, :d], j[:, d:, d:] = eye, outer, np.eye(d * d)
        local = sandwich(j, covariance)
        inverse = np.linalg.inv(inner)
        of_squares = local[:, d:, d:].reshape(n, d, d, d, d)
        kl = 0.5 * np.einsum("nij,nij->n", inverse, local[:, :d, :d])
        kl = kl + 0.25 * np.einsum("nij,njkli,nkl->n", inverse, of_squares, inverse)
        s2 = (scale[:, :, None] * scale[:, None, :]).reshape(n, -1)
        stretch = np.concatenate([scale, s2], axis=1)
        chart = stretch[:, :, None] * local * stretch[:, None, :]
        true_mean = centre + scale * mean
        back = (np.einsum("ik,nj->nijk", eye, true_mean) + np.einsum("jk,ni->nijk", eye, true_mean)).reshape(
            n, d * d, d
        )
        j[:, d:, :d] = back
        plain = sandwich(j, chart)
        se = errors_of(plain)
        belief = MultivariateGaussian(true_mean, covariance=s2.reshape(n, d, d) * inner)
        return Projection(belief, (se[:, :d], se[:, d:].reshape(n, d, d)), plain, chart, kl, sound)


class SimplexAxis:
    """A Dirichlet on the log ratios to its last component."""

    discrete, linear = False, False

    def __init__(self, size: int) -> None:
        self.n_coordinates, self.n_uniforms, self.n_statistics = size - 1, size, size

    def _logs(self, u):
        full = np.concatenate([u, np.zeros((*u.shape[:-1], 1))], axis=-1)
        return full - np.asarray(special.logsumexp(full, axis=-1, keepdims=True))

    def value(self, u):
        x = np.maximum(np.exp(self._logs(u)), _TINY)
        return x / x.sum(axis=-1, keepdims=True)

    def coordinates(self, x):
        logs = np.log(np.maximum(x, _TINY))
        return logs[..., :-1] - logs[..., -1:]

    def log_message(self, message, u):
        return (message.naturals[0][:, None] * self._logs(u)).sum(-1) - columns(message.log_normaliser())

    def log_jacobian(self, u):
        return self._logs(u).sum(axis=-1)

    def draw(self, message, uniforms):
        logs = log_gamma_draws(message.naturals[0][:, None] + 1, uniforms)
        return logs[..., :-1] - logs[..., -1:]

    def moments(self, message):
        c = message.naturals[0] + 1
        psi, psi1 = special.digamma(c), special.polygamma(1, c)
        covariance = psi1[:, :-1, None] * np.eye(self.n_coordinates) + psi1[:, -1, None, None]
        return psi[:, :-1] - psi[:, -1:], covariance

    def broaden(self, message, factor):
        return Dirichlet((message.naturals[0] + 1) / factor)

    def statistics(self, u, centre, scale):
        return self._logs(u) - self._logs(centre)[:, None]

    def project(self, expected, covariance, centre, scale):
        logs = expected + self._logs(centre)
        sound = (logs < 0).all(axis=-1) & (np.exp(np.minimum(logs, 0)).sum(axis=-1) < 1 - 1e-13)
        belief = Dirichlet.from_statistics(np.where(sound[:, None], logs, -float(logs.shape[-1])))
        c = belief.naturals[0] + 1
        information = special.polygamma(1, c)[:, :, None] * np.eye(c.shape[-1])
        information = information - special.polygamma(1, c.sum(-1))[:, None, None]
        kl = half_trace(information, covariance)
        return Projection(belief, (errors_of(covariance),), covariance, covariance, kl, sound)
