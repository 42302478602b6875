"""A Gaussian of two numbers times the probability that a score with logistic noise falls between two uncertain cuts.

With a the score less the lower cut and b the upper cut less the score, it is ``sigmoid(a) - sigmoid(-b)``, and 0 where the cuts
are out of order, ``w = a + b <= 0``. Either term is a sigmoid of one number, given which w is Gaussian and cut at 0: one integral
for each, of a log-concave density.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, log_ndtr

from heliograph.factors.integrals.log_concave import log_concave_rule
from heliograph.factors.integrals.vector_tilt import VectorCavity, VectorTilt
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.truncated_normal import tail

__all__ = ["between_tilt"]

_LEAST = 1e-13  # share of the variance of w that is its own, given the other number: less is rounding


class _Sums(NamedTuple):
    """Of two numbers, the second of which is positive: mass, and moments about the cavity's mean."""

    log_z: np.ndarray  # (n,)
    mean: np.ndarray  # (n, 2)
    second: np.ndarray  # (n, 2, 2)


def between_tilt(cavity: VectorCavity) -> VectorTilt:
    """The tilt of each cavity of (a, b); not for point masses.

    >>> from heliograph.factors.integrals.vector_tilt import vector_cavity
    >>> from heliograph.families import MultivariateGaussian
    >>> narrow = vector_cavity(MultivariateGaussian(np.array([[1.0, 2.0]]), 1e-6 * np.eye(2)[None]))
    >>> bool(np.isclose(np.exp(between_tilt(narrow).log_z)[0], expit(1.0) - expit(-2.0)))
    True
    """
    n = len(cavity.mean)
    parts = [_tilt(cavity.mean[s], cavity.root[s]) for s in integral_chunks(n)]
    return VectorTilt(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _tilt(mean: np.ndarray, root: np.ndarray) -> VectorTilt:
    # whichever number is smaller takes the place of a: far outside the cuts the two terms then do not cancel
    turned = mean[:, 0] > mean[:, 1]
    order = np.where(turned[:, None], [1, 0], [0, 1])
    m = np.take_along_axis(mean, order, axis=1)
    v = root @ np.swapaxes(root, 1, 2)
    v = np.take_along_axis(np.take_along_axis(v, order[:, :, None], axis=1), order[:, None, :], axis=2)
    first = _side(m, v, np.array([[1.0, 0.0], [1.0, 1.0]]))  # of (a, w)
    other = _side(m, v, np.array([[0.0, -1.0], [1.0, 1.0]]))  # of (-b, w)
    share = np.exp(other.log_z - first.log_z)
    rest = -np.expm1(np.minimum(other.log_z - first.log_z, 0.0))
    move = (first.mean - share[:, None] * other.mean) / rest[:, None]
    second = (first.second - share[:, None, None] * other.second) / rest[:, None, None]
    move = np.take_along_axis(move, order, axis=1)
    second = np.take_along_axis(np.take_along_axis(second, order[:, :, None], axis=1), order[:, None, :], axis=2)
    back = np.linalg.inv(root)
    t = np.einsum("nij,nj->ni", back, move)
    spread = back @ (second - move[:, :, None] * move[:, None, :]) @ np.swapaxes(back, 1, 2)
    excess = 0.5 * (spread + np.swapaxes(spread, 1, 2)) - np.eye(2)
    return VectorTilt(first.log_z + np.log(rest), t, excess)


def _side(m: np.ndarray, v: np.ndarray, to: np.ndarray) -> _Sums:
    """``sigmoid(x)`` where w is positive, for (x, w) the rows of `to` times (a, b); the moments are those of (a, b)."""
    mean, own = m @ to.T, to @ v @ to.T
    mx, mw, vx, c = mean[:, 0], mean[:, 1], own[:, 0, 0], own[:, 0, 1]
    slope = c / vx
    sd = np.sqrt(np.maximum(own[:, 1, 1] - slope * c, _LEAST * own[:, 1, 1]))

    def curve(x: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        steep = slope[row] / sd[row]
        t = mw[row] / sd[row] + steep * (x - mx[row])
        cut = tail(t, mass=False)
        p = expit(-x)
        return (
            log_expit(x) + log_ndtr(t),
            p + steep * cut.hazard,
            -p * expit(x) - steep**2 * cut.hazard * cut.mean,
        )

    rule = log_concave_rule(mx, vx, curve)
    x = rule.x - rule.of(mx)  # from here on about the means
    centre = rule.of(slope) * x
    spread = rule.of(sd)
    cut = tail((rule.of(mw) + centre) / spread, mass=False)
    w = centre + spread * cut.hazard
    means = np.stack([rule.mean(x), rule.mean(w)], axis=1)
    across = rule.mean(x * w)
    seconds = np.stack([rule.mean(x * x), across, across, rule.mean(w * w + spread**2 * cut.variance)], axis=1).reshape(
        -1, 2, 2
    )
    back = np.linalg.inv(to)
    return _Sums(rule.log_z, means @ back.T, back @ seconds @ back.T)
