"""Integrals of plates of one-dimensional tilted densities, to near machine precision, with no Python loop over rows.

A tilted density is a Gaussian cavity times a factor. What a factor's formula leaves over is integrated here with
Gauss-Legendre panels between break points that the factor chooses row by row; panels of no width cost nothing.
`Tilt` is what every such integral ends in, and `gaussian_site` turns it into a message without losing the digits of
a cavity much narrower, or much wider, than the factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit

from heliograph.families import Gaussian

__all__ = [
    "CHUNK",
    "DROP",
    "Panels",
    "Tilt",
    "cavity_of",
    "chunks",
    "gaussian_site",
    "legendre",
    "mixed",
    "newton_from_above",
    "split_evenly",
    "steep",
]

CHUNK = 256  # rows of a plate integrated at once: their nodes, some 300 a row, stay in the cache
DROP = 40.0  # a window ends where the log density has fallen this far: exp(-40) = 4e-18 is below rounding


class Tilt(NamedTuple):
    """The tilted distribution of a cavity N(m, v) and a factor f, each field of shape (n,)."""

    log_z: np.ndarray  # log of the integral of f times the cavity
    mean: np.ndarray  # of the tilted distribution
    ratio: np.ndarray  # its variance over v; 1 at a point mass
    slope: np.ndarray  # d log_z / dm, so that mean = m + v slope
    bend: np.ndarray  # d^2 log_z / dm^2, so that ratio = 1 + v bend


def gaussian_site(m: np.ndarray, v: np.ndarray, tilt: Tilt) -> tuple[np.ndarray, np.ndarray]:
    """Shift and precision of the message, eq. (1): the tilted belief divided by the cavity N(m, v).

    Where the belief is nearly the cavity, subtracting their natural parameters would leave rounding, so there the
    derivatives of log Z speak; they also have the point-mass cavity, v = 0, as their limit. Elsewhere the belief
    itself is the better number.

    >>> m = np.array([2.0])
    >>> gaussian_site(m, np.array([0.0]), Tilt(m, m, np.ones(1), np.array([0.5]), np.array([-0.25])))
    (array([1.]), array([0.25]))
    """
    ratio = tilt.ratio
    near = np.abs(ratio - 1.0) < 0.1
    with np.errstate(all="ignore"):  # of the two forms one may divide by 0, where the other is taken
        precision, shift = -tilt.bend / ratio, tilt.slope / ratio
        shift += m * precision
        if near.all():
            return shift, precision
        ruled = v * ratio  # the belief's variance
        return np.where(near, shift, tilt.mean / ruled - m / v), np.where(near, precision, (1.0 - ratio) / ruled)


def mixed(yes: Tilt, no: Tilt, log_odds: np.ndarray, v: np.ndarray) -> Tilt:
    """The tilt of ``p f_yes + (1 - p) f_no`` for ``log_odds = log(p / (1 - p))``, itself a mixture."""
    log_yes, log_no = log_expit(log_odds) + yes.log_z, log_expit(-log_odds) + no.log_z
    log_z = np.logaddexp(log_yes, log_no)
    w, u = np.exp(log_yes - log_z), np.exp(log_no - log_z)
    between = w * u * (yes.slope - no.slope) ** 2
    return Tilt(
        log_z,
        w * yes.mean + u * no.mean,
        w * yes.ratio + u * no.ratio + v * between,
        w * yes.slope + u * no.slope,
        w * yes.bend + u * no.bend + between,
    )


def cavity_of(message: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, variance and where there is a distribution at all; a point mass has variance 0.

    Where the message is uniform or improper, mean 0 and variance 1 stand in, for formulas to run over.
    """
    shift, tau = message.naturals
    proper = tau > 0
    if message.point is None and proper.all():
        v = 1.0 / tau
        return shift * v, v, proper
    v = 1.0 / np.where(proper, tau, 1.0)
    m = np.where(proper, shift * v, 0.0)
    if message.point is None:
        return m, v, proper
    point = message.is_point
    return np.where(point, message.point, m), np.where(point, 0.0, v), proper | point


@cache
def legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(n)
    return 0.5 * (x + 1.0), 0.5 * w


def chunks(n: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices that cover ``range(n)``, so that temporaries stay small."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def split_evenly(low: np.ndarray, high: np.ndarray, n: int) -> np.ndarray:
    """Break points (rows, n + 1) of n equal panels from `low` to `high`."""
    return low[:, None] + (high - low)[:, None] * (np.arange(n + 1) / n)


class Panels:
    """Gauss-Legendre panels between the break points of each row.

    `breaks` is (rows, k), in any order; those outside ``[low, high]`` are moved to its border and panels of width 0
    are dropped, so a row pays only for the panels its own density needs. `x` holds the nodes, one line a panel.

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
