"""Measures of convergence: how far a sweep moved the beliefs, and how far they may still move.

docs/convergence.md defines `converged`; the limits that decide it are the constants below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heliograph.families import Family
from heliograph.graph.records import Node

__all__ = ["Motion", "Nats", "drifting", "motion", "still_to_go"]

_ROUNDING = 1e-13  # nats: a change this small is the rounding of the messages and shows no rate
_STEADY = 2.25  # the change of two sweeps over that of one, above which a belief goes on in one direction (4: evenly)
_EVENLY = 0.75  # of the way that even moves in one direction would have gone, from which on a belief drifts
_SLOWEST = 0.9999  # the rate of a belief that moves on without slowing down


Nats = tuple[
    np.ndarray | None, ...
]  # KL of every entry, by variable; None where nothing changed, or a belief is improper


class Motion(NamedTuple):
    """The effect of one sweep on the beliefs."""

    change: float  # the largest KL(new || old) of an entry, in nats
    moving: str  # the variable whose entry that is
    broken: bool  # a belief lost its properness, or became NaN
    nats: Nats = ()


def motion(watched: Sequence[Node], new: Sequence[Family], old: Sequence[Family]) -> Motion:
    """The largest KL between successive beliefs, whose it is, and whether the sweep went wrong."""
    change, moving, broken = 0.0, "", False
    every: list[np.ndarray | None] = []
    for node, a, b in zip(watched, new, old, strict=True):
        if a is b:
            every.append(None)
            continue
        proper = a.proper
        if not proper.all():
            broken |= bool((b.proper & ~proper).any())
            change, moving = np.inf, node.name
            every.append(None)
            continue
        nats = a.kl(b)
        every.append(nats)
        largest = float(nats.max(initial=0.0))
        if math.isnan(largest):
            broken, largest = True, math.inf
        if largest > change or not moving:
            change, moving = max(largest, change), node.name
    return Motion(change, moving, broken, tuple(every))


def still_to_go(
    new: Sequence[Family],
    old: Sequence[Family],
    older: Sequence[Family],
    jointly: Sequence[bool] | None = None,
    moves: tuple[Nats, Nats] | None = None,
) -> float:
    """Nats by which the beliefs of the last three sweeps suggest that they will still move.

    A belief that moves by ``d, r d, r^2 d, ...`` in the mean has ``r / (1 - r)`` times its last step before it, and its
    KL grows with the square. The rate r of every entry is the length of its last move over that of the one before. A belief
    that swings to and fro, or jumped once, has no more than its last change to go: its last two moves together are no longer
    than if they were at right angles. The entries of a node of a block settle together (`jointly`): one rate is read off all
    of them, since any one may pass through its rest. `moves` holds the KL of the last move and of the one before it, where they
    are at hand.
    """
    most = 0.0
    jointly = [False] * len(new) if jointly is None else jointly
    lasts, befores = [(None,) * len(new)] * 2 if moves is None else moves
    for a, b, c, together, last, before in zip(new, old, older, jointly, lasts, befores, strict=True):
        if a is b:
            continue
        one, earlier = _nats(a, b, last), _nats(b, c, before)
        near, past = (one.sum(keepdims=True), earlier.sum(keepdims=True)) if together else (one, earlier)
        rate = np.minimum(np.sqrt(np.divide(near, past, out=np.ones_like(near), where=past > near)), _SLOWEST)
        ahead = one * (rate / (1.0 - rate)) ** 2
        most = max(most, float(np.minimum(one, ahead).max(initial=0.0)))
        # which of the two it is depends on the direction, and is asked only where it may change the answer
        at = np.nonzero(np.maximum(one, ahead) > most)
        if not len(at[0]):
            continue
        one, ahead = one[at], ahead[at]
        if together:
            far = _nats(a, c).sum(keepdims=True).ravel()
            near, past = near.ravel(), past.ravel()
        else:
            near, past, far = near[at], past[at], _nats(a[at], c[at])
        steady = (near > _ROUNDING) & (far >= _STEADY * near) & (far >= near + past)
        most = max(most, float(np.where(steady, ahead, one).max()))
    return most


def drifting(new: Sequence[Family], old: Sequence[Family], start: Sequence[Family], sweeps: int) -> bool:
    """Return whether the entry that moved most went on in one direction since `start`, some sweeps ago.

    Shorter steps would only make it slower. What goes on evenly is the square of that number of sweeps times as far from where it
    was (in nats) as one sweep moved it; what swings or circles comes back.
    """
    one = all_ = 0.0
    for a, b, c in zip(new, old, start, strict=True):
        if a is not b:
            near, far = _nats(a, b), _nats(a, c)
            k = int(np.argmax(near)) if near.size else 0
            if near.size and near.flat[k] > one:
                one, all_ = float(near.flat[k]), float(far.flat[k])
    return all_ >= (_EVENLY * sweeps) ** 2 * one > 0


def _nats(a: Family, b: Family, known: np.ndarray | None = None) -> np.ndarray:
    """KL of every entry, infinite where it is not a number; `known` is what it was found to be."""
    kl = a.kl(b) if known is None else known
    return np.where(np.isnan(kl), np.inf, kl)
