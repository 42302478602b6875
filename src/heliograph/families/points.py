"""The locations of point masses in a plate: NaN where an entry is none, None where no entry is one."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from heliograph.errors import ContradictionError, ImproperError

__all__ = ["Points", "divided", "locations", "multiplied", "or_none"]

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
