"""The points of a lattice that hold the mass of a density: flooded from its mode, the most promising neighbours first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from heliograph.numerics.exploring.climbing import Evaluated, Frame
from heliograph.numerics.exploring.surrogate import fit

__all__ = ["Flood", "flood", "spacing_of"]

_SPACING = {1: 1.0, 2: 1.5, 3: 1.5, 4: 1.75, 5: 2.0, 6: 2.0}  # whitened standard deviations, by dimension
_FRONT = {1: 0.01, 2: 0.02, 3: 0.03, 4: 0.06, 5: 0.1, 6: 0.1}  # share of the mass beyond the evaluated points, at the end
_ROUND = 4  # points that are evaluated at a time
_DEEP = 25.0  # nats below the top, beyond which a point tells nothing of the mass

EvaluateMany = Callable[[Sequence[np.ndarray]], Sequence[Evaluated]]
Place = tuple[int, ...]


def spacing_of(d: int) -> float:
    """The spacing of the lattice in d dimensions."""
    return _SPACING[d]


class Flood(NamedTuple):
    """A lattice and what was evaluated of it."""

    spacing: float
    reached: dict[Place, Evaluated]
    share: float  # of the mass that is expected beyond
    ended: bool  # False where the most points were reached first


def flood(
    frame: Frame, seeds: Sequence[Evaluated], others: Sequence[Evaluated], evaluate: EvaluateMany, most: int
) -> Flood:
    """Evaluate a lattice around the seeds until its front holds little of the mass.

    Parameters
    ----------
    frame
        The whitened coordinates of the lattice.
    seeds
        Points from which it is flooded: the mode, which is its origin, and others, from whose nearest places it goes on.
    others
        Points that were evaluated before, which help to predict.
    evaluate
        The log density at several points.
    most
        Points at the most.
    """
    d, h = len(frame.centre), spacing_of(len(frame.centre))
    reached: dict[Place, Evaluated] = {(0,) * d: seeds[0]}
    waiting = [tuple(int(k) for k in np.rint(frame.whitened(s.u) / h)) for s in seeds[1:]]
    while True:
        front = [p for p in _neighbours(reached, d)]
        mass, promise = _promise(frame, h, reached, front, [*others, *seeds])
        share = float(promise.sum() / (promise.sum() + mass)) if len(front) else 0.0
        chosen = [p for p in dict.fromkeys(waiting) if p not in reached]
        waiting = []
        if not chosen:
            if share <= _FRONT[d] or len(reached) >= most:
                return Flood(h, reached, share, share <= _FRONT[d])
            order = np.argsort(-promise, kind="stable")[: min(_ROUND, most - len(reached))]
            chosen = [front[k] for k in order if promise[k] > 0.1 * _FRONT[d] * (mass + promise.sum()) / d]
            chosen = chosen or [front[int(order[0])]]
        found = evaluate([frame.at(h * np.array(p, dtype=float)) for p in chosen])
        reached.update(zip(chosen, found, strict=True))


def _neighbours(reached: dict[Place, Evaluated], d: int) -> list[Place]:
    """Places next to one that was reached and holds something, in a fixed order."""
    top = max(e.log_density for e in reached.values())
    found: dict[Place, None] = {}
    for place, e in reached.items():
        if e.log_density > top - _DEEP:
            for k in range(d):
                for step in (-1, 1):
                    beside = (*place[:k], place[k] + step, *place[k + 1 :])
                    if beside not in reached:
                        found[beside] = None
    return list(found)


def _promise(
    frame: Frame, h: float, reached: dict[Place, Evaluated], front: list[Place], others: Sequence[Evaluated]
) -> tuple[float, np.ndarray]:
    """The mass of what was reached, and that expected of the front, in one unit."""
    known = [*reached.values(), *others]
    top = max(e.log_density for e in known)
    use = [e for e in known if e.log_density > top - _DEEP]
    z = frame.whitened(np.array([e.u for e in use]))
    lp = np.array([e.log_density for e in use])
    z, first = np.unique(np.round(z, 6), axis=0, return_index=True)
    rest = fit(z, lp[first] - top + 0.5 * (z**2).sum(axis=1))
    places = h * np.array(front, dtype=float).reshape(-1, z.shape[1])
    guess = rest.at(places) - 0.5 * (places**2).sum(axis=1)
    parents = np.array([_parents(p, reached) for p in front]) - top
    guess = np.clip(guess, parents - 4.0 * h**2 - 8.0, parents + 0.5)  # no leap up or down in one spacing
    mass = float(np.exp(np.array([e.log_density for e in reached.values()]) - top).sum())
    return mass, np.exp(guess)


def _parents(place: Place, reached: dict[Place, Evaluated]) -> float:
    """The highest log density next to a place."""
    found = -np.inf
    for k in range(len(place)):
        for step in (-1, 1):
            beside = (*place[:k], place[k] + step, *place[k + 1 :])
            if beside in reached:
                found = max(found, reached[beside].log_density)
    return found
