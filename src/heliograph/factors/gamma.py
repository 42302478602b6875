"""Gamma variables with a fixed shape and a known or unknown rate: ``x ~ Gamma(shape, rate)``.

With both unknown, x given the rate is a Gamma and the rate has the log-concave tilted density
``r^(R-1) exp(-b r) (c + r)^-A``, integrated over its logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_data, as_message
from heliograph.factors.mean_field import expected
from heliograph.families import Gamma
from heliograph.numerics.adaptive_quadrature import Rule, adapt, around, bounded_exp
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.excess import exp_excess
from heliograph.numerics.gamma_function import binet, digamma_gap
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["GammaRate"]


class GammaRate(Factor):
    """``Gamma(x; shape, rate)`` with the shape given; a prior with fixed parameters has the rate a plain array.

    Exact where x or the rate is a point mass. An incoming message of rate 0, the uniform one among them, makes the
    message to the other end an exact power law. Where the tilted distribution, or the target's mean under it, does
    not exist (an incoming message of negative rate, a tail too heavy) the message sent is uniform.
    """

    name = "gamma_rate"
    families: ClassVar = {"shape": (), "rate": (Gamma,), "x": (Gamma,)}
    how: ClassVar = {"rate": "quadrature", "x": "quadrature over rate"}
    exact_given: ClassVar = {"rate": ("x",), "x": ("rate",)}
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Gamma:
        """Belief over cavity, or the conjugate message where the other end is a point mass."""
        s, rate, x = self._read(incoming)
        own, other = (x, rate) if to == "x" else (rate, x)
        log_part = power * (s - 1.0) if to == "x" else power * s  # what f itself puts on log of the target
        known = other.is_point
        value = np.where(known, other.mean, 0.0)
        # f summed over an other end of rate 0 is a power law, whatever comes in at the target
        exponent = other.naturals[0] + 1.0 + (power * s if to == "x" else power * (s - 1.0))
        law = ~known & (other.naturals[1] == 0) & (exponent > 0)
        first = np.where(known, log_part, np.where(law, log_part - exponent, 0.0))
        second = np.where(known, power * value, 0.0)
        needed = ~known & ~law & ~own.is_point
        if np.any(needed):
            tilt = _tilt(s, rate, x, power, needed, to)
            good = tilt.valid
            belief = Gamma.from_mean_and_log_gap(
                np.where(good, tilt.mean, 1.0), np.where(good, tilt.log_gap, 1.0), strict=False
            )
            first = np.where(good, belief.naturals[0] - own.naturals[0], first)
            second = np.where(good, belief.naturals[1] - own.naturals[1], second)
        return Gamma.from_naturals((first, second))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral over x and the rate; infinite where there is none."""
        s, rate, x = self._read(incoming)
        at_rate, at_x = rate.is_point, x.is_point
        vr, vx = np.where(at_rate, rate.mean, 1.0), np.where(at_x, x.mean, 1.0)
        soft = ~at_rate & ~at_x
        log_z = np.full(s.shape, np.inf)
        if np.any(soft):
            log_z = np.where(soft, _tilt(s, rate, x, power, soft, "log_z").log_z, log_z)
        # one known: Bayes' rule at one point, where the Gamma functions of large shapes cancel inside the densities
        for here, own, value, more in ((at_rate & ~at_x, x, vr, s - 1.0), (at_x & ~at_rate, rate, vx, s)):
            shape, b = own.naturals[0] + 1.0 + power * more, own.naturals[1] + power * value
            fine = here & (shape > 0) & (b > 0)
            if np.any(fine):
                shape, b = np.where(fine, shape, 1.0), np.where(fine, b, 1.0)
                at = shape / b
                log_f = power * (_gamma(s, value).log_density(at) if own is x else _gamma(s, at).log_density(value))
                log_z = np.where(fine, own.log_density(at) + log_f - _gamma(shape, b).log_density(at), log_z)
        return np.where(at_rate & at_x, power * _gamma(s, vr).log_density(vx), log_z)

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Gamma:
        """The conjugate message with the other end at its expected value; uniform where it has none."""
        s, rate, x = self._read(beliefs)
        other = expected(rate if to == "x" else x)
        first = s - 1.0 if to == "x" else s
        return Gamma.from_naturals((np.where(other.known, first, 0.0), np.where(other.known, other.value, 0.0)))

    def _read(self, incoming: Incoming) -> tuple[np.ndarray, Gamma, Gamma]:
        s = as_data(self, incoming, "shape")
        rate, x = as_message(self, incoming, "rate"), as_message(self, incoming, "x")
        shape = np.broadcast_shapes(s.shape, rate.shape, x.shape)
        return np.broadcast_to(s, shape), rate.broadcast_to(shape), x.broadcast_to(shape)


def _gamma(shape: np.ndarray, rate: np.ndarray) -> Gamma:
    """A Gamma whose parameters are not looked at: one that has overflowed concerns its own row only."""
    return Gamma.from_naturals((shape - 1.0, rate))


class _Tilt(NamedTuple):
    valid: np.ndarray
    log_z: np.ndarray
    mean: np.ndarray  # of the target
    log_gap: np.ndarray


def _tilt(s: np.ndarray, rate: Gamma, x: Gamma, power: float, where: np.ndarray, to: str) -> _Tilt:
    """Integrate over the rate, for the rows in `where`, what the target `to` ("x", "rate" or "log_z") needs."""
    shape = s.shape
    # with q = power rate: x given q is Gamma(A, bx + q), and q has q^R exp(-br q / power) (bx + q)^-A d log q
    A = x.naturals[0] + 1.0 + power * (s - 1.0)
    R = rate.naturals[0] + 1.0 + power * s
    b, c = rate.naturals[1] / power, x.naturals[1]
    more_r, more_x = float(to == "rate"), float(to == "x")  # the moment that must exist besides the integral
    valid = where & (A > 0) & (R > 0) & (b >= 0) & (c >= 0)
    valid &= ((b > 0) | (more_r < A - R)) & ((c > 0) | (more_x < R - A))
    log_z, mean, gap = np.full(shape, np.inf), np.ones(shape), np.ones(shape)
    outs = [v.reshape(-1) for v in (log_z, mean, gap)]
    flat = [v.reshape(-1) for v in np.broadcast_arrays(A, R, b, c)]
    positions = np.flatnonzero(valid.reshape(-1))
    rates, xs = rate.reshape((rate.size,)), x.reshape((x.size,))
    for part in integral_chunks(positions.size):
        rows = positions[part]
        a, r, rb, rc = (v[rows] for v in flat)
        rule, log_lump = _integrate(a, r, rb, rc, more_r, more_x)
        if to == "log_z":
            outs[0][rows] = rule.log_z + _log_at(rule.centre, a, s.reshape(-1)[rows], rates[rows], xs[rows], power)
        if to == "rate":
            ratio = rule.mean(bounded_exp(rule.offset))  # E q over q at the centre
            outs[1][rows] = ratio * np.exp(rule.centre) / power
            outs[2][rows] = rule.mean(exp_excess(rule.offset - rule.of(np.log(ratio))))
        elif to == "x":
            log_t = -log_lump(rule.offset, rule.row[:, None])  # 1 / (c + q), the scale of x given q, over its centre
            ratio = rule.mean(bounded_exp(log_t))
            outs[1][rows] = a * ratio / (rc + np.exp(rule.centre))
            outs[2][rows] = digamma_gap(a) + rule.mean(exp_excess(log_t - rule.of(np.log(ratio))))
    return _Tilt(valid, log_z, mean, gap)


def _integrate(
    a: np.ndarray, r: np.ndarray, b: np.ndarray, c: np.ndarray, more_r: float, more_x: float
) -> tuple[Rule, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """Nodes of ``exp(r u - b e^u) (c + e^u)^-a`` over u, and ``log(c + e^u)`` less its value at the mode."""
    flat = c == 0
    # the mode solves b q^2 - B q - r c = 0, by the form of the root that does not cancel
    B = r - a - b * c
    root = np.sqrt(B**2 + 4.0 * b * r * c)
    up = (B > 0) & (b > 0)
    mode = np.where(up, (B + root) / np.where(up, 2.0 * b, 1.0), 2.0 * r * c / np.where(up, 1.0, root - B))
    u0, share = np.log(mode), mode / (c + mode)
    log_c, log_sum = np.log(np.where(flat, 1.0, c)), np.log(c + mode)

    def log_lump(d: np.ndarray, i: np.ndarray) -> np.ndarray:
        near = np.abs(d) < 1.0
        close = np.log1p(share[i] * np.expm1(np.where(near, d, 0.0)))
        away = np.where(flat[i], d, np.logaddexp(log_c[i], u0[i] + d) - log_sum[i])
        return np.where(near & ~flat[i], close, away)

    # r is the sum of these two at the mode, but for rounding: so the large linear terms never appear
    pull = b * mode
    rest = (r - pull) - a * share

    def log_density(d: np.ndarray, i: np.ndarray) -> np.ndarray:
        return rest[i] * d - pull[i] * exp_excess(d) - a[i] * (log_lump(d, i) - share[i] * d)

    bend = pull + a * share * (c / (c + mode))
    corner = np.where(flat, u0, log_c)
    left = np.where(flat, r - a - more_x, r)  # slope of the log density at the far left, and at the far right
    right = np.where(b > 0, 1.0, a - r - more_r)
    low = np.minimum(u0, corner) - 3.0 - 100.0 / left
    shape = r + 2.0
    high = np.where(
        b > 0,
        np.log((shape + 14.0 * np.sqrt(shape) + 80.0) / np.where(b > 0, b, 1.0)),
        np.maximum(u0, corner) + 3.0 + 100.0 / right,
    )
    high = np.maximum(high, u0 + 1.0)
    edges = around(low, high, u0[:, None], 1.0 / np.sqrt(np.maximum(bend, 1e-4))[:, None])

    def tests(d: np.ndarray, i: np.ndarray) -> list[np.ndarray]:
        return [bounded_exp(d)] * (more_r > 0) + [bounded_exp(-log_lump(d, i))] * (more_x > 0)

    rule = adapt(log_density, edges, tests, u0)
    return rule, log_lump


def _log_at(u: np.ndarray, a: np.ndarray, s: np.ndarray, rate: Gamma, x: Gamma, power: float) -> np.ndarray:
    """``log`` of the tilted density of the log rate at the nodes' centre, x integrated out there.

    Gamma functions of large shapes cancel: Stirling's formula is taken from each, and what is left of it is small.
    """
    r = np.exp(u) / power
    ax, bx = x.naturals[0] + 1.0, x.naturals[1]
    scale = a / (bx + power * r)  # E x given the rate
    own = rate.log_density(r) + np.log(r)
    soft = x.proper
    ax_safe, bx_safe = np.where(soft, ax, 1.0), np.where(soft, bx, 1.0)
    close = (
        ax_safe * np.log(scale * bx_safe / ax_safe) + power * s * np.log(scale * r / s) - power * np.log(scale) + power
    )
    close += 0.5 * (np.log(ax_safe) - np.log(a)) + 0.5 * power * (np.log(s) - LOG_2PI)
    close += binet(a) - binet(ax_safe) - power * binet(s)
    plain = power * s * np.log(r) - power * gammaln(s) + gammaln(a) - a * np.log(bx + power * r)
    return own + np.where(soft, close, plain)
