"""Clusters by k-means++ and a few Lloyd steps, for points of which some coordinates may be missing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["k_means"]

_STEPS = 5  # Lloyd steps after the choice of the first centres
_TRIALS = 4  # candidates for every further centre: the one that lowers the sum of squares most is taken


class _Data(NamedTuple):
    """Points prepared for distances by matrix products: what is missing has weight 0."""

    weight: np.ndarray  # (n, d) 1 where a coordinate is known, else 0
    value: np.ndarray  # (n, d) the coordinates, 0 where unknown
    square: np.ndarray  # (n,) sums of their squares

    def distance2(self, centres: np.ndarray) -> np.ndarray:
        """Squared distances (n, k) over the coordinates that each point has."""
        cross = self.value @ centres.T
        return np.maximum(self.weight @ (centres**2).T - 2.0 * cross + self.square[:, None], 0.0)


def k_means(rng: np.random.Generator, points: np.ndarray, k: int, n_starts: int = 3) -> np.ndarray:
    """Clusters of points: the one of several k-means++ starts with the smallest sum of squares.

    Parameters
    ----------
    points
        An (n, d) array; NaN where a coordinate is missing.
    k
        The number of clusters; some stay empty where there are fewer different points.
    n_starts
        Independent starts.

    >>> k_means(np.random.default_rng(0), np.array([[0.0], [9.0], [0.1], [9.1]]), 2).tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])
    True
    """
    known = np.isfinite(points)
    value = np.where(known, points, 0.0)
    value -= (value.sum(axis=0) / np.maximum(known.sum(axis=0), 1)) * known  # no digits are lost far from 0
    data = _Data(known.astype(float), value, (value**2).sum(axis=1))
    best, least = np.zeros(len(points), dtype=int), np.inf
    for _ in range(n_starts):
        centres = _spread_centres(rng, data, k)
        for _ in range(_STEPS):
            centres = _moved(data, data.distance2(centres).argmin(axis=1), centres)
        distance2 = data.distance2(centres)
        total = float(distance2.min(axis=1).sum())
        if total < least:
            best, least = distance2.argmin(axis=1), total
    return best


def _spread_centres(rng: np.random.Generator, data: _Data, k: int) -> np.ndarray:
    """First centres by k-means++: points drawn with a probability that grows with the squared distance to the others."""
    n = len(data.value)
    centres = data.value[[rng.integers(n)]]
    nearest = data.distance2(centres)[:, 0]
    while len(centres) < k:
        mass = np.cumsum(nearest)
        if mass[-1] > 0:
            drawn = np.minimum(np.searchsorted(mass, rng.random(_TRIALS) * mass[-1], side="right"), n - 1)
        else:  # every point has a centre already
            drawn = rng.integers(n, size=_TRIALS)
        after = np.minimum(nearest[:, None], data.distance2(data.value[drawn]))
        choice = int(after.sum(axis=0).argmin())
        centres = np.concatenate([centres, data.value[drawn[[choice]]]])
        nearest = after[:, choice]
    return centres


def _moved(data: _Data, label: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Every centre at the mean of its points, coordinate by coordinate; where it has none, it stays."""
    member = (label == np.arange(len(centres))[:, None]).astype(float)  # (k, n)
    count = member @ data.weight
    return np.where(count > 0, member @ data.value / np.maximum(count, 1.0), centres)
