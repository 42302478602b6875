"""The excess of a convex function over its tangent at 0, exact also where it is tiny."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["exp_excess", "log_excess"]

_TINY = float(np.finfo(float).tiny)


def log_excess(d: Any, ratio: Any = None) -> np.ndarray:
    """``d - log(1 + d) >= 0`` for ``d > -1``, exact also near 0 where it is ``d^2 / 2``.

    Give ``ratio = 1 + d`` too where it may be so small that d alone rounds to -1.

    >>> float(log_excess(1e-20))
    5e-41
    """
    d = np.asarray(d, dtype=float)
    small = np.abs(d) < 0.04
    t = np.atleast_1d(np.where(small, -d, 0.0))
    total = t * (1 / 12)
    for k in range(11, 2, -1):
        total += 1.0 / k
        total *= t
    total += 0.5
    total *= t
    total *= t
    if ratio is None:
        return np.where(small, total.reshape(d.shape), d - np.log1p(np.where(small, 0.0, d)))
    return np.where(small, total.reshape(d.shape), d - np.log(np.maximum(ratio, _TINY)))


def exp_excess(d: np.ndarray) -> np.ndarray:
    """``exp(d) - 1 - d >= 0``, exact also near 0 where it is ``d^2 / 2``.

    For ``d = log x - log E x`` its mean is ``log E x - E log x``, all that the projection on a Gamma needs beside E x.

    >>> float(exp_excess(np.array(1e-9)))
    5.000000001666667e-19
    """
    small = np.abs(d) < 0.25
    t = np.where(small, d, 0.0)
    total = np.ones(t.shape)
    for k in range(14, 2, -1):
        total *= t
        total *= 1.0 / k
        total += 1.0
    # far out the weight is 0 whatever this is, so it only must not overflow
    return np.where(small, 0.5 * t * t * total, np.expm1(np.minimum(d, 600.0)) - d)
