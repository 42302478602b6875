"""The arithmetic of a lattice's cells: cubic interpolation, which cells to fill together, and classes as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heliograph.families import Family, concatenate
from heliograph.operators.protocol import Incoming

__all__ = [
    "BLOCK",
    "CUBIC",
    "HALF",
    "STENCIL",
    "around",
    "arrays_of",
    "class_columns",
    "cubic",
    "is_plain",
    "joined",
    "with_neighbours",
]

# the four cubic polynomials that are 1 at one of the nodes -1, 0, 1, 2 and 0 at the others: rows by node, columns by power
CUBIC = np.array([[0, -2, 3, -1], [6, -3, -6, 3], [0, 6, 3, -3], [0, -1, 0, 1]]) / 6.0
STENCIL = np.arange(-1, 3)
HALF = 0.5 ** np.arange(4)  # the powers at the centre of a cell

BLOCK = 4  # cells that are filled together along an axis
_WORTHWHILE = 400  # cells that are filled together, if there are so many near by; and
_FOR_EACH = 16  # for each that is wanted, a block of its own: one outlier must not lay hundreds
_ROUNDS = 4  # of neighbours, at most

Cells = tuple[np.ndarray, ...]  # class, and number along each axis


def around(cells: Cells) -> Cells:
    """The sixteen nodes around each cell, ``(n, 4, 4)``."""
    classes, i, j = cells
    return classes[:, None, None], i[:, None, None] + STENCIL[:, None], j[:, None, None] + STENCIL


def with_neighbours(wanted: np.ndarray, unknown: np.ndarray, enough: int | None = None) -> np.ndarray:
    """Cells to fill, and unknown ones near them, `enough` in all if there are so many.

    Calls for few rows have a price of their own. All are bool, by class and cell; cells at the edge are never filled.
    """
    if enough is None:
        enough = min(_WORTHWHILE, _FOR_EACH * int(np.count_nonzero(wanted)))
    n_classes, rows, columns = unknown.shape
    unknown = unknown.copy()
    unknown[:, [0, -1, -2]] = unknown[:, :, [0, -1, -2]] = False
    blocks = np.zeros((n_classes, -(-rows // BLOCK), -(-columns // BLOCK)), dtype=bool)
    classes, i, j = np.nonzero(wanted)
    blocks[classes, i // BLOCK, j // BLOCK] = True
    for _ in range(_ROUNDS):
        wanted = blocks.repeat(BLOCK, axis=1)[:, :rows].repeat(BLOCK, axis=2)[:, :, :columns] & unknown
        if np.count_nonzero(wanted) >= enough:
            break
        blocks[:, 1:] |= blocks[:, :-1].copy()
        blocks[:, :-1] |= blocks[:, 1:].copy()
        blocks[:, :, 1:] |= blocks[:, :, :-1].copy()
        blocks[:, :, :-1] |= blocks[:, :, 1:].copy()
    return wanted


def cubic(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A polynomial with coefficients along the first axis."""
    out = c[3] * x
    out += c[2]
    out *= x
    out += c[1]
    out *= x
    out += c[0]
    return out


def class_columns(incoming: Incoming, ports: Sequence[str]) -> np.ndarray:
    """What some ports hold as numbers, ``(k, n)``: rows with the same numbers hold the same."""
    n = len(next(iter(incoming.values())))
    columns = [np.asarray(a, dtype=float).reshape(n, -1).T for p in ports for a in arrays_of(incoming[p])]
    return np.concatenate(columns) if columns else np.zeros((0, n))


def arrays_of(message: Any) -> list[Any]:
    """The arrays that a message, or data, consists of."""
    if not isinstance(message, Family):
        return [message]
    return [*message.naturals] if message.point is None else [*message.naturals, message.point]


def is_plain(message: Any) -> bool:
    """Whether all its numbers are finite: no mixture of point masses and others."""
    return all(np.isfinite(np.asarray(a, dtype=float)).all() for a in arrays_of(message))


def joined(old: Any, new: Any) -> Any:
    """Two plates of messages, or of data, as one."""
    return concatenate([old, new]) if isinstance(new, Family) else np.concatenate([old, new])
