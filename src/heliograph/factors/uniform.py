"""A uniform distribution between fixed bounds, of a variable with Gaussian messages: closed form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.constraints import Between
from heliograph.factors.incoming import as_data, as_message
from heliograph.families import Bernoulli, Family, Gaussian

__all__ = ["Uniform"]


class Uniform(Factor):
    """``1 / (upper - lower)`` between the bounds, and 0 elsewhere; a Gaussian message is cut at the bounds.

    >>> Uniform().message("x", {"lower": 0.0, "upper": 6.0, "x": Gaussian.uniform()})
    Gaussian(mean 3., variance 3.)
    """

    name = "uniform"
    families: ClassVar = {"lower": (), "upper": (), "x": (Gaussian,)}
    how: ClassVar = {"x": "closed form"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The message to x: what cutting does to the cavity."""
        return Between().message("x", self._inside(incoming))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values between the bounds."""
        inside = self._inside(incoming)
        low, high = inside["lower"], inside["upper"]
        return rng.uniform(low, high), 0.5 * (low + high), (high - low) ** 2 / 12.0

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the mass of the message between the bounds, over their distance."""
        inside = self._inside(incoming)
        log_width = np.log(inside["upper"] - inside["lower"])
        return np.where(inside["x"].is_uniform, 0.0, Between().log_z(inside) - log_width)

    def _inside(self, incoming: Incoming) -> dict:
        x = as_message(self, incoming, "x")
        bounds = {p: np.broadcast_to(as_data(self, incoming, p), x.shape) for p in ("lower", "upper")}
        return {"x": x, **bounds, "y": Bernoulli.point_mass(np.ones(x.shape))}
