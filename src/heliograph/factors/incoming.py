"""Reading what comes in: a plain array is data, and data at a family's port is a point mass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heliograph.errors import UnsupportedError
from heliograph.factors.base import Factor, Incoming
from heliograph.families import Family

__all__ = ["as_data", "as_message", "as_plate"]


def as_message(factor: Factor, incoming: Incoming, port: str) -> Any:
    """The message at `port` as a `Family`; a plain array becomes point masses."""
    value, families = incoming[port], factor.families[port]
    if not isinstance(value, Family):
        if not families:
            raise UnsupportedError(f"factor {factor.name!r} takes plain arrays only at {port!r}")
        return families[0].point_mass(value)  # type: ignore[attr-defined]
    if families and type(value) not in families:
        names = " or ".join(f.__name__ for f in families)
        raise UnsupportedError(
            f"factor {factor.name!r} takes {names} messages at {port!r}, not {type(value).__name__}; "
            "heliograph.supported() lists every combination"
        )
    return value


def as_plate(factor: Factor, incoming: Incoming, ports: Sequence[str]) -> list[Any]:
    """The messages at some ports, repeated to one plate shape."""
    messages = [as_message(factor, incoming, port) for port in ports]
    shape = np.broadcast_shapes(*(m.shape for m in messages))
    return [m.broadcast_to(shape) for m in messages]


def as_data(factor: Factor, incoming: Incoming, port: str) -> np.ndarray:
    """The values at a data port; a `Family` there must be point masses."""
    value = incoming[port]
    if not isinstance(value, Family):
        return np.asarray(value, dtype=float)
    if value.point is None or not np.all(value.is_point):
        raise UnsupportedError(
            f"factor {factor.name!r} needs fixed values at {port!r}, not {type(value).__name__} messages"
        )
    return value.point
