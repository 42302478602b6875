"""Expectation propagation with sites of several numbers, by hand: dense algebra, and an even grid over every cavity."""

from itertools import product

import numpy as np
from scipy.special import logsumexp

REACH = 7.5  # standard deviations of a cavity


def grid_of(mean, covariance, log_likelihood, n=161):
    """Log mass, mean and covariance of N(mean, covariance) times a likelihood of q numbers, on a grid of n^q points."""
    q = len(mean)
    n = {1: 4001, 2: n, 3: 41}[q]
    line = np.linspace(-REACH, REACH, n)
    eps = np.array(list(product(line, repeat=q)))
    points = mean + eps @ np.linalg.cholesky(covariance).T
    log_w = -0.5 * (eps**2).sum(1) + q * (np.log(line[1] - line[0]) - 0.5 * np.log(2 * np.pi)) + log_likelihood(points)
    log_mass = logsumexp(log_w)
    w = np.exp(log_w - log_mass)
    first = w @ points
    gap = points - first
    return log_mass, first, (gap * w[:, None]).T @ gap


def expectation_propagation(mean, covariance, rows, log_likelihoods, n_sweeps=60, damping=0.3, n=161):
    """Mean, covariance and log evidence at the fixed point; ``rows[k]`` is (q, N) and site k sees ``rows[k] @ x``."""
    prior = np.linalg.inv(covariance)
    precision, shift = prior.copy(), prior @ mean
    sites = [(np.zeros((len(a), len(a))), np.zeros(len(a))) for a in rows]
    for _ in range(n_sweeps):
        moved = 0.0
        for k, (a, log_likelihood) in enumerate(zip(rows, log_likelihoods, strict=True)):
            whole = np.linalg.inv(precision)
            m, v = a @ whole @ shift, a @ whole @ a.T
            own, own_shift = sites[k]
            cavity = np.linalg.inv(v) - own
            cavity_shift = np.linalg.solve(v, m) - own_shift
            cv = np.linalg.inv(cavity)
            _, first, second = grid_of(cv @ cavity_shift, cv, log_likelihood, n)
            new = np.linalg.inv(second) - cavity
            new_shift = np.linalg.solve(second, first) - cavity_shift
            new, new_shift = damping * own + (1 - damping) * new, damping * own_shift + (1 - damping) * new_shift
            moved = max(moved, np.abs(new - own).max(), np.abs(new_shift - own_shift).max())
            precision = precision + a.T @ (new - own) @ a
            shift = shift + a.T @ (new_shift - own_shift)
            sites[k] = new, new_shift
        if moved < 1e-7:
            break
    whole = np.linalg.inv(precision)
    return whole @ shift, whole, _log_evidence(mean, prior, precision, shift, rows, sites, log_likelihoods, n)


def _log_evidence(mean, prior, precision, shift, rows, sites, log_likelihoods, n):
    """``log`` of the integral of the prior and all sites, each site scaled so that its tilted mass is right."""
    whole = np.linalg.inv(precision)
    total = _a(precision, shift) - _a(prior, prior @ mean)
    for a, (own, own_shift), log_likelihood in zip(rows, sites, log_likelihoods, strict=True):
        m, v = a @ whole @ shift, a @ whole @ a.T
        belief, belief_shift = np.linalg.inv(v), np.linalg.solve(v, m)
        cavity, cavity_shift = belief - own, belief_shift - own_shift
        cv = np.linalg.inv(cavity)
        log_mass, _, _ = grid_of(cv @ cavity_shift, cv, log_likelihood, n)
        total += log_mass + _a(cavity, cavity_shift) - _a(belief, belief_shift)
    return total


def _a(precision, shift):
    return 0.5 * (
        shift @ np.linalg.solve(precision, shift) - np.linalg.slogdet(precision)[1] + len(shift) * np.log(2 * np.pi)
    )
