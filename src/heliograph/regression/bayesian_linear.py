"""Bayesian linear regression, batch and online, eq. (9) to eq. (17), in square-root form.

The state is one triangular matrix. Stack the prior's rows ``[I / s0, 0]`` and the data's ``[X, Y] / sy`` and take the
triangular factor T of that tall matrix: with ``T = [[R, z], [0, S]]`` the posterior precision eq. (12) is ``R'R``, the
mean eq. (13) is ``R^-1 z``, and ``S'S`` is what is left of the targets. More rows are rotated into T in place. The
paper's covariance update eq. (16) is the same update on ``(R'R)^-1``, where it loses twice the digits: with noise
1e-6 the precision has condition 1e10, its factor only 1e5, so online and batch still agree to 1e-10.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from heliograph.errors import ModelError
from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.numerics.chunks import CHUNK, chunks

__all__ = ["Posterior", "fit", "log_evidence", "predict", "prior", "update", "widen"]

_PANEL = 32  # columns a panel of the blocked rotation; 8 to 64 differ by a fifth


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the next update needs; everything else is computed from it when first asked for."""

    triangle: np.ndarray  # (D + q, D + q) upper triangular, column-major
    n_features: int  # D
    n_rows: int  # seen so far
    prior_variance: float  # sigma_0^2
    noise: float  # sigma_y^2
    log_noises: float = 0.0  # sum over rows of the log of their noise variances

    @property
    def n_outputs(self) -> int:
        """The number of targets q."""
        return self.triangle.shape[0] - self.n_features

    @property
    def factor(self) -> np.ndarray:
        """R, upper triangular, with ``R'R`` the posterior precision of the weights, eq. (12)."""
        return self.triangle[: self.n_features, : self.n_features]

    @cached_property
    def mean(self) -> np.ndarray:
        """Posterior mean of the weights, ``(D, q)``, eq. (13)."""
        return solve_triangular(self.factor, self.triangle[: self.n_features, self.n_features :], check_finite=False)

    @cached_property
    def inverse_factor(self) -> np.ndarray:
        """``R^-1``, whose rows' products with a feature vector have its predictive variance as squared length."""
        inverse, info = lapack.dtrtri(self.factor)  # type: ignore[attr-defined]
        if info:
            raise ModelError("the posterior of a linear regression is singular; its prior variance must be finite")
        return np.triu(inverse)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Posterior covariance of the weights, ``(D, D)``, eq. (11) and eq. (12)."""
        return self.inverse_factor @ self.inverse_factor.T

    @cached_property
    def _single(self) -> tuple[np.ndarray, np.ndarray]:
        return self.mean.astype(np.float32), self.inverse_factor.astype(np.float32)


def prior(n_features: int, n_outputs: int, prior_variance: float = 1.0, noise: float = 1e-4) -> Posterior:
    """The belief before any row: independent weights of variance `prior_variance`, eq. (9)."""
    if not (prior_variance > 0 and noise > 0):
        raise ModelError(f"prior variance and noise must be positive, not {prior_variance} and {noise}")
    size = n_features + n_outputs
    triangle = np.zeros((size, size), order="F")
    triangle[np.arange(n_features), np.arange(n_features)] = prior_variance**-0.5
    return Posterior(triangle, n_features, 0, float(prior_variance), float(noise))


def fit(x: np.ndarray, y: np.ndarray, prior_variance: float = 1.0, noise: float = 1e-4) -> Posterior:
    """The posterior after all rows of `x` ``(N, D)`` and `y` ``(N, q)`` at once, eq. (11).

    >>> p = fit(np.array([[1.0], [1.0]]), np.array([[1.0], [3.0]]), prior_variance=1.0, noise=1.0)
    >>> p.mean.round(12), p.covariance.round(12)  # precision 1 + 1 + 1, sum of targets 4
    (array([[1.33333333]]), array([[0.33333333]]))
    """
    x, y = _rows(x, y)
    return update(prior(x.shape[1], y.shape[1], prior_variance, noise), x, y)


def update(posterior: Posterior, x: np.ndarray, y: np.ndarray, noise: np.ndarray | None = None) -> Posterior:
    """Condition on one more row, or on k more, eq. (16) and eq. (17).

    Costs O(k D^2) against the O(N D^2) of `fit`, and agrees with it to rounding. `noise` gives rows their own noise
    variances instead of the posterior's common one.

    >>> p = update(prior(2, 1, prior_variance=1.0, noise=0.5), np.array([1.0, 0.0]), np.array([3.0]))
    >>> p.mean.ravel().round(12) + 0.0
    array([2., 0.])
    """
    x, y = _rows(x, y)
    if x.shape[1] != posterior.n_features or y.shape[1] != posterior.n_outputs:
        raise ModelError(
            f"this regression has {posterior.n_features} features and {posterior.n_outputs} outputs, "
            f"the rows have {x.shape[1]} and {y.shape[1]}"
        )
    variance = np.broadcast_to(np.asarray(posterior.noise if noise is None else noise, dtype=float), (len(x),))
    rows = np.concatenate([x, y], axis=1) / np.sqrt(variance)[:, None]
    return Posterior(
        _rotate_in(posterior.triangle, rows),
        posterior.n_features,
        posterior.n_rows + len(x),
        posterior.prior_variance,
        posterior.noise,
        posterior.log_noises + float(np.log(variance).sum()),
    )


def predict(
    posterior: Posterior, x: np.ndarray | Iterable[np.ndarray], dtype: Any = np.float64
) -> tuple[np.ndarray, np.ndarray]:
    """Mean ``(n, q)`` and variance ``(n,)`` of the noise-free output at each row, eq. (14).

    The variance of a noisy target, eq. (15), is this plus the noise. `x` is ``(n, D)`` or an iterable of such chunks.
    The variance is a sum of squares, so it is never negative, in float32 (four times faster, for a plate) neither.
    """
    arrays = [x[part] for part in chunks(len(x), CHUNK)] if isinstance(x, np.ndarray) else x
    means, variances = [], []
    for rows in arrays:
        with one_blas_thread():
            mean, variance = _predict_rows(posterior, rows, dtype)
        means.append(mean)
        variances.append(variance)
    if not means:
        return np.zeros((0, posterior.n_outputs)), np.zeros(0)
    return np.concatenate(means), np.concatenate(variances)


def log_evidence(posterior: Posterior) -> np.ndarray:
    """``log p(Y)`` of each output with the weights integrated out, ``(q,)``: what selects widths and variances.

    The determinant of the N by N covariance is the ratio of the two D by D precisions times the noises, and its
    quadratic form is what the rotations left over.
    """
    d, n = posterior.n_features, posterior.n_rows
    left = posterior.triangle[d:, d:]
    log_det = 2 * np.log(np.abs(np.diagonal(posterior.factor))).sum() + d * np.log(posterior.prior_variance)
    return -0.5 * ((left**2).sum(0) + log_det + posterior.log_noises + n * np.log(2 * np.pi))


def _rows(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    x = x[None, :] if x.ndim == 1 else x
    y = y.reshape(len(x), -1)
    return x, y


def _rotate_in(triangle: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The triangular factor of `rows` below `triangle`: Householder reflections that touch nothing else."""
    triangle = np.array(triangle, order="F")
    with one_blas_thread():
        for part in chunks(len(rows), 2 * CHUNK):
            block = np.array(rows[part], order="F")
            triangle, _, _, info = lapack.dtpqrt(  # type: ignore[attr-defined]
                0, min(_PANEL, len(triangle)), triangle, block, overwrite_a=True, overwrite_b=True
            )
            if info:
                raise ModelError(f"the triangular update of a regression failed with code {info}")
    return triangle


def widen(posterior: Posterior, old_new: np.ndarray, new_new: np.ndarray, new_y: np.ndarray) -> Posterior:
    """The posterior with more features, from their products with the old ones, each other and the targets."""
    m, q = posterior.n_features, posterior.n_outputs
    k = len(new_new)
    z, left = posterior.triangle[:m, m:], posterior.triangle[m:, m:]
    above = solve_triangular(posterior.factor, old_new, trans=1, check_finite=False)  # (M, k)
    beside = np.linalg.cholesky(new_new - above.T @ above).T
    z_new = solve_triangular(beside, new_y - above.T @ z, trans=1, check_finite=False)
    triangle = np.zeros((m + k + q, m + k + q), order="F")
    triangle[:m, :m], triangle[:m, m : m + k], triangle[:m, m + k :] = posterior.factor, above, z
    triangle[m : m + k, m : m + k], triangle[m : m + k, m + k :] = beside, z_new
    triangle[m + k :, m + k :] = _triangle_of(left.T @ left - z_new.T @ z_new)
    return replace(posterior, triangle=triangle, n_features=m + k)


def _triangle_of(square: np.ndarray) -> np.ndarray:
    """An upper triangular S with ``S'S`` equal to a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(square)
    return np.linalg.qr(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)[1]


def _predict_rows(posterior: Posterior, x: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    if dtype == np.float32:
        mean32, inverse32 = posterior._single
        x = x.astype(np.float32, copy=False)
        half = x @ inverse32
        return (x @ mean32).astype(float), np.einsum("nd,nd->n", half, half).astype(float)
    x = x.astype(float, copy=False)
    if len(x) * 8 <= posterior.n_features and "inverse_factor" not in vars(posterior):
        # a few rows right after an update: solving is O(D^2) per row, inverting the factor first O(D^3)
        half = solve_triangular(posterior.factor, x.T, trans=1, check_finite=False).T
    else:
        half = x @ posterior.inverse_factor
    return x @ posterior.mean, np.einsum("nd,nd->n", half, half)
