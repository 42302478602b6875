"""An estimate of the error of an integration: what leaving out half of the lattice, its gradients, or all beyond it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from heliograph.engine.nested.integrating import Region, Whole, region_of, whole_of
from heliograph.engine.nested.records import Error
from heliograph.numerics.exploring.climbing import Frame

__all__ = ["estimated_error"]


class _Shares(NamedTuple):
    """How much of what either change makes is the error, for log evidence, means and standard deviations."""

    half: tuple[float, float, float]  # of leaving out the odd half of the lattice, and all points off it
    beyond: tuple[float, float, float]  # of leaving out what the density is continued to beyond the points
    slopes: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of leaving out the gradients at the points


# fitted to the errors for random densities of log scales (60 each in one to three dimensions, 12 in five), so that as many as
# possible are within a factor 3 and next to none is larger than that; docs/hyperparameters.md has how many are for others
_SHARES = {
    1: _Shares((0.08, 1.0, 1.0), (0.08, 0.2, 0.06)),
    2: _Shares((0.4, 0.04, 0.06), (0.02, 0.14, 0.08), (0.4, 0.4, 0.4)),
    3: _Shares((0.1, 0.14, 0.14), (0.1, 0.28, 0.2)),
}
_MANY = _Shares((0.08, 0.1, 0.14), (0.01, 0.5, 0.39))  # in four to six dimensions
_LEAST = 3  # points of the even half, below which it says nothing
_INSIDE = 1e-6  # share of the mass between the points, below which nothing is known


def estimated_error(whole: Whole) -> Error:
    """What the integral may be off by, of what changes of it make: fewer points, no gradients, none of the mass beyond."""
    d = whole.u.shape[1]
    if any(r.even.sum() < max(_LEAST, d + 1) for r in whole.regions):
        return Error(np.inf, np.inf, np.inf)
    shares = _SHARES.get(d, _MANY)
    changes = [(shares.half, _of_regions(whole, _half))]
    if any(shares.slopes):
        changes.append((shares.slopes, _of_regions(whole, _flat)))
    inside = ~np.concatenate([r.nodes.beyond for r in whole.regions])
    share = float(whole.weights[inside].sum())
    if share < _INSIDE:
        return Error(np.inf, np.inf, np.inf)
    weights = np.where(inside, whole.weights, 0.0) / share
    changes.append((shares.beyond, _changes(whole, whole.u, weights, whole.log_mass + float(np.log(share)))))
    return Error(*np.sqrt(sum((np.array(k) * change) ** 2 for k, change in changes)).tolist())


def _of_regions(whole: Whole, other: Callable[[Region, list[Frame]], Region]) -> np.ndarray:
    """What another integral of every region changes."""
    changed = whole_of([other(r, [s.frame for s in whole.regions if s is not r]) for r in whole.regions])
    return _changes(whole, changed.u, changed.weights, changed.log_mass)


def _half(region: Region, others: list[Frame]) -> Region:
    use = [p for p, even in zip(region.points, region.even, strict=True) if even]
    return region_of(region.frame, region.flood, use, np.ones(len(use), dtype=bool), others, 0)


def _flat(region: Region, others: list[Frame]) -> Region:
    use = [replace(p, gradient=np.full(len(p.u), np.nan)) for p in region.points]
    return region_of(region.frame, region.flood, use, region.even, others, 0)


def _changes(whole: Whole, u: np.ndarray, weights: np.ndarray, log_mass: float) -> np.ndarray:
    """How far another integral's log evidence, means and standard deviations are from those of the whole."""
    (mean, sd), (other, narrow) = _moments(whole.u, whole.weights), _moments(u, weights)
    return np.array(
        [abs(log_mass - whole.log_mass), np.max(np.abs(other - mean) / sd), np.max(np.abs(narrow / sd - 1.0))]
    )


def _moments(u: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = weights @ u
    return mean, np.sqrt(weights @ (u - mean) ** 2)
