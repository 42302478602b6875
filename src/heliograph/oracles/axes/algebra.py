"""Errors carried through linear maps, and draws by inversion: what several axes share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from heliograph.families import Family

__all__ = [
    "FAR",
    "LARGEST",
    "at_points",
    "columns",
    "errors_of",
    "half_trace",
    "log_at_mode",
    "log_gamma_draws",
    "log_ratio",
    "matrix_of",
    "sandwich",
]

LARGEST = 1e150  # beyond this the square of a number is infinite, and so is the number to us
FAR = 700.0  # on a log or logit axis: the end of double precision


def columns(a: np.ndarray) -> np.ndarray:
    """(n,) -> (n, 1), to stand beside samples (n, s)."""
    return a[:, None]


def sandwich(j: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """``J C J'``: an error seen through a linear map."""
    return j @ covariance @ np.swapaxes(j, -1, -2)


def matrix_of(rows: list[list[Any]]) -> np.ndarray:
    """Rows of (n,) arrays -> (n, r, c)."""
    return np.stack([np.stack(np.broadcast_arrays(*row), axis=-1) for row in rows], axis=-2)


def errors_of(covariance: np.ndarray) -> np.ndarray:
    """Standard errors from a covariance."""
    return np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0))


def half_trace(information: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Expected KL of an error with `covariance` where the statistics themselves have covariance `information`."""
    return 0.5 * np.einsum("nii->n", np.linalg.solve(information, covariance))


def log_gamma_draws(shape: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """``log`` of standard Gamma draws by inversion, right also where the draw itself underflows."""
    x = special.gammaincinv(shape, uniforms)
    small = x < 1e-280
    lower = (np.log(uniforms) + special.gammaln(shape + 1)) / shape  # P(shape, x) -> x^shape / Gamma(shape + 1)
    return np.where(small, lower, np.log(np.where(small, 1.0, x)))


def at_points(message: Family, x: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """`log_p`, but 0 or -inf at the entries that are point masses."""
    if message.point is None:
        return log_p
    here = np.where(x == columns(message.point), 0.0, -np.inf)
    return np.where(columns(message.is_point), here, log_p)


def log_ratio(a: np.ndarray, b: np.ndarray, at_end: np.ndarray) -> np.ndarray:
    """``log(a / b)`` where both are positive, else `at_end`."""
    inner = (a > 0) & (b > 0)
    return np.where(inner, np.log(np.where(inner, a / np.where(inner, b, 1.0), 1.0)), at_end)


def log_at_mode(axis: Any, message: Family, bounded: np.ndarray) -> np.ndarray:
    """The log density (n,) of a message at its mode; infinite where it is not bounded."""
    flat = np.logical_and.reduce([a == 0 for a in message.naturals])
    bounded = (bounded | flat) & ~message.is_point
    at = axis.log_message(message, np.where(flat, 0.0, axis.mode(message))[:, None, None])[:, 0]
    return np.where(bounded, at, np.inf)
