"""Integrals on dense grids, projections onto families, and expectation propagation with both: nothing of heliograph's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import digamma, logsumexp, polygamma

__all__ = ["beta_projected", "ep", "gamma_projected", "line", "moments", "plane"]

LogDensity = Callable[[np.ndarray], np.ndarray]  # (rows, nodes) -> (rows, nodes)


def line(
    log_density: LogDensity, low: np.ndarray, high: np.ndarray, n_first: int = 8001, n_last: int = 20001
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and weights of a density a row, and the log of its integral.

    The first grid finds where the mass is (every cell that holds 1e-13 of the largest), the second refines that range.
    """
    x = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, n_first)
    log_p = _without_nan(log_density(x))
    heavy = log_p > log_p.max(axis=1, keepdims=True) - 30.0
    first, last = heavy.argmax(axis=1), n_first - 1 - heavy[:, ::-1].argmax(axis=1)
    rows = np.arange(len(x))
    low, high = x[rows, np.maximum(first - 1, 0)], x[rows, np.minimum(last + 1, n_first - 1)]
    x = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, n_last)
    log_p = _without_nan(log_density(x))
    log_p[:, [0, -1]] -= np.log(2.0)  # trapezoid
    log_z = logsumexp(log_p, axis=1)
    return x, np.exp(log_p - log_z[:, None]), log_z + np.log((high - low) / (n_last - 1))


def _without_nan(log_p: np.ndarray) -> np.ndarray:
    """A log density where infinity was subtracted from infinity (a rate that overflows) has no mass."""
    return np.where(np.isnan(log_p), -np.inf, log_p)


def plane(log_density: Callable[[np.ndarray, np.ndarray], np.ndarray], low: tuple[float, float], high: tuple[float, float],
          n: int = 601) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:  # fmt: skip
    """Nodes (two axes), normalised weights and log integral of one density of two variables, refined twice."""
    a0, b0, a1, b1 = low[0], low[1], high[0], high[1]
    for last in (False, False, True):
        a, b = np.linspace(a0, a1, n), np.linspace(b0, b1, n)
        log_p = log_density(a[:, None], b[None, :]) + np.zeros((n, n))
        if last:
            break
        heavy = log_p > log_p.max() - 30.0
        i, j = np.flatnonzero(heavy.any(axis=1)), np.flatnonzero(heavy.any(axis=0))
        a0, a1 = a[max(i[0] - 1, 0)], a[min(i[-1] + 1, n - 1)]
        b0, b1 = b[max(j[0] - 1, 0)], b[min(j[-1] + 1, n - 1)]
    log_z = logsumexp(log_p)
    return a, b, np.exp(log_p - log_z), float(log_z + np.log((a[1] - a[0]) * (b[1] - b[0])))


def moments(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd along the last axis."""
    mean = (weight * x).sum(axis=-1)
    return mean, np.sqrt((weight * (x - mean[..., None]) ** 2).sum(axis=-1))


def gamma_projected(mean: np.ndarray, mean_log: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of the Gamma with these E x and E log x: log k - digamma(k) = log mean - mean log, by Newton in log k."""
    gap = np.log(mean) - mean_log
    u = np.log(0.5 / gap)
    for _ in range(100):
        k = np.exp(u)
        u = u - (u - digamma(k) - gap) / (1 - k * polygamma(1, k))
    return mean, mean / np.exp(u / 2)


def beta_projected(mean_log: np.ndarray, mean_log_not: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of the Beta with these E log p and E log(1 - p), by damped Newton in the logs of a and b."""
    p, q = np.exp(mean_log), np.exp(mean_log_not)
    total = np.maximum(1.0, 0.5 / np.maximum(1 - p - q, 1e-12))
    u = np.log(np.stack([total * p / (p + q), total * q / (p + q)]))
    target = np.stack([mean_log, mean_log_not])
    for _ in range(200):
        a, b = np.exp(u)
        f = np.stack([digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)]) - target
        t = polygamma(1, a + b)
        j11, j12, j21, j22 = (polygamma(1, a) - t) * a, -t * b, -t * a, (polygamma(1, b) - t) * b
        det = j11 * j22 - j12 * j21
        u = u - np.clip(np.stack([j22 * f[0] - j12 * f[1], j11 * f[1] - j21 * f[0]]) / det, -0.5, 0.5)
    a, b = np.exp(u)
    return a / (a + b), np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))


def ep(
    log_likelihood: LogDensity,
    x: np.ndarray,
    mean: np.ndarray,
    covariance: np.ndarray,
    damping: float,
    sweeps: int = 300,
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Mean and covariance of w by EP, w ~ N(mean, covariance), with a site on every row of x @ w; log evidence; settled.

    `log_likelihood` takes (rows, nodes) values of x @ w. Sites are (precision, shift) pairs and may be negative.
    """
    n = len(x)
    precision, shift = np.zeros(n), np.zeros(n)
    prior = np.linalg.inv(covariance)
    settled, reach = False, 12.0  # standard deviations of a cavity that are looked at
    cp = cm = zv = zm = log_z = m = np.zeros(n)
    belief = covariance
    for _ in range(sweeps):
        total = prior + (x.T * precision) @ x
        belief = np.linalg.inv(total)
        m = belief @ (prior @ mean + x.T @ shift)
        zm, zv = x @ m, np.einsum("ij,jk,ik->i", x, belief, x)
        cp = 1 / zv - precision
        if (cp <= 0).any() or not np.isfinite(cp).all():
            return m, belief, np.nan, False
        cm, cv = (zm / zv - shift) / cp, 1 / cp
        sd = np.sqrt(cv)

        def tilted(z: np.ndarray, cm: np.ndarray = cm, cv: np.ndarray = cv) -> np.ndarray:
            return (
                log_likelihood(z) - 0.5 * (z - cm[:, None]) ** 2 / cv[:, None] - 0.5 * np.log(2 * np.pi * cv)[:, None]
            )

        low, high = cm - reach * sd, cm + reach * sd
        nodes, weight, log_z = line(tilted, low, high, int(84 * reach), 2001)
        if (nodes[:, 0] <= low).any() or (nodes[:, -1] >= high).any():  # a value that contradicts its cavity by far
            if reach > 500:
                return m, belief, np.nan, False
            reach *= 2
            continue
        tm, ts = moments(nodes, weight)
        new_precision, new_shift = 1 / ts**2 - cp, tm / ts**2 - cm * cp
        move = np.max(np.abs(new_precision - precision) * zv) + np.max(np.abs(new_shift - shift) * np.sqrt(zv))
        precision += (1 - damping) * (new_precision - precision)
        shift += (1 - damping) * (new_shift - shift)
        if move < 1e-9:
            settled = True
            break

    def a(p: np.ndarray, s: np.ndarray) -> np.ndarray:  # log normaliser of a scalar Gaussian
        return 0.5 * s**2 / p - 0.5 * np.log(p / (2 * np.pi))

    b = prior @ mean + x.T @ shift
    total = prior + (x.T * precision) @ x
    log_evidence = 0.5 * b @ np.linalg.solve(total, b) - 0.5 * np.linalg.slogdet(total)[1]
    log_evidence += 0.5 * np.linalg.slogdet(prior)[1] - 0.5 * mean @ prior @ mean
    log_evidence += np.sum(log_z + a(cp, cm * cp) - a(1 / zv, zm / zv))
    return m, belief, float(log_evidence), settled
