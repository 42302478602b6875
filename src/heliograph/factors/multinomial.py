"""Counts of several categories with Dirichlet probabilities, closed form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import gammaln, xlogy

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.families import Dirichlet, Family

__all__ = ["Multinomial"]


class Multinomial(Factor):
    """``n! / prod count! prod p^count``, counts of K categories as data; NaN counts are missing and say nothing.

    >>> Multinomial().belief("p", {"p": Dirichlet([1.0, 1.0, 2.0]), "counts": np.array([3.0, 0.0, 1.0])})
    Dirichlet(concentration [4., 1., 3.])
    """

    name = "multinomial"
    families: ClassVar = {"p": (Dirichlet,), "counts": ()}
    data_ranks: ClassVar = {"counts": 1}
    how: ClassVar = {"p": "closed form"}
    ignores_own = ("p",)
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The message to p: categories counted."""
        p, counts, _ = self._read(incoming)
        return Dirichlet.from_naturals((np.broadcast_to(power * counts, p.naturals[0].shape),))

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Counts of as many as were observed, given the probabilities."""
        p, counts, _ = self._read(incoming)
        total = counts.sum(axis=-1).astype(int)
        mean = total[..., None] * p.mean
        return rng.multinomial(total, p.mean).astype(float), mean, mean * (1.0 - p.mean)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the counts."""
        p, counts, missing = self._read(incoming)
        constant = power * (gammaln(counts.sum(axis=-1) + 1.0) - gammaln(counts + 1.0).sum(axis=-1))
        belief = Dirichlet.from_naturals((p.naturals[0] + power * counts,))
        rise = np.where(belief.proper, belief.log_normaliser() - np.where(p.proper, p.log_normaliser(), 0.0), np.inf)
        if p.point is not None:
            at = np.where(p.is_point[..., None], p.point, 1.0)
            rise = np.where(p.is_point, power * xlogy(counts, at).sum(axis=-1), rise)
        return np.where(missing, 0.0, constant + rise)

    def _read(self, incoming: Incoming) -> tuple[Dirichlet, np.ndarray, np.ndarray]:
        p, counts = as_message(self, incoming, "p"), as_data(self, incoming, "counts")
        counts = np.broadcast_to(counts, (*p.shape, counts.shape[-1]))
        missing = np.asarray(np.isnan(counts).any(axis=-1))
        return p, np.where(missing[..., None], 0.0, counts), missing
