# pyright: basic
"""From the moments of a tilted distribution to messages on vectors and numbers."""

from __future__ import annotations

import numpy as np

from heliograph.families import Gaussian, MultivariateGaussian
from heliograph.numerics.triangular import cholesky, gram, inverse_of_lower

__all__ = ["message_from_moments", "scalar_message_from_moments"]


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


def scalar_message_from_moments(cavity: Gaussian, mean: np.ndarray, variance: np.ndarray, good: np.ndarray) -> Gaussian:
    """The same for numbers."""
    shift, precision = cavity.naturals
    safe = np.where(variance > 0, variance, np.nan)
    naturals = np.where(good, mean / safe - shift, 0.0), np.where(good, 1.0 / safe - precision, 0.0)
    return Gaussian.from_naturals(naturals)
