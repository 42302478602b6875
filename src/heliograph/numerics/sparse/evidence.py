"""The Gaussian part of a log evidence, in the form in which nothing large cancels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heliograph.numerics.sparse.batched import NotPositiveDefiniteError
from heliograph.numerics.sparse.factor import Factor
from heliograph.numerics.sparse.rows import Rows, apply, weigh

__all__ = ["gaussian_log_evidence"]

LOG_TWO_PI = float(np.log(2 * np.pi))


def gaussian_log_evidence(factor: Factor, mean: np.ndarray, fixed: Sequence[tuple[Rows, np.ndarray]]) -> float:
    """Log densities of all Gaussian rows at the mean, and the volume of the posterior: (n log 2 pi - log det) / 2.

    Without other sites this is the log evidence. A site (tau, nu) with tilted normaliser Z, cavity N(m_c, 1 / tau_c) and marginal
    N(m, v) adds ``log Z + tau_c (m - m_c)^2 / 2 - log(tau_c v) / 2``, which vanishes term by term as the site does.

    Parameters
    ----------
    factor : Factor
        Of the posterior precision.
    mean : ndarray
        Posterior mean (n,).
    fixed : sequence of (Rows, weights)
        Priors, conditionals and data: factors ``N(A x + constant; 0, inv(tau))``, where data y is part of the constant.

    Examples
    --------
    One reading y = 2 of x ~ N(0, 1), with noise of variance 1, has the log density of N(2; 0, 2).

    >>> from heliograph.numerics import sparse
    >>> rows = sparse.make_rows(1, [0, 1], [0, 0], constant=[0.0, -2.0])
    >>> plan = sparse.analyse([rows])
    >>> tau = np.ones(2)
    >>> factor = sparse.factorise(plan, sparse.gram(sparse.place(plan, rows), tau))
    >>> mean = sparse.solve(factor, sparse.information(rows, tau, np.zeros(2)))
    >>> truth = float(-0.5 * np.log(2 * np.pi * 2.0)) - 2.0**2 / (2 * 2.0)
    >>> abs(gaussian_log_evidence(factor, mean, [(rows, tau)]) - truth) < 1e-12
    True
    """
    total = 0.5 * (len(mean) * LOG_TWO_PI - factor.log_determinant)
    for rows, tau in fixed:
        tau = np.asarray(tau, dtype=float)
        residual = apply(rows, mean)
        total += 0.5 * (_log_determinants(tau) - rows.n_rows * LOG_TWO_PI - residual @ weigh(rows.width, tau, residual))
    return float(total)


def _log_determinants(tau: np.ndarray) -> float:
    """Sum over all sites; a Gaussian factor has a positive definite precision."""
    sign, value = np.linalg.slogdet(tau.reshape(len(tau), 1, 1) if tau.ndim == 1 else tau)
    if not (sign > 0).all():
        raise NotPositiveDefiniteError("a Gaussian factor's precision is not positive definite")
    return float(value.sum())
