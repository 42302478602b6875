"""Which labelled rows become landmarks of a process."""

from __future__ import annotations

import numpy as np

from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.regression.incomplete_cholesky import factorise
from heliograph.regression.squared_exponential import Widths, correlations

__all__ = ["choose_landmarks", "worth"]

_MOST_CANDIDATES = 4096  # labels among which landmarks are chosen; more of them would be as dense a cover
_WORTH = 0.01  # of the usual noise of a label: a remainder below that is not worth a landmark (0.1 asked three times as often)
_LEAST = 1e-7  # and of the signal


def choose_landmarks(widths: Widths, inputs: np.ndarray, limit: int, least: float = _LEAST) -> np.ndarray:
    """Numbers of the rows that together explain all others best: each time the one that is explained worst.

    Stops at `limit`, or when no row has more than `least` of its variance left.

    >>> w = Widths(np.zeros(1), np.ones(1), np.ones(1), 1e-6)
    >>> choose_landmarks(w, np.array([[0.0], [0.01], [5.0], [4.0]]), limit=2)
    array([0, 2])
    """
    some = np.arange(len(inputs))
    if len(inputs) > _MOST_CANDIDATES:
        some = np.unique(np.linspace(0, len(inputs) - 1, _MOST_CANDIDATES).astype(int))
    x = inputs[some]
    with one_blas_thread():
        found = factorise(np.ones(len(x)), lambda i: correlations(widths, x, x[i : i + 1])[:, 0], limit, least)
    return some[found.pivots]


def worth(widths: Widths, label_noise: np.ndarray | None) -> float:
    """The share of a row's variance that has to be unexplained for it to become a landmark."""
    usual = 0.0 if label_noise is None or not len(label_noise) else float(np.median(label_noise / widths.signal))
    return max(_LEAST, widths.noise, _WORTH * min(usual, 1.0))
