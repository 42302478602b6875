"""Integrals over the mean of a Beta distribution of known concentration whose variable meets a Beta message or a value.

Given the mean m and the concentration k, p is Beta(m k, (1 - m) k), and its integral with an incoming ``p^c (1 - p)^d`` is a
ratio of Beta functions: one number is left to integrate over, ``z = logit m``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, psi

from heliograph.factors.integrals.logistic import beyond_tangent
from heliograph.families import Beta
from heliograph.numerics.adaptive_quadrature import Rule, adapt, around, far_end
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.gamma_function import binet, trigamma

__all__ = ["MeanTilt", "log_likelihood", "tilt_of_mean"]

_FARTHEST = 650.0  # of a logit: beyond, its probability is no number


class MeanTilt(NamedTuple):
    """The tilted distributions of the mean and of p; every array is (n,)."""

    log_z: np.ndarray  # of the unnormalised message at p, times the normalised one at the mean
    mean: tuple[np.ndarray, np.ndarray]  # E logit and gap, as `Beta.from_mean_logit_and_gap` takes them
    p: tuple[np.ndarray, np.ndarray]  # mean and variance


class _Rows(NamedTuple):
    """What comes in, flat."""

    a: np.ndarray  # parameters of the message at the mean
    b: np.ndarray
    k: np.ndarray  # concentration
    c: np.ndarray  # exponents of the message at p, 0 where it is a value
    d: np.ndarray
    log_p: np.ndarray  # of the value, and of 1 less the value; NaN where there is none
    log_q: np.ndarray


def log_likelihood(m: np.ndarray, q: np.ndarray, r: _Rows) -> np.ndarray:
    """``log`` of the integral of ``Beta(p; m k, q k)`` with the message at p, or its density there; ``q = 1 - m``."""
    x, y, k = m * r.k, q * r.k, r.k
    soft = _rise(x, r.c) + _rise(y, r.d) - _rise(k, r.c + r.d)
    at = ~np.isnan(r.log_p)
    if not at.any():
        return soft
    log_p, log_q = np.where(at, r.log_p, -1.0), np.where(at, r.log_q, -1.0)
    misfit = m * (np.log(m) - log_p) + q * (np.log(q) - log_q)
    spread = 0.5 * np.log(k * m * q / (2 * np.pi)) + binet(k) - binet(x) - binet(y)
    return np.where(at, -k * misfit + spread - log_p - log_q, soft)


def _rise(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """``log Gamma(x + n) - log Gamma(x)`` for n >= 0."""
    far = np.maximum(x, 1.0)
    rise = (far + n - 0.5) * np.log1p(n / far) + n * (np.log(far) - 1.0) + binet(far + n) - binet(far)
    near = np.minimum(x, 1.0)
    return np.where(x < 1.0, gammaln(near + n) - gammaln(near), rise)


def tilt_of_mean(mean: Beta, k: np.ndarray, p: Beta, where: np.ndarray) -> MeanTilt:
    """Integrate over the mean in the flat rows that are asked for; NaN in the others."""
    n = where.size
    fields = [np.full(n, np.nan) for _ in range(5)]
    value = np.full(n, np.nan) if p.point is None else np.where(p.is_point, p.point, np.nan)
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(value), np.log1p(-value)
    c, d = p.naturals
    whole = _Rows(mean.naturals[0] + 1.0, mean.naturals[1] + 1.0, k, c, d, log_p, log_q)
    positions = np.flatnonzero(where)
    for part in integral_chunks(positions.size):
        rows = positions[part]
        found = _integrate(_Rows(*(f[rows] for f in whole)), mean[rows])
        for field, values in zip(fields, found, strict=True):
            field[rows] = values
    return MeanTilt(fields[0], (fields[1], fields[2]), (fields[3], fields[4]))


def _integrate(r: _Rows, prior: Beta) -> tuple[np.ndarray, ...]:
    """Log Z, and mean logit and gap of the mean and of p."""
    turns = _modes(r)
    heights = np.stack([_height(r, z) for z in turns.T], axis=1)
    best = np.take_along_axis(turns, np.nan_to_num(heights, nan=-np.inf).argmax(axis=1)[:, None], axis=1)[:, 0]
    top = _height(r, best)
    widths = 1.0 / np.sqrt(np.maximum(np.abs(_bend(r, turns)), 1e-300))
    low, high = (far_end(lambda z: _height(r, z) - top, turns, widths, side) for side in (-1.0, 1.0))
    low, high = np.maximum(low, -_FARTHEST), np.minimum(high, _FARTHEST)

    def rise(e: np.ndarray, i: np.ndarray) -> np.ndarray:
        return _height(_Rows(*(f[i] for f in r)), best[i] + e) - top[i]

    rule = adapt(
        rise,
        around(low, high, turns, np.minimum(widths, (high - low)[:, None])),
        lambda e, i: [np.abs(best[i] + e)],
        best,
    )
    m, q = expit(best), expit(-best)
    log_z = rule.log_z + prior.log_density(m) + np.log(m) + np.log(q) + log_likelihood(m, q, r)
    m, q = expit(rule.x), expit(-rule.x)
    beside = [rule.of(f) for f in r]
    first, second = m * beside[2] + beside[3], q * beside[2] + beside[4]
    total = first + second
    given = first / total
    p_mean = rule.mean(given)
    inside, between = rule.mean(given * (second / total) / (total + 1.0)), rule.mean((given - rule.of(p_mean)) ** 2)
    return log_z, *_mixed(rule), p_mean, inside + between


def _mixed(rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Mean and gap of the logits at the nodes: what ``log(1 + exp(z))`` has above its tangent at the mean."""
    move = rule.mean(rule.offset)
    mean = rule.centre + move
    side = np.where(mean > 0, -1.0, 1.0)
    beyond, _ = beyond_tangent(rule.of(side) * (rule.offset - rule.of(move)), rule.of(side * mean))
    return mean, rule.mean(beyond)


def _height(r: _Rows, z: np.ndarray) -> np.ndarray:
    """The log density in z."""
    z = np.clip(z, -_FARTHEST, _FARTHEST)
    m, q = expit(z), expit(-z)
    return r.a * np.log(m) + r.b * np.log(q) + log_likelihood(m, q, r)


def _slope(r: _Rows, z: np.ndarray) -> np.ndarray:
    """The derivative of the log density at the points `z` (rows, j)."""
    a, b, k = (f[:, None] for f in r[:3])
    m, q = expit(z), expit(-z)
    return a * q - b * m + m * q * k * _pull(r, m, q)


def _pull(r: _Rows, m: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The derivative of the log likelihood in m, over k."""
    k, c, d, log_p, log_q = (f[:, None] for f in r[2:])
    x, y = m * k, q * k
    return np.where(np.isnan(log_p), psi(x + c) - psi(y + d), log_p - log_q) - psi(x) + psi(y)


def _bend(r: _Rows, z: np.ndarray) -> np.ndarray:
    """The second derivative of the log density at the points `z` (rows, j)."""
    a, b, k, c, d, log_p, _ = (f[:, None] for f in r)
    m, q = expit(z), expit(-z)
    x, y, w = m * k, q * k, m * q
    bend = np.where(np.isnan(log_p), trigamma(x + c) + trigamma(y + d), 0.0) - trigamma(x) - trigamma(y)
    return -(a + b) * w + (q - m) * w * k * _pull(r, m, q) + (w * k) ** 2 * bend


def _modes(r: _Rows) -> np.ndarray:
    """Up to two modes (rows, 2), where the slope changes its sign between points where its parts balance."""
    value = np.where(np.isnan(r.log_p), np.log(r.c + 1.0) - np.log(r.d + 1.0), r.log_p - r.log_q)
    own = np.log(r.a) - np.log(r.b)
    at = np.stack([own, value, 0.5 * (own + value), -np.log(r.k), np.log(r.k), 0.0 * own], axis=1)
    steps = np.array([-80.0, -25.0, -8.0, -2.5, 0.0, 2.5, 8.0, 25.0, 80.0])
    grid = np.sort((at[:, :, None] + steps).reshape(own.size, -1), axis=1).clip(-_FARTHEST, _FARTHEST)
    up = _slope(r, grid) > 0
    falls = up[:, :-1] & ~up[:, 1:]
    where = np.argsort(~falls, axis=1, kind="stable")[:, :2]
    where = np.where(np.take_along_axis(falls, where, axis=1), where, where[:, :1])
    low, high = np.take_along_axis(grid, where, axis=1), np.take_along_axis(grid, where + 1, axis=1)
    for _ in range(40):
        middle = 0.5 * (low + high)
        rising = _slope(r, middle) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return 0.5 * (low + high)
