"""The points of a lattice that hold the mass of a density: flooded from its mode, the most promising neighbours first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from heliograph.numerics.exploring.climbing import Evaluated, Frame
from heliograph.numerics.exploring.surrogate import fit

__all__ = ["Flood", "flood", "spacing_of"]

_SPACING = {1: 1.0, 2: 1.7, 3: 1.9, 4: 1.75, 5: 2.0, 6: 2.0}  # whitened standard deviations, by dimension
# share of the mass beyond the evaluated points, at the end; in two dimensions chosen, with the spacing, on robust regression,
# volatility, counts, labels of a process and local levels, three or four data sets each, and on random densities; in four on
# two autoregressions: with .06 their sds were up to a third off
_FRONT = {2: 0.02, 3: 0.02, 4: 0.03, 5: 0.12, 6: 0.12}
_WEIGHED = 3  # dimensions up to which tails are followed far; in more that takes too many points
# whitened distance from a place, within which a point that is known takes its part: chosen, with how far a look at the curvature
# goes, on random densities and stochastic volatility, for the fewest points of the same accuracy
_CLOSE = 0.45
# in two dimensions more is left beyond when so many points are known, climbs included: chosen for 25 evaluations at the most of
# counts in classes in schools, whose tails took 30; `p.integration.error` says what it costs
_LEFT = ((22, 0.03), (25, 0.05))
_ENOUGH = 0.9  # of that share, below which a round brings the front as it was expected; what is new comes on top (chosen with it)
_UNSURE = 0.3  # nats: standard deviation of the surrogate at a place, below which it need not be evaluated for its mass
# density over that at the mode times the squared distance, above which a place on an axis is evaluated in any case, in more than
# three dimensions: chosen on a sum of two processes; in five, the share beyond on crossed effects, beside a share of .03
_ARM = 0.1
_ROUND = 4  # points that are evaluated at a time
# chosen on eight schools with three priors and on Poisson random effects
_SIDE = 0.008  # one dimension: share of the mass beyond the last rung of a side, at the end
_DROP = 1.2  # nats between two rungs in a tail
_CLIFF = 4.0  # nats between two rungs that call for one between them
_COUNTS = 4.0  # nats below the top, where the higher of the two still holds something
_NARROW = 0.3  # distance of two rungs that are close enough, whatever falls between them
# of the way from what the surrogate predicts to a straight continuation; chosen on random densities of log scales
_STRAIGHT = 0.3
_FALLS = 0.35  # nats from a place to the next one behind it, at the least
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
    frame: Frame,
    top: Evaluated,
    others: Sequence[Evaluated],
    evaluate: EvaluateMany,
    most: int,
    log_size: Callable[[np.ndarray], np.ndarray],
    late: Callable[[], bool] = lambda: False,
) -> Flood:
    """Evaluate a lattice around a mode until its front holds little of the mass.

    Parameters
    ----------
    frame
        The whitened coordinates of the lattice.
    top
        The mode, its origin.
    others
        Points that were evaluated before, which help to predict.
    evaluate
        The log density at several points.
    most
        Points at the most.
    log_size
        ``log`` of how much more than at the mode a point ``(..., d)`` counts in a mean, 0 or more.
    late
        Whether to end where it is.
    """
    d, h = len(frame.centre), spacing_of(len(frame.centre))
    if d == 1:
        return _ladder(frame, top, evaluate, most, log_size, late)
    reached: dict[Place, Evaluated] = {(0,) * d: top}
    while True:
        front = _neighbours(reached, d)
        places = h * np.array(front, dtype=float).reshape(-1, d)
        mass, promise = _promise(frame, h, reached, front, [*others, top])
        if d <= _WEIGHED:
            promise = promise * _weight(log_size(frame.at(places)))
        share = float(promise.sum() / (promise.sum() + mass)) if len(front) else 0.0
        enough, more = _enough(d, len({*map(id, others), *map(id, reached.values())}))
        ended = share <= enough
        chosen = [front[k] for k in _arms(places, promise)] if ended and d > _WEIGHED else []
        if (ended and not chosen) or len(reached) >= most or late():
            return Flood(h, reached, share, ended)
        if not ended:
            order = np.argsort(-promise, kind="stable")
            rest = (promise.sum() - np.cumsum(promise[order])) / (promise.sum() + mass)
            order = order[: min(_ROUND, most - len(reached), 1 + int(np.sum(rest > _ENOUGH * _FRONT[d])))]
            chosen = [front[k] for k in order if promise[k] > 0.1 * _FRONT[d] * (mass + promise.sum()) / d]
            chosen = chosen[:more] or [front[int(order[0])]]
        free = [e for e in others if not any(e is r for r in reached.values())]
        near = [_snapped(frame, h * np.array(p, dtype=float), free) for p in chosen]
        found = iter(
            evaluate([frame.at(h * np.array(p, dtype=float)) for p, e in zip(chosen, near, strict=True) if e is None])
        )
        reached.update({p: next(found) if e is None else e for p, e in zip(chosen, near, strict=True)})


def _enough(d: int, n_known: int) -> tuple[float, int]:
    """The share of the mass that may be left beyond, and how many points may come before it is another."""
    if d != 2:
        return _FRONT[d], _ROUND
    shares = [_FRONT[d], *(share for n, share in _LEFT if n_known >= n)]
    ahead = [n - n_known for n, _ in _LEFT if n_known < n]
    return shares[-1], min([_ROUND, *ahead])


def _arms(places: np.ndarray, promise: np.ndarray) -> np.ndarray:
    """The places far out on the axes that count in a variance: tails that are not followed otherwise."""
    on_axes = (places != 0.0).sum(axis=1) == 1
    return np.flatnonzero(on_axes & (promise * (places**2).sum(axis=1) > _ARM))


def _snapped(frame: Frame, place: np.ndarray, others: Sequence[Evaluated]) -> Evaluated | None:
    """A point that was evaluated before so close to a place that it will do."""
    for e in others:
        if np.isfinite(e.log_density) and np.linalg.norm(frame.whitened(e.u) - place) < _CLOSE:
            return e
    return None


def _weight(log_size: np.ndarray) -> np.ndarray:
    """How much a place of the front counts: by its size, but no more than ten times."""
    return np.exp(np.minimum(log_size, np.log(10.0)))


# ---- one dimension --------------------------------------------------------------------------------------------------
def _ladder(
    frame: Frame,
    top: Evaluated,
    evaluate: EvaluateMany,
    most: int,
    log_size: Callable[[np.ndarray], np.ndarray],
    late: Callable[[], bool],
) -> Flood:
    """Rungs to both sides of a mode.

    They are further apart where the density falls slowly, as in the tails of log scales, and there is one more between two of
    which one is far below the other.
    """
    rungs = {0.0: top}
    step = {-1: _SPACING[1], 1: _SPACING[1]}
    share = {-1: 1.0, 1: 1.0}
    while len(rungs) < most and not late():
        chosen = [_end(rungs, side) + side * step[side] for side in (-1, 1) if share[side] > _SIDE] or _cliffs(rungs)
        if not chosen:
            break
        rungs.update(zip(chosen, evaluate([frame.at(np.array([z])) for z in chosen]), strict=True))
        for side in (-1, 1):
            share[side], step[side] = _tail(rungs, side)
            share[side] *= float(_weight(log_size(frame.at(np.array([_end(rungs, side)])))))
    order = sorted(rungs)
    reached: dict[Place, Evaluated] = {(k - order.index(0.0),): rungs[z] for k, z in enumerate(order)}
    return Flood(_SPACING[1], reached, share[-1] + share[1], max(share.values()) <= _SIDE)


def _end(rungs: dict[float, Evaluated], side: int) -> float:
    return max(rungs) if side > 0 else min(rungs)


def _cliffs(rungs: dict[float, Evaluated]) -> list[float]:
    """The middle between two rungs of which one holds something and the other is far below."""
    order = sorted(rungs)
    top = max(e.log_density for e in rungs.values())
    found: list[float] = []
    for a, b in pairwise(order):
        high, low = sorted((rungs[a].log_density, rungs[b].log_density), reverse=True)
        if high > top - _COUNTS and np.isfinite(low) and high - low > _CLIFF and b - a > _NARROW:
            found.append(0.5 * (a + b))
    return found


def _tail(rungs: dict[float, Evaluated], side: int) -> tuple[float, float]:
    """The share of the mass beyond the last rung of a side, if the density goes on to fall as it did last, and the next step."""
    z = np.array(sorted(rungs))
    lp = np.array([rungs[k].log_density for k in sorted(rungs)])
    p = np.exp(np.clip(lp - lp.max(), -700.0, 0.0))
    mass = float(np.sum(0.5 * (p[1:] + p[:-1]) * np.diff(z)))
    end, before = (0, 1) if side < 0 else (-1, -2)
    gap = abs(z[end] - z[before])
    if not np.isfinite(lp[end]):
        return 0.0, gap
    fall = max((lp[before] - lp[end]) / gap, 0.05)  # nats per unit; what does not fall is followed on
    step = float(np.clip(_DROP / fall, 0.7 * gap, 2.0 * gap))
    return float(p[end] / fall / (mass + p[end] / fall)), step


# ---- more dimensions ------------------------------------------------------------------------------------------------
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
    slopes = np.array([use[k].gradient for k in first]) @ frame.axes + z
    rest = fit(z, lp[first] - top + 0.5 * (z**2).sum(axis=1), slopes)
    places = h * np.array(front, dtype=float).reshape(-1, z.shape[1])
    guess = rest.at(places) - 0.5 * (places**2).sum(axis=1)
    parents = np.array([_parents(p, reached) for p in front]) - top
    guess = np.clip(guess, parents - 4.0 * h**2 - 8.0, parents + 0.5)  # no leap up or down in one spacing
    mass = float(np.exp(np.array([e.log_density for e in reached.values()]) - top).sum())
    if z.shape[1] > _WEIGHED:
        return mass, np.exp(guess)
    guess = guess + _STRAIGHT * np.maximum(np.array([_straight(p, reached) for p in front]) - top - guess, 0.0)
    behind = 1.0 / (1.0 - np.exp(np.minimum(guess - parents, -_FALLS)))  # if it goes on to fall as it does here
    unknown = np.minimum(1.0, rest.sd(places) / _UNSURE)
    return mass, np.exp(guess) * behind * unknown


def _straight(place: Place, reached: dict[Place, Evaluated]) -> float:
    """The highest log density at a place if it goes on from two before it in a straight line."""
    found = -np.inf
    for k in range(len(place)):
        for step in (-1, 1):
            one, two = ((*place[:k], place[k] + j * step, *place[k + 1 :]) for j in (1, 2))
            if one in reached and two in reached and np.isfinite(reached[two].log_density):
                found = max(found, 2.0 * reached[one].log_density - reached[two].log_density)
    return found


def _parents(place: Place, reached: dict[Place, Evaluated]) -> float:
    """The highest log density next to a place."""
    found = -np.inf
    for k in range(len(place)):
        for step in (-1, 1):
            beside = (*place[:k], place[k] + step, *place[k + 1 :])
            if beside in reached:
                found = max(found, reached[beside].log_density)
    return found
