"""Logarithms of numbers that may be 0."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["log_or_minus_inf"]


def log_or_minus_inf(x: Any) -> np.ndarray:
    """``log x``, and -inf without a warning where x is 0 (or below, or NaN).

    >>> log_or_minus_inf(np.array([0.0, 1.0]))
    array([-inf,   0.])
    """
    x = np.asarray(x)
    return np.log(x, out=np.full(x.shape, -np.inf), where=x > 0)
