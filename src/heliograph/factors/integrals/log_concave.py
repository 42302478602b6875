"""A Gaussian cavity times any log-concave function of one number, by adaptive quadrature around the peak."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heliograph.factors.integrals.tilt import Tilt
from heliograph.numerics.adaptive_quadrature import Rule, adapt
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.panels import DROP

__all__ = ["Curve", "Rise", "log_concave_rule", "log_concave_tilt"]

_NEAR = 1e-9  # of the peak's own width: as near as its place needs to be known
# panels begin at these shares of the window, on either side of the peak
_SHARES = np.array([1.0, 0.6, 0.35, 0.2, 0.1])

Curve = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""``curve(z, row)``: the log of the function, its slope and its curvature (0 or less), for the rows of these numbers."""

Rise = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""``rise(z, step, row)``: ``curve(z + step) - curve(z)``, with its digits where both are huge."""


def log_concave_tilt(m: np.ndarray, v: np.ndarray, curve: Curve, rise: Rise | None = None) -> Tilt:
    """The tilt of N(m, v) and ``exp(curve)``, for flat arrays; v may be 0.

    A narrow cavity that the data contradict puts the peak where the curve is -1e12, say, and the density around it is what
    is left of differences of such numbers: a curve that can be that steep gives its `rise`.

    >>> def half(z, row):  # exp(-z^2 / 2)
    ...     return -0.5 * z**2, -z, -np.ones_like(z)
    >>> t = log_concave_tilt(np.array([2.0]), np.array([1.0]), half)
    >>> t.mean.round(12), t.ratio.round(12)
    (array([1.]), array([0.5]))
    """
    if not v.any():
        value, slope, bend = curve(m, np.arange(m.size))
        return Tilt(value, m, np.ones(m.size), slope, bend)
    parts = [_rows(m[i], v[i], np.arange(m.size)[i], curve, rise) for i in integral_chunks(m.size)]
    return Tilt(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def log_concave_rule(m: np.ndarray, v: np.ndarray, curve: Curve) -> Rule:
    """Nodes and weights of the tilted densities of N(m, v) and ``exp(curve)``, v above 0; the nodes count from their peaks.

    >>> rule = log_concave_rule(np.array([2.0]), np.array([1.0]), lambda z, row: (-0.5 * z**2, -z, -np.ones_like(z)))
    >>> rule.mean(rule.x).round(12), np.allclose(rule.log_z, -1.0 - 0.5 * np.log(2.0))
    (array([1.]), True)
    """
    return _integrated(m, v, np.arange(m.size), curve, None)


def _rows(m: np.ndarray, v: np.ndarray, row: np.ndarray, curve: Curve, rise: Rise | None) -> Tilt:
    point = v == 0
    safe = np.where(point, 1.0, v)
    value, slope, bend = curve(m, row)
    rule = _integrated(m, safe, row, curve, rise)
    gain = curve(rule.x, row[rule.row][:, None])[1]
    move, pull = rule.mean(rule.offset), rule.mean(gain)
    centred = rule.offset - rule.of(move)
    return Tilt(
        np.where(point, value, rule.log_z),
        np.where(point, m, rule.centre + move),
        np.where(point, 1.0, rule.mean(centred * centred) / safe),
        np.where(point, slope, pull),
        np.where(point, bend, rule.mean(centred * (gain - rule.of(pull))) / safe),
    )


def _integrated(m: np.ndarray, v: np.ndarray, row: np.ndarray, curve: Curve, rise: Rise | None) -> Rule:
    """The rule of the tilted densities, with the log of their integrals."""
    peak = _peak(m, v, row, curve, curve(m, row)[1])
    top, _, curvature = curve(peak, row)
    width = 1.0 / np.sqrt(1.0 / v - np.maximum(curvature, -1e300))
    offset = (peak - m) / v

    def log_density(d: np.ndarray, k: np.ndarray) -> np.ndarray:
        gain = rise(peak[k], d, row[k]) if rise else curve(peak[k] + d, row[k])[0] - top[k]
        return gain - d * (offset[k] + 0.5 * d / v[k])

    low, high = (_end(side, width, log_density) for side in (-1.0, 1.0))
    edges = np.concatenate([low[:, None] * _SHARES, np.zeros((m.size, 1)), high[:, None] * _SHARES[::-1]], axis=1)
    rule = adapt(log_density, edges)
    return rule._replace(log_z=rule.log_z + top - 0.5 * ((peak - m) * offset + LOG_2PI + np.log(v)), centre=peak)


def _peak(m: np.ndarray, v: np.ndarray, row: np.ndarray, curve: Curve, slope: np.ndarray) -> np.ndarray:
    """Where the tilted density is highest: between m and ``m + v slope(m)``, since the slope falls."""
    side = np.sign(slope)
    with np.errstate(over="ignore"):
        low, high = np.zeros_like(m), np.minimum(v * np.abs(slope), 1e300)  # distances from m
    d = np.zeros_like(m)
    for k in range(120):
        _, s, c = curve(m + side * d, row)
        rest = side * s - d / v  # falls from |slope| to below 0
        low, high = np.where(rest > 0, d, low), np.where(rest > 0, high, d)
        step = rest / (1.0 / v - np.minimum(c, 0.0))
        near = np.abs(step) <= _NEAR * np.sqrt(v) + 4e-16 * np.abs(m)
        if near.all():
            break
        newton = d + step
        # where Newton's step leaves the bracket, or crawls, the bracket is halved, on a log scale while it is long
        middle = np.where(high > 8.0 * low, np.sqrt(np.maximum(low, 1e-6 * np.sqrt(v)) * high), 0.5 * (low + high))
        inside = (newton > low) & (newton < high) & (k % 4 != 3)
        d = np.where(near, d, np.where(inside, newton, np.clip(middle, low, high)))
    return m + side * d


def _end(side: float, width: np.ndarray, log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """A distance to one side of the peak at which the density has fallen by `DROP`, not much farther than that."""
    row = np.arange(width.size)
    near, far = np.zeros_like(width), width.copy()
    for _ in range(1100):
        fallen = log_density(side * far, row) < -DROP
        if fallen.all():
            break
        near, far = np.where(fallen, near, far), np.where(fallen, far, 2.0 * far)
    for _ in range(6):
        middle = 0.5 * (near + far)
        fallen = log_density(side * middle, row) < -DROP
        near, far = np.where(fallen, near, middle), np.where(fallen, middle, far)
    return side * far
