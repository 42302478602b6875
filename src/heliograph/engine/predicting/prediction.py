"""What a posterior predicts of a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heliograph.families.reading import Interval, central_interval, wanted_quantiles
from heliograph.families.tables import brief
from heliograph.numerics.checks import as_real

__all__ = ["Prediction", "joined_predictions"]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Draws of a variable under the posterior, with its mean and variance.

    Attributes
    ----------
    samples
        The draws, of shape ``(draws, *shape)``; one more axis for vectors.
    mean, variance
        Averages over the draws of the mean and variance given the parents, so they are more accurate than those of `samples`.
        Of categories, the probabilities.
    """

    samples: np.ndarray
    mean: np.ndarray
    variance: np.ndarray

    @property
    def sd(self) -> np.ndarray:
        """The standard deviation."""
        return np.sqrt(self.variance)

    def quantile(self, q: Any) -> np.ndarray:
        """Quantiles of the draws, of shape ``(*q.shape, *shape)``."""
        q = wanted_quantiles(q)
        return np.quantile(self.samples, q, axis=0)

    def interval(self, probability: float = 0.9) -> Interval:
        """The central interval that holds this share of the draws."""
        return central_interval(self.quantile, probability)

    def cdf(self, x: Any) -> np.ndarray:
        """The share of the draws that are at most `x`."""
        return np.mean(self.samples <= as_real("cdf: x", x), axis=0)

    def __repr__(self) -> str:
        return f"Prediction(mean {brief(self.mean)}, sd {brief(self.sd)}, {len(self.samples)} draws)"


def joined_predictions(parts: Sequence[Prediction]) -> Prediction:
    """The draws of several predictions as one: each counts as often as it was drawn."""
    share = np.array([len(p.samples) for p in parts]) / sum(len(p.samples) for p in parts)
    mean = np.tensordot(share, np.stack([p.mean for p in parts]), axes=1)
    second = np.stack([p.variance + (p.mean - mean) ** 2 for p in parts])
    return Prediction(np.concatenate([p.samples for p in parts]), mean, np.tensordot(share, second, axes=1))
