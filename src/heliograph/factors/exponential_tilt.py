"""A Gaussian cavity times ``exp(a z - r exp(z))``: the integrals behind the exp factor and the Poisson of a log rate.

The linear term only moves the cavity, so for any real a the product is log-concave; its peak is Lambert's function (in
the form of Wright's omega), and from there on everything is measured in distances from the peak.
"""

from __future__ import annotations

import numpy as np
from scipy.special import wrightomega

from heliograph.factors.quadrature import DROP, Panels, Tilt, chunks, newton_from_above, split_evenly

__all__ = ["cliff", "exponential_gap", "exponential_tilt"]

_LOG_2PI = float(np.log(2 * np.pi))
# around z = -log r, where r exp(z) passes 1: the factor is a straight line to the left and a cliff to the right
_BENDS = np.array([-38.0, -23.0, -14.0, -8.5, -5.0, -2.5, -0.5, 1.0, 2.0, 3.0, 4.0])


def exponential_tilt(m: np.ndarray, v: np.ndarray, a: np.ndarray, r: np.ndarray) -> tuple[Tilt, np.ndarray]:
    """The tilt of N(m, v) and ``exp(a z - r exp(z))`` for flat arrays, r >= 0, and the peak it was measured from.

    `log_z` is that of the factor divided by its value at the peak: the caller knows how to write that value without
    cancellation. v may be 0; the peak is then the point itself.
    """
    parts = [_Rows(m[i], v[i], a[i], r[i]).tilt() for i in chunks(m.size)]
    tilts, peaks = zip(*parts, strict=True)
    return Tilt(*(np.concatenate(field) for field in zip(*tilts, strict=True))), np.concatenate(peaks)


def exponential_gap(m: np.ndarray, v: np.ndarray, a: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tilted ``E z`` and ``log E exp(z) - E z``, the latter without cancellation."""
    parts = [_Rows(m[i], v[i], a[i], r[i], lift=1.0).gap() for i in chunks(m.size)]
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
        c = m + v * a
        omega = np.where(self.plain, 0.0, wrightomega(np.where(self.plain, 0.0, c + np.log(v) + log_r)))
        # z0 = c - omega = log omega - log(v r): the first cancels when omega is large, the second underflows
        small = omega < 1.0
        z0 = np.where(small, c - omega, np.log(np.where(small, 1.0, omega)) - np.log(v) - log_r)
        self.z0, self.height = z0, omega / v  # height = r exp(z0)
        height = self.height
        gauss = np.sqrt(2.0 * DROP * v)
        safe = np.maximum(height, 1e-300)
        start = np.minimum(lift * v + np.sqrt((lift * v) ** 2 + 2.0 * DROP * v), cliff(safe, lift))
        high = newton_from_above(start, lambda d: _fall(d, 1.0, v, height, lift), 8)
        low = -newton_from_above(gauss, lambda d: _fall(d, -1.0, v, height), 10)
        zero = np.zeros_like(low)
        breaks = [split_evenly(low, zero, 4), split_evenly(zero, high, 4), -np.log(safe)[:, None] + _BENDS]
        self.panels = panels = Panels(np.concatenate(breaks, axis=1), low, high)
        self.d, of = panels.x, panels.of
        self.growth = np.expm1(self.d)
        rest = a - height - (z0 - m) / v  # the slope at the peak, which is rounding
        self.log_mass = panels.tilt(self.d * (of(rest) - 0.5 * self.d / of(v)) - of(height) * (self.growth - self.d))
        self.log_mass -= 0.5 * ((z0 - m) ** 2 / v + _LOG_2PI + np.log(v))

    def tilt(self) -> tuple[Tilt, np.ndarray]:
        panels, point, v, height = self.panels, self.point, self.v, self.height
        move = panels.integrate(self.d)
        centred = self.d - panels.of(move)
        slope = self.a - height - height * panels.integrate(self.growth)
        bend = -height * panels.integrate(centred * self.growth) / v
        ratio = panels.integrate(centred * centred) / v
        at = self.r * np.exp(np.minimum(np.where(point, self.m, 0.0), 700.0))
        tilt = Tilt(
            np.where(point, 0.0, self.log_mass),
            np.where(point, self.m, self.z0 + move),
            np.where(point, 1.0, ratio),
            np.where(point, self.a - at, slope),
            np.where(point, -at, bend),
        )
        return tilt, np.where(point, self.m, self.z0)

    def gap(self) -> tuple[np.ndarray, np.ndarray]:
        move = self.panels.integrate(self.d)
        d = self.d - self.panels.of(move)
        d = np.where(self.panels.of(self.plain), 0.0, d)  # closed form below; the integral would overflow
        gap = np.log1p(np.maximum(self.panels.integrate(np.expm1(d) - d), 0.0))
        gap = np.where(self.plain, 0.5 * self.v, gap)
        return np.where(self.point, self.m, self.z0 + move), np.where(self.point, 0.0, gap)


def cliff(height: np.ndarray, lift: float = 0.0) -> np.ndarray:
    """A d so large that ``height (exp(d) - 1 - d) - lift d`` is above `DROP`, and not much larger."""
    far = np.log1p(DROP / height)
    reach = 2.0 + np.log1p((DROP + 2.0 * lift * far) / height)
    return reach if lift else np.minimum(reach, np.sqrt(2.0 * DROP / height))


def _fall(
    d: np.ndarray, side: float, v: np.ndarray, height: np.ndarray, lift: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """How far the log density has fallen a distance d to one side of its peak, less `DROP`; and the slope."""
    growth = np.expm1(side * d)
    value = 0.5 * d * d / v + height * (growth - side * d) - lift * d - DROP
    return value, d / v + height * side * growth - lift
