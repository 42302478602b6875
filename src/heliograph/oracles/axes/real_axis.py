"""The axis of a Gaussian."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

import numpy as np
from scipy import special

from heliograph.families import Gaussian
from heliograph.families.charts import IdentityChart
from heliograph.oracles.axes.algebra import LARGEST, errors_of, log_at_mode, matrix_of, sandwich
from heliograph.oracles.axes.axis import Projection
from heliograph.oracles.axes.charted import NumberAxis

__all__ = ["RealAxis"]


class RealAxis(NumberAxis):
    """A Gaussian on the real line."""

    chart = IdentityChart()
    n_uniforms, n_statistics, linear, largest = 1, 2, True, LARGEST

    def mode(self, message):
        a, b = message.naturals
        safe = np.where(b > 0, b, 1.0)
        return np.where(b > 0, a / safe, np.where(a < 0, -1e300, 1e300))

    def log_highest(self, message):
        _, b = message.naturals
        return log_at_mode(self, message, b > 0)

    def falls_off(self, message):
        return message.naturals[1] > 0

    def draw(self, message, uniforms):
        z = special.ndtri(uniforms[..., :1])
        return message.mean[:, None, None] + np.sqrt(message.variance)[:, None, None] * z

    def broaden(self, message, factor):
        return Gaussian.from_mean_variance(message.mean, factor * message.variance)

    def statistics(self, u, centre, scale):
        with np.errstate(over="ignore"):
            y = (u - centre[:, None]) / scale[:, None]
            if not np.isfinite(np.vdot(y, y)):  # a square that is infinite is no number, even where its weight is 0
                y = np.clip(y, -LARGEST, LARGEST)
        return np.concatenate([y, y * y], axis=-1)

    def project(self, expected, covariance, centre, scale):
        c, s = centre[:, 0], scale[:, 0]
        mean, variance = expected[:, 0], expected[:, 1] - expected[:, 0] ** 2
        sound = variance > 1e-12 * (1 + mean**2)  # below that it is rounding, not spread
        variance = np.where(sound, variance, 1.0)
        zero, one = np.zeros_like(s), np.ones_like(s)
        plain = sandwich(matrix_of([[s, zero], [2 * c * s, s**2]]), covariance)
        local = sandwich(matrix_of([[one, zero], [-2 * mean / variance, 1 / variance]]), covariance)
        chart = sandwich(matrix_of([[s, zero], [zero, one]]), local)
        kl = 0.5 * local[:, 0, 0] / variance + 0.25 * local[:, 1, 1]
        se = errors_of(plain)
        belief = Gaussian.from_mean_variance(c + s * mean, s**2 * variance)
        return Projection(belief, (se[:, 0], se[:, 1]), plain, chart, kl, sound)
