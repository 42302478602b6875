"""The axis of a Dirichlet."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

import numpy as np
from scipy import special

from heliograph.families import Dirichlet
from heliograph.families.charts import LogConcentrationChart
from heliograph.oracles.axes.algebra import columns, errors_of, half_trace, log_gamma_draws
from heliograph.oracles.axes.axis import Projection
from heliograph.oracles.axes.charted import ChartedAxis

__all__ = ["SimplexAxis"]


class SimplexAxis(ChartedAxis):
    """A Dirichlet on the log ratios to its last component."""

    chart: LogConcentrationChart

    def __init__(self, size: int) -> None:
        self.chart = LogConcentrationChart(size)
        self.n_coordinates, self.n_uniforms, self.n_statistics = size - 1, size, size

    def log_message(self, message, u):
        return (message.naturals[0][:, None] * self.chart.log_value(u)).sum(-1) - columns(message.log_normaliser())

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
        return self.chart.log_value(u) - self.chart.log_value(centre)[:, None]

    def project(self, expected, covariance, centre, scale):
        logs = expected + self.chart.log_value(centre)
        sound = (logs < 0).all(axis=-1) & (np.exp(np.minimum(logs, 0)).sum(axis=-1) < 1 - 1e-13)
        belief = Dirichlet.from_statistics(np.where(sound[:, None], logs, -float(logs.shape[-1])))
        c = belief.naturals[0] + 1
        information = special.polygamma(1, c)[:, :, None] * np.eye(c.shape[-1])
        information = information - special.polygamma(1, c.sum(-1))[:, None, None]
        kl = half_trace(information, covariance)
        return Projection(belief, (errors_of(covariance),), covariance, covariance, kl, sound)
