"""Whether a set of importance weights can be trusted: effective sample size and the shape of the weights' tail.

Both depend on the weights only up to their scale, and take them as logarithms.
"""

from __future__ import annotations

import numpy as np

__all__ = ["effective_sample_size", "fit_generalised_pareto", "pareto_k", "tail_length"]

_BLOCK = 500_000  # elements of one temporary array


def effective_sample_size(log_weights: np.ndarray) -> np.ndarray:
    """``(sum w)^2 / sum w^2`` along the last axis; 0 where every weight is 0.

    >>> float(effective_sample_size(np.zeros(7)))
    7.0
    >>> float(effective_sample_size(np.full(7, -1e5)))
    7.0
    """
    top = log_weights.max(axis=-1, keepdims=True)
    w = np.exp(np.where(np.isfinite(top), log_weights - np.where(np.isfinite(top), top, 0.0), -np.inf))
    total = w.sum(axis=-1)
    return np.divide(total**2, (w**2).sum(axis=-1), out=np.zeros_like(total), where=total > 0)


def tail_length(n: int) -> int:
    """How many of n weights make the tail: a fifth of them, but not more than 3 sqrt(n)."""
    return int(min(np.ceil(0.2 * n), np.ceil(3 * np.sqrt(n))))


def pareto_k(log_tail: np.ndarray) -> np.ndarray:
    """The shape k of the tail of the weights, from the largest ``M + 1`` log weights of each row (in any order).

    Below 0.5 the weights have a variance, above 0.7 no feasible number of draws gives a usable answer. The smallest
    of the M + 1 is the threshold that the others exceed. Weights that are all equal have no tail: -1 (a bounded one).
    The estimate is drawn to 0.5 with the weight of ten observations, as is usual for short tails.
    """
    log_tail = np.sort(log_tail, axis=-1)
    top = log_tail[:, -1:]
    scaled = np.exp(np.where(np.isfinite(top), log_tail - np.where(np.isfinite(top), top, 0.0), -np.inf))
    excess = scaled[:, 1:] - scaled[:, :1]
    n_tail = excess.shape[1]
    k = np.full(len(excess), -1.0)
    # ties with the threshold carry no information on the tail, and a handful of points none that is worth a name
    informative = (excess > 1e-12).sum(axis=1) >= min(5, n_tail)
    spread = excess[:, -1] - excess[:, n_tail // 2]
    fit = informative & (spread > 1e-12)
    if fit.any() and n_tail >= 5:
        k[fit], _ = fit_generalised_pareto(np.maximum(excess[fit], 1e-300))
        k[fit] = (n_tail * k[fit] + 10 * 0.5) / (n_tail + 10)
    return k


def fit_generalised_pareto(excess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shape k and scale of a generalised Pareto distribution for each row of sorted positive excesses.

    The quasi-Bayesian estimate of Zhang and Stephens (2009): the profile likelihood in ``theta = -k / scale``
    averaged over a grid that their prior spaces.
    """
    n_rows, n = excess.shape
    k, scale = np.empty(n_rows), np.empty(n_rows)
    m = 30 + int(np.sqrt(n))
    step = max(1, _BLOCK // (n * m))
    grid = 1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))  # (m,)
    for start in range(0, n_rows, step):
        x = excess[start : start + step]
        quartile = x[:, max(int(n / 4 + 0.5) - 1, 0)]
        theta = 1 / x[:, -1:] + grid / (3 * np.maximum(quartile, 1e-12 * x[:, -1])[:, None])  # (rows, m)
        shape = np.log1p(-theta[:, :, None] * x[:, None, :]).mean(axis=-1)
        shape = np.where(shape == 0, 1e-12, shape)
        theta = np.where(theta == 0, 1e-300, theta)
        log_likelihood = n * (np.log(np.abs(theta / shape)) - shape - 1)
        weight = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
        theta = (theta * weight).sum(axis=1) / weight.sum(axis=1)
        k[start : start + step] = np.log1p(-theta[:, None] * x).mean(axis=-1)
        theta = np.where(theta == 0, 1e-300, theta)
        scale[start : start + step] = -k[start : start + step] / theta
    return k, scale
