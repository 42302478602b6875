"""From the moments of a tilted distribution to messages on vectors and numbers."""

from __future__ import annotations

import numpy as np

from heliograph.families import Gaussian, MultivariateGaussian
from heliograph.numerics.triangular import cholesky, gram, inverse_of_lower

__all__ = ["as_wide_as", "message_from_moments", "proper_moments", "scalar_message_from_moments"]


def proper_moments(cavity: MultivariateGaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where a cavity is a distribution with a density, and its mean and covariance there (0 and 1 elsewhere)."""
    good = cavity.proper & ~cavity.is_point
    mean = np.where(good[:, None], cavity.mean, 0.0)
    return good, mean, np.where(good[:, None, None], cavity.covariance, np.eye(cavity.dimension))


def as_wide_as(mask: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A mask of rows with as many axes as a statistic of them has."""
    return mask.reshape(mask.shape + (1,) * (np.ndim(like) - 1))


def message_from_moments(
    cavity: MultivariateGaussian, mean: np.ndarray, covariance: np.ndarray, good: np.ndarray
) -> MultivariateGaussian:
    """Belief of these moments over cavity; uniform where not `good`, NaN where the covariance is none."""
    definite, lower = cholesky(0.5 * (covariance + np.swapaxes(covariance, 1, 2)))
    precision = gram(inverse_of_lower(lower))
    shift = np.einsum("nij,nj->ni", precision, mean)
    naturals: list[np.ndarray] = []
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
