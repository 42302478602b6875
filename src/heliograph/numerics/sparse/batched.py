"""Small dense matrices by the thousand, and one large one: Cholesky factors that refuse what is not positive definite."""

from __future__ import annotations

import numpy as np
from scipy.linalg import get_lapack_funcs

from heliograph.errors import HeliographError

__all__ = ["NotPositiveDefiniteError", "cholesky", "inverse_from_cholesky", "inverse_roots", "lost"]

_POTRF, _POTRI, _TRTRI = get_lapack_funcs(("potrf", "potri", "trtri"), (np.zeros((1, 1)),))
LOST = 64 * float(np.finfo(float).eps)  # a pivot below this share of its first diagonal has kept at most two digits


class NotPositiveDefiniteError(HeliographError, ArithmeticError):
    """A precision has a direction without (or with negative, or not finite) precision; there is no distribution."""


def lost(diagonal: np.ndarray) -> np.ndarray:
    """Pivots at or below this are no longer told from zero, given the `diagonal` before the elimination."""
    return LOST * np.maximum(diagonal, 0.0)


def _check(pivots: np.ndarray, floor: np.ndarray) -> None:
    if not ((pivots > floor) & (pivots < np.inf)).all():  # NaN fails too
        raise NotPositiveDefiniteError("the precision is not positive definite")


def inverse_roots(blocks: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Lower triangular ``R`` with ``R' R = inv(block)`` for each of the `blocks` (m, d, d), of which the lower triangles count.

    `floor` (m, d) is what each pivot must exceed.
    """
    m, d, _ = blocks.shape
    if d == 1:
        _check(blocks[:, :, 0], floor)
        return 1.0 / np.sqrt(blocks)
    if m < d or d > 24:  # few matrices, or large ones: LAPACK one by one
        return np.stack([_one(block, low) for block, low in zip(blocks, floor, strict=True)])
    left = np.ascontiguousarray(
        blocks.transpose(1, 2, 0)
    )  # batch last: every operation below runs over contiguous memory
    root = np.zeros((d, d, m))
    for j in range(d):
        _check(left[j, j], floor[:, j])
        scale = 1.0 / np.sqrt(left[j, j])
        root[j, :j] *= scale
        root[j, j] = scale
        column = left[j + 1 :, j] * scale
        for i in range(j + 1, d):
            root[i, : j + 1] -= column[i - j - 1] * root[j, : j + 1]
            left[i, j + 1 : i + 1] -= column[i - j - 1] * column[: i - j]
    return np.ascontiguousarray(root.transpose(2, 0, 1))


def _one(block: np.ndarray, floor: np.ndarray) -> np.ndarray:
    root, _ = _TRTRI(cholesky(block, floor), lower=1)
    return root


def cholesky(matrix: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Lower Cholesky factor of one matrix, of which the lower triangle counts; zeros above."""
    if not len(matrix):
        return np.zeros((0, 0))
    root, failed = _POTRF(matrix, lower=1, clean=1)
    if failed:
        raise NotPositiveDefiniteError("the precision is not positive definite")
    _check(np.diagonal(root) ** 2, floor)
    return root


def inverse_from_cholesky(root: np.ndarray) -> np.ndarray:
    """The symmetric inverse, both triangles, of the matrix whose lower Cholesky factor is `root`."""
    if not len(root):
        return np.zeros((0, 0))
    half, _ = _POTRI(root, lower=1)
    low = np.tril(half)
    return low + np.tril(half, -1).T
