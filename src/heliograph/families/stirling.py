"""What is left of the gamma function once Stirling's formula is taken away, to full relative precision.

With ``log Gamma(x) = x log x - x + log(2 pi / x) / 2 + binet(x)`` the densities, divergences and projections of the
Gamma, Beta and Dirichlet families can be written so that the large terms cancel on paper and not in floating point;
at a shape of 1e8 the textbook forms keep only 7 digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln, psi, zeta

__all__ = ["binet", "digamma_gap", "excess", "stirling_divergence", "trigamma", "trigamma_excess"]

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_FAR = 10.0  # from here on the asymptotic series below are exact to rounding (the first term left out is < 1e-17)

# Bernoulli numbers B_2, B_4, ..., B_16, over the divisors of each series
_B = np.array([1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510])
_TWO_K = 2.0 * np.arange(1, 9)
_GAP = _B / _TWO_K
_BINET = _B / (_TWO_K * (_TWO_K - 1))


def _series(coefficients: np.ndarray, y2: np.ndarray) -> np.ndarray:
    total = np.full_like(y2, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * y2 + c
    return total


def digamma_gap(x: Any) -> np.ndarray:
    """``log x - psi(x) > 0``: how far ``E log`` of a Gamma of shape x lies below the log of its mean.

    >>> float(digamma_gap(1e8) * 2e8)
    1.0000000016666666
    """
    x = np.asarray(x, dtype=float)
    y = 1.0 / np.maximum(x, _FAR)
    far = y * (0.5 + y * _series(_GAP, y * y))
    near = np.minimum(x, _FAR)
    return np.where(x >= _FAR, far, np.log(near) - psi(near))


def trigamma(x: Any) -> np.ndarray:
    """``psi'(x)``."""
    return zeta(2.0, x)


def trigamma_excess(x: Any) -> np.ndarray:
    """``x psi'(x) - 1 > 0``, near ``1 / x`` for small x and ``1 / (2 x)`` for large."""
    x = np.asarray(x, dtype=float)
    y = 1.0 / np.maximum(x, _FAR)
    far = y * (0.5 + y * _series(_B, y * y))
    near = np.minimum(x, _FAR)
    return np.where(x >= _FAR, far, near * zeta(2.0, near) - 1.0)


def binet(x: Any) -> np.ndarray:
    """``log Gamma(x) - (x log x - x + log(2 pi / x) / 2)``, near ``1 / (12 x)`` for large x."""
    x = np.asarray(x, dtype=float)
    y = 1.0 / np.maximum(x, _FAR)
    far = y * _series(_BINET, y * y)
    near = np.minimum(x, _FAR)
    return np.where(x >= _FAR, far, gammaln(near) - (near - 0.5) * np.log(near) + near - _HALF_LOG_2PI)


def excess(d: Any) -> np.ndarray:
    """``d - log(1 + d) >= 0`` for ``d > -1``, exact also near 0 where it is ``d^2 / 2``.

    >>> float(excess(1e-20))
    5e-41
    """
    d = np.asarray(d, dtype=float)
    small = np.abs(d) < 0.04
    t = np.where(small, d, 0.0)
    total = np.full_like(t, 1 / 12)
    for k in range(11, 1, -1):
        total = 1.0 / k - t * total
    return np.where(small, t * t * total, d - np.log1p(np.where(small, 0.0, d)))


def stirling_divergence(x1: Any, x2: Any) -> np.ndarray:
    """``g(x2) - g(x1) - g'(x1) (x2 - x1) >= 0`` for ``g(x) = log Gamma(x) - x log x + x``, all parts kept small."""
    x1, x2 = np.asarray(x1, dtype=float), np.asarray(x2, dtype=float)
    slope = 0.5 / x1 - digamma_gap(x1)  # binet'(x1)
    return 0.5 * excess(x2 / x1 - 1.0) + (binet(x2) - binet(x1) - slope * (x2 - x1))
