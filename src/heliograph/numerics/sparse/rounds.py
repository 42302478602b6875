"""The record of one round of elimination, and the rules for when to treat the rest as one dense matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Elimination", "Pivots", "best_left_dense", "low_degrees", "stuck", "tail_ahead"]

SMALL_TAIL = 32  # this many variables are cheapest as one dense matrix
LOW_DEGREE = 12  # below this degree the batched rounds win, however dense the rest
DENSE_ENOUGH = 0.3  # share of filled entries at which BLAS on the whole matrix wins
MODEST_TAIL = 200  # from here on a round costs more in calls than in arithmetic
STUCK = 0.03  # a round that removes a smaller share, with
STUCK_FILL = 0.04  # this share filled, has met an expander: what follows is fill, and hardly a smaller tail


class Pivots(NamedTuple):
    """m supernodes of d variables, each next to k later variables, that are eliminated together."""

    members: np.ndarray  # (m, d)
    neighbours: np.ndarray  # (m, k)


class Elimination(NamedTuple):
    """What is eliminated when: the groups in order, then the dense tail."""

    groups: tuple[Pivots, ...]
    tail: np.ndarray  # (T,) variables
    n_rounds: int


def low_degrees(degree: np.ndarray) -> np.ndarray:
    """Mask of the supernodes that may go in this round."""
    return degree <= max(2, 2 * degree.min())


def best_left_dense(size: np.ndarray, degree: np.ndarray) -> bool:
    """Whether what is left, supernodes of `size` variables next to `degree` others, is better factorised as one dense matrix."""
    left = int(size.sum())
    if left <= SMALL_TAIL:
        return True
    filled = float((size * (degree + size)).sum()) / left**2
    return bool(degree.min() > LOW_DEGREE) and (filled > DENSE_ENOUGH or left <= MODEST_TAIL)


def stuck(before: int, left: int, filled: float, most_flops: float) -> bool:
    """Whether a round from `before` to `left` variables shows that no tail will be small enough for `most_flops`."""
    return before - left < STUCK * before and filled > STUCK_FILL and (0.8 * left) ** 3 > most_flops


def tail_ahead(before: tuple[int, float], left: int, filled: float) -> float:
    """How many variables the tail of an expander will have, by a round that began with (variables, share filled).

    From round to round, the number that is left is about a power of the share that is filled, until that is dense.
    """
    if not 0.0 < before[1] < filled:
        return 0.0
    power = np.log(before[0] / left) / np.log(filled / before[1])
    return float(left * min(filled / DENSE_ENOUGH, 1.0) ** power)
