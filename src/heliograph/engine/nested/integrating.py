"""The algorithm: find the modes of the hyper-parameters' posterior, flood the region around each, and integrate a surrogate.

1. Climb from the middle of the prior, and from other places where the evidence does not rise towards the mode that is known.
2. Whiten the coordinates by the curvature at each mode.
3. Evaluate a lattice in these coordinates until its front holds little of the mass.
4. Interpolate the log density and integrate it over fine nodes; what else EP found at the points is interpolated at the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from heliograph.engine.nested.points import Evaluator, Point
from heliograph.numerics.exploring.climbing import Frame, Peak, climb, whiten
from heliograph.numerics.exploring.flooding import Flood, flood
from heliograph.numerics.exploring.nodes import Nodes, held, integrate
from heliograph.numerics.exploring.surrogate import fit, matrix

__all__ = ["ABOVE", "Region", "Whole", "best_point", "corrected", "explore", "region_of", "single", "whole_of"]

_MOST = {1: 40, 2: 80, 3: 120, 4: 150, 5: 200, 6: 250}  # points of a lattice, far more than a well-behaved model takes
_DEEP = 25.0  # nats below the top: points that say nothing of the mass, and would bend a surrogate
_APART = 3.0  # whitened distance from a mode, beyond which another start is worth a look
_SAME = 1.5  # within which a climb has come to a mode that is known
_SLOPED = {2, 4, 5, 6}  # dimensions whose lattice needs gradients as well; in three, more points are the cheaper way
_CLOSE = 0.05  # whitened distance of two points of which one is enough
ABOVE = (
    1.0  # nats that a surrogate may rise above every value it goes through: between points of a lattice tops are lower
)


class Region(NamedTuple):
    """The surroundings of one mode."""

    frame: Frame
    flood: Flood
    points: tuple[Point, ...]  # all that the surrogate goes through
    even: np.ndarray  # (P,) bool: points of the even half of the lattice
    nodes: Nodes
    log_mass: float  # of the integral over u
    above: float = 0.0  # nats by which the surrogate rises above the best point


class Whole(NamedTuple):
    """All regions together."""

    regions: tuple[Region, ...]
    points: tuple[Point, ...]
    u: np.ndarray  # (K, d) nodes
    weights: np.ndarray  # (K,) sum to 1
    spread: np.ndarray  # (K, P) takes what EP found at the points to the nodes
    log_mass: float


def best_point(evaluator: Evaluator) -> Point:
    """The highest mode that several climbs find."""
    return max(_modes(evaluator)[1], key=lambda p: p.log_density)


def explore(evaluator: Evaluator, seed: int = 0) -> Whole:
    """Integrate over the hyper-parameters."""
    frames, _ = _modes(evaluator)
    order = sorted(range(len(frames)), key=lambda k: -frames[k][1].log_density)
    regions: list[Region] = []
    for k in order:
        frame, top = frames[k]
        evaluator.metric = np.linalg.inv(frame.axes)
        others = [f for j, (f, _) in enumerate(frames) if j != k]
        regions.append(_region(evaluator, frame, top, others, seed))
    return whole_of(regions)


# ---- modes ----------------------------------------------------------------------------------------------------------
def _modes(evaluator: Evaluator) -> tuple[list[tuple[Frame, Point]], list[Point]]:
    """The modes that climbs from several places end at, with whitened coordinates."""
    width = evaluator.width
    frames: list[tuple[Frame, Point]] = []

    def known(u: np.ndarray) -> bool:
        return any(np.linalg.norm(f.whitened(u)) < _SAME for f, _ in frames)

    def settle(peak: Peak) -> None:
        frame, top = whiten(evaluator.at, peak, width)
        if top is not peak.top and not known(top.u):  # the climb had ended on a shoulder
            frame, top = whiten(evaluator.at, climb(evaluator.at, top.u, width), width)
        frames.append((frame, top))  # type: ignore[arg-type]

    settle(climb(evaluator.at, evaluator.centre, width))
    for start in _starts(evaluator):
        middle = [0.5 * (start + frames[0][0].centre)] if len(width) == 1 else []
        for place in [start, *middle]:
            if min(np.linalg.norm(f.whitened(place)) for f, _ in frames) < _APART:
                continue
            here = evaluator.at(place, True)
            if not here.good or _rises_to_one(here, frames):
                continue
            peak = climb(evaluator.at, place, width, known=known)
            if np.isfinite(peak.top.log_density) and not known(peak.top.u):
                settle(peak)
    return frames, [top for _, top in frames]


def _starts(evaluator: Evaluator) -> list[np.ndarray]:
    """Further starts: far to both sides of one number, in three corners of several."""
    d, width, centre = len(evaluator.width), evaluator.width, evaluator.centre
    if d == 1:
        return [centre - 1.6 * width, centre + 1.6 * width]
    signs = np.array([[1, 1, -1], [1, -1, 1], [1, -1, -1]])  # columns of a Hadamard matrix
    return [centre + 1.3 * width * np.resize(signs[:, k], d) for k in range(3)]


def _rises_to_one(here: Point, frames: list[tuple[Frame, Point]]) -> bool:
    """Whether the log density rises from here towards a mode that is known, and that is higher."""
    for frame, top in frames:
        towards = frame.centre - here.u
        if top.log_density > here.log_density and float(here.gradient @ towards) > 0:
            return True
    return False


# ---- one region -----------------------------------------------------------------------------------------------------
def _region(evaluator: Evaluator, frame: Frame, top: Point, others: list[Frame], seed: int) -> Region:
    """Flood the surroundings of one mode."""
    d = len(frame.centre)

    def evaluate(places: Sequence[np.ndarray]) -> list[Point]:
        return evaluator.many(places, d in _SLOPED)

    before = [p for p in evaluator.points if _nearest_is(frame, others, p.u)]
    found = flood(frame, top, before, evaluate, _MOST[d], evaluator.log_size)  # type: ignore[arg-type]
    lattice = {id(p): place for place, p in found.reached.items()}
    use = [p for p in evaluator.points if _nearest_is(frame, others, p.u)]
    use = _useful(frame, use, set(lattice))
    even = np.array([id(p) in lattice and sum(lattice[id(p)]) % 2 == 0 for p in use])
    return region_of(frame, found, use, even, others, seed)


def region_of(frame: Frame, found: Flood, use: list[Point], even: np.ndarray, others: list[Frame], seed: int) -> Region:
    """Integrate the surrogate through some points of a region."""
    z = frame.whitened(np.array([p.u for p in use]))
    log_density = np.array([p.log_density for p in use])
    top = log_density.max()
    slopes = np.array([p.gradient for p in use]) @ frame.axes + z
    values = log_density - top + 0.5 * (z**2).sum(axis=1)
    nodes = integrate(fit(z, values, slopes), z, found.spacing, seed)
    if not nodes.highest < ABOVE:  # gradients that contradict the values, as those of noisy evidence may
        nodes = integrate(fit(z, values), z, found.spacing, seed)
    mine = (
        np.array([_nearest_is(frame, others, u) for u in frame.at(nodes.z)]) if others else np.ones(len(nodes.z), bool)
    )
    share = nodes.weights[mine].sum()
    nodes = Nodes(
        nodes.z[mine],
        nodes.weights[mine] / share,
        nodes.log_mass + float(np.log(share)),
        nodes.highest,
        nodes.beyond[mine],
    )
    log_mass = nodes.log_mass + top + float(np.linalg.slogdet(frame.axes)[1])
    return Region(frame, found, tuple(use), even, nodes, log_mass, nodes.highest)


def _nearest_is(frame: Frame, others: list[Frame], u: np.ndarray) -> bool:
    """Whether the mode of a frame is nearer than all others, each measured in its own frame."""
    own = np.linalg.norm(frame.whitened(u))
    return all(np.linalg.norm(f.whitened(u)) >= own for f in others)


def _useful(frame: Frame, points: list[Point], keep: set[int]) -> list[Point]:
    """Points with something to say, each once; those of the lattice before others."""
    top = max(p.log_density for p in points)
    kept: list[Point] = []
    where: list[np.ndarray] = []
    for p in sorted(points, key=lambda p: id(p) not in keep):
        z = frame.whitened(p.u)
        if p.log_density > top - _DEEP and all(np.linalg.norm(z - w) > _CLOSE for w in where):
            kept.append(p)
            where.append(z)
    return kept


def corrected(whole: Whole, log_prior: Callable[[np.ndarray], float], seed: int = 0) -> Whole:
    """The same integral over the evidence as importance sampling corrects it; gradients, which are of EP's own, are left out."""
    frames = [r.frame for r in whole.regions]
    regions: list[Region] = []
    for k, r in enumerate(whole.regions):
        use: list[Point] = []
        for p in r.points:
            assert p.corrected is not None
            use.append(replace(p, log_density=p.corrected() + log_prior(p.u), gradient=np.full(len(p.u), np.nan)))
        others = [f for j, f in enumerate(frames) if j != k]
        regions.append(region_of(r.frame, r.flood, use, r.even, others, seed))
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
