"""Observed values that are only known to lie beyond a bound, or between two."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Gaussian
from heliograph.graph.check import as_floats, check_observed, observed_shape

__all__ = ["Censoring", "bounds_of"]


class Censoring(NamedTuple):
    """How observed values are censored, as a user gives it."""

    censored: Any = None  # "left", "right", or an array: -1 left, 0 not, 1 (or True) right
    until: Any = None  # upper ends of intervals whose lower ends were observed; NaN where there is no interval
    missing: Any = None  # True where a value is missing


def bounds_of(name: str, observed: Any, censoring: Censoring, lowest: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of every observed value; equal where it is exact, NaN where it is missing."""
    shape = observed_shape(name, observed)
    point = check_observed(name, Gaussian, shape, None, observed, censoring.missing).point
    values = (np.full(shape, np.nan) if point is None else point).reshape(shape)
    side = _sides(name, shape, censoring.censored)
    low, high = np.where(side == -1, lowest, values), np.where(side == 1, np.inf, values)
    if censoring.until is not None:
        until = as_floats(f"variable {name!r}: until=", censoring.until)
        try:
            until = np.broadcast_to(until, shape)
        except ValueError:
            raise ModelError(f"variable {name!r}: until= has shape {until.shape}, observed= {shape}") from None
        inside = ~np.isnan(until)
        if np.any(inside & ((side != 0) | (until <= values))):
            raise ModelError(
                f"variable {name!r}: an interval ends above its observed value, and is not censored besides"
            )
        high = np.where(inside, until, high)
    missing = np.isnan(values)
    return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def _sides(name: str, shape: tuple[int, ...], censored: Any) -> np.ndarray:
    if censored is None:
        return np.zeros(shape)
    if isinstance(censored, str):
        if censored not in ("left", "right"):
            raise ModelError(f"variable {name!r}: censored= is 'left', 'right' or an array, not {censored!r}")
        return np.full(shape, -1.0 if censored == "left" else 1.0)
    side = as_floats(f"variable {name!r}: censored=", censored)
    if not np.isin(side, (-1.0, 0.0, 1.0)).all():
        raise ModelError(
            f"variable {name!r}: censored= holds 1 (or True) where the value is above what was observed, -1 where it is below, "
            "and 0 elsewhere"
        )
    try:
        return np.broadcast_to(side, shape)
    except ValueError:
        raise ModelError(f"variable {name!r}: censored= has shape {side.shape}, observed= {shape}") from None
