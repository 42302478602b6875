"""Ridge regression with leave-one-out errors in closed form, over a whole grid from one factorisation.

The ridge is the ratio ``sigma_y^2 / sigma_0^2`` of `bayesian_linear`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.numerics.blas_threads import one_blas_thread

__all__ = ["Spectrum", "fit", "leave_one_out", "spectrum"]


class Spectrum(NamedTuple):
    """A feature matrix and its targets in the matrix's own axes: what every point of a grid shares."""

    left: np.ndarray  # (N, r) left singular vectors
    values2: np.ndarray  # (r,) squared singular values
    right: np.ndarray  # (r, D) right singular vectors
    turned: np.ndarray  # (r, q) targets along the left singular vectors
    outside: np.ndarray  # (N, q) the part of the targets that no weights can reach
    free: np.ndarray  # (N,) of each row, the share outside the span


def spectrum(x: np.ndarray, y: np.ndarray) -> Spectrum:
    """Factor a feature matrix ``(N, D)`` once for a whole grid of ridges."""
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float).reshape(len(x), -1)
    with one_blas_thread():
        if len(x) > x.shape[1]:
            q, r = np.linalg.qr(x)
            u, s, vt = np.linalg.svd(r, full_matrices=False)
            left = q @ u
            outside = y - left @ (left.T @ y)
            free = np.maximum(1 - (left**2).sum(1), 0.0)  # rounding may leave -1e-16
        else:
            left, s, vt = np.linalg.svd(x, full_matrices=False)
            outside, free = np.zeros_like(y), np.zeros(len(x))  # as many features as rows reach every target
        return Spectrum(left, s**2, vt, left.T @ y, outside, free)


def fit(x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Weights ``(D, q)`` that minimise ``||y - x w||^2 + ridge ||w||^2``.

    >>> fit(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]), ridge=2.0)
    array([[1.]])
    """
    s = spectrum(x, y)
    return s.right.T @ ((np.sqrt(s.values2) / (s.values2 + ridge))[:, None] * s.turned)


def leave_one_out(s: Spectrum, ridge: float) -> np.ndarray:
    """Residual ``(N, q)`` of every row predicted by the weights of all the others."""
    shrink = ridge / (s.values2 + ridge)
    residual = s.outside + s.left @ (shrink[:, None] * s.turned)
    return residual / (s.free + (s.left**2) @ shrink)[:, None]
