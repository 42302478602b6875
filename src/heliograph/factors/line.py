"""Algebra of scalar Gaussian messages that several factors share: sums, added noise, overlaps.

Everything is in natural parameters (shift s, precision t), so that uniform and improper messages need no special
case, and in completed squares where both messages are proper, so that no digits are lost far from the origin.
"""

from __future__ import annotations

import numpy as np

from heliograph.families import Gaussian
from heliograph.numerics.logarithms import LOG_2PI

__all__ = [
    "add_noise",
    "add_noise_log_scale",
    "gaussian_overlap",
    "linked_log_z",
    "move",
    "moved_overlap",
    "stretch",
    "weighted_sum",
    "weighted_sum_log_scale",
]


def stretch(m: Gaussian, constant: np.ndarray | float) -> Gaussian:
    """The message to ``constant * x`` of the message to x; multiplied by 0, x is the point 0."""
    c = np.asarray(constant, dtype=float)
    zero = c == 0
    inverse = 1.0 / np.where(zero, 1.0, c)
    shift, precision = m.shift * inverse, m.naturals[1] * inverse**2
    point = np.where(zero, 0.0, m.mean * c) if m.point is not None else np.where(zero, 0.0, np.nan)
    is_point = m.is_point | zero
    return _settled(shift, precision, is_point, point)


def weighted_sum(a: Gaussian, b: Gaussian, c: float = 1.0, d: float = 1.0) -> Gaussian:
    """The message to ``c a + d b`` of two messages, their convolution, for c and d of 1 or -1.

    Uniform where that has no finite value: both uniform, or an improper one that is not tamed by the other.
    """
    (sa, ta), (sb, tb) = a.naturals, b.naturals
    sa, sb = sa if c == 1.0 else c * sa, sb if d == 1.0 else d * sb
    total = ta + tb
    if a.point is None and b.point is None and 0.0 < total.min(initial=1.0) <= total.max(initial=1.0) < np.inf:
        share_b = tb / total  # the usual plate
        shift = ta / total
        shift *= sb
        shift += sa * share_b
        share_b *= ta
        return Gaussian.from_naturals((shift, share_b))
    finite = total > 0
    safe = np.where(finite, total, 1.0)
    share_a, share_b = np.where(finite, ta / safe, 0.0), np.where(finite, tb / safe, 0.0)
    shift, precision = sa * share_b + sb * share_a, ta * share_b
    if a.point is None and b.point is None:
        return Gaussian.from_naturals((shift, precision))
    pa, pb = a.is_point, b.is_point
    xa, xb = c * np.where(pa, a.mean, 0.0), d * np.where(pb, b.mean, 0.0)
    # a point mass only moves the other message
    precision = np.where(pa, tb, np.where(pb, ta, precision))
    shift = np.where(pa, _moved(sb, tb, xa), np.where(pb, _moved(sa, ta, xb), shift))
    return _settled(shift, precision, pa & pb, xa + xb)


def linked_log_z(a: Gaussian, b: Gaussian, out: Gaussian, sign: float) -> np.ndarray:
    """``log`` of the integral of ``m_a(a) m_b(b) m_out(a + sign b)``, each message normalised if it can be."""
    forward = gaussian_overlap(weighted_sum(a, b, 1.0, sign), out)
    return np.asarray(forward + weighted_sum_log_scale(a, b, 1.0, sign))


def move(m: Gaussian, constant: np.ndarray) -> Gaussian:
    """The message to ``x + constant`` of the message to x."""
    return weighted_sum(m, Gaussian.point_mass(constant))


def moved_overlap(m: Gaussian, constant: np.ndarray, out: Gaussian) -> np.ndarray:
    """``log`` of the integral of ``m(x) m_out(x + constant)``."""
    return linked_log_z(m, Gaussian.point_mass(constant), out, 1.0)


def weighted_sum_log_scale(a: Gaussian, b: Gaussian, c: float = 1.0, d: float = 1.0) -> np.ndarray:
    """``log`` of what the normalised message of `weighted_sum` must be multiplied with; 0 if both are proper.

    An improper message is read as ``exp(shift x - precision x^2 / 2)``, and so is its convolution with a proper one;
    infinite where the convolution is.
    """
    pa, pb = a.proper, b.proper
    scale = np.where(pa & pb, 0.0, np.inf)
    for wild, tame, here in ((a, b, ~pa & pb), (b, a, pa & ~pb)):
        s, t = wild.naturals
        m, v = np.where(here, tame.mean, 0.0), np.where(here, tame.variance, 1.0)
        grow = 1.0 + v * t
        # the terms in the output are the message itself; at output 0 only the constant is left
        scale = np.where(here & (grow > 0), _log_expectation(-c * d * m, v, s, t, grow), scale)
    return scale


def add_noise(m: Gaussian, variance: np.ndarray) -> Gaussian:
    """The message to x + N(0, variance) of the message to x; uniform where that diverges."""
    s, t = m.naturals
    grow = variance * t
    grow += 1.0
    if m.point is None and 0.0 < grow.min(initial=1.0) <= grow.max(initial=1.0) < np.inf:  # the usual plate
        return Gaussian.from_naturals((s / grow, t / grow))
    grow = 1.0 + np.where(t == 0, 0.0, variance) * t
    finite = grow > 0
    # noise beyond all numbers leaves nothing to say, and nothing divided by it is 0
    safe = np.where(finite, grow, 1.0)
    shift, precision = np.where(finite, s / safe, 0.0), np.where(finite, t / safe, 0.0)
    if m.point is None:
        return Gaussian.from_naturals((shift, precision))
    point = m.is_point
    noisy = point & (variance > 0)
    tau = 1.0 / np.where(variance > 0, variance, 1.0)
    x = np.where(point, m.mean, 0.0)
    shift, precision = np.where(noisy, x * tau, shift), np.where(noisy, tau, precision)
    return _settled(shift, precision, point & ~(variance > 0), x)


def add_noise_log_scale(m: Gaussian, variance: np.ndarray) -> np.ndarray:
    """``log`` of what the normalised message of `add_noise` must be multiplied with; 0 if `m` is proper."""
    s, t = m.naturals
    grow = 1.0 + np.where(t == 0, 0.0, variance) * t
    safe = np.where(grow > 0, grow, 1.0)
    scale = np.where(grow > 0, 0.5 * variance * s**2 / safe - 0.5 * np.log(safe), np.inf)
    return np.where(m.proper, 0.0, scale)


def gaussian_overlap(a: Gaussian, b: Gaussian) -> np.ndarray:
    """``log`` of the integral of the product of two messages, each normalised if it can be.

    Two equal point masses give 0 and two different ones -inf; infinite where the integral is.
    """
    va, vb = np.where(a.proper, a.variance, 1.0), np.where(b.proper, b.variance, 1.0)
    ma, mb = np.where(a.proper, a.mean, 0.0), np.where(b.proper, b.mean, 0.0)
    total, gap = va + vb, ma - mb
    both_points = total == 0
    safe = np.where(both_points, 1.0, total)
    square = gap / np.sqrt(safe)
    both = np.where(both_points, np.where(gap == 0, 0.0, -np.inf), -0.5 * (LOG_2PI + np.log(safe) + square**2))
    result = both
    for left, right, m, v in ((a, b, mb, vb), (b, a, ma, va)):
        s, t = left.naturals
        grow = 1.0 + v * t
        one = np.where(grow > 0, _log_expectation(m, v, s, t, grow), np.inf)
        result = np.where(~left.proper & right.proper, one, result)
    return np.where(a.proper | b.proper, result, np.inf)


def _log_expectation(m: np.ndarray, v: np.ndarray, s: np.ndarray, t: np.ndarray, grow: np.ndarray) -> np.ndarray:
    """``log E exp(s x - t x^2 / 2)`` under N(m, v), where ``grow = 1 + v t`` is positive."""
    safe = np.where(grow > 0, grow, 1.0)
    return (s * m - 0.5 * t * m**2 + 0.5 * v * s**2) / safe - 0.5 * np.log(safe)


def _moved(s: np.ndarray, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The shift of a message moved by x."""
    sharp = np.abs(t) > 1e150  # there t x may overflow although the sum does not
    safe = np.where(sharp, t, 1.0)
    return np.where(sharp, safe * (s / safe + x), s + np.where(sharp, 0.0, t) * x)


def _settled(shift: np.ndarray, precision: np.ndarray, is_point: np.ndarray, point: np.ndarray) -> Gaussian:
    """A Gaussian with point masses where `is_point`."""
    return Gaussian.with_points_at(np.asarray(is_point), point, (shift, precision))
