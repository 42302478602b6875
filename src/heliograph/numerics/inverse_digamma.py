"""From values of digamma-like functions back to their argument: vectorised Newton steps on its logarithm.

Each begins at a start that is right in both limits, so a handful of steps reaches rounding for arguments from 1e-6 to
1e8 and far beyond. The number of steps is fixed: nothing here can hang. The starts are public, because inversions of
two unknowns begin from them too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import psi

from heliograph.numerics.gamma_function import digamma_gap, trigamma_excess, trigammas

__all__ = [
    "inverse_digamma",
    "inverse_digamma_gap",
    "inverse_trigamma",
    "start_from_digamma",
    "start_from_gap",
    "start_from_trigamma",
]

_EULER = 0.5772156649015329


def inverse_digamma_gap(gap: Any) -> np.ndarray:
    """The shape s with ``log s - psi(s) = gap``, for ``gap > 0``.

    On log-log axes the function is nearly a straight line of slope -1, so Newton there converges at once.

    >>> float(np.round(inverse_digamma_gap(digamma_gap(3.0)), 12))
    3.0
    """
    d = np.clip(gap, 1e-300, 1e17)  # beyond, the shape overflows, or is rounded away when it is stored
    s = start_from_gap(d)
    for _ in range(3):  # the start is within 2 %, and the line bends so little that errors fall as .02, 3e-5, 1e-10
        value = digamma_gap(s)
        s = s * np.exp(np.log(value / d) * value / trigamma_excess(s))
    return s


def start_from_gap(d: np.ndarray) -> np.ndarray:
    """The shape at which ``(1 + 3 s) / (s (1 + 6 s))``, within 2 % of the true gap, equals d."""
    root = np.sqrt((d - 3.0) ** 2 + 24.0 * d)
    near, far = np.minimum(d, 3.0), np.maximum(d, 3.0)  # two forms of one quadratic's root: neither cancels
    return np.where(d <= 3.0, (3.0 - near + root) / (12.0 * near), 2.0 / (root + far - 3.0))


def inverse_trigamma(variance: Any) -> np.ndarray:
    """The shape s with ``psi'(s) = variance``, for ``variance > 0``.

    >>> float(np.round(inverse_trigamma(np.pi**2 / 6), 12))
    1.0
    """
    v = np.asarray(variance, dtype=float)
    # beyond these limits the leading terms of psi' are exact to rounding
    inside = np.clip(v, 1e-8, 1e16)
    s = np.atleast_1d(start_from_trigamma(1.0 / inside))
    for _ in range(4):
        value, slope = trigammas(s)
        s = s * np.exp(np.log(value / inside) * value / (s * slope))
    s = s.reshape(v.shape)
    return np.where(v < 1e-8, 1.0 / np.minimum(v, 1e-8) + 0.5, np.where(v > 1e16, 1.0 / np.sqrt(v), s))


def start_from_trigamma(y: np.ndarray) -> np.ndarray:
    """The shape at which ``s^2 / (s + 0.6)``, near the true ``1 / psi'(s)``, equals y."""
    return 0.5 * (y + np.sqrt(y * (y + 2.4)))


def inverse_digamma(y: Any) -> np.ndarray:
    """The x with ``psi(x) = y``.

    >>> float(inverse_digamma(psi(7.0)))
    7.0
    """
    y = np.clip(y, -1e100, 690.0)  # from 1e-100 to exp(690): beyond, squares or the answer itself overflow
    x = start_from_digamma(y)
    for _ in range(5):
        # Newton in log x, whose slope x psi'(x) is never below 1
        x = x * np.exp((y - psi(x)) / (1.0 + trigamma_excess(x)))
    return x


def start_from_digamma(y: np.ndarray) -> np.ndarray:
    """An x with ``psi(x)`` near y, exact in both limits."""
    high = y >= -2.22
    return np.where(high, np.exp(np.clip(y, -2.22, 690.0)) + 0.5, -1.0 / (np.minimum(y, -2.22) + _EULER))
