"""A Gaussian cavity times ``sigmoid(z)^a sigmoid(-z)^b``: the integrals behind the logistic factors.

With ``N = a + b`` the factor is ``exp((a - b) z / 2) (2 cosh(z / 2))^-N``. The exponential only moves the cavity, from
m to ``c = m + v (a - b) / 2``, so one even function is left to integrate: a bell for N > 0, nothing at all for N = 0, and
a valley between two hills for N < 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from heliograph.factors.integrals.tilt import Tilt
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.panels import DROP, Panels, newton_from_above, split_evenly, steep

__all__ = ["beyond_tangent", "logistic_gap", "logistic_tilt"]


# where the log of sigmoid is neither 0 nor a straight line: panels of the right width, poles at +-i pi included
_BENDS = np.array([-38.0, -23.0, -14.0, -8.5, -5.0, -2.5, 0.0, 2.5, 5.0])


def logistic_tilt(m: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray) -> Tilt:
    """The tilt of N(m, v) and ``sigmoid(z)^a sigmoid(-z)^b``, for flat arrays and any real powers; v may be 0.

    By Gauss-Legendre panels, exact to some 1e-13; about 20 microseconds per row.
    """
    point = v == 0
    p, q = expit(m), expit(-m)
    here = Tilt(a * log_expit(m) + b * log_expit(-m), m, np.ones(m.size), a * q - b * p, -(a + b) * p * q)
    if point.all():
        return here
    tilt = Tilt(*_by_shape(lambda rows: rows.tilt(), m, np.where(point, 1.0, v), a, b))
    if not point.any():
        return tilt
    return Tilt(*(np.where(point, x, y) for x, y in zip(here, tilt, strict=True)))


def logistic_gap(m: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tilted ``E z`` and ``-log(exp(E log p) + exp(E log(1 - p)))`` of p = sigmoid(z), both without cancellation."""
    point = v == 0
    if point.all():
        return m, np.zeros(m.size)
    mean, gap = _by_shape(lambda rows: rows.gap(), m, np.where(point, 1.0, v), a, b, lift=True)
    return np.where(point, m, mean), np.where(point, 0.0, gap)


def _by_shape(ask: Callable, m: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray, lift: bool = False) -> list:
    """What `ask` gives of the rows, a block at a time; bells and hills are integrated each in their own way."""
    bell = (a + b) * v > -2.0  # log-concave: the curvature is at least half of the cavity's
    out: list[np.ndarray] = []
    for kind, which in ((_Bell, bell), (_Hills, ~bell)):
        index = np.flatnonzero(which)
        for part in integral_chunks(index.size):
            i = index[part]
            fields = ask(kind(m[i], v[i], a[i], b[i], lift))
            out = out or [np.empty(m.size) for _ in fields]
            for whole, field in zip(out, fields, strict=True):
                whole[i] = field
    return out or list(ask(_Bell(m, v, a, b, lift)))


class _Bell:
    """The quadrature for log-concave rows, N >= 0 or a narrow cavity, around their peak z0 <= 0.

    Rows whose peak is positive are mirrored: z becomes -z, and a and b change places. With `lift` the window also
    holds what the mean of ``log(1 + exp(z))`` needs, which may lie far to the right of the peak.
    """

    def __init__(self, m: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray, lift: bool) -> None:
        c = m + 0.5 * v * (a - b)
        up = c > 0
        self.sign = np.where(up, -1.0, 1.0)
        m, a, b = self.sign * m, np.where(up, b, a), np.where(up, a, b)
        self.v, self.n, self.a, self.b = v, a + b, a, b
        self.z0 = z0 = _peak(-np.abs(c), m, v, a, b)
        n = np.maximum(self.n, 0.0)
        gauss = np.sqrt(2.0 * DROP * v * np.where(self.n < 0, 2.0, 1.0))
        # the slope's slope p q falls no faster than exp(-|d|), so the fall is at least n p q (exp(-d) - 1 + d)
        bent = n * expit(z0) * expit(-z0)
        near = np.minimum(gauss, steep(bent))
        low = -newton_from_above(near, lambda d: _fall(d, -1.0, z0, v, n), 10)
        end = top = np.zeros_like(z0)
        if lift:
            end = -z0
            gauss = np.maximum(gauss, np.minimum(v + np.sqrt(v * v + 2.0 * DROP * v), np.sqrt(2.0 * v * (DROP - z0))))
            # the lifted density is highest near d = v, or where the lift ends
            tops = (-DROP - _fall(d, 1.0, z0, v, n, end)[0] for d in (np.minimum(v, end), end))
            top = np.maximum(top, np.maximum(*tops))
        start = np.minimum(gauss, steep(bent, DROP + end)) if lift else near  # the lift is never more than `end`
        high = newton_from_above(start, lambda d: _fall(d, 1.0, z0, v, n, end, top), 10)
        bend = np.log(np.maximum(n, 1.0))
        breaks = [
            split_evenly(low, np.zeros_like(low), 4),
            split_evenly(np.zeros_like(low), high, 4),
            (-bend - z0)[:, None] + _BENDS,
            (bend - z0)[:, None] - _BENDS,
        ]
        self.panels = panels = Panels(np.concatenate(breaks, axis=1), low, high)
        self.d, of = panels.x, panels.of
        beyond, self.gain = beyond_tangent(self.d, of(z0))
        self.p, self.q = p, q = expit(z0), expit(-z0)
        rest = a * q - b * p - (z0 - m) / v  # the slope at the peak, which is rounding
        self.log_z = panels.tilt(self.d * (of(rest) - 0.5 * self.d / of(v)) - of(self.n) * beyond)
        self.log_z += a * log_expit(z0) + b * log_expit(-z0) - 0.5 * ((z0 - m) ** 2 / v + LOG_2PI + np.log(v))

    def tilt(self) -> tuple[np.ndarray, ...]:
        """The fields of a `Tilt`."""
        panels = self.panels
        move = panels.integrate(self.d)
        centred = self.d - panels.of(move)
        slope = self.a * self.q - self.b * self.p - self.n * panels.integrate(self.gain)
        bend = -self.n * panels.integrate(centred * self.gain) / self.v
        ratio = panels.integrate(centred * centred) / self.v
        return self.log_z, self.sign * (self.z0 + move), ratio, self.sign * slope, bend

    def gap(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean of z and gap, see `logistic_gap`."""
        move = self.panels.integrate(self.d)
        mean = self.z0 + move
        return self.sign * mean, _mean_gap(self.panels, self.d - self.panels.of(move), mean)


class _Hills:
    """The quadrature for the other rows, N < 0: two hills, at ``c - v |N| / 2`` and ``c + v |N| / 2``, and a valley at 0."""

    def __init__(self, m: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray, lift: bool) -> None:
        self.m, self.v, self.n, self.a, self.b = m, v, a + b, a, b
        c, n = m + 0.5 * v * (a - b), -self.n
        left, right = m + v * a, m - v * b
        gauss = np.sqrt(2.0 * DROP * v)
        hills = [split_evenly(x - gauss, x + gauss, 8) for x in (left, right)]
        bends = np.broadcast_to(np.concatenate([_BENDS, -_BENDS]), (m.size, 2 * _BENDS.size))
        self.panels = panels = Panels(np.concatenate([*hills, bends], axis=1), left - gauss, right + gauss)
        of, self.z = panels.of, panels.x
        # each half measured from its own hill: squares of small distances, so that far hills lose no digits
        side = self.z > 0
        from_hill = self.z - np.where(side, of(right), of(left))
        # heights from the higher hill: as large numbers they would round the densities away
        height = np.where(side == of(n * c > 0), 0.0, of(-np.abs(n * c)))
        rise = of(n) * np.log1p(np.exp(-np.minimum(np.abs(self.z), 700.0)))
        self.log_z = panels.tilt(height + rise - 0.5 * from_hill**2 / of(v))
        # the common height: the square that was completed
        self.log_z += 0.5 * np.abs(n * c)
        self.log_z += 0.25 * ((left - m) * (left + m) + (right - m) * (right + m)) / v
        self.log_z -= 0.5 * (LOG_2PI + np.log(v))
        self.higher = np.where(n * c > 0, right, left)
        # where both hills may count and rounding hides which is the higher one, there is no answer
        rounding = 2e-16 * np.abs(n) * (np.abs(m) + 0.5 * v * np.abs(a - b))
        lost = (rounding > 1e-3) & (np.abs(n * c) < 2.0 * DROP + 10.0 * rounding)
        self.panels.weight = np.where(of(lost), np.nan, self.panels.weight)
        self.log_z = np.where(lost, np.nan, self.log_z)

    def tilt(self) -> tuple[np.ndarray, ...]:
        """The fields of a `Tilt`."""
        panels = self.panels
        mean, centred = self._centred()
        p = expit(self.z)
        slope = panels.integrate(panels.of(self.a) * expit(-self.z) - panels.of(self.b) * p)
        bend = -self.n * panels.integrate(centred * (p - panels.of(panels.integrate(p)))) / self.v
        return self.log_z, mean, panels.integrate(centred * centred) / self.v, slope, bend

    def gap(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean of z and gap, see `logistic_gap`."""
        mean, centred = self._centred()
        return mean, _mean_gap(self.panels, centred, mean)

    def _centred(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of z and the nodes' distances from it, measured from the higher hill: it may be far from 0."""
        away = self.z - self.panels.of(self.higher)
        move = self.panels.integrate(away)
        return self.higher + move, away - self.panels.of(move)


def _mean_gap(panels: Panels, d: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The mean of what ``log(1 + exp(z))`` gains beyond its tangent at the mean of z; mirrored where that is positive."""
    s = np.where(mean > 0, -1.0, 1.0)
    beyond, _ = beyond_tangent(panels.of(s) * d, panels.of(s * mean))
    return np.maximum(panels.integrate(beyond), 0.0)


def beyond_tangent(d: np.ndarray, z0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What ``log(1 + exp(z))`` gains beyond its tangent, and its slope, from z0 <= 0 to z0 + d; exact for small d too."""
    e = np.exp(np.maximum(z0, -700.0))
    q = 1.0 / (1.0 + e)
    z = np.clip(z0 + d, -700.0, 700.0)  # beyond, exp over- or underflows, and log(1 + exp(z)) is z or nothing
    small = np.abs(d) < 1.0
    x = np.where(small, e * np.expm1(np.where(small, d, 0.0)), np.exp(z) - e) * q
    return np.log1p(x) - e * q * d + np.maximum(z0 + d - 700.0, 0.0), q * x / (1.0 + x)


def _fall(
    d: np.ndarray, side: float, z0: np.ndarray, v: np.ndarray, n: np.ndarray, lift: Any = 0.0, top: Any = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """How far the log density has fallen a distance d to one side of its peak, less `DROP`; and the slope.

    Up to a distance `lift` the density is multiplied with exp(d), and its fall is counted from `top`.
    """
    beyond, gain = beyond_tangent(side * d, z0)
    value = 0.5 * d * d / v + n * beyond - np.minimum(d, lift) + top - DROP
    return value, d / v + n * side * gain - (d < lift)


def _peak(c: np.ndarray, m: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where ``a log sigmoid(z) + b log sigmoid(-z) - (z - m)^2 / 2v`` is highest, for a log-concave row and c <= 0."""
    n = a + b
    pull = np.maximum(0.5 * v * n, 0.0)
    # the peak solves z - c = pull tanh(-z / 2), so 0 < z - c < pull; each bound sharpened by putting it back in
    top = np.minimum(-c, _double_atanh(-c, pull))
    z = np.maximum(np.maximum(-c - pull, 0.0), _double_atanh(-c - top, pull))
    z = -np.minimum(z, top)
    for _ in range(60):
        p, q = expit(z), expit(-z)
        step = (a * q - b * p - (z - m) / v) / (n * p * q + 1.0 / v)
        z = np.minimum(z + step, 0.0)  # the peak is on the side of c
        if np.all(np.abs(step) <= 1e-10 * (1.0 + np.abs(z))):
            break
    return z


def _double_atanh(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """``2 atanh(x / y)`` for x, y >= 0, infinite from x = y on."""
    inside = x < y * (1.0 - 1e-15)
    return np.where(inside, 2.0 * np.arctanh(np.where(inside, x, 0.0) / np.where(inside, y, 1.0)), np.inf)
