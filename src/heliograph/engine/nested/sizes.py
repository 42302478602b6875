"""How much a tail counts in means and variances: by how large the positive hyper-parameters are there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heliograph.graph.hyper import Hyper

__all__ = ["log_sizes"]

_AWAY = 0.1  # share of a squared distance in standard deviations that a tail counts with: chosen on one scale that is far from zero
_STEP = 1e-4  # of u, for the slope of a logarithm


def log_sizes(hypers: Sequence[Hyper], best: np.ndarray, metric: np.ndarray, u: np.ndarray) -> np.ndarray:
    """``log`` of the largest of the positive hyper-parameters, each over its size at the best value, or 0.

    A tail that holds little mass counts in the mean and the variance of a scale if the scale is large there; and that of a single
    one, if it is many standard deviations away.

    Parameters
    ----------
    hypers
        The hyper-parameters.
    best
        The best value, ``(d,)``.
    metric
        ``(d, d)``, in which it is one standard deviation wide.
    u
        Other values, ``(..., d)``.
    """
    start, found = 0, np.zeros(u.shape[:-1])
    for h in hypers:
        part = slice(start, start + h.prior.n)
        if h.prior.positive:
            log_here = np.log(h.prior.value(best[part]).reshape(-1))
            larger = np.log(h.prior.value(u[..., part]).reshape(*u.shape[:-1], -1)) - log_here
            found = np.maximum(found, larger.max(axis=-1))
            if len(best) == 1:
                slope = (np.log(h.prior.value(best + _STEP)).reshape(-1) - log_here)[0] / _STEP
                away = np.expm1(np.minimum(larger[..., 0], 50.0)) * float(np.abs(metric[0, 0])) / slope
                found = np.maximum(found, np.log(np.maximum(_AWAY * away**2, 1.0)))
        start += h.prior.n
    return found
