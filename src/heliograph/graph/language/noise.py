"""Noise other than Gaussian (Student's t, Laplace, a uniform one), and observed values that are known to lie beyond a bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import LaplaceFactor, StudentT, Uniform
from heliograph.families import Gaussian
from heliograph.graph.check import as_floats, check_number, check_observed, check_positive, observed_shape
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Entries, Kind, child, fitted_size, want
from heliograph.graph.language.continuous import gaussian
from heliograph.graph.language.functions import between
from heliograph.graph.language.spread import Spread
from heliograph.graph.language.statements import constrain
from heliograph.graph.quantity import Quantity

__all__ = ["Censoring", "bounds_of", "censored_gaussian", "laplace", "student_t", "uniform"]


def student_t(draft: Draft, name: str, mean: Any, scale: Any, dof: Any, entries: Entries) -> Quantity:
    """A variable with Student's t noise; see `Builder.student_t`."""
    data = {"scale": check_positive(name, "scale", scale), "dof": check_positive(name, "dof", dof)}
    return child(draft, name, StudentT(), {"mean": _mean(name, mean)}, data, Kind(Gaussian), entries)


def laplace(draft: Draft, name: str, mean: Any, scale: Any, entries: Entries) -> Quantity:
    """A variable with Laplace noise; see `Builder.laplace`."""
    data = {"scale": check_positive(name, "scale", scale)}
    return child(draft, name, LaplaceFactor(), {"mean": _mean(name, mean)}, data, Kind(Gaussian), entries)


def _mean(name: str, mean: Any) -> Quantity | np.ndarray:
    return want(name, "mean", mean, Gaussian) if isinstance(mean, Quantity) else check_number(name, "mean", mean)


def uniform(draft: Draft, name: str, lower: Any, upper: Any, entries: Entries) -> Quantity:
    """A variable between two bounds, all values alike; see `Builder.uniform`."""
    low, high = check_number(name, "lower", lower), check_number(name, "upper", upper)
    shape = fitted_size(name, np.broadcast_shapes(low.shape, high.shape), entries.size)
    if not np.all(low < high):
        raise ModelError(f"variable {name!r}: every lower bound must be below its upper bound")
    data = {"lower": np.broadcast_to(low, shape), "upper": np.broadcast_to(high, shape)}
    return child(draft, name, Uniform(), {}, data, Kind(Gaussian), entries)


# ---- censoring ---------------------------------------------------------------------------------------------------
class Censoring(NamedTuple):
    """How observed values are censored, as a user gives it."""

    censored: Any = None  # "left", "right", or an array: -1 left, 0 not, 1 (or True) right
    until: Any = None  # upper ends of intervals whose lower ends were observed; NaN where there is no interval


def bounds_of(name: str, observed: Any, censoring: Censoring, lowest: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of every observed value; equal where it is exact, NaN where it is missing."""
    shape = observed_shape(name, observed)
    point = check_observed(name, Gaussian, shape, None, observed, None).point
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


def censored_gaussian(
    draft: Draft, name: str, mean: Any, spread: Spread, entries: Entries, censoring: Censoring
) -> Quantity:
    """A Gaussian variable of which some values are only known to lie beyond a bound or in an interval."""
    if entries.observed is None:
        raise ModelError(f"variable {name!r}: censored= and until= say something of observed=, which was not given")
    shape = fitted_size(name, observed_shape(name, entries.observed), entries.size)
    seen = check_observed(name, Gaussian, shape, None, entries.observed, entries.missing)
    values = np.full(shape, np.nan) if seen.point is None else np.asarray(seen.point).reshape(shape)
    low, high = bounds_of(name, values, censoring, -np.inf)
    exact = np.where(low == high, low, np.nan)
    x = gaussian(draft, name, mean, spread, Entries(low.shape, exact, None))
    beyond = ~np.isnan(low) & (low != high)
    if beyond.any():
        constrain(draft, between(draft, x.part(beyond), low[beyond], high[beyond]))
    return x
