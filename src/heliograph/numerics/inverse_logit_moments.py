"""From the mean and variance of a Beta's logit back to its two parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import psi

from heliograph.numerics.chunks import cached_chunks
from heliograph.numerics.gamma_function import trigammas
from heliograph.numerics.inverse_digamma import inverse_trigamma, start_from_digamma, start_from_trigamma
from heliograph.numerics.inverse_dirichlet import BRACKET_STEPS, NEWTON_STEPS, SETTLED

__all__ = ["inverse_logit_moments"]


def inverse_logit_moments(mean: Any, variance: Any) -> tuple[np.ndarray, np.ndarray]:
    """The ``(a, b)`` with ``psi(a) - psi(b) = mean`` and ``psi'(a) + psi'(b) = variance``: the logit's moments.

    >>> a, b = inverse_logit_moments(0.0, np.pi**2 / 3)
    >>> float(np.round(a, 12)), float(np.round(b, 12))
    (1.0, 1.0)
    """
    mean, variance = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
    shape = mean.shape
    mean, variance = mean.reshape(-1), np.clip(variance.reshape(-1), 1e-120, 1e33)  # squares must not overflow
    flip = np.where(mean <= 0, 1.0, -1.0)  # solve for the smaller parameter first, whose variance is most of the sum
    x = np.empty((2, len(mean)))
    for rows in cached_chunks(len(mean), 2):
        x[:, rows], settled = _newton_moments(-np.abs(mean[rows]), variance[rows])
        if not settled.all():
            left = np.arange(len(mean))[rows][~settled]
            x[:, left] = _bracket_moments(-np.abs(mean[left]), variance[left])
    a, b = np.where(flip > 0, x[0], x[1]), np.where(flip > 0, x[1], x[0])
    return a.reshape(shape), b.reshape(shape)


def _newton_moments(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton on ``log a`` and ``log b`` together, for ``mean <= 0``: the answers, and which have settled."""
    n = len(mean)
    share = 1.0 / (1.0 + np.exp(np.maximum(mean, -700.0)))  # exact for large a, b; at most 2 times off elsewhere
    a = start_from_trigamma(1.0 / np.maximum(variance * share, 1e-300))
    alpha = np.log(a)
    beta = np.log(start_from_digamma(np.minimum(psi(a) - mean, 600.0)))
    out, settled, todo = np.exp(np.stack([alpha, beta])), np.zeros(n, dtype=bool), np.arange(n)
    for _ in range(NEWTON_STEPS):
        x = np.exp(np.stack([alpha, beta]))
        first, second = trigammas(x)
        total = first.sum(axis=0)
        digamma = psi(x)
        f, g = digamma[0] - digamma[1] - mean, np.log(total / variance)
        fa, fb = x * first * np.array([[1.0], [-1.0]])
        ga, gb = -x * second / total
        determinant = fa * gb - fb * ga  # < 0 always
        step_a = np.clip((fb * g - gb * f) / determinant, -3.0, 3.0)
        step_b = np.clip((ga * f - fa * g) / determinant, -3.0, 3.0)
        alpha, beta = np.clip(alpha + step_a, -60.0, 300.0), np.clip(beta + step_b, -60.0, 300.0)
        done = np.maximum(np.abs(step_a), np.abs(step_b)) < SETTLED
        if done.any():
            finished = todo[done]
            out[:, finished], settled[finished] = np.exp(np.stack([alpha[done], beta[done]])), True
            if done.all():
                break
            keep = ~done
            todo, alpha, beta, mean, variance = todo[keep], alpha[keep], beta[keep], mean[keep], variance[keep]
    return out, settled


def _bracket_moments(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The same answers by bisection on how the variance is split; the mean falls as the share of a grows."""
    low, high = np.full(mean.shape, -5.0), np.full(mean.shape, 300.0)  # log of psi'(a) / psi'(b); >= 0 as a <= b
    for _ in range(BRACKET_STEPS):
        theta = 0.5 * (low + high)
        share_b = 1.0 / (1.0 + np.exp(theta))
        share_a = 1.0 / (1.0 + np.exp(-theta))
        x = inverse_trigamma(np.stack([variance * share_a, np.maximum(variance * share_b, 1e-300)]))
        above = psi(x[0]) - psi(x[1]) > mean
        low, high = np.where(above, theta, low), np.where(above, high, theta)
        if (high - low <= 4e-16 * np.abs(high)).all():
            break
    return x
