"""Points of a standard Gaussian in several dimensions: even grids, and a low-discrepancy sequence with exact moments."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import ndtri

__all__ = ["even_grid", "spread_points"]


@cache
def even_grid(d: int, n: int, reach: float) -> np.ndarray:
    """An even grid of n points a dimension from -reach to reach, ``(n^d, d)``.

    The trapezoidal rule on it converges geometrically for analytic functions that vanish at its ends.
    """
    axis = np.linspace(-reach, reach, n)
    return np.stack([g.ravel() for g in np.meshgrid(*(axis,) * d, indexing="ij")], axis=1)


@cache
def spread_points(d: int, n: int) -> np.ndarray:
    """2 n points of a standard Gaussian, ``(2 n, d)``: a Kronecker sequence, mirrored, with mean 0 and covariance 1 exactly.

    The steps are powers of the root of ``x^(d + 1) = x + 1``, which is the golden ratio for one dimension.
    """
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (d + 1))
    steps = root ** -np.arange(1.0, d + 1.0)
    x = ndtri((0.5 + np.arange(1, n + 1)[:, None] * steps) % 1.0)
    x = np.concatenate([x, -x])
    covariance = x.T @ x / len(x)
    return x @ np.linalg.inv(np.linalg.cholesky(covariance)).T
