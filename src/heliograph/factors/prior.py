"""A fixed message on one variable: a prior when it is a proper distribution, soft evidence otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.line import gaussian_overlap
from heliograph.factors.plane import vector_overlap
from heliograph.families import EVERY_FAMILY, Family, Gaussian, MultivariateGaussian

__all__ = ["Prior", "log_overlap"]


def log_overlap(a: Family, b: Family) -> np.ndarray:
    """``log`` of the integral of the product of two messages, each normalised where it can be; infinite where it diverges.

    >>> from heliograph.families import Gaussian
    >>> float(log_overlap(Gaussian(0.0, 1.0), Gaussian(0.0, 1.0)))  # N(0; 0, 2)
    -1.2655121234846454
    """
    closed_form = _CLOSED_FORMS.get(type(a))
    if closed_form is not None and type(a) is type(b):
        return closed_form(a, b)
    plain = Family.__mul__(_plain(a), _plain(b))
    log_z = plain.log_normaliser() - a.log_normaliser() - b.log_normaliser()
    if not plain.discrete:
        # Bayes' rule at the mean of the product, where the Gamma functions of large parameters cancel in the densities
        log_z = np.where(plain.proper, log_z, np.inf)
        x = np.where(plain.proper[..., None] if plain.point_rank else plain.proper, plain.mean, plain.somewhere())
        at_mean = _plain(a).log_density(x) + _plain(b).log_density(x) - plain.log_density(x)
        log_z = np.where(np.isfinite(at_mean) & plain.proper, at_mean, log_z)
    for one, other in ((a, b), (b, a)):
        if one.point is not None:
            at = one.is_point
            safe = np.where(at[..., None] if one.point_rank else at, one.point, one.somewhere())
            log_z = np.where(at, other.log_density(safe), log_z)  # type: ignore[attr-defined]
    return log_z


_CLOSED_FORMS: dict[type[Family], Callable[..., np.ndarray]] = {
    Gaussian: gaussian_overlap,
    MultivariateGaussian: vector_overlap,
}


def _plain(m: Family) -> Family:
    return m.from_naturals(m.naturals)


class Prior(Factor):
    """``f(x) = message(x)``: sends the same message whatever comes in."""

    name = "prior"
    families: ClassVar = {"x": EVERY_FAMILY}
    how: ClassVar = {"x": "closed form"}
    ignores_own = ("x",)

    def __init__(self, message: Family | None = None) -> None:
        self.fixed = message  # one entry per element of the plate

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The fixed message itself."""
        if self.fixed is None:
            raise ValueError("this Prior holds no message; make it with Prior(message)")
        return self.fixed

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of the fixed message, repeated as often as the plate is."""
        fixed = self.message("x", incoming)
        given = fixed[np.arange(incoming["x"].size) % fixed.size]
        return given.sample(rng), given.mean, given.variance

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of the fixed message times the incoming one."""
        if self.fixed is None:
            raise ValueError("this Prior holds no message; make it with Prior(message)")
        return log_overlap(self.fixed, incoming["x"])
