"""Whether the error of EP's own evidence matters: how it varies over the hyper-parameters, by importance sampling.

A constant error leaves their posterior as it is. One that varies moves it: where it rises by c nats per standard deviation of a
hyper-parameter, its mean is c standard deviations off. Three values are looked at first, which is cheap; only where they
differ are those that hold the mass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.nested.integrating import Whole
from heliograph.engine.nested.points import Point
from heliograph.errors import UnsupportedError

__all__ = ["Bias", "bias_of"]

_HEAVY = 0.01  # share of the mass that makes a value count
_DIFFERENT = 0.1  # nats between three values, above which the others are looked at
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
    u, w = np.array([whole.points[k].u for k in heavy]), share[heavy] / share[heavy].sum()
    mean = w @ u
    sd = np.sqrt(w @ (u - mean) ** 2)
    z = (u - mean) / np.where(sd > 0, sd, 1.0)
    apart = np.linalg.norm(z[:, None] - z[None], axis=2)
    three = {0, *(int(k) for k in np.unravel_index(int(np.argmax(apart)), apart.shape))}
    try:
        found = {k: _error(whole.points[heavy[k]]) for k in sorted(three)}
    except UnsupportedError:  # the model is not one block with likelihoods: the error is unknown
        return None
    errors = [e for e, _ in found.values()]
    if not max(errors) - min(errors) > _DIFFERENT:
        return None
    found |= {k: _error(whole.points[heavy[k]]) for k in range(len(heavy)) if k not in found}
    error, effective = (np.array([found[k][i] for k in range(len(heavy))]) for i in (0, 1))
    off = error - w @ error
    return Bias(
        float(np.max(np.abs((w * off) @ z))), float(np.sqrt(w @ off**2)), bool(w @ (effective > _EFFECTIVE) > 0.95)
    )


def _error(point: Point) -> tuple[float, float]:
    """What is missing in EP's log evidence at a value, and the share of the draws that count."""
    assert point.corrected is not None and point.posterior is not None
    better = point.corrected(True)
    return better.log_evidence - point.posterior.log_evidence, better.effective
