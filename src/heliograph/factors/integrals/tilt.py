"""Tilted distributions: a Gaussian cavity times a factor, and the message that follows from it.

`Tilt` is what every integral over a Gaussian cavity ends in, and `gaussian_site` turns it into a message without losing
the digits of a cavity much narrower, or much wider, than the factor. The integrals themselves are in `numerics`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import log_expit

from heliograph.families import Gaussian

__all__ = ["Tilt", "cavity_of", "gaussian_site", "mixed"]


class Tilt(NamedTuple):
    """The tilted distribution of a cavity N(m, v) and a factor f, each field of shape (n,)."""

    log_z: np.ndarray  # log of the integral of f times the cavity
    mean: np.ndarray  # of the tilted distribution
    ratio: np.ndarray  # its variance over v; 1 at a point mass
    slope: np.ndarray  # d log_z / dm, so that mean = m + v slope
    bend: np.ndarray  # d^2 log_z / dm^2, so that ratio = 1 + v bend


def gaussian_site(m: np.ndarray, v: np.ndarray, tilt: Tilt) -> tuple[np.ndarray, np.ndarray]:
    """Shift and precision of the message, eq. (1): the tilted belief divided by the cavity N(m, v).

    Where the belief is nearly the cavity, subtracting their natural parameters would leave rounding, so there the
    derivatives of log Z speak; they also have the point-mass cavity, v = 0, as their limit. Elsewhere the belief
    itself is the better number.

    >>> m = np.array([2.0])
    >>> gaussian_site(m, np.array([0.0]), Tilt(m, m, np.ones(1), np.array([0.5]), np.array([-0.25])))
    (array([1.]), array([0.25]))
    """
    ratio = tilt.ratio
    near = np.abs(ratio - 1.0) < 0.1
    with np.errstate(all="ignore"):  # of the two forms one may divide by 0, where the other is taken
        precision, shift = -tilt.bend / ratio, tilt.slope / ratio
        shift += m * precision
        if near.all():
            return shift, precision
        ruled = v * ratio  # the belief's variance
        return np.where(near, shift, tilt.mean / ruled - m / v), np.where(near, precision, (1.0 - ratio) / ruled)


def mixed(yes: Tilt, no: Tilt, log_odds: np.ndarray, v: np.ndarray) -> Tilt:
    """The tilt of ``p f_yes + (1 - p) f_no`` for ``log_odds = log(p / (1 - p))``, itself a mixture."""
    log_yes, log_no = log_expit(log_odds) + yes.log_z, log_expit(-log_odds) + no.log_z
    log_z = np.logaddexp(log_yes, log_no)
    w, u = np.exp(log_yes - log_z), np.exp(log_no - log_z)
    between = w * u * (yes.slope - no.slope) ** 2
    return Tilt(
        log_z,
        w * yes.mean + u * no.mean,
        w * yes.ratio + u * no.ratio + v * between,
        w * yes.slope + u * no.slope,
        w * yes.bend + u * no.bend + between,
    )


def cavity_of(message: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, variance and where there is a distribution at all; a point mass has variance 0.

    Where the message is uniform or improper, mean 0 and variance 1 stand in, for formulas to run over.
    """
    shift, tau = message.naturals
    proper = tau > 0
    if message.point is None and proper.all():
        v = 1.0 / tau
        return shift * v, v, proper
    v = 1.0 / np.where(proper, tau, 1.0)
    m = np.where(proper, shift * v, 0.0)
    if message.point is None:
        return m, v, proper
    point = message.is_point
    return np.where(point, message.point, m), np.where(point, 0.0, v), proper | point
