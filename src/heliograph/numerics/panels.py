"""Gauss-Legendre panels for plates of one-dimensional densities, with no Python loop over rows.

The caller chooses break points row by row; panels of no width cost nothing. Densities whose shape it does not know are
for `adaptive_quadrature`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

__all__ = ["DROP", "Panels", "legendre", "newton_from_above", "split_evenly", "steep"]

DROP = 40.0  # a window ends where the log density has fallen this far: exp(-40) = 4e-18 is below rounding


@cache
def legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(n)
    return 0.5 * (x + 1.0), 0.5 * w


def split_evenly(low: np.ndarray, high: np.ndarray, n: int) -> np.ndarray:
    """Break points (rows, n + 1) of n equal panels from `low` to `high`."""
    return low[:, None] + (high - low)[:, None] * (np.arange(n + 1) / n)


class Panels:
    """Gauss-Legendre panels between the break points of each row.

    `breaks` is (rows, k), in any order; those outside ``[low, high]`` are moved to its border and panels of width 0
    are dropped, so a row pays only for the panels its own density needs. `x` holds the nodes, one line per panel.

    >>> p = Panels(np.array([[1.0, 2.0], [0.0, 5.0]]), np.array([0.0, 0.0]), np.array([4.0, 3.0]))
    >>> p.integrate(p.x**2)
    array([21.33333333,  9.        ])
    """

    def __init__(self, breaks: np.ndarray, low: np.ndarray, high: np.ndarray, n: int = 12) -> None:
        edges = np.concatenate([low[:, None], breaks, high[:, None]], axis=1)
        edges = np.sort(np.clip(edges, low[:, None], high[:, None]), axis=1)
        width = np.diff(edges, axis=1)
        keep = width > 0
        keep[:, 0] |= ~keep.any(axis=1)  # a row of no width still needs a panel, of weight 0
        self.row, column = np.nonzero(keep)
        self.start = np.concatenate([[0], np.cumsum(keep.sum(axis=1))[:-1]])
        nodes, weights = legendre(n)
        width = width[self.row, column][:, None]
        self.x = edges[self.row, column][:, None] + width * nodes
        self.weight = width * weights

    def of(self, values: np.ndarray) -> np.ndarray:
        """One number per row, laid out beside the nodes of that row."""
        return values[self.row][:, None]

    def integrate(self, values: np.ndarray) -> np.ndarray:
        """The integral of `values` at the nodes, row by row."""
        return np.add.reduceat(np.einsum("ij,ij->i", self.weight, values), self.start)

    def highest(self, values: np.ndarray) -> np.ndarray:
        """The largest of the values at the nodes of each row."""
        return np.maximum.reduceat(values.max(axis=1), self.start)

    def tilt(self, log_density: np.ndarray) -> np.ndarray:
        """Fold ``exp(log_density)`` into the weights and normalise them; returns ``log`` of the integral per row."""
        top = self.highest(log_density)
        self.width, self.log_density = self.weight, log_density - self.of(top)
        self.weight = self.width * np.exp(np.maximum(self.log_density, -700.0))
        total = self.integrate(np.ones_like(self.x))
        self.weight /= self.of(total)
        self.log_total = np.log(total)
        return top + self.log_total

    def log_mean_exp(self, d: np.ndarray) -> np.ndarray:
        """``log`` of the tilted mean of exp(d), for d of mean 0: exact where small, and where weights underflow."""
        near = np.minimum(d, 30.0)
        small = np.log1p(np.maximum(self.integrate(np.expm1(near) - near), 0.0))
        far = self.highest(d) > 30.0
        if not far.any():
            return small
        lifted = d + self.log_density
        top = self.highest(lifted)
        terms = self.width * np.exp(np.maximum(lifted - self.of(top), -700.0))
        total = np.add.reduceat(terms.sum(axis=1), self.start)
        return np.where(far, top + np.log(total) - self.log_total, small)


def newton_from_above(
    start: np.ndarray, f: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], n: int
) -> np.ndarray:
    """`n` Newton steps towards the root of a convex increasing f, from a point above it: never below the root.

    `f` returns value and slope. Used for the ends of a window, where too wide costs a little and too narrow is wrong.
    """
    x = start
    for _ in range(n):
        value, slope = f(x)
        x = x - np.maximum(value, 0.0) / slope
    return x


def steep(height: np.ndarray, drop: np.ndarray | float = DROP) -> np.ndarray:
    """A d so large that ``height (exp(-d) - 1 + d)`` is above `drop`, and not much larger than that needs.

    The bracket is above ``d^2 / (2 + d)``, which leaves a quadratic; infinite where the height is 0.
    """
    some = height > 1e-300
    safe = np.where(some, height, 1.0)
    return np.where(some, 0.5 * (drop + np.sqrt(drop * (drop + 8.0 * safe))) / safe, np.inf)
