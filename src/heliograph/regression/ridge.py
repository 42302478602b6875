"""Ridge regression with leave-one-out errors in closed form, over a whole grid from one factorisation.

The ridge is the ratio ``sigma_y^2 / sigma_0^2`` of `bayesian_linear`. Selection of widths is here too: it is given maps
from anything to feature rows, and never learns what the rows stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.numerics.blas_threads import one_blas_thread

__all__ = ["RIDGES", "Selection", "Spectrum", "fit", "leave_one_out", "profiled_evidence", "select", "spectrum"]

RIDGES = tuple(10.0**k for k in range(-10, 0))  # a grid for features of length one


class Spectrum(NamedTuple):
    """A feature matrix and its targets in the matrix's own axes: what every point of a grid shares."""

    left: np.ndarray  # (N, r) left singular vectors
    values2: np.ndarray  # (r,) squared singular values
    right: np.ndarray  # (r, D) right singular vectors
    turned: np.ndarray  # (r, q) targets along the left singular vectors
    outside: np.ndarray  # (N, q) the part of the targets that no weights can reach
    free: np.ndarray  # (N,) of each row, the share outside the span


class Selection(NamedTuple):
    """The winner of a grid, and all scores for a reader."""

    index: int  # of the map
    ridge: float
    scores: np.ndarray  # (n_maps, n_ridges); smaller is better


def spectrum(x: np.ndarray, y: np.ndarray) -> Spectrum:
    """Factor a feature matrix ``(N, D)`` once for a whole grid of ridges."""
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float).reshape(len(x), -1)
    with one_blas_thread():
        if len(x) > x.shape[1]:
            q, r = np.linalg.qr(x)
            u, s, vt = np.linalg.svd(r, full_matrices=False)
            left = q @ u
            outside = y - left @ (left.T @ y)
            free = np.maximum(1 - (left**2).sum(1), 0.0)  # rounding may leave -1e-16
        else:
            left, s, vt = np.linalg.svd(x, full_matrices=False)
            outside, free = np.zeros_like(y), np.zeros(len(x))  # as many features as rows reach every target
        return Spectrum(left, s**2, vt, left.T @ y, outside, free)


def fit(x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Weights ``(D, q)`` that minimise ``||y - x w||^2 + ridge ||w||^2``.

    >>> fit(np.array([[1.0], [1.0]]), np.array([1.0, 3.0]), ridge=2.0)
    array([[1.]])
    """
    s = spectrum(x, y)
    return s.right.T @ ((np.sqrt(s.values2) / (s.values2 + ridge))[:, None] * s.turned)


def leave_one_out(s: Spectrum, ridge: float) -> np.ndarray:
    """Residual ``(N, q)`` of every row predicted by the weights of all the others."""
    shrink = ridge / (s.values2 + ridge)
    residual = s.outside + s.left @ (shrink[:, None] * s.turned)
    return residual / (s.free + (s.left**2) @ shrink)[:, None]


def profiled_evidence(s: Spectrum, ridge: float) -> np.ndarray:
    """``log p(y)`` of each output, ``(q,)``, at its best overall scale for this ratio of noise to prior variance."""
    n = len(s.left)
    shrink = ridge / (s.values2 + ridge)
    noise = ((shrink[:, None] * s.turned**2).sum(0) + (s.outside**2).sum(0)) / n
    return -0.5 * (n * np.log(2 * np.pi * np.maximum(noise, 1e-300)) + n - np.log(shrink).sum())


def select(
    maps: Sequence[Callable[[Any], np.ndarray]],
    rows: Any,
    targets: np.ndarray,
    ridges: Sequence[float] = RIDGES,
    criterion: str = "leave-one-out",
) -> Selection:
    """The map and the ridge that do best over a grid.

    `maps` turn `rows` into feature matrices ``(N, D)``. Scores are the sum over outputs of the log mean squared
    leave-one-out error, or minus the log evidence: neither depends on the units of an output.
    """
    if criterion not in ("leave-one-out", "evidence"):
        raise ModelError(f"a map is selected by 'leave-one-out' or 'evidence', not by {criterion!r}")
    scores = np.empty((len(maps), len(ridges)))
    for i, features in enumerate(maps):
        s = spectrum(features(rows), targets)
        for j, ridge in enumerate(ridges):
            if criterion == "evidence":
                scores[i, j] = -profiled_evidence(s, ridge).sum()
            else:
                scores[i, j] = np.log(np.maximum((leave_one_out(s, ridge) ** 2).mean(0), 1e-300)).sum()
    i, j = np.unravel_index(int(np.argmin(scores)), scores.shape)
    return Selection(int(i), float(ridges[int(j)]), scores)
