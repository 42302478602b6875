"""Indices of a plate, which end before the event axes of its arrays."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

__all__ = ["plate_index"]


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
