"""Real roots of plates of polynomials, good to a few digits."""

from __future__ import annotations

import numpy as np

__all__ = ["real_roots"]


def real_roots(coefficients: np.ndarray, default: np.ndarray) -> np.ndarray:
    """The real roots (rows, k) of monic polynomials ``x^k + c[0] x^(k-1) + ... + c[k-1]``, `default` for the others.

    Good to a few digits, to know where a density turns; a nearly double root counts as real. Where a coefficient is
    not a number all roots are `default`.
    """
    rows, k = coefficients.shape
    companion = np.zeros((rows, k, k))
    companion[:, np.arange(1, k), np.arange(k - 1)] = 1.0
    fine = np.asarray(np.isfinite(coefficients).all(axis=1))
    companion[:, 0, :] = -np.where(fine[:, None], coefficients, 0.0)
    roots = _eigenvalues(companion)
    # a root far smaller than the largest is rounding: of the reversed polynomial it is the largest
    size = np.abs(roots)
    tiny = fine & (size.min(axis=1) < 1e-8 * size.max(axis=1)) & (coefficients[:, -1] != 0)
    if tiny.any():
        c = coefficients[tiny]
        companion[tiny, 0, :] = -np.concatenate([c[:, -2::-1], np.ones((len(c), 1))], axis=1) / c[:, -1:]
        known = np.asarray(np.isfinite(companion[tiny]).all(axis=(1, 2)))
        inverse = _eigenvalues(np.where(known[:, None, None], companion[tiny], 0.0))
        inverse = np.take_along_axis(inverse, np.abs(inverse).argsort(axis=1)[:, ::-1], axis=1)  # smallest root first
        order = size[tiny].argsort(axis=1)
        old = np.take_along_axis(roots[tiny], order, axis=1)
        small = (np.abs(old) < 1e-4 * np.abs(old[:, -1:])) & known[:, None] & (inverse != 0)
        roots = roots.astype(complex)
        roots[tiny] = np.where(small, 1.0 / np.where(inverse == 0, 1.0, inverse), old)
    real = (np.abs(np.imag(roots)) <= 1e-3 * np.abs(roots)) & fine[:, None]
    return np.where(real, np.real(roots), default[:, None])


def _eigenvalues(matrices: np.ndarray) -> np.ndarray:
    """Eigenvalues of each matrix, NaN where LAPACK's iteration does not converge."""
    try:
        return np.linalg.eigvals(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.full(matrices.shape[:2], np.nan)
        return np.concatenate([_eigenvalues(m[None]) for m in matrices])
