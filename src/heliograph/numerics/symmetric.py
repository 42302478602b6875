"""Plates of symmetric matrices that may be singular, indefinite, or of very different scales along the diagonal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["not_negative", "of_eigenvalues", "positive_definite", "solve"]


def of_eigenvalues(matrix: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of symmetric matrices (n, d, d), taken of their eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * function(values)[:, None, :]) @ np.swapaxes(vectors, -1, -2)


def positive_definite(matrix: np.ndarray) -> np.ndarray:
    """Where a symmetric matrix is positive definite, to rounding of its own diagonal scaling."""
    diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
    good = np.asarray((diagonal > 0).all(axis=-1)) & np.isfinite(matrix).all(axis=(-1, -2))
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    d = matrix.shape[-1]
    scaled = np.where(good[..., None, None], matrix * scale[..., :, None] * scale[..., None, :], np.eye(d))
    fine = np.asarray(np.isfinite(scaled).all(axis=(-1, -2)))
    scaled = np.where(fine[..., None, None], scaled, np.eye(d))
    return good & fine & (np.linalg.eigvalsh(scaled)[..., 0] > d * np.finfo(float).eps)


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``matrix^-1 right`` for symmetric matrices, by the pseudo-inverse where singular; `right` is (..., d, k)."""
    good = positive_definite(matrix)
    safe = np.where(good[..., None, None], matrix, np.eye(matrix.shape[-1]))
    # measured in the units of its diagonal, a matrix of very different scales keeps the digits of each
    scale = 1.0 / np.sqrt(np.diagonal(safe, axis1=-2, axis2=-1))[..., None]
    scaled = safe * scale * np.swapaxes(scale, -1, -2)
    scaled = np.where(np.isfinite(scaled).all(axis=(-1, -2), keepdims=True), scaled, np.eye(matrix.shape[-1]))
    result = scale * np.linalg.solve(scaled, scale * right)
    if np.all(good):
        return result
    rough = np.where(np.isfinite(matrix).all(axis=(-1, -2), keepdims=True), matrix, 0.0)
    rough = np.linalg.pinv(rough, hermitian=True) + (matrix - matrix)  # a matrix of NaN has an inverse of NaN
    return np.where(good[..., None, None], result, rough @ right)


def not_negative(matrix: np.ndarray) -> np.ndarray:
    """Where the smallest eigenvalue is not below 0 by more than rounding."""
    fine = np.asarray(np.isfinite(matrix).all(axis=(-1, -2)))
    values = np.linalg.eigvalsh(np.where(fine[..., None, None], matrix, 0.0))  # NaN is left to the caller's sums
    return values[..., 0] >= -matrix.shape[-1] * np.finfo(float).eps * np.abs(values).max(axis=-1)
