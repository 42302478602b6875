"""An estimate of the error of an integration: the even half of the lattice against all of it."""

from __future__ import annotations

import numpy as np

from heliograph.engine.nested.integrating import Region, Whole, region_of, whole_of
from heliograph.engine.nested.records import Error
from heliograph.numerics.exploring.climbing import Frame

__all__ = ["estimated_error"]

# how much nearer all points are than half of them (log evidence, means, standard deviations) by dimension: medians over 40 (16 in
# three dimensions) random densities of log scales, of which two thirds to nine tenths are within a factor 3 of what this gives
_GAIN = {1: (100.0, 32.0, 3.0), 2: (3.0, 1.6, 3.3), 3: (5.0, 6.0, 1.0)}
_LEAST = 3  # points of the even half, below which it says nothing


def estimated_error(whole: Whole) -> Error:
    """The difference that leaving out the odd half of the lattice (and all points off it) makes."""
    if any(r.even.sum() < max(_LEAST, r.frame.axes.shape[0] + 1) for r in whole.regions):
        return Error(np.inf, np.inf, np.inf)
    halves = [_half(r, [s.frame for s in whole.regions if s is not r]) for r in whole.regions]
    half = whole_of(halves)
    (mean, sd), (other, narrow) = _moments(whole), _moments(half)
    gain, beyond = _GAIN.get(len(mean), (1.0, 1.0, 1.0)), 0.0
    if len(mean) not in _GAIN:  # half of a coarse lattice says little; what lies beyond it is most of the error
        beyond = max(r.flood.share for r in whole.regions)
    return Error(
        beyond + abs(half.log_mass - whole.log_mass) / gain[0],
        beyond + float(np.max(np.abs(other - mean) / sd)) / gain[1],
        beyond + float(np.max(np.abs(narrow / sd - 1.0))) / gain[2],
    )


def _half(region: Region, others: list[Frame]) -> Region:
    use = [p for p, even in zip(region.points, region.even, strict=True) if even]
    return region_of(region.frame, region.flood, use, np.ones(len(use), dtype=bool), others, 0)


def _moments(whole: Whole) -> tuple[np.ndarray, np.ndarray]:
    mean = whole.weights @ whole.u
    return mean, np.sqrt(whole.weights @ (whole.u - mean) ** 2)
