"""A smooth function of one or two numbers as polynomials on even panels, kept only where they agree with it to rounding.

A panel is cut until polynomials of degree eleven through its Chebyshev nodes have coefficients that fall to rounding, and give
what the function gives at places between. Where that cannot be had (a kink, a pole, a step, noise) nothing is kept, and the
function is called.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly

__all__ = ["SmoothTable", "rounding_of"]

DEGREE = 12  # nodes along each side of a cell
_LEVELS = {1: 5, 2: 3}  # times that a panel may be cut in halves along every side, and once as it is
_MOST = {1: 2048, 2: 4096}  # panels
_BEYOND = {1: 0.5, 2: 0.25}  # of the range in which values were wanted: laid on each side besides, for problems to come
_DUE = 4  # times its price that a panel has been paid for in calls, before it is laid
_FARTHEST = 1e9  # panels from 0
_ENOUGH = 16  # panels, by which one sees whether the function is smooth at all
_BLOCK = 32_768  # values at once
_ROUNDING = 64 * np.finfo(float).eps
_PLACED = 2 * np.finfo(float).eps  # of the range of a cell, for each cell that it is away from 0
_TAIL = np.array(
    [50.0, 1.0]
)  # times rounding, to which the last coefficients must have fallen: of even functions one is 0
_BETWEEN = {  # places where polynomials are compared with the function
    1: np.array([[-0.9143], [-0.2718], [0.6180]]),
    2: np.array([[-0.9143, 0.3319], [-0.2718, -0.7404], [0.6180, 0.8393], [0.1414, 0.0577], [0.9605, -0.9486]]),
}

_ANGLES = np.pi * (np.arange(DEGREE) + 0.5) / DEGREE
_NODES = np.cos(_ANGLES)
_TO_COEFFICIENTS = 2.0 / DEGREE * np.cos(np.arange(DEGREE)[:, None] * _ANGLES)
_TO_COEFFICIENTS[0] *= 0.5
_TO_POWERS = np.array([np.pad(cheb2poly(row), (0, DEGREE - k - 1)) for k, row in enumerate(np.eye(DEGREE))]).T

Evaluate = Callable[[np.ndarray], np.ndarray]  # of places (m, d), NaN where there is no value
Rounding = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of values, and their scale: what rounding may do to them


class SmoothTable:
    """Polynomials over even panels of given widths.

    Parameters
    ----------
    width : ``(d,)``, of a panel along each axis
    rounding : how far values may be off, beside what the largest one near by is worth in rounding
    """

    def __init__(self, width: np.ndarray, rounding: Rounding) -> None:
        self.width, self.rounding, self.d = width, rounding, len(width)
        self.low = np.zeros(self.d, dtype=int)  # number of the first panel along each axis
        self.first = np.zeros((0,) * self.d, dtype=int)  # number of a panel's first cell; 0 where it was not laid
        self.cuts = np.ones((0,) * self.d, dtype=int)  # cells of a panel along each side
        self.coefficients = np.full((1, *(DEGREE,) * self.d), np.nan)  # of cells; the first one stands for unknown
        self.asked: dict[tuple[int, ...], int] = {}  # values that were called for in panels which were not laid
        self._ready()
        self._price = _DUE * (DEGREE**self.d + len(_BETWEEN[self.d]))
        self.n_calls = 0  # of the function, to lay panels
        self.abandoned = (
            False  # whether nothing more is laid: the function is not smooth in most panels, or fails in some
        )

    # ---- reading ------------------------------------------------------------------------------------------------
    def read(self, at: np.ndarray) -> np.ndarray:
        """Values at places ``(m, d)``; NaN where nothing is known."""
        value = np.full(len(at), np.nan)
        if self.first.size:
            for start in range(0, len(at), _BLOCK):
                part = slice(start, start + _BLOCK)
                value[part] = self._read(at[part])
        return value

    def _read(self, at: np.ndarray) -> np.ndarray:
        number, inner = np.zeros(len(at), dtype=np.intp), []
        for axis in range(self.d):
            place = at[:, axis] * (1.0 / self.width[axis])
            whole = np.floor(place)
            place -= whole
            inner.append(place)
            whole -= self.low[axis] - 1.0
            np.maximum(whole, 0.0, out=whole)
            np.minimum(whole, self._first.shape[axis] - 1.0, out=whole)
            number *= self._first.shape[axis]
            number += whole.astype(np.intp)
        first, cuts = self._first.take(number), self._cuts.take(number)
        for axis, place in enumerate(inner):
            place *= cuts
            cell = place.astype(np.intp)
            first += cell if axis == self.d - 1 else cell * cuts.astype(np.intp)
            place -= cell
            place *= 2.0
            place -= 1.0
        if self.d == 2:
            bases = _basis(np.stack(inner, axis=1))  # (d, m, DEGREE)
            known = self.coefficients[first]
            return np.einsum("mk,mk->m", np.matmul(known, bases[1][..., None])[..., 0], bases[0])
        value = self._powers[-1].take(first)
        for power in self._powers[-2::-1]:
            value *= inner[0]
            value += power.take(first)
        return value

    def _ready(self) -> None:
        """Lay out what reading looks at: panels with a margin of unknown ones, and powers one after the other."""
        self._first, self._cuts = np.pad(self.first, 1), np.pad(self.cuts, 1, constant_values=1).astype(float)
        if self.d == 1:
            self._powers = np.ascontiguousarray(_TO_POWERS @ self.coefficients.T)

    # ---- laying -------------------------------------------------------------------------------------------------
    def lay(self, wanted: np.ndarray, evaluate: Evaluate) -> int:
        """Note places ``(m, d)`` for which the function was called, and lay panels that have cost as much.

        Gives the calls that this took.
        """
        panels, counts = np.unique(np.floor(wanted / self.width), axis=0, return_counts=True)
        usable = (np.abs(panels) < _FARTHEST).all(axis=1)  # nor NaN
        due = []
        for key, count in zip(map(tuple, panels[usable].astype(int).tolist()), counts[usable].tolist(), strict=True):
            self.asked[key] = asked = self.asked.get(key, 0) + count
            if asked >= self._price and not self._laid(key):
                due.append(key)
        if not due or self.abandoned or not self._reach(np.array(due)):
            return 0
        new = np.argwhere(self.first == 0)
        before = self.n_calls
        try:
            n_rough = self._fill(new, evaluate)
            self.abandoned = n_rough > len(new) / 2 and len(new) >= _ENOUGH
        finally:  # a function may raise where nobody called it yet: what was known stays known
            self._ready()
        return self.n_calls - before

    def _laid(self, panel: tuple[int, ...]) -> bool:
        at = tuple(p - q for p, q in zip(panel, self.low, strict=True))
        return all(0 <= i < n for i, n in zip(at, self.first.shape, strict=True)) and bool(self.first[at])

    def _reach(self, due: np.ndarray) -> bool:
        """Make room for these panels and as many beside them as may come; whether there may be so many."""
        low, high = due.min(axis=0), due.max(axis=0) + 1
        if self.first.size:
            low, high = np.minimum(low, self.low), np.maximum(high, self.low + self.first.shape)
        more = np.ceil(_BEYOND[self.d] * (high - low)).astype(int)
        if np.prod(high - low + 2 * more) > _MOST[self.d]:
            more[:] = 0
        low, high = low - more, high + more
        if np.prod(high - low) > _MOST[self.d]:
            return False
        first, cuts = np.zeros(high - low, dtype=int), np.ones(high - low, dtype=int)
        old = tuple(slice(a, a + n) for a, n in zip(self.low - low, self.first.shape, strict=True))
        first[old], cuts[old] = self.first, self.cuts
        self.low, self.first, self.cuts = low, first, cuts
        return True

    def _fill(self, panels: np.ndarray, evaluate: Evaluate) -> int:
        """Lay panels; in how many the function is not smooth somewhere."""
        for level in range(_LEVELS[self.d]):
            cut = 2**level
            cells = np.array(list(product(range(cut), repeat=self.d)))
            corners = (panels[:, None] + self.low + cells / cut).reshape(-1, self.d)  # in panels
            found, good = self._polynomials(corners, cut, evaluate)
            fine = good.reshape(len(panels), -1).all(axis=1)
            done = fine if level < _LEVELS[self.d] - 1 else np.ones(len(panels), dtype=bool)
            found[~good] = np.nan
            at = tuple(panels[done].T)
            kept = found.reshape(len(panels), len(cells), *found.shape[1:])[done]
            self.first[at] = len(self.coefficients) + len(cells) * np.arange(done.sum())
            self.cuts[at] = cut
            self.coefficients = np.concatenate([self.coefficients, kept.reshape(-1, *found.shape[1:])])
            if done.all():
                return int((~fine).sum())
            panels = panels[~done]
        raise AssertionError("the last level takes whatever is left")

    def _polynomials(self, corners: np.ndarray, cut: int, evaluate: Evaluate) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients in cells with these corners, and which of them may be kept."""
        nodes = np.array(list(product(_NODES, repeat=self.d)))
        places = np.concatenate([nodes, _BETWEEN[self.d]])
        kept, good = [], []
        size = max(1, _BLOCK // len(places))
        for start in range(0, len(corners), size):
            corner = corners[start : start + size]
            at = (corner[:, None] + (places + 1.0) / (2 * cut)) * self.width
            self.n_calls += at.size // self.d
            value = evaluate(at.reshape(-1, self.d)).reshape(len(corner), -1)
            value = np.where(np.isfinite(value), value, np.nan)
            with np.errstate(invalid="ignore", over="ignore"):
                far = (np.abs(at).max(axis=1) * cut / self.width).sum(axis=1)  # cells from 0: places are rounded, too
                own, fine = self._polynomial(value[:, : len(nodes)], value[:, len(nodes) :], far)
            kept.append(own)
            good.append(fine)
        return np.concatenate(kept), np.concatenate(good)

    def _polynomial(self, value: np.ndarray, between: np.ndarray, far: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scale = np.abs(value).max(axis=1)
        placed = _PLACED * far * (value.max(axis=1) - value.min(axis=1))
        own = value.reshape(-1, *(DEGREE,) * self.d) @ _TO_COEFFICIENTS.T
        if self.d == 2:
            own = _TO_COEFFICIENTS @ own
        bases = _basis(_BETWEEN[self.d])
        said = own @ bases[0].T if self.d == 1 else np.einsum("cij,ki,kj->ck", own, *bases)
        off = self.rounding(between, scale[:, None]) + placed[:, None]
        good = (np.abs(said - between) <= off).all(axis=1)
        tails = [own[:, -2:]] if self.d == 1 else [own[:, -2:].swapaxes(1, 2), own[:, :, -2:]]
        least = self.rounding(value, scale[:, None]).min(axis=1) + placed
        for tail in tails:  # NaN is not small
            good &= (np.abs(tail) / _TAIL).reshape(len(own), -1).max(axis=1) <= least
        return own, good


def rounding_of(positive: bool, bounded: bool) -> Rounding:
    """What rounding may do to values of an output: of any numbers, of positive ones, of numbers between 0 and 1."""

    def rounding(value: np.ndarray, scale: np.ndarray) -> np.ndarray:
        if bounded:  # near 1 what counts is how far it is from there, as far as the number can tell
            return _ROUNDING * np.minimum(value, 1.0 - value) + (value > 0.5) * 16 * np.finfo(float).eps
        return _ROUNDING * (value if positive else np.broadcast_to(scale, value.shape))

    return rounding


def _basis(s: np.ndarray) -> np.ndarray:
    """Chebyshev polynomials at places ``(m, d)`` of a cell, ``(d, m, DEGREE)``."""
    out = np.empty((s.shape[1], len(s), DEGREE))
    out[..., 0], out[..., 1] = 1.0, s.T
    for k in range(2, DEGREE):
        out[..., k] = 2.0 * s.T * out[..., k - 1] - out[..., k - 2]
    return out
