"""Gaussian noise of unknown precision: ``x ~ N(mean, 1 / precision)``, by quadrature over the log of the precision.

Given the precision tau everything is conjugate: x - mean meets a Gaussian N(d, s) and tau has the tilted density
``Gamma(tau) N(d; 0, s + 1/tau)``, which has one or two modes. Its stationary points are the roots of a cubic.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message, as_plate
from heliograph.factors.integrals.precision import tilt_of_precision
from heliograph.factors.line import add_noise
from heliograph.factors.mean_field import expected, precision_from_squares, with_expected_noise
from heliograph.families import Family, Gamma, Gaussian

__all__ = ["GaussianPrecision"]


class GaussianPrecision(Factor):
    """``N(x; mean, 1 / precision)`` with any of the three unknown.

    Exact where the precision, or both x and mean, are point masses, or x or mean is uniform. Where an incoming message
    leaves no normalisable tilted distribution (an improper x or mean beside an unknown precision, or a precision of
    too heavy a tail for x to have a variance) the message sent is uniform.
    """

    name = "gaussian_precision"
    families: ClassVar = {"mean": (Gaussian,), "precision": (Gamma,), "x": (Gaussian,)}
    how: ClassVar = {"mean": "quadrature over precision", "precision": "quadrature", "x": "quadrature over precision"}
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity, without the loss of a division where the target is Gaussian."""
        x, mean, precision = as_plate(self, incoming, ("x", "mean", "precision"))
        if to == "precision":
            return self._to_precision(x, mean, precision, power)
        target, other = (x, mean) if to == "x" else (mean, x)
        tilt = tilt_of_precision(x, mean, precision, power)
        mixed = tilt.mixed(target, other, power)
        sent = mixed.message(target, tilt.valid)
        return _known_precision(other, precision, power).where(precision.is_point, sent)

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The projection of the tilted distribution: mean and variance, or E precision and E log precision."""
        x, mean, precision = as_plate(self, incoming, ("x", "mean", "precision"))
        if to == "precision":
            return self._to_precision(x, mean, precision, power) * precision
        target, other = (x, mean) if to == "x" else (mean, x)
        tilt = tilt_of_precision(x, mean, precision, power)
        belief = tilt.mixed(target, other, power).belief(target, tilt.valid)
        if not np.any(precision.is_point):
            return belief
        known = _known_precision(other, precision, power) * target
        return known.where(precision.is_point, belief)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral over all three; infinite where there is none."""
        x, mean, precision = as_plate(self, incoming, ("x", "mean", "precision"))
        return tilt_of_precision(x, mean, precision, power).log_z

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Family:
        """x and mean as under the expected precision; the precision as from the expected square of their difference."""
        x, mean = as_plate(self, incoming, ("x", "mean"))
        tau = expected(as_message(self, beliefs, "precision"))
        if to == "precision":
            return precision_from_squares(x, mean, tau)
        return with_expected_noise(mean if to == "x" else x, tau)

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """Its own port too, unless the precision, or for the precision both others, are point masses."""
        others = frozenset(self.ports) - {to}
        exact = "precision" in points if to != "precision" else {"x", "mean"} <= points
        return others if exact else frozenset(self.ports)

    def _to_precision(self, x: Gaussian, mean: Gaussian, precision: Gamma, power: float) -> Gamma:
        tilt = tilt_of_precision(x, mean, precision, power)
        own = precision.naturals
        # a message of rate 0 gives tau no mean
        soft = tilt.valid & ~precision.is_point & ~tilt.silent & (own[1] > 0)
        belief = Gamma.from_mean_and_log_gap(
            np.where(soft, tilt.mean, 1.0), np.where(soft, tilt.log_gap, 1.0), strict=False
        )
        half, rate = np.where(soft, belief.naturals[0] - own[0], 0.0), np.where(soft, belief.naturals[1] - own[1], 0.0)
        # x and mean known: the conjugate message, which never looks at its own port
        known = x.is_point & mean.is_point
        d = np.where(known, x.mean - mean.mean, 0.0)
        half, rate = np.where(known, 0.5 * power, half), np.where(known, 0.5 * power * d**2, rate)
        return Gamma.from_naturals((half, rate))


def _known_precision(other: Gaussian, precision: Gamma, power: float) -> Gaussian:
    at = precision.is_point
    return add_noise(other, 1.0 / np.where(at, precision.mean, 1.0) / power)
