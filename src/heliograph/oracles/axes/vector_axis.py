"""The axis of a multivariate Gaussian."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

import numpy as np
from scipy import special

from heliograph.families import MultivariateGaussian
from heliograph.families.charts import VectorChart
from heliograph.oracles.axes.algebra import LARGEST, errors_of, sandwich
from heliograph.oracles.axes.axis import Projection
from heliograph.oracles.axes.charted import ChartedAxis

__all__ = ["VectorAxis"]


class VectorAxis(ChartedAxis):
    """A multivariate Gaussian on its own space."""

    linear, largest = True, LARGEST

    def __init__(self, dimension: int) -> None:
        self.chart = VectorChart(dimension)
        self.n_coordinates = self.n_uniforms = dimension
        self.n_statistics = dimension + dimension**2

    def draw(self, message, uniforms):
        root = np.linalg.cholesky(message.covariance)
        return message.mean[:, None] + special.ndtri(uniforms) @ np.swapaxes(root, -1, -2)

    def moments(self, message):
        return self.chart.moments(message)

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
