"""Two numbers that are both positive."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.engine.forms.messages import message_from_moments
from heliograph.factors import Factor, Incoming
from heliograph.families import MultivariateGaussian
from heliograph.numerics.quadrant import Quadrant, quadrant

__all__ = ["BothPositive"]


class BothPositive(Factor):
    """``sign0 x0 > 0`` and ``sign1 x1 > 0`` for a vector x of two numbers and signs 1 or -1.

    Where the cavity is no distribution the message is uniform.
    """

    name = "both positive"
    families: ClassVar = {"sign": (), "x": (MultivariateGaussian,)}
    how: ClassVar = {"x": "quadrature"}
    data_ranks: ClassVar = {"sign": 1}
    powers = True  # an indicator is its own power

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> MultivariateGaussian:
        """The message to x."""
        found, sign, good = self._tilted(incoming)
        mean, covariance = sign * found.mean, sign[:, :, None] * sign[:, None, :] * found.covariance
        return message_from_moments(incoming["x"], mean, covariance, good)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability that both hold."""
        x, sign = incoming["x"], np.asarray(incoming["sign"], dtype=float)
        if x.is_point.all():
            return np.where((sign * x.mean > 0).all(axis=1), 0.0, -np.inf)
        found, _, good = self._tilted(incoming)
        return np.where(good, found.log_mass, np.inf)

    def _tilted(self, incoming: Incoming) -> tuple[Quadrant, np.ndarray, np.ndarray]:
        x, sign = incoming["x"], np.asarray(incoming["sign"], dtype=float)
        good = x.proper
        mean = sign * np.where(good[:, None], x.mean, 0.0)
        covariance = sign[:, :, None] * sign[:, None, :] * np.where(good[:, None, None], x.covariance, np.eye(2))
        return quadrant(mean, covariance), sign, good
