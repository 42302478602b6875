"""Mass functions of counts in which large terms cancel on paper, and how they rise with their parameters."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from heliograph.numerics.gamma_function import binet, digamma_gap
from heliograph.numerics.logarithms import LOG_2PI, log_or_minus_inf

__all__ = ["digamma_rise", "drawn_counts", "log_beta_binomial", "log_binomial", "log_choose", "log_poisson", "log_rise"]


def drawn_counts(rng: np.random.Generator, rate: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poisson counts, and the mean and variance of each; beyond 1e9 by the normal limit, whose error is far below rounding."""
    small = np.minimum(rate, 1e9)
    counts = rng.poisson(small).astype(float)
    large = rate > 1e9
    if large.any():
        counts = np.where(large, np.round(rate + np.sqrt(rate) * rng.standard_normal(rate.shape)), counts)
    return counts, rate, rate


def log_poisson(k: np.ndarray, rate: np.ndarray, log_rate: np.ndarray) -> np.ndarray:
    """``k log rate - rate - log k!``, exact also for k and rate near 1e8."""
    some = np.where(k > 0, k, 1.0)
    y = np.where(k > 0, np.log(some) - log_rate, 0.0)
    y = np.clip(y, -650.0, 1e300)  # a rate of exp(650) is as impossible as one that overflows
    gap = some * (y + np.expm1(-y))  # k log(k / rate) + rate - k
    return np.where(k > 0, -gap - 0.5 * (LOG_2PI + np.log(some)) - binet(some), -rate)


def log_binomial(k: np.ndarray, n: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """``log C(n, k) p^k q^(n - k)`` for real k and n, by Stirling's formula and its exact remainder."""
    l = n - k
    inner = (k > 0) & (l > 0)
    a, b = np.where(inner, k, 1.0), np.where(inner, l, 1.0)
    s = a + b
    sure = (p == 0) | (q == 0)
    pp, qq = np.where(sure, 0.5, p), np.where(sure, 0.5, q)
    fit = _misfit(a, s * pp) + _misfit(b, s * qq)
    log_mass = -fit + binet(s) - binet(a) - binet(b) + 0.5 * (np.log(s) - np.log(a) - np.log(b) - LOG_2PI)
    # at the edges one power is left; of a probability near 1 the logarithm is that of the other one
    edge = _times_log(k, p, q) + _times_log(l, q, p)
    return np.where(inner & ~sure, log_mass, np.where(inner, -np.inf, edge))


def log_beta_binomial(k: np.ndarray, n: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``log C(n, k) B(a + k, b + n - k) / B(a, b)``, as two binomials over a third."""
    p, q = (a + k) / (a + b + n), (b + n - k) / (a + b + n)
    ratio = log_binomial(k, n, p, q) + log_binomial(a, a + b, p, q) - log_binomial(a + k, a + b + n, p, q)
    return ratio + np.log((a / (a + k)) * (b / (b + n - k)) * ((a + b + n) / (a + b)))


def log_choose(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    """``log C(n, k)``."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def log_rise(a: np.ndarray, total: np.ndarray, power: float) -> np.ndarray:
    """``log E p^power`` of a Beta(a, total - a)."""
    if power == 1.0:
        return np.log(a / total)
    return power * np.log(a / total) + _stirling_rise(a, power) - _stirling_rise(total, power)


def _stirling_rise(a: np.ndarray, power: float) -> np.ndarray:
    """``log Gamma(a + power) - log Gamma(a) - power log a``, which tends to 0 for large a, without cancellation."""
    small = a < 1.0
    far = np.where(small, 1.0, a)
    rise = (far + power - 0.5) * np.log1p(power / far) - power + binet(far + power) - binet(far)
    return np.where(small, gammaln(a + power) - gammaln(a) - power * np.log(a), rise)


def digamma_rise(a: np.ndarray, power: float | np.ndarray) -> np.ndarray:
    """``psi(a + power) - psi(a)``, without cancellation."""
    if isinstance(power, float) and power == 1.0:
        return 1.0 / a
    return np.log1p(power / a) + (digamma_gap(a) - digamma_gap(a + power))


def _misfit(k: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """``k log(k / mean) + mean - k >= 0``; near 1 the rounding of the ratio cancels, to first order."""
    ratio = mean / k
    return k * (ratio - 1.0 - np.log(ratio))


def _times_log(k: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """``k log p``, 0 where k is 0, exact also where ``p = 1 - q`` is near 1."""
    some, near = k > 0, p > 0.5
    log_p = np.where(near, np.log1p(-np.where(near, q, 0.0)), log_or_minus_inf(p))
    return np.where(some, k * np.where(some, log_p, 0.0), 0.0)
