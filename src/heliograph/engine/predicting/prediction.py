"""What a posterior predicts of a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.reading import Interval
from heliograph.families.tables import brief
from heliograph.numerics.checks import as_real, short

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
        q = as_real("quantile: q", q)
        if not ((q >= 0) & (q <= 1)).all():
            raise ModelError(f"a quantile is asked for a probability between 0 and 1, not {short(q)}")
        return np.quantile(self.samples, q, axis=0)

    def interval(self, probability: float = 0.9) -> Interval:
        """The central interval that holds this share of the draws."""
        if not 0 < probability < 1:
            raise ModelError(f"an interval holds a probability between 0 and 1, not {probability!r}")
        return Interval(*self.quantile([(1 - probability) / 2, (1 + probability) / 2]))

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
