"""Student's t noise of known scale and degrees of freedom, by quadrature over the precision that it is a mixture of."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.gaussian_precision import GaussianPrecision
from heliograph.factors.incoming import as_data, as_plate
from heliograph.families import Family, Gamma, Gaussian

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
        """``log`` of the integral over both ends."""
        return GaussianPrecision().log_z(self._mixture(incoming))

    def _mixture(self, incoming: Incoming) -> dict[str, Family]:
        x, mean = as_plate(self, incoming, ("x", "mean"))
        scale, dof = (np.broadcast_to(as_data(self, incoming, p), x.shape) for p in ("scale", "dof"))
        return {"x": x, "mean": mean, "precision": Gamma.from_naturals((0.5 * dof - 1.0, 0.5 * dof * scale**2))}
