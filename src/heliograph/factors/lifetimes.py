"""Lifetimes of a Weibull distribution (an exponential for shape 1) with a log scale z, exact or censored, by quadrature."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammaln

from heliograph.factors.base import Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.integrals.exponential import exponential_tilt
from heliograph.factors.integrals.log_concave import log_concave_tilt
from heliograph.factors.integrals.tilt import Tilt
from heliograph.factors.scores import OfScore, Rows
from heliograph.families import Gaussian
from heliograph.numerics.gamma_function import trigamma

__all__ = ["Weibull"]

_HIGHEST = 690.0  # of a log hazard: beyond, the lifetime is impossible and exp overflows


class Weibull(OfScore):
    """A lifetime T, ``P(T > t) = exp(-(t / exp(z))^shape)``, of which lower <= T <= upper is known.

    Equal bounds are an exact lifetime (a density), an infinite upper one is censored on the right, a lower one of 0 on the
    left. With ``u = shape (log t - z)`` an exact lifetime is ``exp(u - exp(u))``, a Poisson count of 1 with the log rate u,
    and one censored on the right a count of 0.

    >>> z = Gaussian(0.0, 0.0)  # a scale of exp(0) = 1, known
    >>> f, rows = Weibull(), {"z": z, "shape": 1.0}
    >>> float(f.log_z({**rows, "lower": 2.0, "upper": 2.0})), float(f.log_z({**rows, "lower": 2.0, "upper": np.inf}))
    (-2.0, -2.0)
    >>> round(float(np.exp(f.log_z({**rows, "lower": 0.0, "upper": np.log(2.0)}))), 12)
    0.5
    """

    name = "weibull"
    families: ClassVar = {"z": (Gaussian,), "shape": (), "lower": (), "upper": ()}
    how: ClassVar = {"z": "quadrature"}

    def tilt(self, m: np.ndarray, v: np.ndarray, rows: Rows, power: float) -> Tilt:
        """By the tilt of a Poisson count where nothing is censored on the left, by adaptive quadrature elsewhere."""
        plain = np.isinf(rows["upper"]) | (rows["upper"] == rows["lower"])
        parts: list[tuple[np.ndarray, Tilt]] = []
        for which, how in ((plain, _by_counts), (~plain, _by_quadrature)):
            index = np.flatnonzero(which)
            if index.size:
                part = {p: a[index] for p, a in rows.items()}
                parts.append((index, how(m[index], v[index], part, power)))
        found = Tilt(*(np.empty(m.size) for _ in Tilt._fields))
        for index, tilt in parts:
            for whole, field in zip(found, tilt, strict=True):
                whole[index] = field
        return found

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lifetimes given the log scale."""
        scale, shape = np.exp(as_message(self, incoming, "z").mean), as_data(self, incoming, "shape")
        mean = scale * np.exp(gammaln(1.0 + 1.0 / shape))
        return scale * rng.weibull(shape, mean.shape), mean, scale**2 * np.exp(gammaln(1.0 + 2.0 / shape)) - mean**2

    def flat(self, s: np.ndarray, rows: Rows, power: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Exact lifetimes leave the log of a Gamma under a cavity ``exp(s z)``; so do others where s < 0."""
        shape, t = rows["shape"], rows["lower"]
        event = rows["upper"] == t
        a = power * event - s / shape  # of exp(a u - power exp(u))
        good = (a > 0) & (event | np.isinf(rows["upper"])) & (t > 0)
        a, t = np.where(good, a, 1.0), np.where(good, t, 1.0)
        log_t = np.log(t)
        mean = log_t - (digamma(a) - np.log(power)) / shape
        log_z = gammaln(a) - a * np.log(power) - np.log(shape) + s * log_t
        return good, mean, trigamma(a) / shape**2, log_z + np.where(event, power * (np.log(shape) - log_t), 0.0)


def _by_counts(m: np.ndarray, v: np.ndarray, rows: Rows, power: float) -> Tilt:
    shape, t = rows["shape"], rows["lower"]
    event, never = (rows["upper"] == t).astype(float), t == 0
    log_t = np.log(np.where(never, 1.0, t))
    a, r = power * event, np.where(never, 0.0, power)
    tilt, peak = exponential_tilt(shape * (log_t - m), shape**2 * v, a, r)
    log_z = tilt.log_z + a * peak - r * np.exp(np.minimum(peak, _HIGHEST)) + a * (np.log(shape) - log_t)
    return Tilt(log_z, log_t - tilt.mean / shape, tilt.ratio, -shape * tilt.slope, shape**2 * tilt.bend)


def _by_quadrature(m: np.ndarray, v: np.ndarray, rows: Rows, power: float) -> Tilt:
    """``exp(-A) - exp(-B)`` with A and B the cumulated hazards at the bounds, as ``exp(-A) (1 - exp(-(B - A)))``."""
    shape, low, high = rows["shape"], rows["lower"], rows["upper"]
    from_start = low == 0
    log_low = np.log(np.where(from_start, 1.0, low))
    growth = shape * (np.log(high) - log_low)
    log_gap = np.where(from_start, shape * np.log(high), shape * log_low + _log_expm1(growth))  # of B - A at z = 0

    def logs(z: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # of A and of B - A
        return np.where(from_start[k], -np.inf, shape[k] * (log_low[k] - z)), log_gap[k] - shape[k] * z

    def curve(z: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, (log_a, log_d) = shape[k], logs(z, k)
        first, d = _bounded_exp(log_a), _bounded_exp(log_d)
        w = _odds(d)  # d / (exp(d) - 1)
        slope = s * (first - w)
        bend = -(s**2) * (first - w * (1.0 - d - w))
        return power * (_log_dies(log_d) - first), power * slope, power * np.minimum(bend, 0.0)

    def rise(z: np.ndarray, step: np.ndarray, k: np.ndarray) -> np.ndarray:
        (log_a, log_d), move = logs(z, k), -shape[k] * step  # both logs move by the same
        before, after = _bounded_exp(log_a), _bounded_exp(log_a + move)
        near = (np.abs(move) < 1.0) & (np.abs(log_a) < _HIGHEST)  # elsewhere the difference has its digits
        first = np.where(near, before * np.expm1(np.where(near, move, 0.0)), after - before)
        return power * (_log_dies(log_d + move) - _log_dies(log_d) - first)

    return log_concave_tilt(m, v, curve, rise)


def _bounded_exp(x: np.ndarray) -> np.ndarray:
    return np.exp(np.clip(x, -_HIGHEST, _HIGHEST))


def _log_dies(log_d: np.ndarray) -> np.ndarray:
    """``log(1 - exp(-d))``."""
    d = _bounded_exp(log_d)
    return np.where(d < 1.0, log_d + _log_ratio(d), np.log1p(-np.exp(-np.maximum(d, 1.0))))


def _log_expm1(x: np.ndarray) -> np.ndarray:
    """``log(exp(x) - 1)`` for x > 0."""
    return np.where(x > 1.0, x + np.log1p(-np.exp(-np.maximum(x, 1.0))), np.log(np.expm1(np.minimum(x, 1.0))))


def _log_ratio(d: np.ndarray) -> np.ndarray:
    """``log((1 - exp(-d)) / d)`` for 0 < d < 1."""
    d = np.minimum(d, 1.0)
    return np.log(-np.expm1(-d) / np.maximum(d, 1e-300))


def _odds(d: np.ndarray) -> np.ndarray:
    """``d / (exp(d) - 1)``, which is 1 at 0."""
    small = d < 1e-8
    safe = np.clip(np.where(small, 1.0, d), 0.0, _HIGHEST)
    return np.where(small, 1.0 - 0.5 * d, safe / np.expm1(safe))
