"""Conjugate gradients for many right-hand sides at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from heliograph.numerics.sparse.batched import NotPositiveDefiniteError

__all__ = ["Run", "conjugate_gradients"]

MOST = 2_000  # iterations


class Run(NamedTuple):
    """How a run of conjugate gradients ended."""

    n_iterations: int
    residual: float  # the largest of all columns, relative to its right-hand side


def conjugate_gradients(
    matrix: sparse.csr_array, right: np.ndarray, start: np.ndarray | None, tolerance: float, most: int = MOST
) -> tuple[np.ndarray, Run]:
    """Solve ``matrix x = right`` for the columns of `right`, each to a relative residual of `tolerance`.

    A direction of negative curvature shows that the matrix is not positive definite, and raises.
    """
    x = np.zeros_like(right) if start is None else start.copy()
    rest = right.copy() if start is None else right - matrix @ x
    goal = np.einsum("nc,nc->c", right, right) * tolerance**2
    size = np.einsum("nc,nc->c", rest, rest)
    direction = rest.copy()
    n_iterations = 0
    while (size > goal).any() and n_iterations < most:
        moved = matrix @ direction
        curvature = np.einsum("nc,nc->c", direction, moved)
        active = size > goal
        if not (curvature[active] > 0).all():
            raise NotPositiveDefiniteError("the precision is not positive definite")
        step = np.divide(size, curvature, out=np.zeros_like(size), where=active)
        x += step * direction
        moved *= step
        rest -= moved
        new = np.einsum("nc,nc->c", rest, rest)
        direction *= np.divide(new, size, out=np.zeros_like(size), where=active)
        direction += rest
        size = new
        n_iterations += 1
    relative = np.sqrt(np.divide(size, goal, out=np.zeros_like(size), where=goal > 0)).max(initial=0.0) * tolerance
    return x, Run(n_iterations, float(relative))
