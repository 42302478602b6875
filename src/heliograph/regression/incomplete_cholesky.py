"""Pivoted incomplete Cholesky factorisation of a kernel matrix: its rows are features for a ridge regression.

The factor is built column by column, each time at the row whose kernel is explained worst, so only the columns of
the chosen rows are ever computed: N r kernel values and O(N r^2) work for rank r.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

__all__ = ["Factorisation", "factorise", "features"]


class Factorisation(NamedTuple):
    """``K`` is about ``factor @ factor.T``; rows `pivots` of it are exact."""

    pivots: np.ndarray  # (r,) row numbers in the order chosen
    factor: np.ndarray  # (N, r)
    left: np.ndarray  # (N,) of each row's kernel with itself, what is not explained


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
