"""A Gaussian cavity times ``exp(a z - r exp(z))``: the integrals behind the exp factor and the Poisson of a log rate.

The linear term only moves the cavity, so for any real a the product is log-concave; its peak is Lambert's function (in
the form of Wright's omega), and from there on everything is measured in distances from the peak.
"""

from __future__ import annotations

import numpy as np
from scipy.special import wrightomega

from heliograph.factors.integrals.tilt import Tilt
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.panels import DROP, Panels, newton_from_above, split_evenly, steep

__all__ = ["cliff", "exp_beyond_tangent", "exponential_gap", "exponential_tilt"]

_LOG_DROP = float(np.log(DROP))
# around z = -log r, where r exp(z) passes 1: the factor is a straight line to the left and a cliff to the right
_BENDS = np.array([-38.0, -23.0, -14.0, -8.5, -5.0, -2.5, -0.5, 1.0, 2.0, 3.0, 4.0])


def exponential_tilt(m: np.ndarray, v: np.ndarray, a: np.ndarray, r: np.ndarray) -> tuple[Tilt, np.ndarray]:
    """The tilt of N(m, v) and ``exp(a z - r exp(z))`` for flat arrays, r >= 0, and the peak it was measured from.

    `log_z` is that of the factor divided by its value at the peak: the caller knows how to write that value without
    cancellation. v may be 0; the peak is then the point itself.
    """
    if not v.any():
        at = r * np.exp(np.minimum(m, 600.0))  # impossible long before it overflows
        return Tilt(np.zeros(m.size), m, np.ones(m.size), a - at, -at), m
    parts = [_Rows(m[i], v[i], a[i], r[i]).tilt() for i in integral_chunks(m.size)]
    tilts, peaks = zip(*parts, strict=True)
    return Tilt(*(np.concatenate(field) for field in zip(*tilts, strict=True))), np.concatenate(peaks)


def exponential_gap(m: np.ndarray, v: np.ndarray, a: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tilted ``E z`` and ``log E exp(z) - E z``, the latter without cancellation."""
    if not v.any():
        return m, np.zeros(m.size)
    parts = [_Rows(m[i], v[i], a[i], r[i], lift=1.0).gap() for i in integral_chunks(m.size)]
    mean, gap = (np.concatenate(field) for field in zip(*parts, strict=True))
    return mean, gap


class _Rows:
    """The quadrature for a block of rows, around the peak z0; `lift` is the power of exp(z) that will be averaged.

    That mean may live far to the right of the peak, and the window then reaches as far.
    """

    def __init__(self, m: np.ndarray, v: np.ndarray, a: np.ndarray, r: np.ndarray, lift: float = 0.0) -> None:
        self.m, self.a, self.r = m, a, r
        self.point = v == 0
        self.v = v = np.where(self.point, 1.0, v)
        self.plain = r == 0  # nothing but a Gaussian
        log_r = np.log(np.where(self.plain, 1.0, r))
        z0, omega = _peak(m + v * a, v, log_r, self.plain)
        self.z0, self.height = z0, omega / v  # height = r exp(z0)
        log_height = np.where(self.plain, -np.inf, np.minimum(log_r + z0, 700.0))
        gauss = np.sqrt(2.0 * DROP * v)
        start = np.minimum(lift * v + np.sqrt((lift * v) ** 2 + 2.0 * DROP * v), cliff(log_height, lift))
        high = newton_from_above(start, lambda d: _fall(d, 1.0, v, log_height, lift), 8)
        left = np.minimum(gauss, steep(np.exp(np.minimum(log_height, 700.0))))
        low = -newton_from_above(left, lambda d: _fall(d, -1.0, v, log_height), 10)
        zero = np.zeros_like(low)
        bends = np.maximum(-log_height, -1e300)[:, None] + _BENDS
        breaks = [split_evenly(low, zero, 4), split_evenly(zero, high, 4), np.minimum(bends, 1e300)]
        if lift:
            z1, omega = _peak(m + v * (a + lift), v, log_r, self.plain)
            reach = gauss / np.sqrt(1.0 + omega)
            breaks.append(split_evenly(z1 - z0 - reach, z1 - z0 + reach, 8))
        self.panels = panels = Panels(np.concatenate(breaks, axis=1), low, high)
        self.d, of = panels.x, panels.of
        beyond, self.gain = exp_beyond_tangent(self.d, of(log_height))
        rest = a - self.height - (z0 - m) / v  # the slope at the peak, which is rounding
        self.log_mass = panels.tilt(self.d * (of(rest) - 0.5 * self.d / of(v)) - beyond)
        self.log_mass -= 0.5 * ((z0 - m) ** 2 / v + LOG_2PI + np.log(v))

    def tilt(self) -> tuple[Tilt, np.ndarray]:
        """The tilt, its `log_z` without the factor's value at the peak, and the peak."""
        panels, point, v = self.panels, self.point, self.v
        move = panels.integrate(self.d)
        centred = self.d - panels.of(move)
        slope = self.a - self.height - panels.integrate(self.gain)
        bend = -panels.integrate(centred * self.gain) / v
        ratio = panels.integrate(centred * centred) / v
        at = self.r * np.exp(np.minimum(np.where(point, self.m, 0.0), 600.0))  # impossible long before it overflows
        tilt = Tilt(
            np.where(point, 0.0, self.log_mass),
            np.where(point, self.m, self.z0 + move),
            np.where(point, 1.0, ratio),
            np.where(point, self.a - at, slope),
            np.where(point, -at, bend),
        )
        return tilt, np.where(point, self.m, self.z0)

    def gap(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean of z, and log mean of exp(z) less that."""
        move = self.panels.integrate(self.d)
        d = self.d - self.panels.of(move)
        gap = self.panels.log_mean_exp(np.where(self.panels.of(self.plain), 0.0, d))
        gap = np.where(self.plain, 0.5 * self.v, gap)
        return np.where(self.point, self.m, self.z0 + move), np.where(self.point, 0.0, gap)


def _peak(c: np.ndarray, v: np.ndarray, log_r: np.ndarray, plain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where ``-(z - c)^2 / 2v - r exp(z)`` is highest, and ``v r exp(z)`` there."""
    omega = np.where(plain, 0.0, wrightomega(np.where(plain, 0.0, c + np.log(v) + log_r)))
    # z = c - omega = log omega - log(v r): the first cancels when omega is large, the second underflows
    small = omega < 1.0
    return np.where(small, c - omega, np.log(np.where(small, 1.0, omega)) - np.log(v) - log_r), omega


def exp_beyond_tangent(d: np.ndarray, log_height: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What ``height exp(d)`` gains beyond its tangent at 0, and its slope; a height may be too small for a float."""
    small = np.abs(d) < 1.0
    height = np.exp(log_height)
    far = np.exp(np.minimum(log_height + d, 700.0)) - height  # 700: beyond any window, and short of overflow
    gain = np.where(small, height * np.expm1(np.where(small, d, 0.0)), far)
    return gain - height * d, gain


def cliff(log_height: np.ndarray, lift: float = 0.0) -> np.ndarray:
    """A d so large that ``height (exp(d) - 1 - d) - lift d`` is above `DROP`, and not much larger."""
    far = np.logaddexp(0.0, _LOG_DROP - log_height)
    reach = 2.0 + np.logaddexp(0.0, np.log(DROP + 2.0 * lift * np.minimum(far, 1e300)) - log_height)
    if lift:
        # exp(d) - 1 - d > d^2 / 2, so this is above as well, and far closer where the height is large
        root = np.exp(np.maximum(-log_height, -700.0))
        square = lift * root + np.sqrt((lift * root) ** 2 + 2.0 * DROP * root)
        return np.minimum(reach, np.where(log_height > 0, square, np.inf))
    return np.minimum(reach, np.exp(np.minimum(0.5 * (np.log(2.0 * DROP) - log_height), 700.0)))


def _fall(
    d: np.ndarray, side: float, v: np.ndarray, log_height: np.ndarray, lift: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """How far the log density has fallen a distance d to one side of its peak, less `DROP`; and the slope."""
    beyond, gain = exp_beyond_tangent(side * d, log_height)
    return 0.5 * d * d / v + beyond - lift * d - DROP, d / v + side * gain - lift
