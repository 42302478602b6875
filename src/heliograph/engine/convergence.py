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
_MARGIN = 2.0  # times what tied entries seem to have to go; in leagues that was up to 1.3 times too little (0048)


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
    tied: Sequence[bool | np.ndarray] | None = None,
    moves: tuple[Nats, Nats] | None = None,
) -> float:
    """Nats by which the beliefs of the last three sweeps suggest that they will still move.

    A belief that moves by ``d, r d, r^2 d, ...`` in the mean has ``r / (1 - r)`` times its last step before it, and its
    KL grows with the square. The rate r of every entry is the length of its last move over that of the one before. A belief
    that swings to and fro, or jumped once, has no more than its last change to go: its last two moves together are no longer
    than if they were at right angles.

    Any one entry may pass through its rest, and of a hundred thousand, some do in every sweep. So entries that settle together
    have one rate, read off all of them. `tied` says which do: all entries of a variable (True: those of a block), none (False),
    or those with the same number in an array. Of the entries with one number, the mean drift that they share counts as
    well (`_shared_drift`). `moves` holds the KL of the last move and of the one before it, where they are at hand.
    """
    most = 0.0
    tied = [False] * len(new) if tied is None else tied
    lasts, befores = [(None,) * len(new)] * 2 if moves is None else moves
    for a, b, c, ties, last, before in zip(new, old, older, tied, lasts, befores, strict=True):
        if a is b:
            continue
        one, two, earlier = _nats(a, b, last), _nats(a, c), _nats(b, c, before)
        near, far, past, margin = one, two, earlier, 1.0
        if not isinstance(ties, bool):
            near, far, past = (np.bincount(ties, x.ravel())[ties].reshape(x.shape) for x in (one, two, earlier))
            margin = _MARGIN
            most = max(most, _MARGIN * _shared_drift(a, b, c, ties))
        elif ties:
            near, far, past = (x.sum(keepdims=True) for x in (one, two, earlier))
        steady = (near > _ROUNDING) & (far >= _STEADY * near) & (far >= near + past)
        rate = np.minimum(np.sqrt(np.divide(near, past, out=np.ones_like(near), where=past > near)), _SLOWEST)
        ahead = np.where(steady, margin * one * (rate / (1.0 - rate)) ** 2, one)
        most = max(most, float(np.max(ahead, initial=0.0)))
    return most


def _shared_drift(new: Family, old: Family, older: Family, ties: np.ndarray) -> float:
    """Nats that entries which are tied will still move all in one direction, at the rate at which their mean does.

    Games say who is better, and only priors say how good players are as a whole: what all of them share is the slowest part of
    many models. It may be a hundredth of the moves of single entries, and is still more than all else that is to come.
    """
    if any(new.ranks) or any(x.point is not None for x in (new, old, older)):
        return 0.0
    (m, v), (n, _), (o, _) = (x.chart_moments() for x in (new, old, older))
    with np.errstate(all="ignore"):
        weight = np.where(np.isfinite(1.0 / v) & np.isfinite(m + n + o), 1.0 / v, 0.0).ravel()
    last, before = (np.where(weight > 0, x.ravel(), 0.0) * weight for x in (m - n, n - o))
    total = np.bincount(ties, weight)
    fine = (total > 0) & (np.bincount(ties) > 1)
    last, before = (np.bincount(ties, x)[fine] / total[fine] for x in (last, before))
    narrowest = np.zeros(len(total))
    np.maximum.at(narrowest, ties, weight)
    narrowest = narrowest[fine]
    onward = (last * before > 0) & (0.5 * last**2 * narrowest > _ROUNDING)
    rate = np.minimum(np.divide(last, before, out=np.zeros_like(last), where=onward), _SLOWEST)
    return float((0.5 * (last * rate / (1.0 - rate)) ** 2 * narrowest).max(initial=0.0))


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
