"""An ordered category between two uncertain cut points, under logistic noise: one site for both bounds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import expit, log_expit

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.between_cuts import between_tilt
from heliograph.factors.integrals.vector_tilt import VectorCavity, vector_cavity, vector_site
from heliograph.families import MultivariateGaussian

__all__ = ["BetweenCuts"]


class BetweenCuts(Factor):
    """``sigmoid(a) - sigmoid(-b)`` for a vector (a, b), and 0 where ``a + b <= 0``.

    With a the score less the lower cut, and b the upper cut less the score, it is the probability that the score with logistic
    noise falls between them. Where the cavity is no distribution the message is uniform.

    >>> ends = MultivariateGaussian(np.array([[1.0, 2.0]]), 1e-6 * np.eye(2)[None])
    >>> bool(np.isclose(np.exp(BetweenCuts().log_z({"ends": ends}))[0], expit(1.0) - expit(-2.0)))
    True
    """

    name = "between_cuts"
    families: ClassVar = {"ends": (MultivariateGaussian,)}
    how: ClassVar = {"ends": "quadrature"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> MultivariateGaussian:
        """The message to (a, b)."""
        ends, cavity = _read(self, incoming)
        shift, precision = np.zeros(ends.naturals[0].shape), np.zeros(ends.naturals[1].shape)
        soft = np.flatnonzero(cavity.known & ~cavity.point)
        if soft.size:
            part = VectorCavity(*(a[soft] for a in cavity))
            shift[soft], precision[soft] = vector_site(part, between_tilt(part))
        at = np.flatnonzero(cavity.point)
        if at.size:
            _, slope, bend = _at_point(cavity.mean[at])
            shift[at], precision[at] = slope - np.einsum("nij,nj->ni", bend, cavity.mean[at]), -bend
        return MultivariateGaussian.from_naturals((shift, precision)).reshape(incoming["ends"].shape)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the interval; infinite under a cavity that is no distribution."""
        _, cavity = _read(self, incoming)
        log_z = np.where(cavity.known, 0.0, np.inf)
        soft, at = np.flatnonzero(cavity.known & ~cavity.point), np.flatnonzero(cavity.point)
        if soft.size:
            log_z[soft] = between_tilt(VectorCavity(*(a[soft] for a in cavity))).log_z
        if at.size:
            log_z[at] = _at_point(cavity.mean[at])[0]
        return log_z.reshape(incoming["ends"].shape)


def _read(factor: Factor, incoming: Incoming) -> tuple[MultivariateGaussian, VectorCavity]:
    ends = as_message(factor, incoming, "ends")
    flat: MultivariateGaussian = ends.reshape((ends.size,))  # type: ignore[assignment]
    return flat, vector_cavity(flat)


def _at_point(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``log`` of the factor at (a, b), its slope (n, 2) and curvature (n, 2, 2); silent where the cuts are out of order."""
    width = x.sum(axis=1)
    right = width > 0
    w = np.where(right, width, 1.0)
    log_f = log_expit(x).sum(axis=1) + np.log(-np.expm1(-w))
    odds = 1.0 / np.expm1(np.minimum(w, 700.0))
    slope = expit(-x) + odds[:, None]
    bend = -(expit(x) * expit(-x))[:, :, None] * np.eye(2) - (odds * (1.0 + odds))[:, None, None]
    return (
        np.where(right, log_f, -np.inf),
        np.where(right[:, None], slope, 0.0),
        np.where(right[:, None, None], bend, 0.0),
    )
