# pyright: basic
"""Forms of factors with one vector port in place of several scalar ones, where a factor has such a form."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from heliograph.factors import Factor, Incoming
from heliograph.factors.black_box import BlackBox, joint_box
from heliograph.families import MultivariateGaussian
from heliograph.graph.records import Graph, Plate
from heliograph.numerics.quadrant import Quadrant, quadrant
from heliograph.numerics.triangular import cholesky, gram, inverse_of_lower

__all__ = ["BothPositive", "Form", "joint_form"]


class Form(NamedTuple):
    """A factor with a vector port."""

    factor: Factor
    port: str


def joint_form(graph: Graph, plate: Plate, ports: tuple[str, ...]) -> Form | None:
    """The factor of a plate with the scalars at some ports as one vector; None where it has no such form."""
    if isinstance(plate.factor, BlackBox):
        return _of_box(plate.factor, ports)
    return None


def _of_box(box: BlackBox, ports: tuple[str, ...]) -> Form | None:
    if box.child in ports:
        return None  # an output that is joint with its inputs: the oracles know vectors of inputs only
    form = joint_box(box, ports)
    return Form(form, form.port)


class BothPositive(Factor):
    """``sign0 x0 > 0`` and ``sign1 x1 > 0`` for a vector x of two numbers and signs 1 or -1.

    Where the cavity is no distribution the message is uniform.
    """

    name = "both positive"
    ports = ("sign", "x")
    families: ClassVar = {"sign": (), "x": (MultivariateGaussian,)}
    how: ClassVar = {"x": "quadrature"}
    data_ranks: ClassVar = {"sign": 1}
    powers = True  # an indicator is its own power

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> MultivariateGaussian:
        """The message to x."""
        self.check_port(to)
        found, sign, good = self._tilted(incoming)
        mean, covariance = sign * found.mean, sign[:, :, None] * sign[:, None, :] * found.covariance
        return message_from_moments(incoming["x"], mean, covariance, good)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability that both hold."""
        found, _, good = self._tilted(incoming)
        return np.where(good, found.log_mass, np.inf)

    def _tilted(self, incoming: Incoming) -> tuple[Quadrant, np.ndarray, np.ndarray]:
        x, sign = incoming["x"], np.asarray(incoming["sign"], dtype=float)
        good = x.proper
        mean = sign * np.where(good[:, None], x.mean, 0.0)
        covariance = sign[:, :, None] * sign[:, None, :] * np.where(good[:, None, None], x.covariance, np.eye(2))
        return quadrant(mean, covariance), sign, good


def message_from_moments(
    cavity: MultivariateGaussian, mean: np.ndarray, covariance: np.ndarray, good: np.ndarray
) -> MultivariateGaussian:
    """Belief of these moments over cavity; uniform where not `good`, NaN where the covariance is none."""
    definite, lower = cholesky(0.5 * (covariance + np.swapaxes(covariance, 1, 2)))
    precision = gram(inverse_of_lower(lower))
    shift = np.einsum("nij,nj->ni", precision, mean)
    naturals = []
    for new, old in zip((shift, precision), cavity.naturals, strict=True):
        axes = (slice(None), *[None] * (new.ndim - 1))
        naturals.append(np.where(good[axes], np.where(definite[axes], new - old, np.nan), 0.0))
    return MultivariateGaussian.from_naturals(tuple(naturals))
