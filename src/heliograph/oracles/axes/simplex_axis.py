"""The axis of a Dirichlet."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

import numpy as np
from scipy import special

from heliograph.families import Dirichlet
from heliograph.oracles.axes.algebra import columns, errors_of, half_trace, log_gamma_draws
from heliograph.oracles.axes.axis import Projection

__all__ = ["SimplexAxis"]

_TINY = float(np.finfo(float).tiny)


class SimplexAxis:
    """A Dirichlet on the log ratios to its last component."""

    discrete, linear = False, False
    scale_is_log_gap, edge_depth, largest = False, 0.0, np.inf

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

    def edge(self, x):
        return np.zeros(x.shape[:-1], dtype=np.int8)

    def log_highest(self, message):
        return np.full(message.shape, np.inf)

    def falls_off(self, message):
        return np.zeros(message.shape, dtype=bool)

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
