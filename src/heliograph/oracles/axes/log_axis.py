"""The axis of a Gamma."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

import numpy as np
from scipy import special

from heliograph.families import Gamma
from heliograph.families.charts import LogChart
from heliograph.oracles.axes.algebra import (
    FAR,
    at_points,
    columns,
    errors_of,
    half_trace,
    log_at_mode,
    log_gamma_draws,
    log_ratio,
    matrix_of,
    sandwich,
)
from heliograph.oracles.axes.axis import Projection
from heliograph.oracles.axes.charted import NumberAxis

__all__ = ["LogAxis"]

_TINY = float(np.finfo(float).tiny)


class LogAxis(NumberAxis):
    """A Gamma on the logarithm of its variable."""

    chart = LogChart()
    n_uniforms, n_statistics = 1, 2
    scale_is_log_gap, edge_depth = True, 708.0

    def log_message(self, message, u):
        power, rate = (columns(a) for a in message.naturals)
        u = u[..., 0]
        log_rate = np.log(np.where(rate == 0, 1.0, np.abs(rate)))
        log_p = power * u - np.sign(rate) * np.exp(np.minimum(u + log_rate, 700.0)) - columns(message.log_normaliser())
        return at_points(message, np.exp(np.minimum(u, 709.0)), log_p)

    def edge(self, x):
        return -(x <= _TINY).astype(np.int8)  # the numbers below have no digits left

    def mode(self, message):
        a, b = message.naturals
        return log_ratio(a, b, np.where(a > 0, FAR, -FAR))

    def log_highest(self, message):
        a, b = message.naturals
        return log_at_mode(self, message, (a >= 0) & (b >= 0))  # where it does not grow towards an end of its support

    def falls_off(self, message):
        return message.naturals[1] > 0

    def draw(self, message, uniforms):
        shape, rate = message.naturals[0] + 1, message.naturals[1]
        return (log_gamma_draws(columns(shape), uniforms[..., 0]) - np.log(columns(rate)))[..., None]

    def broaden(self, message, factor):
        return Gamma((message.naturals[0] + 1) / factor, message.naturals[1] / factor)

    def statistics(self, u, centre, scale):
        # the scale is log E x - E log x as first seen; the cut is far out, so that a square times no weight is 0
        y = u - centre[:, None]
        return np.concatenate([np.exp(np.minimum(y - scale[:, None], 300.0)), y], axis=-1)

    def project(self, expected, covariance, centre, scale):
        first, second = expected[:, 0], expected[:, 1]
        sound = first > 0
        log_mean = np.log(np.where(sound, first, 1.0)) + scale[:, 0]  # of x over exp(centre)
        gap = log_mean - second
        sound &= gap > 1e-13
        # of x / E x: its shape is its rate
        near = Gamma.from_statistics(np.ones_like(gap), np.where(sound, -gap, -1.0))
        s = near.naturals[0] + 1
        unit = np.exp(np.clip(centre[:, 0] + log_mean, -700.0, 700.0))
        zero, one = np.zeros_like(s), np.ones_like(s)
        local = sandwich(matrix_of([[1 / np.where(sound, first, 1.0), zero], [zero, one]]), covariance)
        plain = sandwich(matrix_of([[unit, zero], [zero, one]]), local)
        psi1, psi2 = special.polygamma(1, s), special.polygamma(2, s)
        by_shape = psi2 / psi1 / (1 / s - psi1)  # d log psi'(s) / d (log E x - E log x)
        chart = sandwich(matrix_of([[zero, one], [by_shape, -by_shape]]), local)
        kl = half_trace(matrix_of([[1 / s, 1 / s], [1 / s, psi1]]), local)
        se = errors_of(plain)
        return Projection(Gamma(s, s / unit), (se[:, 0], se[:, 1]), plain, chart, kl, sound)
