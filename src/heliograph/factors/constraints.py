"""Constraints on the line: ``y = 1`` if x is positive, or lies between two bounds; y known, soft or asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy.special import log_expit, log_ndtr

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.integrals.tilt import Tilt, gaussian_site
from heliograph.families import Bernoulli, Family, Gaussian
from heliograph.numerics.chunks import chunks
from heliograph.numerics.truncated_normal import FAR, Tail, far_tail, interval, near_tail, soft_step, tail

__all__ = ["Between", "Positive"]

_DENSITY_0 = float(1.0 / np.sqrt(2 * np.pi))
_CHUNK = 4096  # rows at a time: fresh memory for a large plate takes longer than the arithmetic
_FARTHEST = 1e100  # a cut beyond this many deviations has moments that underflow; nothing finite lies there


class Positive(Factor):
    """``y = 1`` if ``x > 0``, else 0.

    A soft y mixes both sides. A cavity of precision 0 that falls on the allowed side is an exponential and is
    answered as one; any other improper cavity leaves nothing that can be normalised, and the message is uniform.

    >>> Positive().belief("x", {"x": Gaussian(0.0, 1.0), "y": Bernoulli(1.0)})
    Gaussian(mean 0.7979, variance 0.3634)
    """

    name = "positive"
    families: ClassVar = {"x": (Gaussian,), "y": (Bernoulli,)}
    how: ClassVar = {"x": "closed form", "y": "closed form"}
    ignores_own = ("y",)
    powers = True  # an indicator is its own power

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        x, y = as_message(self, incoming, "x"), as_message(self, incoming, "y")
        if to == "y":
            m, v, proper, point = _cavity(x)
            t = m / np.sqrt(v)
            odds = np.where(proper, log_ndtr(t) - log_ndtr(-t), 0.0)
            return Bernoulli.from_log_odds(np.where(point, np.where(m > 0, np.inf, -np.inf), odds), strict=False)
        odds = y.log_odds
        shift, tau = x.naturals
        if x.point is None and x.ndim == 1 and bool((tau > 0).all()) and bool(np.isinf(odds).all()):
            return Gaussian.from_naturals(_hard_site(shift, tau, np.where(odds < 0, -1.0, 1.0)))
        m, v, proper, point = _cavity(x)
        sd = np.sqrt(v)
        step = soft_step(np.clip(m / sd, -_FARTHEST, _FARTHEST), odds, mass=False)
        tilt = Tilt(step.log_mass, sd * step.mean, step.variance, step.pull / sd, -step.loss / v)
        shift, precision = gaussian_site(m, v, tilt)
        # away from its step the indicator is flat, so its message to a point mass is uniform
        if not np.all(proper):
            s, t = x.naturals
            sign = np.sign(odds)
            falls = ~proper & ~point & (t == 0) & np.isinf(odds) & (s * sign < 0)
            shift = np.where(proper, shift, np.where(falls, -2.0 * s, 0.0))  # mean -1/s, precision s^2, less s
            precision = np.where(proper, precision, np.where(falls, s * s, 0.0))
        return Gaussian.from_naturals((shift, precision))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability that the constraint holds."""
        x, y = as_message(self, incoming, "x"), as_message(self, incoming, "y")
        m, v, proper, point = _cavity(x)
        odds = y.log_odds
        log_z = soft_step(m / np.sqrt(v), odds).log_mass
        s = x.naturals[0]
        falls = (x.naturals[1] == 0) & np.isinf(odds) & (s * np.sign(odds) < 0)
        wild = np.where(falls, -np.log(np.where(falls, np.abs(s), 1.0)), np.inf)
        at = np.where(m > 0, log_expit(odds), log_expit(-odds))
        return np.where(proper, log_z, np.where(point, at, wild))


def _hard_site(shift: np.ndarray, tau: np.ndarray, sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The message where x has a proper cavity and its sign is known, the way of every sweep of a league.

    In units of the cavity's sd, and mirrored so that what is positive is kept: mean ``mu`` and variance ``ratio`` of the rest. The
    shift is ``(mu / ratio - t) / sd``, whose terms have the same sign where t < 0, and cancel to ``(hazard + t loss) / ratio``
    elsewhere.
    """
    shift_out, tau_out, far = np.empty(shift.size), np.empty(shift.size), [np.zeros(0, dtype=int)]
    for rows in chunks(shift.size, _CHUNK):
        shift_out[rows], tau_out[rows], t = _cut_site(shift[rows], tau[rows], sign[rows], near_tail)
        far.append(rows.start + np.flatnonzero(t < -FAR))
    rest = np.concatenate(far)  # few, and in almost every chunk
    if len(rest):
        shift_out[rest], tau_out[rest], _ = _cut_site(shift[rest], tau[rest], sign[rest], far_tail)
    return shift_out, tau_out


def _cut_site(
    shift: np.ndarray, tau: np.ndarray, side: np.ndarray, cut_at: Callable[[np.ndarray], Tail]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shift and precision of `_hard_site`, by a formula for the tail, and the mean in units of the sd."""
    scale = np.sqrt(tau)  # 1 / sd
    t = side * shift
    t /= scale
    np.clip(t, -_FARTHEST, _FARTHEST, out=t)
    cut = cut_at(t)
    loss = cut.hazard * cut.mean
    pull = np.where(t < 0, cut.mean - t * cut.variance, cut.hazard + t * loss)
    scale /= cut.variance
    scale *= side
    pull *= scale
    loss *= tau
    loss /= cut.variance
    return pull, loss, t


class Between(Factor):
    """``y = 1`` if ``lower < x < upper``, else 0; the bounds are data and may be infinite.

    Between finite bounds any cavity, uniform or improper, has a belief; outside them, or with a soft y, only a
    proper one has, and the message for any other is uniform.

    >>> Between().belief("x", {"x": Gaussian.uniform(), "lower": 1.0, "upper": 3.0, "y": Bernoulli(1.0)})
    Gaussian(mean 2., variance 0.3333)
    """

    name = "between"
    families: ClassVar = {"x": (Gaussian,), "lower": (), "upper": (), "y": (Bernoulli,)}
    how: ClassVar = {"x": "closed form; quadrature inside", "y": "closed form; quadrature inside"}
    ignores_own = ("y",)
    powers = True  # an indicator is its own power

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        x, y, low, high = self._read(incoming)
        shape = x.shape
        parts = _Parts(x, low, high)
        if to == "y":
            inside, outside = (np.where(parts.proper, l, 0.0) for l in (parts.log_inside, parts.log_outside))
            none = np.isneginf(outside)
            odds = np.where(none, np.inf, inside - np.where(none, 0.0, outside))
            odds = np.where(parts.point, np.where(parts.holds, np.inf, -np.inf), odds)
            return Bernoulli.from_log_odds(odds.reshape(shape), strict=False)
        shift, precision = parts.site(np.broadcast_to(y.log_odds, shape).reshape(-1))
        return Gaussian.from_naturals((shift.reshape(shape), precision.reshape(shape)))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability that the constraint holds."""
        x, y, low, high = self._read(incoming)
        parts = _Parts(x, low, high)
        odds = np.broadcast_to(y.log_odds, x.shape).reshape(-1)
        yes, no = log_expit(odds), log_expit(-odds)
        log_z = np.logaddexp(_weighted(yes, parts.log_inside), _weighted(no, parts.log_outside))
        at = np.where(parts.holds, yes, no)
        return np.where(parts.point, at, log_z).reshape(x.shape)

    def _read(self, incoming: Incoming) -> tuple[Gaussian, Bernoulli, np.ndarray, np.ndarray]:
        x, y = as_message(self, incoming, "x"), as_message(self, incoming, "y")
        low, high = as_data(self, incoming, "lower"), as_data(self, incoming, "upper")
        return x, y, low, high


class _Parts:
    """The cavity's mass, mean and variance below, inside and above the bounds, all in flat rows."""

    def __init__(self, x: Gaussian, low: np.ndarray, high: np.ndarray) -> None:
        shape = x.shape
        low, high = (np.broadcast_to(np.asarray(b, dtype=float), shape).reshape(-1) for b in (low, high))
        m, v, proper, point = (np.asarray(a).reshape(-1) for a in _cavity(x))
        shift, tau = (a.reshape(-1) for a in x.naturals)
        self.m, self.v, self.proper, self.point = m, v, proper, point
        self.shift, self.tau = shift, tau
        self.holds = point & (m > low) & (m < high)
        sd = np.sqrt(v)
        # which improper cavities can be normalised inside: all between finite bounds, falling ones beside one
        finite = np.isfinite(low), np.isfinite(high)
        falling = (tau == 0) & ((finite[0] & (shift < 0)) | (finite[1] & (shift > 0)))
        self.inside = ~point & (proper | (finite[0] & finite[1]) | falling) & (low < high)
        ok = self.inside
        safe = [np.where(ok, a, b) for a, b in ((low, -1.0), (high, 1.0), (shift, 0.0), (tau, 1.0))]
        inner = interval(*safe)
        # a bound infinitely far leaves nothing beyond it
        self.a = np.where(finite[0], (np.where(finite[0], low, 0.0) - m) / sd, -_FARTHEST)
        self.b = np.where(finite[1], (np.where(finite[1], high, 0.0) - m) / sd, _FARTHEST)
        self.a, self.b = np.clip(self.a, -_FARTHEST, _FARTHEST), np.clip(self.b, -_FARTHEST, _FARTHEST)
        below, above = tail(self.a), tail(-self.b)
        low, high = np.where(finite[0], low, m), np.where(finite[1], high, m)
        log_below = np.where(finite[0], below.log_mass, -np.inf)
        log_above = np.where(finite[1], above.log_mass, -np.inf)
        self.log_outside = np.where(proper, np.logaddexp(log_below, log_above), np.inf)
        # a wide interval holds nearly everything: what is outside it is the exact number then
        wide = proper & (self.log_outside < -0.7)
        left = -np.expm1(np.where(wide, self.log_outside, -1.0))
        self.log_inside = np.where(
            ok, np.where(wide, np.log(left), inner.log_mass), np.where(low < high, np.inf, -np.inf)
        )
        self.parts = (
            (log_below, low - sd * below.mean, v * below.variance),
            (self.log_inside, inner.mean, inner.variance),
            (log_above, high + sd * above.mean, v * above.variance),
        )

    def site(self, odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shift and precision of the message to x."""
        yes, no = log_expit(odds), log_expit(-odds)
        hard = np.isposinf(odds)
        good = np.where(hard, self.inside, self.proper)
        logs = [np.where(good, _weighted(w, part[0]), 0.0) for w, part in zip((no, yes, no), self.parts, strict=True)]
        log_z = np.logaddexp(np.logaddexp(logs[0], logs[2]), logs[1])
        good = good & np.isfinite(log_z)  # a contradiction has no message
        safe = np.where(good, log_z, 0.0)
        w = [np.where(good, np.exp(l - safe), 0.0) for l in logs]
        means = [np.where(good, part[1], 0.0) for part in self.parts]
        variances = [np.where(good, part[2], 1.0) for part in self.parts]
        mean = w[0] * means[0] + w[1] * means[1] + w[2] * means[2]
        spread = [a * (b + (c - mean) ** 2) for a, b, c in zip(w, variances, means, strict=True)]
        variance = spread[0] + spread[1] + spread[2]
        # derivatives of log Z from the densities at the bounds: exact where the bounds hardly matter
        near = good & self.proper & (np.abs(variance - self.v) < 0.5 * self.v)
        a, b = np.where(near, self.a, 0.0), np.where(near, self.b, 0.0)
        scale = np.tanh(0.5 * odds) * _DENSITY_0  # p - (1 - p)
        at_a, at_b = (scale * _exp(-0.5 * t * t - np.where(near, safe, 0.0)) for t in (a, b))
        pull = at_a - at_b
        loss = pull * pull + b * at_b - a * at_a
        variance = np.where(good, variance, 1.0)
        ratio = np.where(near, 1.0 - loss, np.where(good & self.proper, variance / self.v, 1.0))
        tilt = Tilt(log_z, mean, ratio, pull / np.sqrt(self.v), -loss / self.v)
        shift, precision = gaussian_site(self.m, self.v, tilt)
        wild = good & ~self.proper
        shift = np.where(wild, mean / variance - self.shift, np.where(good, shift, 0.0))
        return shift, np.where(wild, 1.0 / variance - self.tau, np.where(good, precision, 0.0))


def _exp(x: np.ndarray) -> np.ndarray:
    """``exp(x)``, 0 from -700 on and never more than exp(50), which no density at a bound reaches where it is used."""
    return np.where(x > -700.0, np.exp(np.clip(x, -700.0, 50.0)), 0.0)


def _weighted(log_weight: np.ndarray, log_mass: np.ndarray) -> np.ndarray:
    """The weighted sum of masses, where a weight of 0 times an infinite mass is 0."""
    none = np.isneginf(log_weight)
    return np.where(none, -np.inf, np.where(none, 0.0, log_weight) + log_mass)


def _cavity(x: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance with safe numbers where there are none, and where the cavity is proper or a point mass."""
    shift, tau = x.naturals
    proper = tau > 0
    v = 1.0 / np.where(proper, tau, 1.0)
    m = np.where(proper, shift * v, 0.0)
    if x.point is None:
        return m, v, proper, np.zeros(x.shape, dtype=bool)
    return np.where(x.is_point, np.where(x.is_point, x.point, 0.0), m), v, proper, x.is_point
