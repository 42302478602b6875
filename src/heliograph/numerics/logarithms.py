"""Logarithms of numbers that may be 0, and the one that every Gaussian density has."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["LOG_2PI", "log_or_minus_inf"]

LOG_2PI = float(np.log(2 * np.pi))


def log_or_minus_inf(x: Any) -> np.ndarray:
    """``log x``, and -inf without a warning where x is 0 (or below, or NaN).

    >>> log_or_minus_inf(np.array([0.0, 1.0]))
    array([-inf,   0.])
    """
    x = np.asarray(x)
    return np.log(x, out=np.full(x.shape, -np.inf), where=x > 0)
