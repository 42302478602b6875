"""All roots of a function of one number, for many functions at once: even nodes, turning points, and bisection.

Between two nodes there is a root where the sign changes, and two where the function turns towards zero and passes it. Nodes are
doubled until two resolutions find as many. A sign that changes without the value going to zero is a jump or a pole, and no root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["Roots", "roots_of"]

Function = Callable[
    [np.ndarray, np.ndarray], np.ndarray
]  # numbers of functions (c,), places (c,) -> values (c,), NaN: none

_NODES = (
    512,
    1024,
    2048,
    4096,
    8192,
    16384,
)  # cells of the window; from one resolution to the next nothing may be found anew
_HALF = 12.0  # of the first window, in units of the scale
_WIDER = 4.0  # times that, where no root was found
_WIDEST = 8  # windows tried
_BISECTIONS = 64  # from a cell to neighbouring doubles
_GOLDEN = 0.5 * (3 - 5**0.5)
_NARROWINGS = 40  # of a turn: the place is then known to the root of a rounding error, as it can be
# of a cell's own change, that may be left between neighbouring doubles: the cube root of 1e-16, and more
_CONTINUOUS = 1e-3
_TOUCHES = 1e-12  # of what a function changes by around a turn, within which it touches zero there


class Roots(NamedTuple):
    """Roots of n functions."""

    row: np.ndarray  # (c,) of which function
    at: np.ndarray  # (c,)
    doubtful: np.ndarray  # (n,) bool: it swings faster than nodes follow, or touches zero without passing it
    flat: np.ndarray  # (n,) bool: zero on a whole interval
    n_evaluations: int


class _Found(NamedTuple):
    row: np.ndarray
    low: np.ndarray
    high: np.ndarray
    doubtful: np.ndarray
    flat: np.ndarray


def roots_of(function: Function, centre: np.ndarray, scale: np.ndarray) -> Roots:
    """The roots (n functions) within twelve scales of a centre, or, where there are none, further out."""
    n = len(centre)
    looked = _Counted(function)
    need, half = np.arange(n), _HALF
    doubtful, flat = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    rows, places = [np.zeros(0, dtype=int)], [np.zeros(0)]
    for _ in range(_WIDEST):
        if not len(need):
            break
        found = _resolved(looked, need, centre, half * scale)
        doubtful |= found.doubtful
        flat |= found.flat
        row, at = _bisect(looked, found)
        rows.append(row)
        places.append(at)
        seen = np.bincount(row, minlength=n) > 0
        need = need[~seen[need] & ~flat[need] & ~doubtful[need]]
        half *= _WIDER
    return Roots(np.concatenate(rows), np.concatenate(places), doubtful, flat, looked.n)


class _Counted:
    """A function, and how often it was called."""

    def __init__(self, function: Function) -> None:
        self.function, self.n = function, 0

    def __call__(self, row: np.ndarray, at: np.ndarray) -> np.ndarray:
        self.n += len(row)
        return self.function(row, at) if len(row) else np.zeros(0)


def _resolved(g: _Counted, rows: np.ndarray, centre: np.ndarray, half: np.ndarray) -> _Found:
    """Brackets of all rows, from nodes that are doubled until nothing more is found."""
    n = len(centre)
    left, parts, before = rows, [], np.full(n, -1)
    for level, cells in enumerate(_NODES):
        found = _brackets(g, left, centre, half, cells)
        counts = np.bincount(found.row, minlength=n)
        last = level == len(_NODES) - 1
        same = counts == before
        done = left if last else left[same[left]]
        if last:
            found.doubtful[left[~same[left]]] = True
        keep = np.isin(found.row, done)
        mask = np.zeros(n, dtype=bool)
        mask[done] = True
        parts.append(
            _Found(found.row[keep], found.low[keep], found.high[keep], found.doubtful & mask, found.flat & mask)
        )
        before, left = counts, np.setdiff1d(left, done)
        if not len(left):
            break
    joined = [np.concatenate([getattr(p, name) for p in parts]) for name in ("row", "low", "high")]
    return _Found(*joined, *(np.logical_or.reduce([getattr(p, name) for p in parts]) for name in ("doubtful", "flat")))


def _brackets(g: _Counted, rows: np.ndarray, centre: np.ndarray, half: np.ndarray, cells: int) -> _Found:
    """Cells in which the sign changes, those around turns cut in two, and where a function is zero or touches it."""
    n = len(centre)
    # no node at a round number of scales: a root there would lie on a node, which is no harm, but kinks do too
    at = centre[rows, None] + half[rows, None] * (np.linspace(-1.0, 1.0, cells + 1) + 0.137 / cells)
    value = g(np.repeat(rows, cells + 1), at.ravel()).reshape(at.shape)
    doubtful, flat = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    zero = value == 0
    flat[rows] = (zero[:, 1:] & zero[:, :-1]).any(axis=1)
    r, k = np.nonzero(zero[:, 1:-1] & ~zero[:, :-2] & ~zero[:, 2:])  # on a node: a bracket of its own
    alone = value[r, k] * value[r, k + 2] < 0
    doubtful[rows[r[~alone]]] = True
    parts = [(rows[r[alone]], at[r[alone], k[alone]], at[r[alone], k[alone] + 2])]
    r, k = np.nonzero(value[:, :-1] * value[:, 1:] < 0)
    parts.append((rows[r], at[r, k], at[r, k + 1]))
    size = np.abs(value)
    turn = (size[:, 1:-1] <= size[:, :-2]) & (size[:, 1:-1] <= size[:, 2:]) & ~zero[:, 1:-1]
    turn &= (value[:, 1:-1] * value[:, :-2] > 0) & (value[:, 1:-1] * value[:, 2:] > 0)
    turn &= (size[:, :-2] > size[:, 1:-1]) | (size[:, 2:] > size[:, 1:-1])  # a constant function has no turn
    r, k = np.nonzero(turn)
    if len(r):
        sides = at[r, k], at[r, k + 1], at[r, k + 2]
        passed, touched, deepest = _turns(g, rows[r], sides, value[r, k + 1], np.maximum(size[r, k], size[r, k + 2]))
        doubtful[rows[r[touched]]] = True
        for low, high in ((sides[0], deepest), (deepest, sides[2])):
            parts.append((rows[r[passed]], low[passed], high[passed]))
    row, low, high = (np.concatenate(a) for a in zip(*parts, strict=True))
    return _Found(row, low, high, doubtful, flat)


def _turns(
    g: _Counted, row: np.ndarray, sides: tuple[np.ndarray, ...], middle: np.ndarray, change: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where a function turns between nodes: whether it passes zero there, whether it touches it, and the place."""
    low, best, high = (a.copy() for a in sides)
    sign = np.sign(middle)
    least = np.abs(middle)
    for _ in range(_NARROWINGS):
        right = high - best > best - low
        trial = np.where(right, best + _GOLDEN * (high - best), best - _GOLDEN * (best - low))
        value = sign * g(row, trial)
        lower = value < least  # below zero counts: it has passed
        low = np.where(lower & right, best, np.where(~lower & ~right, trial, low))
        high = np.where(lower & ~right, best, np.where(~lower & right, trial, high))
        best, least = np.where(lower, trial, best), np.where(lower, value, least)
        if (least < 0).all():
            break
    return least < 0, (least >= 0) & (least <= _TOUCHES * change), best


def _bisect(g: _Counted, found: _Found) -> tuple[np.ndarray, np.ndarray]:
    """Row and place of the root of each bracket; jumps and poles are left out."""
    row, low, high = found.row, found.low.copy(), found.high.copy()
    if not len(row):
        return row, low
    at_low, at_high = g(row, low), g(row, high)
    change = np.abs(at_high - at_low)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        value = g(row, middle)
        left = value * np.sign(at_low) > 0
        nothing = np.isnan(value)
        low, at_low = np.where(left, middle, low), np.where(left, value, at_low)
        high, at_high = np.where(left, high, middle), np.where(left | nothing, at_high, value)
        if ((middle == low) | (middle == high)).all() and np.all(high - low <= 4 * np.spacing(np.abs(middle))):
            break
    good = np.abs(at_high - at_low) <= _CONTINUOUS * change
    at = np.where(np.abs(at_low) < np.abs(at_high), low, high)
    return row[good], at[good]
