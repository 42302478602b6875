"""Student's t noise of known scale and degrees of freedom, by quadrature over the precision that it is a mixture of."""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np
from scipy.special import digamma, gammaln

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.gaussian_precision import GaussianPrecision
from heliograph.factors.incoming import as_data, as_plate
from heliograph.factors.integrals.precision import TiltOfPrecision, tilt_of_precision
from heliograph.families import Family, Gamma, Gaussian
from heliograph.numerics.remembering import same_again

__all__ = ["StudentT"]


class StudentT(Factor):
    """``t((x - mean) / scale; dof) / scale``: Gaussian noise whose precision is Gamma(dof / 2, dof scale^2 / 2).

    Outliers pull less and less the farther they are, so a tilted distribution may have two modes, and a message may be
    improper. Beside a uniform end the other learns the variance of t, which has one for more than two degrees of freedom.

    >>> from scipy.stats import t
    >>> incoming = {"mean": Gaussian(0.0, 0.0), "scale": 2.0, "dof": 4.0, "x": Gaussian.point_mass(3.0)}
    >>> bool(np.isclose(StudentT().log_z(incoming), t.logpdf(3.0, 4.0, 0.0, 2.0)))
    True
    """

    name = "student_t"
    families: ClassVar = {"mean": (Gaussian,), "scale": (), "dof": (), "x": (Gaussian,)}
    how: ClassVar = {"mean": "quadrature over precision", "x": "quadrature over precision"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The message to either end, as from a Gaussian whose precision has its prior."""
        return GaussianPrecision().message(to, self._mixture(incoming))

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The projected tilted distribution of either end."""
        return GaussianPrecision().belief(to, self._mixture(incoming))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values around the mean; of two degrees of freedom or less the variance is infinite."""
        mean, scale, dof = incoming["mean"].mean, as_data(self, incoming, "scale"), as_data(self, incoming, "dof")
        spread = np.where(dof > 2, scale**2 * dof / np.where(dof > 2, dof - 2.0, 1.0), np.inf)
        return mean + scale * rng.standard_t(dof, mean.shape), mean, np.broadcast_to(spread, mean.shape)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral over both ends; of two known ones the density."""
        x, mean = as_plate(self, incoming, ("x", "mean"))
        if not (x.is_point & mean.is_point).all():
            return self._tilt(incoming).log_z
        scale, dof = as_data(self, incoming, "scale"), as_data(self, incoming, "dof")
        gap = (x.mean - mean.mean) / scale
        constant = gammaln(0.5 * dof + 0.5) - gammaln(0.5 * dof) - 0.5 * np.log(np.pi * dof) - np.log(scale)
        return constant - 0.5 * (dof + 1.0) * np.log1p(gap**2 / dof)

    def log_z_slopes(self, incoming: Incoming) -> dict[str, np.ndarray]:
        """By the scale and the degrees of freedom: what the Gamma density of the precision changes by, averaged over the tilt."""
        x, mean = as_plate(self, incoming, ("x", "mean"))
        scale, dof = as_data(self, incoming, "scale"), as_data(self, incoming, "dof")
        with np.errstate(all="ignore"):
            tilt = self._tilt(incoming)
            a, b = 0.5 * dof, 0.5 * dof * scale**2
            by_shape = np.log(b) - digamma(a) + np.log(tilt.mean) - tilt.log_gap
            by_rate = a / b - tilt.mean
        there = (x.is_point & mean.is_point) | (tilt.valid & ~tilt.silent)
        slopes = {"scale": dof * scale * by_rate, "dof": 0.5 * (by_shape + scale**2 * by_rate)}
        return {port: np.where(there, s, np.nan) for port, s in slopes.items()}

    def _tilt(self, incoming: Incoming) -> TiltOfPrecision:
        """The integral over the precision; `log_z` and its slopes are asked for one after the other."""
        x, mean, precision = self._mixture(incoming).values()
        arrays = [a for m in (x, mean, precision) for a in (*m.naturals, m.point)]
        return same_again(
            "Student's tilt",
            lambda: tilt_of_precision(cast(Gaussian, x), cast(Gaussian, mean), cast(Gamma, precision)),
            *arrays,
        )

    def _mixture(self, incoming: Incoming) -> dict[str, Family]:
        x, mean = as_plate(self, incoming, ("x", "mean"))
        scale, dof = (np.broadcast_to(as_data(self, incoming, p), x.shape) for p in ("scale", "dof"))
        return {"x": x, "mean": mean, "precision": Gamma.from_naturals((0.5 * dof - 1.0, 0.5 * dof * scale**2))}
