"""Where the last sweeps are heading: the fixed point of the linear map that they look like, and how far it is.

Near a fixed point a sweep is a linear map. The last move alone shows the eigenvector that is largest now, behind which a slow
one hides, and an oscillating belief passes through its fixed point. The moves of several sweeps show more: the weights that add
up to 1 and make their sum smallest give a state near to the fixed point, as in the jumps of `acceleration`
(docs/decisions/0055).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from heliograph.families import Family, MultivariateGaussian
from heliograph.numerics.least_squares import least_squares

__all__ = ["Heading", "distance_ahead"]

_STATES = 7  # sweeps that are remembered
_FEWEST = 4  # of them, the fewest for an estimate
_COLUMNS = 40_000  # coordinates that weights are found from: in a larger model, those that the last sweep moved most
_RIDGE = 1e-8  # of the largest singular value of the moves: less is rounding, and the curvature of the map


class Heading:
    """The beliefs after the last sweeps, each of which began where the one before it ended."""

    def __init__(self) -> None:
        self._states: deque[list[Family]] = deque(maxlen=_STATES)

    def note(self, beliefs: list[Family]) -> None:
        """Remember the beliefs after a sweep."""
        self._states.append(beliefs)

    def restart(self, beliefs: list[Family]) -> None:
        """Forget all sweeps, and begin with beliefs that were set from outside."""
        self._states.clear()
        self._states.append(beliefs)

    def ahead(self, beliefs: list[Family]) -> float:
        """Nats from the beliefs of one more sweep to where they are heading; 0 where too little is remembered to say."""
        states = [*self._states, beliefs][-_STATES:]
        if len(states) < _FEWEST:
            return 0.0
        moving = [k for k, b in enumerate(beliefs) if b is not states[-2][k]]
        parts = [_coordinates([s[k] for s in states]) for k in moving]
        nothing = np.zeros((len(states), 0))
        where = np.concatenate([nothing, *(m for m, _ in parts), *(v for _, v in parts)], axis=1)
        return distance_ahead(where)


def distance_ahead(where: np.ndarray) -> float:
    """Nats of the entry that is farthest from where a sequence of states is heading; infinite where that cannot be told.

    Parameters
    ----------
    where
        Of every state, (n, 2 m): the means of all entries, each in units of its standard deviation, then the logs of the
        standard deviations.
    """
    moves = where[1:] - where[:-1]
    if not np.isfinite(moves).all():
        return np.inf
    weights = _weights(moves, where.shape[1] // 2)
    gap = (
        np.cumsum(weights[:-1]) @ moves[len(moves) - len(weights) + 1 :]
    )  # from the extrapolated place to the last state
    half = len(gap) // 2
    mean, log = gap[:half], gap[half:]
    return float((0.5 * mean**2 + log**2).max(initial=0.0))


def _weights(moves: np.ndarray, n_entries: int) -> np.ndarray:
    """Weights of the last states that add up to 1, and make the same sum of the moves that led there smallest.

    Where there are fewer entries than moves, the weights have to hold for the moves of earlier sweeps as well.
    """
    n, delays = len(moves), 1
    while delays * n_entries < n - delays and n - delays > 2:
        delays += 1
    last = n - delays + 1  # the moves that are weighted
    stacked = moves if delays == 1 else np.concatenate([moves[k : k + last] for k in range(delays)], axis=1)
    # as differences from each move to the next: nothing is squared, so that slow ways show beside fast ones
    if stacked.shape[1] > _COLUMNS:
        last_moves = np.abs(stacked[-1])
        least = np.partition(last_moves, len(last_moves) - _COLUMNS)[len(last_moves) - _COLUMNS]
        stacked = stacked[:, last_moves >= least]
    weights = np.zeros(last)
    weights[:-1] = least_squares((stacked[1:] - stacked[:-1]).T, stacked[-1], _RIDGE)
    weights[1:] -= weights[:-1].copy()
    weights[-1] += 1.0
    return weights


def _coordinates(beliefs: Sequence[Family]) -> tuple[np.ndarray, np.ndarray]:
    """Means in units of the sds of the last, and logs of sds, of one node's beliefs after several sweeps; 0 where one has none."""
    mean, variance = (a.reshape(len(beliefs), -1) for a in _moments(beliefs))
    fine = ((variance > 0) & np.isfinite(mean + variance)).all(axis=0)
    if not fine.all():
        mean, variance = np.where(fine, mean, 0.0), np.where(fine, variance, 1.0)
    return mean / np.sqrt(variance[-1]), 0.5 * np.log(variance)


def _moments(beliefs: Sequence[Family]) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances on the chart, one belief after the other: of single numbers all at once."""
    last = beliefs[-1]
    if any(last.ranks) or any(b.point is not None for b in beliefs):
        mean, variance = zip(*map(_chart_moments, beliefs), strict=True)
        return np.array(mean), np.array(variance)
    naturals = tuple(np.array(parts) for parts in zip(*(b.naturals for b in beliefs), strict=True))
    return last.from_naturals(naturals).chart_moments()


def _chart_moments(belief: Family) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance on the chart; of vectors without their covariances."""
    if not isinstance(belief, MultivariateGaussian) or belief.point is not None or not belief.proper.all():
        return belief.chart_moments()
    half = belief.whitener()
    return belief.mean, (half * half).sum(axis=-2)
