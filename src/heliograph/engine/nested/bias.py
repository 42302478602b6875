"""Whether the error of EP's own evidence matters: how it varies over the hyper-parameters, by importance sampling.

A constant error leaves their posterior as it is. One that varies moves it: where it rises by c nats per standard deviation of a
hyper-parameter, its mean is c standard deviations off. Four values are looked at first, which is cheap; only where they
differ are those that hold the mass. A plane through the errors there says how they vary over the whole posterior, whichever values
were tried.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.nested.integrating import Whole
from heliograph.engine.nested.points import Point
from heliograph.errors import UnsupportedError

__all__ = ["Bias", "bias_of"]

_HEAVY = 0.01  # share of the mass that makes a value count
_LOOKED = 4  # values that are looked at first
_DIFFERENT = 0.1  # nats between any two of them, above which the others are looked at
_MOST = 8  # of them
# of standard deviations by which means are off, or nats by which the error varies: labels of processes have .05 to .1 and sds of
# latent variables 5 % too small; counts and regressions .001 to .02, and labels with random effects .06, whose sds are right
_MATTERS = 0.075
_EFFECTIVE = 0.02  # effective share of the draws, below which the error is unknown


class Bias(NamedTuple):
    """How EP's evidence is wrong over the hyper-parameters, as far as that moves them."""

    shift: float  # of a mean, in standard deviations, the largest
    spread: float  # nats, the standard deviation of the error over the posterior
    known: bool  # False where the effective number of draws is too small

    @property
    def matters(self) -> bool:
        """Return whether the right evidence would change the posterior noticeably."""
        return max(self.shift, self.spread) > _MATTERS


def bias_of(whole: Whole) -> Bias | None:
    """The error of the evidence over the posterior; None where it is next to the same, or cannot be computed."""
    share = whole.weights @ whole.spread
    heavy = [int(k) for k in np.argsort(-share)[:_MOST] if share[k] > _HEAVY]
    if len(heavy) < 3:
        return None
    mean = whole.weights @ whole.u
    sd = np.sqrt(whole.weights @ (whole.u - mean) ** 2)
    sd = np.where(sd > 0, sd, 1.0)
    z, nodes = (np.array([whole.points[k].u for k in heavy]) - mean) / sd, (whole.u - mean) / sd
    apart = np.linalg.norm(z[:, None] - z[None], axis=2)
    looked = [0]
    while len(looked) < min(_LOOKED, len(heavy)):
        looked.append(int(np.argmax(apart[looked].min(axis=0))))  # the farthest from those
    try:
        found = {k: _error(whole.points[heavy[k]]) for k in looked}
    except UnsupportedError:  # the model is not one block with likelihoods: the error is unknown
        return None
    errors = [e for e, _ in found.values()]
    if not max(errors) - min(errors) > _DIFFERENT:
        return None
    found |= {k: _error(whole.points[heavy[k]]) for k in range(len(heavy)) if k not in found}
    error, effective = (np.array([found[k][i] for k in range(len(heavy))]) for i in (0, 1))
    w = share[heavy] / share[heavy].sum()
    design = np.sqrt(w)[:, None] * np.column_stack([np.ones(len(z)), z])
    slope = np.asarray(np.linalg.lstsq(design, np.sqrt(w) * error, rcond=None)[0], dtype=float)[
        1:
    ]  # nats per standard deviation
    moved = (nodes.T * whole.weights) @ nodes @ slope
    return Bias(float(np.max(np.abs(moved))), float(np.sqrt(slope @ moved)), bool(w @ (effective > _EFFECTIVE) > 0.95))


def _error(point: Point) -> tuple[float, float]:
    """What is missing in EP's log evidence at a value, and the share of the draws that count."""
    assert point.corrected is not None and point.posterior is not None
    better = point.corrected(True)
    return better.log_evidence - point.posterior.log_evidence, better.effective
