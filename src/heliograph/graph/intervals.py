"""Intervals of many quantities at once, each narrowed by statements that are remembered by number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Conflict", "Intervals", "close", "groups_of_rows", "meet", "rounded"]

_SAME = 1e-9  # relative difference below which two values of one quantity are taken for roundings of each other
_DIGITS = 12  # of coefficients, to which two expressions are the same


class Conflict(NamedTuple):
    """A quantity of which nothing is left: its number, the earlier statement, and the ends of both intervals."""

    quantity: int
    statement: int
    ends: tuple[float, float, float, float]


class Intervals(NamedTuple):
    """The values that are left to n quantities, and the numbers of the statements that bound them."""

    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,)
    below: np.ndarray  # (n,) statement that gave the lower end; 0 for none
    above: np.ndarray  # (n,)

    @classmethod
    def everything(cls, n: int) -> Intervals:
        """Nothing is known of n quantities."""
        return cls(np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n, int), np.zeros(n, int))

    def spread(self, at: np.ndarray, n: int) -> Intervals:
        """These intervals at places among n quantities, of whose others nothing is known."""
        whole = Intervals.everything(n)
        for new, old in zip(whole, self, strict=True):
            new[at] = old
        return whole

    def narrowed(
        self, at: np.ndarray, lower: np.ndarray, upper: np.ndarray, statement: int
    ) -> tuple[Intervals, Conflict | None]:
        """The intervals after one more statement, which may bound a quantity several times."""
        low, high, below, above = (a.copy() for a in self)
        while at.size:
            rising = bool((at[1:] > at[:-1]).all())
            k, first = (at, np.arange(at.size)) if rising else np.unique(at, return_index=True)
            new_low, new_high, empty = meet(low[k], high[k], lower[first], upper[first])
            below[k] = np.where(new_low > low[k], statement, below[k])
            above[k] = np.where(new_high < high[k], statement, above[k])
            if empty.any():
                worst, f = int(k[np.argmax(empty)]), first[np.argmax(empty)]
                other = int(below[worst] if below[worst] != statement else above[worst])
                ends = float(low[worst]), float(high[worst]), float(lower[f]), float(upper[f])
                return self, Conflict(worst, other, ends)
            low[k], high[k] = new_low, new_high
            if rising:  # each of them once
                break
            rest = np.ones(at.size, dtype=bool)
            rest[first] = False
            at, lower, upper = at[rest], lower[rest], upper[rest]
        return Intervals(low, high, below, above), None


def close(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A mask of the values that are equal up to rounding."""
    with np.errstate(invalid="ignore"):
        return (a == b) | (np.abs(a - b) <= _SAME * np.maximum(np.abs(a), np.abs(b)))


def meet(
    low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intersect intervals, and mark those of which nothing is left; an interval of equal ends is a value, else it is open."""
    fixed, stated = low == high, lower == upper
    if not (fixed.any() or stated.any()):
        new_low, new_high = np.maximum(low, lower), np.minimum(high, upper)
        return new_low, new_high, new_low >= new_high
    value = np.where(fixed, low, lower)
    inside = np.where(fixed, (lower < value) & (value < upper), (low < value) & (value < high))
    same = close(low, lower)
    new_low, new_high = np.maximum(low, lower), np.minimum(high, upper)
    empty = np.where(fixed & stated, ~same, np.where(fixed | stated, ~inside, new_low >= new_high))
    one = fixed | stated
    return np.where(one, value, new_low), np.where(one, value, new_high), empty


def rounded(x: np.ndarray) -> np.ndarray:
    """Numbers other than 0 to twelve digits; small whole numbers are that already.

    >>> rounded(np.array([1 / 3, -2e5]))
    array([ 3.33333333e-01, -2.00000000e+05])
    """
    if (np.abs(x) < 1e9).all() and (x == np.trunc(x)).all():
        return x
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(np.abs(x))))
    return np.round(x * scale) / scale


def groups_of_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equal rows have equal numbers: the number of each row, and a row of each number.

    >>> groups_of_rows(np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0]]))
    (array([1, 0, 1]), array([1, 0]))
    """
    if (rows[1:] > rows[:-1]).all(axis=0).any():  # no two can be equal
        return np.arange(len(rows)), np.arange(len(rows))
    varied = rows[:, (rows != rows[:1]).any(axis=0)]
    if not varied.shape[1]:
        return np.zeros(len(rows), dtype=int), np.zeros(1, dtype=int)
    order = np.lexsort(varied.T[::-1])
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (varied[order[1:]] != varied[order[:-1]]).any(axis=1)
    number = np.empty(len(rows), dtype=int)
    number[order] = np.cumsum(fresh) - 1
    return number, order[fresh]
