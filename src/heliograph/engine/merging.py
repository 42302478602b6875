"""Products of messages entry by entry: gathered, scattered, overlaid with what was observed, replaced in some rows."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.families import Family
from heliograph.graph.records import Node, Plate

__all__ = ["copied", "overlaid", "scattered", "times", "with_rows"]

F = TypeVar("F", bound=Family)


def times(node: Node, product: Family, part: Family, plate: Plate) -> Family:
    """The product of a node's belief and one more plate's messages, which must not contradict it."""
    try:
        return product * part
    except ContradictionError as error:
        raise ContradictionError(
            f"variable {node.name!r}: what factor {plate.factor.name!r} ({plate.name}) says of it cannot hold together with "
            f"the rest of the model: {error}"
        ) from None


def overlaid(message: Family, seen: Family) -> Family:
    """`seen` where it is a point mass, else the message."""
    if seen.point is None:
        return message
    return message.from_naturals(message.naturals) * seen.from_naturals(
        tuple(np.zeros_like(a) for a in seen.naturals), seen.point
    )


def copied(message: F) -> F:
    """The same message in arrays of its own."""
    point = None if message.point is None else message.point.copy()
    return message.from_naturals(tuple(np.array(a) for a in message.naturals), point)


def with_rows(whole: Family, part: Family, rows: slice) -> Family:
    """The same messages with some rows replaced."""
    new = copied(whole)
    for a, b in zip(new.naturals, part.naturals, strict=True):
        a[rows] = b
    if new.point is None and part.point is None:
        return new
    event = new.naturals[0].shape[new.ndim :][: new.point_rank]
    point = np.full((*new.shape, *event), np.nan) if new.point is None else new.point
    point[rows] = np.nan if part.point is None else part.point
    return new.from_naturals(new.naturals, point)


def scattered(node: Node, index: np.ndarray, message: Family) -> Family:
    """The product, per entry of the node, of the messages that meet there."""
    n = node.size
    naturals: list[np.ndarray] = []
    for a in message.naturals:
        if a.ndim == 1:
            naturals.append(np.bincount(index, weights=a, minlength=n))
        else:
            total = np.zeros((n, *a.shape[1:]))
            np.add.at(total, index, a)
            naturals.append(total)
    if message.point is None:
        return message.from_naturals(tuple(naturals))
    shape = (n, *message.point.shape[1:])
    point = np.full(shape, np.nan)
    at = message.is_point
    point[index[at]] = message.point[at]
    if not np.array_equal(point[index[at]], message.point[at]):
        raise ContradictionError(f"variable {node.name!r}: two factors fix the same entry to different values")
    return message.from_naturals(tuple(naturals), point)
