"""The locations of point masses in a plate: NaN where an entry is none, None where no entry is one."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np

from heliograph.errors import ContradictionError, ImproperError

__all__ = ["Points", "divided", "locations", "multiplied", "or_none", "plate_index"]


Points: TypeAlias = np.ndarray | None


def or_none(point: Points) -> Points:
    """The same locations; None if there are none."""
    return None if point is None or np.isnan(point).all() else np.asarray(point)


def locations(point: Points, shape: tuple[int, ...]) -> np.ndarray:
    """The locations as an array, all NaN of this shape if there are none."""
    return point if point is not None else np.full(shape, np.nan)


def multiplied(family: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The locations in a product: those of both messages, which must agree."""
    x, y = np.broadcast_arrays(x, y)
    clash = ~np.isnan(x) & ~np.isnan(y) & (x != y)
    if clash.any():
        raise ContradictionError(
            f"two point-mass {family} messages disagree ({x[clash][0]:g} and {y[clash][0]:g}): their product "
            "is zero everywhere"
        )
    return np.where(np.isnan(x), y, x)


def divided(family: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The locations in a quotient: a point mass divided by itself is uniform."""
    x, y = np.broadcast_arrays(x, y)
    if (~np.isnan(y) & (x != y)).any():
        raise ImproperError(f"cannot divide a {family} message by a point mass somewhere else")
    return np.where(x == y, np.nan, x)


def plate_index(index: Any, ndim: int) -> tuple[Any, ...]:
    """An index that stays on the plate axes: event axes follow them, and are not to be reached."""
    parts = cast("tuple[Any, ...]", index if isinstance(index, tuple) else (index,))
    used = 0
    for i in parts:
        array = np.asarray(cast("Any", i)) if isinstance(i, (np.ndarray, list)) else None
        mask = array is not None and array.dtype == bool
        used += np.ndim(cast("Any", array)) if mask else 0 if i is None or i is Ellipsis else 1
    if used > ndim:
        raise IndexError(f"{used} indices for a plate of {ndim} axes; use .marginal or .mean for parts of one entry")
    at = next((k for k, i in enumerate(parts) if i is Ellipsis), None)
    return parts if at is None else (*parts[:at], *(slice(None),) * (ndim - used), *parts[at + 1 :])
