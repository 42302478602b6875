"""The gamma function less Stirling's formula, and its derivatives, to full relative precision.

With ``log Gamma(x) = x log x - x + log(2 pi / x) / 2 + binet(x)`` the densities, divergences and projections of the
Gamma, Beta and Dirichlet families can be written so that the large terms cancel on paper and not in floating point;
at a shape of 1e8 the textbook forms keep only 7 digits. All functions take positive numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln, psi

from heliograph.numerics.excess import log_excess

__all__ = ["binet", "digamma_gap", "stirling_divergence", "trigamma", "trigamma_excess", "trigammas"]

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_FAR = 10.0  # from here on the asymptotic series below are exact to rounding (the first term left out is < 1e-17)

# Bernoulli numbers B_2, B_4, ..., B_16, over the divisors of each series
_B = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_GAP = tuple(b / (2 * k) for k, b in enumerate(_B, start=1))
_BINET = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(_B, start=1))
_TETRA = tuple(b * (2 * k + 1) for k, b in enumerate(_B, start=1))


def _series(coefficients: tuple[float, ...], y2: np.ndarray) -> np.ndarray:
    total = y2 * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        total += c
        total *= y2
    total += coefficients[0]
    return total


def _half_over_x(x: Any, coefficients: tuple[float, ...], near: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """``1 / (2 x)`` and its asymptotic series far out, `near` closer in."""
    x = np.asarray(x, dtype=float)
    y = np.atleast_1d(1.0 / np.maximum(x, _FAR))
    far = _series(coefficients, y * y)
    far *= y
    far += 0.5
    far *= y
    return np.where(x >= _FAR, far.reshape(x.shape), near(np.minimum(x, _FAR)))


def digamma_gap(x: Any) -> np.ndarray:
    """``log x - psi(x) > 0``: how far ``E log`` of a Gamma of shape x lies below the log of its mean.

    >>> float(digamma_gap(1e8) * 2e8)
    1.0000000016666666
    """
    return _half_over_x(x, _GAP, lambda near: np.log(near) - psi(near))


def trigammas(x: Any) -> tuple[np.ndarray, np.ndarray]:
    """``psi'(x)`` and ``-psi''(x)``, by ten steps of the recurrence and then the series.

    SciPy's own (the Hurwitz zeta function) is exact too, and 10 times slower.
    """
    x = np.atleast_1d(np.asarray(x, dtype=float))
    first, second, shifted = np.zeros_like(x), np.zeros_like(x), x.copy()
    for _ in range(int(_FAR)):
        y = 1.0 / shifted
        y2 = y * y
        first += y2
        y2 *= y
        second += y2
        shifted += 1.0
    y = 1.0 / shifted
    y2 = y * y
    first += _trigamma_far(y, y2)
    second *= 2.0
    second += y2 * (1.0 + y + y2 * _series(_TETRA, y2))
    return first, second


def trigamma(x: Any) -> np.ndarray:
    """``psi'(x)``.

    >>> float(np.round(trigamma(1.0) * 6 / np.pi**2, 12))
    1.0
    """
    x = np.asarray(x, dtype=float)
    total, shifted = np.zeros(x.shape or 1), np.atleast_1d(x).copy()
    for _ in range(int(_FAR)):
        y = 1.0 / shifted
        y *= y
        total += y
        shifted += 1.0
    y = 1.0 / shifted
    total += _trigamma_far(y, y * y)
    return total.reshape(x.shape)


def _trigamma_far(y: np.ndarray, y2: np.ndarray) -> np.ndarray:
    """``psi'(1 / y)`` by its series; `y2` is the square of y."""
    return y + y2 * (0.5 + y * _series(_B, y2))


def trigamma_excess(x: Any) -> np.ndarray:
    """``x psi'(x) - 1 > 0``, near ``1 / x`` for small x and ``1 / (2 x)`` for large."""
    return _half_over_x(x, _B, lambda near: near * trigamma(near) - 1.0)


def binet(x: Any) -> np.ndarray:
    """``log Gamma(x) - (x log x - x + log(2 pi / x) / 2)``, near ``1 / (12 x)`` for large x."""
    x = np.asarray(x, dtype=float)
    y = np.atleast_1d(1.0 / np.maximum(x, _FAR))
    far = _series(_BINET, y * y)
    far *= y
    near = np.minimum(x, _FAR)
    return np.where(x >= _FAR, far.reshape(x.shape), gammaln(near) - (near - 0.5) * np.log(near) + near - _HALF_LOG_2PI)


def stirling_divergence(x1: Any, x2: Any) -> np.ndarray:
    """``g(x2) - g(x1) - g'(x1) (x2 - x1) >= 0`` for ``g(x) = log Gamma(x) - x log x + x``, all parts kept small.

    It is what KL divergences of the Gamma, Beta and Dirichlet families are made of, besides those of their means.
    """
    x1, x2 = np.asarray(x1, dtype=float), np.asarray(x2, dtype=float)
    x1, x2 = np.broadcast_arrays(x1, x2)
    step = x2 - x1
    slope = 0.5 / x1 - digamma_gap(x1)  # binet'(x1)
    remainder = binet(np.stack([x1, x2]))
    return 0.5 * log_excess(step / x1, x2 / x1) + (remainder[1] - remainder[0] - slope * step)
