"""The axes of a Gamma and of a Beta, on which powers of x, and of p and 1 - p, are exponentials."""

# ruff: noqa: D102 (what the methods do is said once, at `Axis`)
from __future__ import annotations

import numpy as np
from scipy import special

from heliograph.families import Beta, Gamma
from heliograph.families.charts import LogChart, LogitChart
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

__all__ = ["LogAxis", "LogitAxis"]

_TINY = float(np.finfo(float).tiny)


class _PowerAxis(NumberAxis):
    def log_highest(self, message):
        a, b = message.naturals
        return log_at_mode(self, message, (a >= 0) & (b >= 0))  # where it does not grow towards an end of its support


class LogAxis(_PowerAxis):
    """A Gamma on the logarithm of its variable."""

    chart = LogChart()
    n_uniforms, n_statistics = 1, 2
    scale_is_log_gap, edge_depth = True, 708.0

    def log_message(self, message, u):
        power, rate = (columns(a) for a in message.naturals)
        u = u[..., 0]
        log_rate = np.log(np.where(rate == 0, 1.0, np.abs(rate)))
        log_p = power * u - np.sign(rate) * np.exp(np.minimum(u + log_rate, 700.0)) - columns(message.log_normaliser())
        return log_p if message.point is None else at_points(message, np.exp(np.minimum(u, 709.0)), log_p)

    def edge(self, x):
        return -(x <= _TINY).astype(np.int8)  # the numbers below have no digits left

    def mode(self, message):
        a, b = message.naturals
        return log_ratio(a, b, np.where(a > 0, FAR, -FAR))

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


class LogitAxis(_PowerAxis):
    """A Beta on the log odds of its variable."""

    chart = LogitChart()
    n_uniforms, n_statistics, edge_depth = 2, 2, 37.0

    def log_message(self, message, u):
        a, b = (columns(k) for k in message.naturals)
        u = u[..., 0]
        both = -np.log1p(np.exp(-np.abs(u)))  # of log p and log(1 - p), beside what is linear in one of the two
        log_p = a * (np.minimum(u, 0.0) + both) + b * (both - np.maximum(u, 0.0)) - columns(message.log_normaliser())
        return log_p if message.point is None else at_points(message, special.expit(u), log_p)

    def edge(self, x):
        return (x == 1).astype(np.int8) - (x <= _TINY)  # the numbers below have no digits left

    def mode(self, message):
        a, b = message.naturals
        return log_ratio(a, b, np.where(a > b, FAR, -FAR))

    def draw(self, message, uniforms):
        a, b = (columns(k + 1) for k in message.naturals)  # a ratio of Gammas: exact in both tails of the logit
        return (log_gamma_draws(a, uniforms[..., 0]) - log_gamma_draws(b, uniforms[..., 1]))[..., None]

    def broaden(self, message, factor):
        return Beta((message.naturals[0] + 1) / factor, (message.naturals[1] + 1) / factor)

    def statistics(self, u, centre, scale):
        c = centre[:, None]
        return np.concatenate([u - c, _softplus_excess(u, c)], axis=-1)

    def project(self, expected, covariance, centre, scale):
        c, q = centre[:, 0], special.expit(centre[:, 0])
        mean = c + expected[:, 0]
        gap = expected[:, 1] - _softplus_excess(mean, c)  # E log(1 + e^u) - log(1 + e^(E u)), without cancellation
        sound = np.isfinite(mean) & (gap > 0)
        belief = Beta.from_mean_logit_and_gap(np.where(sound, mean, 0.0), np.where(sound, gap, 1.0))
        sound &= belief.proper & ~belief.is_point
        sound &= np.minimum(*belief.naturals) < 1e10  # narrower than that is rounding
        a, b = (np.where(sound, k + 1, 1.0) for k in belief.naturals)
        plain = sandwich(_matrix_of_logs(q), covariance)
        information, slope, log_unit = _beta_geometry(a, b)
        # errors of (E u, E excess), the excess taken about the belief's mean instead of the frame's centre
        one, zero = np.ones_like(q), np.zeros_like(q)
        turn = special.expit(np.where(sound, mean, 0.0)) - q
        per_unit = np.exp(-np.maximum(log_unit, -300.0))
        local = sandwich(matrix_of([[one, zero], [-turn * per_unit, per_unit]]), covariance)
        chart = sandwich(matrix_of([[one, zero], [slope[:, 0], slope[:, 1]]]), local)
        se = errors_of(plain)
        return Projection(belief, (se[:, 0], se[:, 1]), plain, chart, half_trace(information, local), sound)


def _softplus_excess(u, c):
    """``log(1 + e^u) - log(1 + e^c) - sigmoid(c) (u - c)``: never negative, and exact in both tails."""
    d = u - c
    sign = np.where(c > 0, -1.0, 1.0)  # by symmetry work on the side where the probability is small
    log_q = special.log_expit(sign * c)
    q, d = np.exp(log_q), sign * d
    excess = np.log1p(q * np.expm1(np.minimum(d, 30.0)))
    far = ~(d < 30)
    if far.any():
        excess = np.where(far, np.logaddexp(special.log_expit(-sign * c), log_q + d), excess)
    return np.maximum(excess - q * d, 0.0)


def _matrix_of_logs(q):
    """From errors of (E u, E excess) about the logit of q to those of E log p and E log(1 - p)."""
    one = np.ones_like(q)
    return matrix_of([[1 - q, -one], [-q, -one]])


def _beta_geometry(a, b):
    """Of a Beta: covariance of (u, excess / unit), slope of the log chart variance in their means, and log unit.

    The unit is the standard deviation of the excess, or nearly. Where one parameter dwarfs the other (and 1) the exact
    expressions cancel, and the limit is a Gamma of the smaller one.
    """
    sign = np.where(a >= b, 1.0, -1.0)
    a, b = np.maximum(a, b), np.minimum(a, b)  # the excess is symmetric, and u changes its sign
    limit = a > 1e6 * np.maximum(b, 1.0)
    psi_b, pb = special.digamma(b), special.polygamma(1, b)
    log_r = special.log_expit(psi_b - special.digamma(a))
    g = np.exp(psi_b)
    in_limit = [pb, g * pb - 1, b - 2 * g + g**2 * pb, np.ones_like(b), -pb, g - b, 1 - g * pb]
    log_unit = log_r - psi_b
    a = np.minimum(a, 1e7 * np.maximum(b, 1.0))  # so that what is not used cannot overflow
    r = special.expit(psi_b - special.digamma(a))
    pa, pab = special.polygamma(1, a), special.polygamma(1, a + b)
    less = np.where(b < 1e-5 * a, -b * special.polygamma(2, a), pa - pab)
    unit = np.sqrt(r**2 * pb - r * (2 - r) * pa + less)
    exact = [pa + pb, (r * pb - (1 - r) * pa) / unit, np.ones_like(b)]
    exact += [a * pa, -pb, a * (r * pa - less) / unit, (pab - r * pb) / unit]
    # covariances, then derivatives of the two means by (log a, b)
    uu, uv, vv, ua, ub, va, vb = (np.where(limit, x, y) for x, y in zip(in_limit, exact, strict=True))
    by_spread = np.stack([a * special.polygamma(2, a), special.polygamma(2, b)], axis=-1) / (pa + pb)[:, None]
    slope = np.linalg.solve(matrix_of([[ua, va], [ub, vb]]), by_spread[..., None])[..., 0]
    slope[:, 0] *= sign
    return matrix_of([[uu, sign * uv], [sign * uv, vv]]), slope, np.where(limit, log_unit, np.log(unit))
