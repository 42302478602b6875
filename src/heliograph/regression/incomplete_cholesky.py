"""Pivoted incomplete Cholesky factorisation of a kernel matrix, and kernel ridge regression on it.

The factor is built column by column, each time at the row whose kernel is explained worst, so only the columns of
the chosen rows are ever computed: N r kernel values and O(N r^2) work for rank r.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from heliograph.regression import ridge as ridge_regression

__all__ = ["Factorisation", "KernelRidge", "factorise", "features", "fit", "predict"]


class Factorisation(NamedTuple):
    """``K`` is about ``factor @ factor.T``; rows `pivots` of it are exact."""

    pivots: np.ndarray  # (r,) row numbers in the order chosen
    factor: np.ndarray  # (N, r)
    left: np.ndarray  # (N,) of each row's kernel with itself, what is not explained


class KernelRidge(NamedTuple):
    """Kernel ridge regression in the space spanned by the pivots."""

    pivots: np.ndarray  # (r,)
    corner: np.ndarray  # (r, r) lower triangular: the factor's rows at the pivots
    weights: np.ndarray  # (r, q)


def factorise(
    diagonal: np.ndarray, column: Callable[[int], np.ndarray], rank: int, tolerance: float = 1e-10
) -> Factorisation:
    """Factor a kernel matrix given its diagonal and a function that gives column i.

    Stops at `rank` columns, or when no row has more than `tolerance` times the largest diagonal entry left.

    >>> k = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> f = factorise(np.diag(k), lambda i: k[:, i], rank=2)
    >>> (f.factor @ f.factor.T).round(12)
    array([[2., 1.],
           [1., 2.]])
    """
    left = np.array(diagonal, dtype=float)
    floor = tolerance * float(left.max(initial=0.0))
    factor = np.zeros((len(left), min(rank, len(left))))
    pivots: list[int] = []
    for j in range(factor.shape[1]):
        i = int(np.argmax(left))
        if left[i] <= floor:
            break
        new = (column(i) - factor[:, :j] @ factor[i, :j]) / np.sqrt(left[i])
        new[pivots] = 0.0  # known exactly; rounding would leave 1e-16 and spoil the triangle
        factor[:, j] = new
        left = np.maximum(left - new**2, 0.0)
        left[i] = 0.0
        pivots.append(i)
    return Factorisation(np.array(pivots, dtype=int), factor[:, : len(pivots)], left)


def features(corner: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Feature rows ``(n, r)`` of new points from their kernel ``(n, r)`` with the pivots."""
    return solve_triangular(corner, cross.T, lower=True, check_finite=False).T


def fit(factorisation: Factorisation, targets: np.ndarray, ridge: float) -> KernelRidge:
    """Kernel ridge regression with the factored kernel in place of the full one."""
    weights = ridge_regression.fit(factorisation.factor, targets, ridge)
    return KernelRidge(factorisation.pivots, factorisation.factor[factorisation.pivots], weights)


def predict(model: KernelRidge, cross: np.ndarray) -> np.ndarray:
    """Outputs ``(n, q)`` at points given by their kernel ``(n, r)`` with the pivots."""
    return features(model.corner, cross) @ model.weights
