"""Axes of the families of finitely many values: Bernoulli, Categorical."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

import numpy as np

from heliograph.families import Bernoulli, Categorical
from heliograph.families.charts import LogOddsChart, LogProbabilityChart
from heliograph.oracles.axes.algebra import errors_of
from heliograph.oracles.axes.axis import Projection
from heliograph.oracles.axes.charted import NumberAxis

__all__ = ["CoinAxis", "LabelAxis"]


class _ValuesAxis(NumberAxis):
    """Finitely many values: the coordinate is the number of one."""

    discrete, n_uniforms = True, 1

    def log_highest(self, message):
        return np.zeros(message.shape)


class CoinAxis(_ValuesAxis):
    """A Bernoulli: the coordinate is 0 or 1."""

    chart = LogOddsChart()
    n_statistics, n_values = 1, 2

    def probabilities(self, message):
        return np.stack([1 - message.p, message.p], axis=-1)

    def statistics(self, u, centre, scale):
        return u

    def project(self, expected, covariance, centre, scale):
        p = expected[:, 0]
        sound = (p >= 0) & (p <= 1)
        p = np.clip(np.where(sound, p, 0.5), 1e-150, 1 - 2.0**-53)  # an estimate is never a point mass
        belief = Bernoulli(p)
        spread = (p * (1 - p))[:, None, None]
        kl = 0.5 * covariance[:, 0, 0] / spread[:, 0, 0]
        return Projection(belief, (errors_of(covariance)[:, 0],), covariance, covariance / spread / spread, kl, sound)


class LabelAxis(_ValuesAxis):
    """A Categorical: the coordinate is the index of the category."""

    def __init__(self, size: int) -> None:
        self.chart = LogProbabilityChart(size)
        self.n_statistics = self.n_values = size

    def value(self, u):
        return u[..., 0].astype(int)

    def coordinates(self, x):
        return np.asarray(x, dtype=float)[..., None]

    def probabilities(self, message):
        return message.p

    def statistics(self, u, centre, scale):
        return (u == np.arange(self.n_statistics)).astype(float)

    def project(self, expected, covariance, centre, scale):
        sound = (expected >= 0).all(axis=-1) & (expected.sum(axis=-1) > 0)
        p = np.where(sound[:, None], expected, 1.0)
        p = p / p.sum(axis=-1, keepdims=True)
        unit = np.where(p > 0, p, 1.0)
        chart = covariance / (unit[:, :, None] * unit[:, None, :])
        kl = 0.5 * (np.diagonal(covariance, axis1=-2, axis2=-1) / unit).sum(-1)
        return Projection(Categorical(p), (errors_of(covariance),), covariance, chart, kl, sound)
