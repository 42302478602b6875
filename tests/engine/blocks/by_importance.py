"""Posterior moments by importance sampling: Student-t draws around the mode that Newton's method finds."""

import numpy as np
from scipy.special import gammaln, logsumexp


def importance(rng, mean, covariance, rows, log_likelihood, derivatives, n_draws=400_000, freedom=8.0):
    """Mean, sd and log evidence of x ~ N(mean, covariance) with ``log_likelihood(rows @ x)``, log-concave.

    ``log_likelihood`` maps (draws, rows) to (draws, rows); ``derivatives(z)`` gives its slope and curvature, row by row.
    """
    d = len(mean)
    precision = np.linalg.inv(covariance)
    x = mean.copy()
    for _ in range(100):
        slope, curvature = derivatives(rows @ x)
        hessian = precision - (rows.T * curvature) @ rows
        step = np.linalg.solve(hessian, rows.T @ slope - precision @ (x - mean))
        x = x + step
        if np.abs(step).max() < 1e-10:
            break
    half = np.linalg.inv(np.linalg.cholesky(hessian)).T
    u = rng.standard_normal((n_draws, d))
    scale = rng.chisquare(freedom, n_draws) / freedom
    e = u / np.sqrt(scale)[:, None]
    draws = x + e @ half.T
    log_proposal = (
        gammaln((freedom + d) / 2)
        - gammaln(freedom / 2)
        - d / 2 * np.log(freedom * np.pi)
        - (freedom + d) / 2 * np.log1p((e**2).sum(axis=1) / freedom)
        - np.log(np.abs(np.diag(half))).sum()
    )
    gap = draws - mean
    log_target = -0.5 * np.einsum("ij,ij->i", gap @ precision, gap) - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    log_target += log_likelihood(draws @ rows.T).sum(axis=1)
    log_w = log_target - log_proposal
    total = logsumexp(log_w)
    w = np.exp(log_w - total)
    assert 1 / (w**2).sum() > 0.3 * n_draws  # the standard error of a standard deviation is then below 0.2 %
    m = w @ draws
    return m, np.sqrt(w @ (draws - m) ** 2), total - np.log(n_draws)
