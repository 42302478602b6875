"""Batches of Cholesky factors and triangular matrices: LAPACK itself for one matrix, NumPy for many.

A plate of one vector is the usual case, and there the overhead of a batch would dominate.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack
from scipy.linalg.lapack import dlauum, dpotrf, dtrtri  # type: ignore[attr-defined]

__all__ = [
    "cholesky",
    "gram",
    "gram_of_lower",
    "inverse_of_lower",
    "inverse_of_upper",
    "known_part",
    "leading_cholesky",
    "log_diagonal",
    "times",
    "transposed_times",
]

_LARGE = 150  # rows from which on a triangular matrix is inverted by halves: LAPACK's own way takes half as long again
_LARGEST = 700  # rows beyond which there is nothing to gain
_ROUNDING = 1e-13  # added to the diagonal of a matrix with eigenvalues in [0, 1) before it is factored


def cholesky(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a batch of matrices is positive definite, and lower Cholesky factors, the identity elsewhere."""
    shape, d = matrix.shape[:-2], matrix.shape[-1]
    if matrix.size == d * d and d:
        # the lower triangle of a row-major matrix is the upper one of LAPACK's: no copy on the way in or out
        lower, info = dpotrf(matrix.reshape(d, d).T, lower=0, clean=1)
        good = info == 0 and bool(np.isfinite(lower[-1, -1]))
        return np.full(shape, good), (lower.T if good else np.eye(d)).reshape(matrix.shape)
    try:
        lower = np.linalg.cholesky(matrix)
        if np.isfinite(np.vdot(lower, lower)):
            return np.ones(shape, dtype=bool), lower
    except np.linalg.LinAlgError:
        pass
    # a rare path: some entry of the plate is not positive definite, and only a try of its own tells which
    eye = np.eye(d)
    good = np.asarray(np.isfinite(matrix).all(axis=(-1, -2)))
    if not good.all():  # eigenvalues of NaN are an error for the whole plate
        matrix = np.where(good[..., None, None], matrix, -eye)
    good = np.linalg.eigvalsh(matrix)[..., 0] > 0
    lower = np.array(np.broadcast_to(eye, matrix.shape))
    try:
        lower[good] = np.linalg.cholesky(matrix[good])
        if np.isfinite(lower).all():
            return good, lower
    except np.linalg.LinAlgError:  # positive by its eigenvalues, but by less than rounding
        pass
    for i in np.ndindex(shape):
        one, lower[i] = cholesky(matrix[i])
        good[i] = one
    return good, lower


def inverse_of_lower(lower: np.ndarray) -> np.ndarray:
    """The inverse of each lower-triangular matrix."""
    d = lower.shape[-1]
    if lower.size == d * d:
        return inverse_of_upper(lower.reshape(d, d).T).T.reshape(lower.shape)
    # row by row: a general solver would exchange rows, and with them the digits of a matrix of very different scales
    inverse = np.array(np.broadcast_to(np.eye(d), lower.shape))
    for i in range(d):
        if i:
            inverse[..., i, :i] -= (lower[..., i, None, :i] @ inverse[..., :i, :i])[..., 0, :]
        inverse[..., i, : i + 1] /= lower[..., i, i, None]
    return inverse


def inverse_of_upper(upper: np.ndarray) -> np.ndarray:
    """The inverse of one upper-triangular matrix in the order of LAPACK (column after column)."""
    d = len(upper)
    if not _LARGE <= d <= _LARGEST:
        return dtrtri(upper, lower=0)[0]
    h = d // 2
    first, second = inverse_of_upper(upper[:h, :h]), inverse_of_upper(upper[h:, h:])
    inverse = np.zeros((d, d), order="F")
    inverse[:h, :h], inverse[h:, h:] = first, second
    across = blas.dtrmm(-1.0, first, upper[:h, h:])  # type: ignore[attr-defined]
    inverse[:h, h:] = blas.dtrmm(1.0, second, across, side=1, overwrite_b=1)  # type: ignore[attr-defined]
    return inverse


def gram(half: np.ndarray) -> np.ndarray:
    """``half' half``, symmetric to the last bit."""
    d = half.shape[-1]
    if half.size == d * d:
        flat = half.reshape(d, d)
        return (flat.T @ flat).reshape(half.shape)  # NumPy sees the transpose and computes one triangle only
    gram = np.swapaxes(half, -1, -2) @ half
    return 0.5 * (gram + np.swapaxes(gram, -1, -2))


def gram_of_lower(half: np.ndarray) -> np.ndarray:
    """``half' half`` of lower-triangular matrices, symmetric to the last bit; of a large one in a third of the multiplications."""
    d = half.shape[-1]
    if half.size != d * d or d < _LARGE:
        return gram(half)
    upper, _ = dlauum(half.reshape(d, d).T, lower=0)  # zeros below the diagonal, as in what it was given
    whole = upper + upper.T
    whole[np.diag_indices(d)] *= 0.5
    return whole.reshape(half.shape)


def times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """``matrix vector``."""
    return (matrix @ vector[..., None])[..., 0]


def transposed_times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """``matrix' vector``."""
    return (vector[..., None, :] @ matrix)[..., 0, :]


def log_diagonal(lower: np.ndarray) -> np.ndarray:
    """The sum of the logarithms of the diagonal: half the log determinant of ``lower lower'``."""
    return np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(-1)


def leading_cholesky(matrix: np.ndarray) -> np.ndarray:
    """The Cholesky factor of the largest leading block that is positive definite to rounding."""
    while True:
        lower, info = lapack.dpotrf(matrix, lower=1, clean=1)  # type: ignore[attr-defined]
        if not info:
            return lower
        matrix = matrix[: info - 1, : info - 1]


def known_part(factor: np.ndarray, inverse_corner: np.ndarray) -> np.ndarray:
    """``T L^-1`` with ``T'T = I - A^-1``, from the factor of A; some 2 M^3 multiplications."""
    inverse, _ = lapack.dpotri(factor)  # type: ignore[attr-defined]
    ridge = _ROUNDING
    while True:
        square = -inverse  # of which only the upper half is looked at
        square[np.diag_indices(len(square))] += 1 + ridge
        upper, info = lapack.dpotrf(square, lower=0, clean=1)  # type: ignore[attr-defined]
        if not info:
            return np.asarray(blas.dtrmm(1.0, upper, inverse_corner))  # type: ignore[attr-defined]
        ridge *= 10
