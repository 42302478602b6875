"""Bayesian logistic regression by hand: Laplace by Newton's method, and parallel EP that starts from it."""

import numpy as np
import scipy.linalg as sl
from scipy.special import expit

NODES = np.linspace(-7.5, 7.5, 41)  # of a trapezoid rule: smooth tilted densities are integrated to about 1e-10
BELL = np.exp(-0.5 * NODES**2)
MOMENTS = np.stack([BELL, BELL * NODES, BELL * NODES**2])


def laplace(x, y, prior_variance, change=1e-6, most=100):
    """Mode, covariance and steps; stops where the Newton decrement says that half a step moves less than `change` nats."""
    d = x.shape[1]
    w = np.zeros(d)
    for step in range(1, most + 1):
        p = expit(x @ w)
        precision = x.T @ (x * (p * (1 - p))[:, None])
        precision[np.diag_indices(d)] += 1 / prior_variance
        lower = sl.cho_factor(precision, lower=True)
        gradient = x.T @ (y - p) - w / prior_variance
        move = sl.cho_solve(lower, gradient)
        w = w + move
        if 0.5 * gradient @ move < change or step == most:
            break
    return w, sl.cho_solve(lower, np.eye(d)), step


def tilted(mean, variance, sign):
    """Mean and variance of ``N(z; mean, variance) sigmoid(sign z)``, row by row."""
    sd = np.sqrt(variance)
    weight = expit(sign * (mean + np.multiply.outer(NODES, sd)))  # (nodes, n)
    total, first, second = MOMENTS @ weight
    first /= total
    return mean + sd * first, variance * (second / total - first**2)


def expectation_propagation(x, y, prior_variance, start="newton", change=1e-6, most=200):
    """Mean, covariance and sweeps of parallel EP, undamped."""
    n, d = x.shape
    sign = 2 * y - 1
    tau, nu = np.zeros(n), np.zeros(n)
    if start == "newton":
        w, _, _ = laplace(x, y, prior_variance)
        z = x @ w
        p = expit(z)
        tau = p * (1 - p)
        nu = tau * z + y - p
    old = None
    for sweep in range(most + 1):
        precision = x.T @ (x * tau[:, None])
        precision[np.diag_indices(d)] += 1 / prior_variance
        lower = sl.cholesky(precision, lower=True)
        mean = sl.cho_solve((lower, True), x.T @ nu)
        if sweep == most or (old is not None and _divergence(mean, lower, *old) < change):
            break
        old = mean, lower
        half = sl.solve_triangular(lower, np.eye(d), lower=True)
        white = x @ half.T
        v = np.einsum("ij,ij->i", white, white)
        m = x @ mean
        cavity_v = 1 / (1 / v - tau)
        cavity_m = cavity_v * (m / v - nu)
        m, v = tilted(cavity_m, cavity_v, sign)
        tau = 1 / v - 1 / cavity_v
        nu = m / v - cavity_m / cavity_v
    return mean, sl.cho_solve((lower, True), np.eye(d)), sweep


def _divergence(mean, lower, old_mean, old_lower):
    """KL of two Gaussians given by the Cholesky factors of their precisions."""
    ratio = sl.solve_triangular(lower, old_lower, lower=True)
    gap = old_lower.T @ (mean - old_mean)
    return 0.5 * ((ratio**2).sum() - len(mean) + gap @ gap) + np.log(np.diag(lower) / np.diag(old_lower)).sum()
