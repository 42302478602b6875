"""The probit likelihood: ``P(y = 1 | z) = Phi(z)``, the standard normal distribution function."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr

from heliograph.factors.base import Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.tilt import Tilt, cavity_of, gaussian_site, mixed
from heliograph.factors.labelled import OfScore
from heliograph.families import Bernoulli, Family, Gaussian
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.panels import DROP, Panels, legendre, split_evenly
from heliograph.numerics.truncated_normal import soft_step, tail

__all__ = ["ProbitBernoulli"]

_ROOT_2_OVER_PI = float(np.sqrt(2.0 / np.pi))
_WIDE = 1e16  # a cavity of this variance is 1e8 times wider than Phi, and the square of that ratio is rounding
_ROOT_HALF = float(np.sqrt(0.5))
_BENDS = np.array([-20.0, -10.0, -6.0, -3.0, -1.0, 1.0, 3.0, 5.0, 7.0, 9.0])  # where log Phi is neither 0 nor -z^2/2


class ProbitBernoulli(OfScore):
    """``P(y = 1) = Phi(z)``.

    The same as z plus unit noise being positive, hence in closed form, a soft y included; a power other than 1 is
    integrated. Under an improper cavity of z nothing can be normalised (``Phi`` tends to 1 on one side), and the
    message is uniform.

    >>> ProbitBernoulli().belief("z", {"z": Gaussian(1.0, 0.5), "y": Bernoulli(1.0)})
    Gaussian(mean 1.1472, variance 0.4293)
    """

    name = "probit_bernoulli"
    how: ClassVar = {"z": "closed form", "y": "closed form"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        z, y = as_message(self, incoming, "z"), as_message(self, incoming, "y")
        m, v, known = cavity_of(z)
        if to == "y":
            if power == 1.0:
                t = m / np.sqrt(1.0 + v)
                log_odds = log_ndtr(t) - log_ndtr(-t)
            else:
                log_odds = _tilt(m, v, power).log_z - _tilt(-m, v, power).log_z
            return Bernoulli.from_log_odds(np.where(known, log_odds, 0.0), strict=False)
        shift, precision = gaussian_site(m, v, _soft_tilt(m, v, y.log_odds, power, mass=False))
        return Gaussian.from_naturals((np.where(known, shift, 0.0), np.where(known, precision, 0.0)))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of y; infinite where the cavity is improper."""
        z, y = as_message(self, incoming, "z"), as_message(self, incoming, "y")
        m, v, known = cavity_of(z)
        return np.where(known, _soft_tilt(m, v, y.log_odds, power).log_z, np.inf)


def _soft_tilt(m: np.ndarray, v: np.ndarray, log_odds: np.ndarray, power: float, mass: bool = True) -> Tilt:
    """The cavity times ``p Phi(z)^power + (1 - p) Phi(-z)^power``; log Z may be NaN where its `mass` is not wanted."""
    if power != 1.0:
        no = _tilt(-m, v, power)
        return mixed(_tilt(m, v, power), no._replace(mean=-no.mean, slope=-no.slope), log_odds, v)
    scale2 = 1.0 + v
    scale = np.sqrt(scale2)
    step = soft_step(m / scale, log_odds, mass)
    mean = m / scale2 + (v / scale) * step.mean  # of z, given a step in z + noise
    return Tilt(step.log_mass, mean, (1.0 + v * step.variance) / scale2, step.pull / scale, -step.loss / scale2)


def _tilt(m: np.ndarray, v: np.ndarray, power: float) -> Tilt:
    """N(m, v) times ``Phi(z)^power``, by quadrature around the peak (the product is log-concave)."""
    shape = m.shape
    m, v = m.reshape(-1), np.broadcast_to(v, shape).reshape(-1)
    wide = v > _WIDE
    near_m, near_v = np.where(wide, 1.0, m), np.where(wide, 1.0, v)
    parts = [_tilt_rows(near_m[rows], near_v[rows], power) for rows in integral_chunks(m.size)]
    tilt = Tilt(*(np.concatenate(field) for field in zip(*parts, strict=True)))
    if wide.any():
        step = _step_tilt(np.where(wide, m, 1.0), np.where(wide, v, 1.0), power)
        tilt = Tilt(*(np.where(wide, far, near) for far, near in zip(step, tilt, strict=True)))
    return Tilt(*(field.reshape(shape) for field in tilt))


def _step_tilt(m: np.ndarray, v: np.ndarray, power: float) -> Tilt:
    """The same for a cavity so wide that ``Phi^power`` is a step: at the place that leaves its area unchanged."""
    sd = np.sqrt(v)
    cut = tail((m - _step_place(power)) / sd)
    mean = _step_place(power) + sd * cut.mean
    return Tilt(cut.log_mass, mean, cut.variance, cut.hazard / sd, -cut.hazard * cut.mean / v)


@cache
def _step_place(power: float) -> float:
    """The integral of ``[z > 0] - Phi(z)^power`` over z: to second order in 1 / sd the place of the step."""
    x, w = legendre(200)
    far = 10.0 / np.sqrt(min(power, 1.0))  # Phi^power is below exp(-50) from here on, on either side
    missing = np.exp(power * log_ndtr(-far * x)) + np.expm1(power * log_ndtr(far * x))
    return -far * float(w @ missing)


def _tilt_rows(m: np.ndarray, v: np.ndarray, power: float) -> Tilt:
    point = v == 0
    v = np.where(point, 1.0, v)
    z = np.where(m < 0, m / (1.0 + power * v), m)  # below the peak: the slope is convex, so Newton climbs to it
    for _ in range(60):
        h = _hazard(z)
        step = ((m - z) / v + power * h) / (1.0 / v + power * h * (z + h))
        z = z + step
        if np.all(np.abs(step) < 1e-9 * (1.0 + np.abs(z))):
            break
    h = _hazard(z)
    width = 1.0 / np.sqrt(1.0 / v + power * np.maximum(h * (z + h), 0.0))
    # distances from the peak: to the left the factor only bends more, to the right no less than the cavity does
    low, high = -np.sqrt(2.0 * DROP) * width, np.sqrt(2.0 * DROP * v)
    zero = np.zeros_like(low)
    even = [
        split_evenly(low, zero, 4),
        split_evenly(zero, np.minimum(high, 9.0 * width), 4),
        split_evenly(zero, high, 4),
    ]
    panels = Panels(np.concatenate([*even, _BENDS - z[:, None]], axis=1), low, high)
    d, of = panels.x, panels.of
    rest = (m - z) / v  # plus power h, this is rounding
    log_t = power * (log_ndtr(of(z) + d) - of(log_ndtr(z))) + d * (of(rest) - 0.5 * d / of(v))
    log_z = panels.tilt(log_t) + power * log_ndtr(z) - 0.5 * ((z - m) ** 2 / v + LOG_2PI + np.log(v))
    move = panels.integrate(d)
    centred = d - of(move)
    hazard = _hazard(of(z) + d)
    gain = power * (hazard - of(h))
    mean, ratio = z + move, panels.integrate(centred * centred) / v
    slope = power * h + panels.integrate(gain)
    # two forms of one number: over a narrow cavity the hazard hardly changes, over a wide one its own bend is a kink
    narrow = panels.integrate((gain - of(panels.integrate(gain))) ** 2 - power * hazard * (of(z) + d + hazard))
    bend = np.where(v < 0.01, narrow, panels.integrate(centred * gain) / v)
    at = power * _hazard(m)
    return Tilt(
        np.where(point, power * log_ndtr(m), log_z),
        np.where(point, m, mean),
        np.where(point, 1.0, ratio),
        np.where(point, at, slope),
        np.where(point, -at * (m + _hazard(m)), bend),
    )


def _hazard(z: np.ndarray) -> np.ndarray:
    """``d log Phi / dz``."""
    return _ROOT_2_OVER_PI / erfcx(-z * _ROOT_HALF)
