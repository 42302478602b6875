"""Gaussian values that were recorded only where they lie between two bounds, by quadrature."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from heliograph.factors.base import Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.integrals.log_concave import log_concave_tilt
from heliograph.factors.integrals.tilt import Tilt
from heliograph.factors.scores import OfScore, Rows
from heliograph.families import Gaussian
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.truncated_normal import Interval, interval, tail

__all__ = ["TruncatedGaussian"]


class TruncatedGaussian(OfScore):
    """``N(x; z, variance) / P(lower < N(z, variance) < upper)``: x was seen because it is between the bounds.

    As a function of z it is log-concave: its curvature is less than that of a Gaussian by what the bounds leave of the variance.

    >>> f, rows = TruncatedGaussian(), {"variance": 1.0, "lower": 0.0, "upper": np.inf, "x": 0.5}
    >>> exact = np.exp(-0.5 * 0.5**2) / np.sqrt(2 * np.pi) / 0.5
    >>> bool(np.isclose(np.exp(f.log_z({"z": Gaussian(0.0, 0.0), **rows})), exact))
    True
    """

    name = "truncated_gaussian"
    families: ClassVar = {"z": (Gaussian,), "variance": (), "lower": (), "upper": (), "x": ()}
    how: ClassVar = {"z": "quadrature"}

    def tilt(self, m: np.ndarray, v: np.ndarray, rows: Rows, power: float) -> Tilt:
        """By the moments of the cut Gaussian at every z."""
        noise, low, high, x = rows["variance"], rows["lower"], rows["upper"], rows["x"]

        def curve(z: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            s = noise[k]
            cut = _cut(z, *(np.broadcast_to(a[k], z.shape) for a in (noise, low, high)))
            log_f = -0.5 * ((x[k] - z) ** 2 / s + LOG_2PI + np.log(s)) - cut.log_mass
            return power * log_f, power * (x[k] - cut.mean) / s, -power * cut.variance / s**2

        return log_concave_tilt(m, v, curve)

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values between the bounds, by inverting the distribution function."""
        z = as_message(self, incoming, "z").mean
        noise, low, high = (
            np.broadcast_to(as_data(self, incoming, p), z.shape) for p in ("variance", "lower", "upper")
        )
        cut = _cut(z, noise, low, high)
        sd = np.sqrt(noise)
        a, b = (low - z) / sd, (high - z) / sd
        sign = np.where(a > 0, -1.0, 1.0)  # the side whose probabilities keep their digits
        a, b = np.where(a > 0, -b, a), np.where(a > 0, -a, b)
        u, log_b = rng.random(z.shape), log_ndtr(b)
        drawn = ndtri_exp(log_b + np.log(u + (1.0 - u) * np.exp(log_ndtr(a) - log_b)))
        return z + sd * sign * drawn, cut.mean, cut.variance


def _cut(z: np.ndarray, noise: np.ndarray, low: np.ndarray, high: np.ndarray) -> Interval:
    """``N(z, noise)`` between the bounds, in closed form where all have one bound only."""
    for one, other, sign in ((low, high, 1.0), (high, low, -1.0)):
        if np.isinf(other).all() and np.isfinite(one).all():
            sd = np.sqrt(noise)
            cut = tail(sign * (z - one) / sd)
            return Interval(cut.log_mass, one + sign * sd * cut.mean, noise * cut.variance)
    flat = (a.reshape(-1) for a in (low, high, z / noise, 1.0 / noise))
    return Interval(*(a.reshape(z.shape) for a in interval(*flat)))
