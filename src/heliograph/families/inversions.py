"""From expected statistics back to parameters: vectorised Newton inversions of digamma-like functions.

Each works on the logarithm of the parameter, from a start that is already within a few per cent, so a handful of
steps reaches rounding from 1e-6 to 1e8 and far beyond. The number of steps is bounded: nothing here can hang.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import psi, zeta

from heliograph.families.stirling import digamma_gap, trigamma_excess

__all__ = ["inverse_beta_chart", "inverse_digamma", "inverse_digamma_gap", "inverse_dirichlet", "inverse_trigamma"]


def inverse_digamma_gap(gap: Any) -> np.ndarray:
    """The shape s with ``log s - psi(s) = gap``, for ``gap > 0``.

    On log-log axes the function is nearly a straight line of slope -1, so Newton there converges at once.

    >>> float(np.round(inverse_digamma_gap(digamma_gap(3.0)), 12))
    3.0
    """
    d = np.asarray(gap, dtype=float)
    root = np.sqrt((d - 3.0) ** 2 + 24.0 * d)
    near, far = np.minimum(d, 3.0), np.maximum(d, 3.0)  # two forms of one quadratic's root: neither cancels
    s = np.where(d <= 3.0, (3.0 - near + root) / (12.0 * near), 2.0 / (root + far - 3.0))
    for _ in range(4):
        value = digamma_gap(s)
        s = s * np.exp(np.log(value / d) * value / trigamma_excess(s))
    return s


def inverse_trigamma(variance: Any) -> np.ndarray:
    """The shape s with ``psi'(s) = variance``, for ``variance > 0``.

    >>> float(inverse_trigamma(np.pi**2 / 6))
    1.0
    """
    v = np.asarray(variance, dtype=float)
    s = np.where(v < 2.0, 1.0 / v + 0.5, 1.0 / np.sqrt(v))
    for _ in range(6):
        value = zeta(2.0, s)
        s = s * np.exp(np.clip(np.log(value / v) * value / (2.0 * s * zeta(3.0, s)), -2.0, 2.0))
    return s


def inverse_digamma(y: Any) -> np.ndarray:
    """The x with ``psi(x) = y``.

    >>> float(inverse_digamma(psi(7.0)))
    7.0
    """
    y = np.asarray(y, dtype=float)
    high = y >= -2.22
    x = np.where(high, np.exp(np.where(high, y, 0.0)) + 0.5, -1.0 / np.where(high, -1.0, y + 0.5772156649015329))
    for _ in range(5):
        # Newton in log x, whose slope x psi'(x) is never below 1
        x = x * np.exp((y - psi(x)) / (1.0 + trigamma_excess(x)))
    return x


def inverse_dirichlet(log_centre: Any, gap: Any) -> np.ndarray:
    """The concentrations ``a_k`` with ``psi(a_k) - psi(sum a) = log_centre_k - gap``, for ``sum exp(log_centre) = 1``.

    That is ``E log p_k``, split into the centre it points at and the `gap` by which Jensen's inequality lowers it. All
    that is known of a large total is in the gap, which near ``(K - 1) / (2 sum a)`` drowns in the rounding of the
    plain statistics; held apart it keeps its digits. The unknown is ``sigma = log sum a``; with ``eps_k = log(a_k / (s
    centre_k))`` the equation to solve is ``sum centre_k (exp(eps_k) - 1) = 0``, in which nothing cancels.
    """
    log_centre, gap = np.asarray(log_centre, dtype=float), np.asarray(gap, dtype=float)
    shape = np.broadcast_shapes(log_centre.shape[:-1], gap.shape)
    n_categories = log_centre.shape[-1]
    log_centre = np.broadcast_to(log_centre, (*shape, n_categories)).reshape(-1, n_categories)
    gap = np.broadcast_to(gap, shape).reshape(-1, 1)
    a = _solve_total(log_centre, gap)
    return a.reshape((*shape, n_categories))


def _solve_total(log_centre: np.ndarray, gap: np.ndarray) -> np.ndarray:
    n_categories = log_centre.shape[-1]
    centre = np.exp(log_centre)
    minus = gap - log_centre  # -E log p_k
    # two limits: all concentrations large (the gap alone decides), all small (psi(x) near -1/x)
    sigma = np.log((n_categories - 1) / (2.0 * gap))
    small = -np.log(np.exp(np.mean(np.log(np.maximum(minus, 1e-300)), axis=-1, keepdims=True)))
    sigma = np.where(gap > 1.0, small, sigma)
    low, high = np.full_like(gap, -np.inf), np.full_like(gap, np.inf)
    out = np.empty_like(log_centre)
    todo = np.arange(len(gap))
    for _ in range(200):
        s = np.exp(sigma)
        total_gap = digamma_gap(s)
        a = inverse_digamma(sigma - total_gap - minus)
        eps = digamma_gap(a) - total_gap - gap
        wide = eps > 1.0
        terms = np.where(wide, a / s - centre, centre * np.expm1(np.where(wide, 0.0, eps)))
        f = terms.sum(axis=-1, keepdims=True)
        excess_s, excess_a = trigamma_excess(s), trigamma_excess(a)
        slope = (a / s * (excess_a - excess_s) / (1.0 + excess_a)).sum(axis=-1, keepdims=True)
        low, high = np.where(f > 0, sigma, low), np.where(f <= 0, sigma, high)
        good = slope > 0
        step = np.clip(np.where(good, f / np.where(good, slope, 1.0), np.sign(f)), -3.0, 3.0)
        new = sigma + step
        inside = (new > low) & (new < high)
        finite = np.isfinite(low) & np.isfinite(high)
        middle = np.where(finite, 0.5 * (np.where(finite, low, 0.0) + np.where(finite, high, 0.0)), new)
        new = np.where(inside, new, middle)
        out[todo] = a
        done = (np.abs(new - sigma) < 4e-16 * np.maximum(1.0, np.abs(sigma)))[:, 0]
        if done.all():
            break
        keep = ~done
        todo, sigma, low, high = todo[keep], new[keep], low[keep], high[keep]
        gap, minus, centre = gap[keep], minus[keep], centre[keep]
    return out


def inverse_beta_chart(mean: Any, variance: Any) -> tuple[np.ndarray, np.ndarray]:
    """The ``(a, b)`` with ``psi(a) - psi(b) = mean`` and ``psi'(a) + psi'(b) = variance``: the logit's moments.

    >>> a, b = inverse_beta_chart(0.0, np.pi**2 / 3)
    >>> float(a), float(b)
    (1.0, 1.0)
    """
    mean, variance = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
    # theta splits the variance: psi'(a) = variance * w, psi'(b) = variance * (1 - w), w = sigmoid(theta); the
    # mean falls as theta grows, so Newton is kept inside a shrinking bracket
    theta = -mean
    low, high = np.full(mean.shape, -np.inf), np.full(mean.shape, np.inf)
    for _ in range(200):
        t = np.clip(theta, -700.0, 700.0)
        w, u = 1.0 / (1.0 + np.exp(-t)), 1.0 / (1.0 + np.exp(t))
        a, b = inverse_trigamma(variance * w), inverse_trigamma(variance * u)
        f = psi(a) - psi(b) - mean
        slope = -0.5 * variance * w * u * (zeta(2.0, a) / zeta(3.0, a) + zeta(2.0, b) / zeta(3.0, b))
        low, high = np.where(f > 0, theta, low), np.where(f <= 0, theta, high)
        new = theta - f / slope
        inside = (new > low) & (new < high)
        finite = np.isfinite(low) & np.isfinite(high)
        middle = np.where(finite, 0.5 * (np.where(finite, low, 0.0) + np.where(finite, high, 0.0)), new)
        new = np.where(inside, new, middle)
        done = np.abs(new - theta) <= 4e-16 * np.maximum(1.0, np.abs(theta))
        theta = new
        if np.all(done):
            break
    return a, b
