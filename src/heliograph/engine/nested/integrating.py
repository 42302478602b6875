"""The algorithm: find the modes of the hyper-parameters' posterior, flood the region around each, and integrate a surrogate.

1. Climb from the middle of the prior, and from other places where the evidence does not rise towards the mode that is known.
2. Whiten the coordinates by the curvature at each mode.
3. Evaluate a lattice in these coordinates until little of the mass is where nothing is known, and where else that is.
4. Interpolate the log density and integrate it over fine nodes; what else EP found at the points is interpolated at the same nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from heliograph.engine.nested.modes import find_modes
from heliograph.engine.nested.points import Evaluator, Point
from heliograph.numerics.exploring.climbing import Frame
from heliograph.numerics.exploring.flooding import Flood, flood
from heliograph.numerics.exploring.nodes import LogPrior, Nodes, held, integrate
from heliograph.numerics.exploring.surrogate import Surrogate, fit, matrix

__all__ = ["ABOVE", "FOLLOWED", "Region", "Whole", "corrected", "explore", "region_of", "single", "whole_of"]

_MOST = {1: 40, 2: 80, 3: 120, 4: 150, 5: 200, 6: 250}  # points of a lattice, far more than a well-behaved model takes
_DEEP = 25.0  # nats below the top: such points hold no mass, and would distort a surrogate
_CLOSE = 0.05  # whitened distance below which one of two points is left out
_BETWEEN = 1.5  # times the whitened distance from a mode to that from another, up to which a node is between the two
FOLLOWED = {1, 2, 3}  # dimensions in which mass beyond the points is followed
_LOST = 0.1  # share of the mass beyond all points, above which some is evaluated; 14 models had .03 to .07, wrong ones .14 up
_AT_ONCE = 3  # values of it at a time
_ROUNDS = 8  # times, at the most
# nats that a surrogate may rise above every value it goes through: between points of a lattice tops are lower
ABOVE = 1.0


class Region(NamedTuple):
    """The surroundings of one mode."""

    frame: Frame
    flood: Flood
    points: tuple[Point, ...]  # all that the surrogate goes through
    nodes: Nodes
    log_mass: float  # of the integral over u
    surrogate: Surrogate  # of the log density in its nodes' coordinates
    log_prior: LogPrior  # of u, (K, d) -> (K,)
    above: float = 0.0  # nats by which the surrogate rises above the best point
    between: float = 0.0  # share of its mass about as near to another mode


class Whole(NamedTuple):
    """All regions together."""

    regions: tuple[Region, ...]
    points: tuple[Point, ...]
    u: np.ndarray  # (K, d) nodes
    weights: np.ndarray  # (K,) sum to 1
    spread: np.ndarray  # (K, P) takes what EP found at the points to the nodes
    log_mass: float


def explore(evaluator: Evaluator) -> Whole:
    """Integrate over the hyper-parameters."""
    frames = find_modes(evaluator)
    regions: list[Region] = []
    for k, (frame, top) in enumerate(frames):
        evaluator.metric = np.linalg.inv(frame.axes)
        others = [f for j, (f, _) in enumerate(frames) if j != k]
        regions.append(_region(evaluator, frame, top, others))
    return _followed(evaluator, whole_of(regions))


def _followed(evaluator: Evaluator, whole: Whole) -> Whole:
    """Evaluate where the surrogate has much mass beyond all points, until it has little: it may have lost a ridge that bends."""
    frames = [r.frame for r in whole.regions]
    for _ in range(_ROUNDS if len(frames[0].centre) in FOLLOWED else 0):
        regions: list[Region] = []
        for k, r in enumerate(whole.regions):
            beyond = np.where(r.nodes.beyond, r.nodes.weights, 0.0)
            share = float(beyond.sum())
            if evaluator.late() or share * np.exp(r.log_mass - whole.log_mass) < _LOST:
                regions.append(r)
                continue
            order = np.lexsort(r.nodes.z.T[::-1])
            ends = np.cumsum(beyond[order])
            at = np.searchsorted(ends, share * (np.arange(_AT_ONCE) + 0.5) / _AT_ONCE)
            evaluator.metric = np.linalg.inv(r.frame.axes)
            new = evaluator.many(list(r.frame.at(r.nodes.z[order[at]])), gradient=True)
            use = [*r.points, *(p for p in new if p.good)]  # also deep ones: they show that there is no mass
            others = [f for j, f in enumerate(frames) if j != k]
            regions.append(region_of(r.frame, r.flood, use, others, r.log_prior))
        if all(a is b for a, b in zip(regions, whole.regions, strict=True)):
            break
        whole = whole_of(regions)
    return whole


# ---- one region -----------------------------------------------------------------------------------------------------
def _region(evaluator: Evaluator, frame: Frame, top: Point, others: list[Frame]) -> Region:
    """Flood the surroundings of one mode."""
    d = len(frame.centre)

    def evaluate(places: Sequence[np.ndarray]) -> list[Point]:
        return evaluator.many(places, True)

    before = [p for p in evaluator.points if _nearest_is(frame, others, p.u)]
    found = flood(frame, top, before, evaluate, _MOST[d], evaluator.log_size, evaluator.late)  # type: ignore[arg-type]
    lattice = {id(p) for p in found.reached.values()}
    use = [p for p in evaluator.points if _nearest_is(frame, others, p.u)]
    use = _useful(frame, use, lattice)
    return region_of(frame, found, use, others, evaluator.log_prior)


def region_of(frame: Frame, found: Flood, use: list[Point], others: list[Frame], log_prior: LogPrior) -> Region:
    """Integrate the surrogate through some points of a region."""
    z = frame.whitened(np.array([p.u for p in use]))
    log_density = np.array([p.log_density for p in use])
    top = log_density.max()
    deep = log_density < top - _DEEP
    log_density = np.where(deep, top - _DEEP, log_density)
    slopes = np.where(deep[:, None], np.nan, np.array([p.gradient for p in use]) @ frame.axes + z)
    values = log_density - top + 0.5 * (z**2).sum(axis=1)
    surrogate = fit(z, values, slopes)

    def known(at: np.ndarray) -> np.ndarray:
        return log_prior(frame.at(at))

    nodes = integrate(surrogate, z, found.spacing, known)
    if not nodes.highest < ABOVE:  # gradients that contradict the values, as those of noisy evidence may
        surrogate = fit(z, values)
        nodes = integrate(surrogate, z, found.spacing, known)
    own, other = np.linalg.norm(nodes.z, axis=1), np.full(len(nodes.z), np.inf)
    for f in others:
        other = np.minimum(other, np.linalg.norm(f.whitened(frame.at(nodes.z)), axis=1))
    mine = own <= other
    share = nodes.weights[mine].sum()
    between = float(nodes.weights[mine & (other < _BETWEEN * own)].sum() / share)
    nodes = Nodes(
        nodes.z[mine],
        nodes.weights[mine] / share,
        nodes.log_mass + float(np.log(share)),
        nodes.highest,
        nodes.beyond[mine],
    )
    log_mass = nodes.log_mass + top + float(np.linalg.slogdet(frame.axes)[1])
    return Region(frame, found, tuple(use), nodes, log_mass, surrogate, log_prior, nodes.highest, between)


def _nearest_is(frame: Frame, others: list[Frame], u: np.ndarray) -> bool:
    """Whether the mode of a frame is nearer than all others, each measured in its own frame."""
    own = np.linalg.norm(frame.whitened(u))
    return all(np.linalg.norm(f.whitened(u)) >= own for f in others)


def _useful(frame: Frame, points: list[Point], keep: set[int]) -> list[Point]:
    """The points that matter, without near duplicates; those of the lattice are preferred."""
    top = max(p.log_density for p in points)
    kept: list[Point] = []
    where: list[np.ndarray] = []
    for p in sorted(points, key=lambda p: id(p) not in keep):
        z = frame.whitened(p.u)
        if p.log_density > top - _DEEP and all(np.linalg.norm(z - w) > _CLOSE for w in where):
            kept.append(p)
            where.append(z)
    return kept


def corrected(whole: Whole) -> Whole:
    """The same integral over the evidence as importance sampling corrects it; gradients, which are of EP's own, are left out."""
    frames = [r.frame for r in whole.regions]
    regions: list[Region] = []
    for k, r in enumerate(whole.regions):
        use: list[Point] = []
        for p in r.points:
            assert p.corrected is not None
            use.append(
                replace(
                    p,
                    log_density=p.corrected(False).log_evidence + float(r.log_prior(p.u[None])[0]),
                    gradient=np.full(len(p.u), np.nan),
                )
            )
        others = [f for j, f in enumerate(frames) if j != k]
        regions.append(region_of(r.frame, r.flood, use, others, r.log_prior))
    return whole_of(regions)


def single(point: Point) -> Whole:
    """One point with all the weight."""
    return Whole((), (point,), point.u[None], np.ones(1), np.ones((1, 1)), point.log_density)


def whole_of(regions: list[Region]) -> Whole:
    """Regions joined by their masses."""
    log_masses = np.array([r.log_mass for r in regions])
    top = log_masses.max()
    log_mass = float(top + np.log(np.exp(log_masses - top).sum()))
    points = [p for r in regions for p in r.points]
    u: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    spread = np.zeros((sum(len(r.nodes.z) for r in regions), len(points)))
    row = column = 0
    for r in regions:
        k, p = len(r.nodes.z), len(r.points)
        u.append(r.frame.at(r.nodes.z))
        weights.append(r.nodes.weights * np.exp(r.log_mass - log_mass))
        at = r.frame.whitened(np.array([q.u for q in r.points]))
        spread[row : row + k, column : column + p] = matrix(at, held(r.nodes.z, at, r.flood.spacing))
        row, column = row + k, column + p
    return Whole(tuple(regions), tuple(points), np.concatenate(u), np.concatenate(weights), spread, log_mass)
