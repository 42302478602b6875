"""Laplace noise of a fixed scale, closed form: an outlier pulls by 1 / scale and no more."""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_plate
from heliograph.factors.integrals.tilt import Tilt, cavity_of, gaussian_site
from heliograph.families import Gaussian
from heliograph.numerics.truncated_normal import log_hazard, tail

__all__ = ["LaplaceFactor"]


class LaplaceFactor(Factor):
    """``exp(-|x - mean| / scale) / (2 scale)``; beside a uniform or improper other end it sends nothing.

    >>> incoming = {"mean": Gaussian([0.0], 0.0), "scale": np.array([2.0]), "x": Gaussian([3.0], 4.0)}
    >>> x, step = np.linspace(-30, 36, 66001, retstep=True)
    >>> p = np.exp(-np.abs(x) / 2 - (x - 3) ** 2 / 8) / 4 / np.sqrt(8 * np.pi)
    >>> np.allclose(np.exp(LaplaceFactor().log_z(incoming)), p.sum() * step)
    True
    """

    name = "laplace"
    families: ClassVar = {"mean": (Gaussian,), "scale": (), "x": (Gaussian,)}
    how: ClassVar = {"mean": "closed form", "x": "closed form"}
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """The message to either end: the factor is symmetric, and only their difference counts."""
        b = as_data(self, incoming, "scale") / power  # Laplace^power is Laplace of scale / power, up to a constant
        own, other = as_plate(self, incoming, ("x", "mean") if to == "x" else ("mean", "x"))
        (m, v, known), (n, w, there) = cavity_of(own), cavity_of(other)
        tilt = _tilt(m - n, v + w, b)
        ratio = np.where(v > 0, (w + v * tilt.ratio) / (v + w), 1.0)
        shift, precision = gaussian_site(m, v, tilt._replace(mean=m + v * tilt.slope, ratio=ratio))
        flat = np.where(own.is_uniform & there, 1.0 / (w + 2.0 * b**2), 0.0)  # the variance of x itself
        both = known & there
        return Gaussian.from_naturals((np.where(both, shift, n * flat), np.where(both, precision, flat)))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values around the mean."""
        mean, scale = incoming["mean"].mean, as_data(self, incoming, "scale")
        return rng.laplace(mean, scale), mean, np.broadcast_to(2.0 * scale**2, mean.shape)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log E Laplace(x - mean)``; infinite where an end is improper, or both are uniform."""
        scale, (mean, x) = as_data(self, incoming, "scale"), as_plate(self, incoming, ("mean", "x"))
        (m, v, known), (n, w, there), b = cavity_of(mean), cavity_of(x), scale / power
        silent = np.where((mean.is_uniform & there) | (x.is_uniform & known), 0.0, np.inf)
        return np.where(known & there, _tilt(m - n, v + w, b).log_z, silent) + np.log(2 * b) - power * np.log(2 * scale)


def _tilt(mu: np.ndarray, v: np.ndarray, b: np.ndarray) -> Tilt:
    """N(mu, v) times ``exp(-|d| / b) / (2 b)``: one Gaussian above 0 and one below, each moved towards it by v / b."""
    s = np.maximum(np.sqrt(v), 1e-100 * b)  # a point mass is the limit of narrow messages
    sign, far, c = np.where(mu < 0, -1.0, 1.0), np.abs(mu) / s, s / b  # with the likelier side above
    t, down = far - c, tail(-far - c)
    up, log_up = tail(t), log_hazard(t)
    odds = np.log(down.hazard) - log_up  # both sides have one density at 0, so these are their masses
    above, below = expit(odds), expit(-odds)
    height = np.where(t > 0, up.log_mass + c * (0.5 * c - far), -0.5 * (far**2 + np.log(2 * np.pi)) - log_up)
    mean = above * up.mean - below * down.mean
    ratio = above * up.variance + below * down.variance + above * below * (up.mean + down.mean) ** 2
    near = np.abs(ratio - 1.0) < 0.1  # where the belief is nearly the cavity only the derivatives keep their digits
    slope = np.where(near, (below - above) / b, (mean - far) / s)
    bend = np.where(near, 2.0 / b * below * (2.0 * above / b - down.hazard / s), (ratio - 1.0) / s**2)
    return Tilt(height + np.log1p(np.exp(-odds)) - np.log(2.0 * b), sign * s * mean, ratio, sign * slope, bend)
