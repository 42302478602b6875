"""The squared exponential kernel with a width per input."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = [
    "LEAST_SIGNAL",
    "NOISE_BOUNDS",
    "Widths",
    "admit",
    "correlations",
    "departs",
    "scaled",
    "start_widths",
]

NOISE_BOUNDS = (1e-8, 1e-2)  # relative to the signal variance
LEAST_SIGNAL = 1e-20  # the signal variance of an output whose labels are all zero
_SAME = 1e-9  # relative departure up to which a value equals the constant of its column


class Widths(NamedTuple):
    """The kernel's parameters."""

    centre: np.ndarray  # (k,) subtracted from the inputs
    widths: np.ndarray  # (k,) standard deviations of the kernel; infinite where the column was constant
    signal: np.ndarray  # (q,) prior variance of each output
    noise: float  # noise variance of a label relative to the signal


def start_widths(inputs: np.ndarray, n_outputs: int) -> Widths:
    """Widths to start from: two standard deviations of the inputs seen, unit signal, noise 1e-6."""
    inputs = np.atleast_2d(np.asarray(inputs, dtype=float))
    centre, sd = inputs.mean(0), inputs.std(0)
    constant = np.ptp(inputs, axis=0) <= _SAME * (1 + np.abs(centre))
    return Widths(centre, np.where(constant, np.inf, 2.0 * sd), np.ones(n_outputs), 1e-6)


def correlations(widths: Widths, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The kernel over the signal variance, ``(n, m)``: 0 where a row departs from a column that was constant."""
    ua, ub = scaled(widths, a), scaled(widths, b)
    d2 = ua @ (-2 * ub.T)
    d2 += (ua**2).sum(1)[:, None]
    d2 += (ub**2).sum(1)
    np.maximum(d2, 0.0, out=d2)  # the expanded square may be -1e-16
    d2 *= -0.5
    c = np.exp(d2, out=d2)
    departs_a, departs_b = departs(widths, a), departs(widths, b)
    if departs_a is not None and departs_a.any():
        c[departs_a] = 0.0
    if departs_b is not None and departs_b.any():
        c[:, departs_b] = 0.0
    return c


def scaled(widths: Widths, rows: np.ndarray) -> np.ndarray:
    """Rows in units of the widths, columns that were constant left out."""
    kept = np.isfinite(widths.widths)
    return (rows[:, kept] - widths.centre[kept]) / widths.widths[kept]


def departs(widths: Widths, rows: np.ndarray) -> np.ndarray | None:
    """Which rows depart from a column that was constant; None if no column was."""
    constant = np.isinf(widths.widths)
    if not constant.any():
        return None
    centre = widths.centre[constant]
    return np.asarray((np.abs(rows[:, constant] - centre) > _SAME * (1 + np.abs(centre))).any(1))


def admit(widths: Widths, inputs: np.ndarray) -> Widths:
    """Give a column that was constant and now varies a width of its own, the starting one."""
    away = departs(widths, inputs)
    if away is None or not away.any():
        return widths
    fresh = start_widths(inputs, widths.signal.size)
    varies = np.isinf(widths.widths) & np.isfinite(fresh.widths)
    moved = np.isinf(widths.widths) & np.isinf(fresh.widths)  # still constant, at another value
    return widths._replace(
        widths=np.where(varies, fresh.widths, widths.widths),
        centre=np.where(varies | moved, fresh.centre, widths.centre),
    )
