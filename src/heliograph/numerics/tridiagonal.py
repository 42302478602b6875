"""Gaussians along a line: a precision with one diagonal beside the main one, in time linear in its length.

The precision is factorised as ``L D L'``, L with ones on its diagonal and `ratios` below it. LAPACK does all of it: a hundred
thousand variables take about a millisecond per verb.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs

from heliograph.numerics.sparse.batched import NotPositiveDefiniteError, lost

__all__ = ["LineFactor", "factorise", "half_solve", "log_determinant", "neighbours", "sample", "solve"]

_PTTRF, _PTTRS, _TBTRS = get_lapack_funcs(("pttrf", "pttrs", "tbtrs"), (np.zeros(1),))


class LineFactor(NamedTuple):
    """``L D L'``."""

    pivots: np.ndarray  # (n,) D
    ratios: np.ndarray  # (n - 1,) below the diagonal of L


def factorise(diagonal: np.ndarray, beside: np.ndarray) -> LineFactor:
    """Factorise the precision with these diagonals, or raise `NotPositiveDefiniteError`.

    >>> factorise(np.array([2.0, 2.0]), np.array([1.0]))
    LineFactor(pivots=array([2. , 1.5]), ratios=array([0.5]))
    """
    if len(diagonal) == 1:
        pivots, ratios, failed = diagonal, beside, 0
    else:
        pivots, ratios, failed = _PTTRF(diagonal, beside)
    if failed or not ((pivots > lost(diagonal)) & (pivots < np.inf)).all():  # NaN fails too
        raise NotPositiveDefiniteError("the precision is not positive definite")
    return LineFactor(pivots, ratios)


def log_determinant(factor: LineFactor) -> float:
    """Of the precision."""
    return float(np.log(factor.pivots).sum())


def solve(factor: LineFactor, right: np.ndarray) -> np.ndarray:
    """Solve ``precision x = right`` for right-hand sides (n,) or (n, c)."""
    if len(factor.pivots) == 1:
        return right / factor.pivots[0]
    return _PTTRS(factor.pivots, factor.ratios, right)[0].reshape(right.shape)


def half_solve(factor: LineFactor, right: np.ndarray) -> np.ndarray:
    """``h`` with ``h' h = right' inv(precision) right``, for right-hand sides (n, c)."""
    return _unit_solve(factor.ratios, right, transposed=False) / np.sqrt(factor.pivots)[:, None]


def sample(rng: np.random.Generator, factor: LineFactor, n_samples: int) -> np.ndarray:
    """Draws (n_samples, n) with mean zero and the inverse of the precision as covariance."""
    noise = rng.standard_normal((len(factor.pivots), n_samples)) / np.sqrt(factor.pivots)[:, None]
    return _unit_solve(factor.ratios, noise, transposed=True).T


def neighbours(factor: LineFactor) -> tuple[np.ndarray, np.ndarray]:
    """Variances (n,), and covariances (n - 1,) of neighbours.

    From the end backwards ``variance = 1 / pivot + ratio^2 * next variance``: every term is positive, and none is lost.

    >>> neighbours(factorise(np.array([2.0, 2.0]), np.array([1.0])))  # the inverse of [[2, 1], [1, 2]]
    (array([0.66666667, 0.66666667]), array([-0.33333333]))
    """
    ratios = factor.ratios
    variance = _unit_solve(-ratios * ratios, (1.0 / factor.pivots)[:, None], transposed=True)[:, 0]
    return variance, -ratios * variance[1:]


def _unit_solve(below: np.ndarray, right: np.ndarray, *, transposed: bool) -> np.ndarray:
    """Solve with a matrix of ones on the diagonal and `below` beneath it, or with its transpose."""
    bands = np.ones((2, len(right)), order="F")
    bands[1, :-1] = below
    return _TBTRS(bands, right, uplo="L", trans="T" if transposed else "N", diag="U")[0]
