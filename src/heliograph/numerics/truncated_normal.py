"""Normal distributions cut at a threshold or to an interval, in forms that lose no digits however far the tail.

All in units of the standard deviation. `tail` is the one-sided cut; `Step` a soft step (a mixture of both sides);
`interval` the two-sided cut, for any exponential of a quadratic.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.panels import DROP, legendre

__all__ = ["FAR", "Interval", "Step", "Tail", "far_tail", "interval", "log_hazard", "near_tail", "soft_step", "tail"]


_ROOT_2_OVER_PI = float(np.sqrt(2.0 / np.pi))
_ROOT_HALF = float(np.sqrt(0.5))
_ROOT_2_PI = float(np.sqrt(2.0 * np.pi))
FAR = 2.5  # beyond this many deviations the continued fraction is the more exact form: the other has lost 1.5e-13 there
_TERMS = 30  # of the continued fraction: the variance is off by 1e-14 at x = 2.5, and by less beyond
_ALL = 50.0  # deviations, beyond which nothing is cut off in double precision


class Tail(NamedTuple):
    """x ~ N(t, 1) given x > 0."""

    log_mass: np.ndarray  # log P(x > 0); NaN where it was not wanted
    hazard: np.ndarray  # density at 0 over that mass
    mean: np.ndarray  # E x = t + hazard
    variance: np.ndarray  # 1 - hazard * mean


def tail(t: np.ndarray, mass: bool = True) -> Tail:
    """The part above 0 of N(t, 1), to full relative precision on either side; `mass` tells whether its log mass is wanted.

    >>> tail(np.array([-1e8])).variance
    array([1.e-16])
    """
    cut = near_tail(t)
    far = t < -FAR
    if far.any():
        cut = Tail(*(np.array(a) for a in cut))  # which are numbers where t is one
        for whole, part in zip(cut[1:], far_tail(t[far])[1:], strict=True):
            whole[far] = part
    return cut._replace(log_mass=log_ndtr(t)) if mass else cut


def near_tail(t: np.ndarray) -> Tail:
    """`tail` where t is not below -FAR, without its log mass."""
    near = np.clip(t, -FAR, _ALL)
    hazard = near * near
    hazard = np.exp(hazard * -0.5)
    hazard /= _ROOT_2_PI * ndtr(near)
    mean = t + hazard
    return Tail(np.broadcast_to(np.nan, np.shape(t)), hazard, mean, 1.0 - hazard * mean)


def far_tail(t: np.ndarray) -> Tail:
    """`tail` where t is below -FAR, without its log mass.

    Mean and variance are what is left there when two nearly equal numbers are subtracted. Laplace's continued fraction
    ``1 / hazard = 1 / (x + 1 / (x + 2 / (x + ...)))`` gives them as they are, 1 / x and 1 / x^2.
    """
    x = -t
    # where a fraction stands still whose next part is larger by what two of them differ by
    rise = _standing(x, _TERMS + 1) - _standing(x, _TERMS)
    k = _standing(x + rise, _TERMS, 0.0)
    for j in range(_TERMS - 1, 1, -1):
        k += x
        np.divide(j, k, out=k)
    mean = 1.0 / (x + k)
    return Tail(np.broadcast_to(np.nan, x.shape), x + mean, mean, mean * (k - mean))


def _standing(x: np.ndarray, j: int, correction: float = 1.0) -> np.ndarray:
    """About what part j of the fraction is: where it stands still, less what the next one is larger, to first order."""
    square = x * x + 4.0 * j
    k = 2.0 * j / (np.sqrt(square) + x)
    return k - correction * k / square


def log_hazard(t: np.ndarray) -> np.ndarray:
    """``log`` of the hazard of `tail`, also where that underflows; the mass is the normal density at t over it.

    >>> log_hazard(np.array([0.0, 100.0])).round(3)
    array([-2.260000e-01, -5.000919e+03])
    """
    near = np.log(_ROOT_2_OVER_PI / erfcx(-np.minimum(t, 1.0) * _ROOT_HALF))
    return np.where(t < 1.0, near, -0.5 * (t * t + LOG_2PI) - log_ndtr(t))


class Step(NamedTuple):
    """x ~ N(t, 1) weighted with p where x > 0 and 1 - p where x < 0."""

    log_mass: np.ndarray  # log (p P(x > 0) + (1 - p) P(x < 0)); it may be NaN where it was not wanted
    pull: np.ndarray  # E x - t
    mean: np.ndarray  # E x
    variance: np.ndarray
    loss: np.ndarray  # 1 - variance, exact also where it is tiny


def soft_step(t: np.ndarray, log_odds: np.ndarray, mass: bool = True) -> Step:
    """The weighted distribution for ``log_odds = log(p / (1 - p))``; infinite log odds are a hard cut.

    Without `mass` hard cuts take three quarters of the time.

    >>> [float(a) for a in soft_step(np.array(0.7), np.array(0.0))[1:]]  # a fair coin says nothing
    [0.0, 0.7, 1.0, 0.0]
    """
    # hard rows of one kind everywhere need one side only
    sign = np.where(log_odds < 0, -1.0, 1.0)
    odds = -np.abs(log_odds)
    hard = bool(np.all(np.isinf(odds)))
    likely = tail(sign * t, mass or not hard)  # the side with the larger weight
    if hard:
        pull, loss = likely.hazard, likely.hazard * likely.mean
        return Step(likely.log_mass, sign * pull, sign * likely.mean, likely.variance, loss)
    other = tail(-sign * t)
    log_weight = -np.log1p(np.exp(odds))  # log p of the likely side
    log_mass = log_weight + np.logaddexp(likely.log_mass, odds + other.log_mass)
    w = np.exp(log_weight + likely.log_mass - log_mass)
    u = np.exp(log_weight + odds + other.log_mass - log_mass)
    pull = -np.expm1(odds) * w * likely.hazard
    loss = pull * (pull + sign * t)
    mean = w * likely.mean - u * other.mean
    # as a mixture nothing cancels when the loss is near 1; as a loss nothing does when it is small
    mixed = w * likely.variance + u * other.variance + w * u * (likely.mean + other.mean) ** 2
    variance = np.where(loss < 0.5, 1.0 - loss, mixed)
    return Step(log_mass, sign * pull, sign * mean, variance, loss)


class Interval(NamedTuple):
    """``exp(shift x - precision x^2 / 2)`` cut to an interval."""

    log_mass: np.ndarray  # log of the integral; of the normalised Gaussian where the precision is positive
    mean: np.ndarray
    variance: np.ndarray


def interval(low: np.ndarray, high: np.ndarray, shift: np.ndarray, precision: np.ndarray) -> Interval:
    """The density of a Gaussian message, proper or not, between two bounds.

    A bound may be infinite where the density falls towards it. The interval is split where the log density has its
    extremum; each part falls from an anchor, so mean and variance are sums of positive distances from anchors, and a
    sliver a thousand deviations out in the tail keeps its digits.
    """
    hump = precision > 0
    safe = np.where(precision == 0, 1.0, precision)
    flat = np.where(shift > 0, high, low)  # of an exponential, the higher bound
    split = np.clip(np.where(precision == 0, flat, shift / safe), low, high)
    up, down = np.where(precision < 0, low, split), np.where(precision < 0, high, split)  # anchors of the two parts
    inner = split - low > 0, high - split > 0
    g_up, g_down = shift - precision * up, shift - precision * down
    peak = (precision > 0) & inner[0] & inner[1]
    slope_up = np.where(peak, 0.0, np.maximum(-g_up, 0.0))
    slope_down = np.where(peak, 0.0, np.maximum(g_down, 0.0))
    valley = precision < 0
    length_up = np.where(valley, split - low, high - split)
    length_down = np.where(valley, high - split, split - low)
    a, b = _side(slope_up, precision, length_up), _side(slope_down, precision, length_down)
    mid = np.where(hump, shift / safe, 0.0)
    tau = np.where(hump, precision, 1.0)
    heights = []
    for anchor in (up, down):
        proper = 0.5 * (np.log(tau) - LOG_2PI - tau * (anchor - mid) ** 2)
        heights.append(np.where(hump, proper, anchor * (shift - 0.5 * precision * anchor)))
    top = np.maximum(*heights)
    wa, wb = a[0] * np.exp(heights[0] - top), b[0] * np.exp(heights[1] - top)
    mass = wa + wb
    wa, wb = wa / mass, wb / mass
    far_a, far_b = up + a[1], down - b[1]
    # about one anchor the distances add; about two, their gap counts as well
    mean = np.where(valley, wa * far_a + wb * far_b, split + (wa * a[1] - wb * b[1]))
    variance = wa * a[2] + wb * b[2] + wa * wb * (far_a - far_b) ** 2
    return Interval(top + np.log(mass), mean, variance)


def _side(slope: np.ndarray, curvature: np.ndarray, length: np.ndarray, n: int = 40) -> tuple[np.ndarray, ...]:
    """Mass of ``exp(-slope d - curvature d^2 / 2)`` over ``0 < d < length``, and the mean and variance of d.

    Only as far as the exponent reaches -`DROP`; 40 Gauss nodes are then exact to rounding for a half Gaussian, an
    exponential and everything between.
    """
    c = np.maximum(curvature, 0.0)
    # root of slope d + c d^2 / 2 = DROP, in the form that does not cancel; a falling convex side ends at 2 DROP / slope
    reach = slope + np.sqrt(slope * slope + 2.0 * c * DROP)
    reach = np.where(reach > 0, 2.0 * DROP / np.where(reach > 0, reach, 1.0), np.inf)
    reach = np.where(curvature < 0, 2.0 * reach, reach)
    end = np.minimum(length, reach)
    x, w = legendre(n)
    d = end[:, None] * x
    density = np.exp(-d * (slope[:, None] + 0.5 * curvature[:, None] * d)) * w
    mass = density.sum(axis=1)
    mean = np.einsum("ij,ij->i", density, d) / mass
    d -= mean[:, None]
    return end * mass, mean, np.einsum("ij,ij,ij->i", density, d, d) / mass
