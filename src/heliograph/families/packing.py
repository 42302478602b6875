"""Plates of messages as plain arrays and JSON, and back: how operators keep and save what they saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heliograph import families
from heliograph.errors import FileFormatError
from heliograph.families.base import Family, concatenate

__all__ = ["family_named", "join_plates", "pack", "unpack"]


def family_named(name: object) -> type[Family]:
    """The family of that name."""
    kind = getattr(families, name, None) if isinstance(name, str) and name in families.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, Family) and kind is not Family):
        raise FileFormatError(f"the file speaks of a family {name!r} that this version does not have")
    return kind


def pack(incoming: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays ``port.0``, ``port.1`` ... (natural parameters), ``port.point`` or ``port.data``, and family names."""
    arrays: dict[str, np.ndarray] = {}
    header: dict[str, Any] = {}
    for port, m in incoming.items():
        if not isinstance(m, Family):
            arrays[f"{port}.data"], header[port] = np.asarray(m, dtype=float), None
            continue
        header[port] = type(m).__name__
        for k, a in enumerate(m.naturals):
            arrays[f"{port}.{k}"] = np.asarray(a)
        if m.point is not None:
            arrays[f"{port}.point"] = m.point
    return arrays, header


def unpack(arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> dict[str, Any]:
    """The reverse of `pack`.

    >>> from heliograph.families import Beta
    >>> unpack(*pack({"p": Beta([1.0, 2.0], 3.0)}))
    {'p': Beta[a 1., b 3., a 2., b 3.]}
    """
    incoming: dict[str, Any] = {}
    for port, name in header.items():
        if name is None:
            incoming[port] = arrays[f"{port}.data"]
            continue
        kind = family_named(name)
        naturals = tuple(np.asarray(arrays[f"{port}.{k}"], dtype=float) for k in range(len(kind.ranks)))
        incoming[port] = kind.from_naturals(naturals, arrays.get(f"{port}.point"))
    return incoming


def join_plates(plates: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several plates of tuples as one."""
    if len(plates) == 1:
        return dict(plates[0])
    first = plates[0]
    return {
        port: concatenate([p[port] for p in plates])
        if isinstance(m, Family)
        else np.concatenate([np.asarray(p[port]) for p in plates])
        for port, m in first.items()
    }
