"""Integrals over the precision of Gaussian noise between two Gaussian messages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.factors.integrals.mixing import Mixed, cavity_centre, mix
from heliograph.factors.line import add_noise, add_noise_log_scale, gaussian_overlap
from heliograph.families import Gamma, Gaussian
from heliograph.numerics.adaptive_quadrature import Rule, adapt, around, bounded_exp
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.excess import exp_excess
from heliograph.numerics.gamma_function import digamma_gap
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.polynomial_roots import real_roots

__all__ = ["TiltOfPrecision", "tilt_of_precision"]

_NOTHING = -60.0  # nats below the top: 1e-26 of the mass, however many panels there are


class TiltOfPrecision(NamedTuple):
    """The tilted distribution over the precision, with the nodes that x and mean are averaged over."""

    valid: np.ndarray  # where the tilted distribution can be normalised and the target's moments exist
    silent: np.ndarray  # where x or mean is uniform, so that nothing is learned of the precision
    log_z: np.ndarray
    mean: np.ndarray  # E precision
    log_gap: np.ndarray  # log E precision - E log precision
    rules: list[tuple[np.ndarray, Rule]]  # (flat positions of the rows, nodes in log precision)

    def mixed(self, target: Gaussian, other: Gaussian, power: float) -> Mixed:
        """The belief of `target` (x or mean), mixed over the precision; `other` is at the other end."""
        shape = self.valid.shape
        gap, variance, gain = np.zeros(shape), np.full(shape, np.inf), np.zeros(shape)
        centre, t = cavity_centre(target), target.naturals[1]
        there = other.proper  # beside a uniform end the target learns nothing
        mu, v = np.where(there, other.mean, 0.0), np.where(there, other.variance, 0.0)
        flat = [a.reshape(-1) for a in np.broadcast_arrays(centre, t, mu, v)]
        outs = [a.reshape(-1) for a in (gap, variance, gain)]
        for rows, rule in self.rules:
            m, t_row, mu, v = (a[rows] for a in flat)
            known = t_row > 0
            cavity = Gaussian.from_naturals((np.where(known, m * t_row, 0.0), t_row))
            noise = (
                rule.of(v) + bounded_exp(-rule.x) / power
            )  # variance of the target given the precision, cavity aside
            grow = 1.0 + rule.of(t_row) * noise
            part = mix(rule.mean, rule.of, cavity, rule.of(mu - m) / grow, noise / grow, 1.0 / grow)
            for out, value in zip(outs, part, strict=True):
                out[rows] = value
        return Mixed(gap, np.where(there, variance, np.inf), gain)


def tilt_of_precision(x: Gaussian, mean: Gaussian, precision: Gamma, power: float = 1.0) -> TiltOfPrecision:
    """Integrate over the precision, row by row; N^power is N with precision times power, up to powers of precision."""
    shape = x.shape
    if precision.point is not None and precision.is_point.all():
        log_z, nothing = _at_known_precision(x, mean, precision, power), np.zeros(shape, dtype=bool)
        return TiltOfPrecision(nothing, x.is_uniform | mean.is_uniform, log_z, np.ones(shape), np.ones(shape), [])
    # f^power = N(y; 0, 1 / (power tau)) tau^((power - 1) / 2) (2 pi)^((1 - power) / 2) power^(-1/2)
    a = precision.naturals[0] + 1.0 + 0.5 * (power - 1.0)
    b = precision.naturals[1]
    constant = 0.5 * (1.0 - power) * LOG_2PI - 0.5 * np.log(power)
    at = precision.is_point
    silent = x.is_uniform | mean.is_uniform
    tame = x.proper & mean.proper
    s = np.where(tame, x.variance + mean.variance, 1.0)
    d = np.where(tame, x.mean - mean.mean, 0.0)
    both_known = tame & (s == 0)
    rate = b + 0.5 * power * d**2

    # uniform x or mean: tau keeps its message, and the target takes E 1/tau from it
    log_z = np.where(silent & ~(x.is_uniform & mean.is_uniform), 0.0, np.inf)
    # both known: Gamma(a + 1/2, b + d^2 / 2)
    closed = both_known & ~at & (a + 0.5 > 0) & (rate > 0)
    shape_known, rate_known = np.where(closed, a + 0.5, 1.0), np.where(closed, rate, 1.0)
    mean_tau, gap = np.where(closed, shape_known / rate_known, 1.0), np.where(closed, digamma_gap(shape_known), 1.0)
    # Bayes' rule at one point, where the Gamma functions of large shapes cancel inside the densities
    log_f = 0.5 * power * (np.log(mean_tau) - LOG_2PI - mean_tau * d**2)
    after = Gamma.from_naturals((shape_known - 1.0, rate_known))
    log_known = precision.log_density(mean_tau) + log_f - after.log_density(mean_tau)
    log_z = np.where(closed, log_known, log_z)

    wide = tame & ~both_known & ~at & (a + 0.5 > 0) & ((b > 0) | ((b == 0) & (a < 0)))
    # a uniform target beside a proper other end: given tau it is that end with 1/tau added, so E 1/tau must exist
    half_open = silent & (x.proper | mean.proper) & ~at & (b > 0) & (a > 1.0)
    rules: list[tuple[np.ndarray, Rule]] = []
    flat = [np.broadcast_to(v, shape).reshape(-1) for v in (a, b, s, d)]
    prior = precision.reshape((precision.size,))
    out = [v.reshape(-1) for v in (log_z, mean_tau, gap)]
    for kind, where in (("wide", wide), ("open", half_open)):
        positions = np.flatnonzero(where.reshape(-1))
        for part in integral_chunks(positions.size):
            rows = positions[part]
            ra, rb, rs, rd = (v[rows] for v in flat)
            rule = _integrate(ra, rb, rs * power, rd * np.sqrt(power), with_noise=kind == "wide")
            rules.append((rows, rule))
            if kind == "wide":
                ratio = rule.mean(bounded_exp(rule.offset))  # E tau over tau at the centre
                out[1][rows] = ratio * np.exp(rule.centre)
                out[2][rows] = rule.mean(exp_excess(rule.offset - rule.of(np.log(ratio))))
                # tau's own density at the centre, with the change of variable to its logarithm
                at_centre = prior[rows].log_density(np.exp(rule.centre)) + 0.5 * (power + 1.0) * rule.centre
                # N(y; 0, s + 1/(power tau)) is sqrt(power) N(sqrt(power) y; 0, power s + 1/tau)
                out[0][rows] = rule.log_z + at_centre + constant - 0.5 * LOG_2PI + 0.5 * np.log(power)
    # reshape(-1) of a fresh array is a view, so the loop has filled these in
    if np.any(at):
        log_z = np.where(at, _at_known_precision(x, mean, precision, power), log_z)
    return TiltOfPrecision(wide | half_open, silent, log_z, mean_tau, gap, rules)


def _at_known_precision(x: Gaussian, mean: Gaussian, precision: Gamma, power: float) -> np.ndarray:
    """``log Z`` in closed form, where the precision is a point mass; 1 is taken for it elsewhere."""
    v = 1.0 / np.where(precision.is_point, precision.mean, 1.0) / power
    log_z = gaussian_overlap(add_noise(mean, v), x) + add_noise_log_scale(mean, v)
    if power != 1.0:
        log_z = log_z + 0.5 * (1 - power) * (LOG_2PI + np.log(v * power)) - 0.5 * np.log(power)
    return log_z


def _integrate(a: np.ndarray, b: np.ndarray, s: np.ndarray, d: np.ndarray, with_noise: bool) -> Rule:
    """Nodes of ``tau^a exp(-b tau) (s + 1/tau)^(-1/2) exp(-d^2 / (2 (s + 1/tau)))`` over u = log tau.

    The first two of its factors are 1 at the centre, for the integral to be multiplied with what they are there.
    """
    if not with_noise:  # the plain Gamma; 1/tau is averaged over it too
        mode = np.log(a / b)
        low, high = mode - 3.0 - 100.0 / (a - 1.0), np.log((a + 14.0 * np.sqrt(a) + 80.0) / b)
        edges = around(low, high, mode[:, None], 1.0 / np.sqrt(a)[:, None])
        return adapt(lambda e, i: -a[i] * exp_excess(e), edges, lambda e, i: [bounded_exp(-e), bounded_exp(e)], mode)
    k, beta = d**2 / s, b / s

    # in theta = s tau the slope times (1 + theta)^2 is a cubic; b = 0 leaves a quadratic, made cubic by a far root
    leading = np.where(beta > 0, beta, 1e-30)
    cubic = np.stack([(2 * leading - a), (leading - 2 * a - 0.5 + 0.5 * k), -(a + 0.5)], axis=1) / leading[:, None]
    start = np.log((a + 0.5) / (b + 0.5 * d**2 + 1e-300))  # where tau is so small that s does not matter
    default = np.exp(np.clip(start + np.log(s), -600.0, 600.0))
    roots = real_roots(cubic, np.full(len(s), np.nan))
    turns = roots > 0
    some = np.where(turns.any(axis=1), np.where(turns, roots, 0.0).max(axis=1), default)
    roots = np.where(turns, roots, some[:, None])
    log_s = np.log(s)
    turn = np.minimum(start, -log_s)
    low = turn - 3.0 - 100.0 / (a + 0.5)
    shape = np.maximum(a, 0.0) + 2.0
    high = np.where(
        b > 0,
        np.log((shape + 14.0 * np.sqrt(shape) + 80.0) / np.where(b > 0, b, 1.0)),
        np.maximum(start, -log_s) + 3.0 + 100.0 / np.where(b > 0, 1.0, -a),
    )
    high = np.maximum(high, low + 1.0)
    centres = np.log(roots) - log_s[:, None]
    p = 1.0 / (1.0 + s[:, None] * np.exp(np.minimum(centres, 600.0)))
    bend = b[:, None] * np.exp(np.minimum(centres, 600.0)) + 0.5 * p * (1 - p)
    bend = np.abs(bend - 0.5 * k[:, None] * p * (1 - p) * (1 - 2 * p))
    edges = around(low, high, centres, 1.0 / np.sqrt(np.maximum(bend, 1e-4)))

    best = np.take_along_axis(centres, _height(centres, a, b, s, d).argmax(axis=1)[:, None], axis=1)[:, 0]
    edges = _where_it_counts(edges, centres, best, a, b, s, d)
    tau, inverse = np.exp(np.clip(best, -600.0, 600.0)), np.exp(np.clip(-best, -600.0, 600.0))
    v0 = s + inverse
    pull = b * tau
    rest = a - pull

    def log_density(e: np.ndarray, i: np.ndarray) -> np.ndarray:
        # less its value at the centre, term by term, so that the large parts of a sharp Gamma never appear
        grown = inverse[i] * np.expm1(np.minimum(-e, 600.0))  # v - v0
        v = v0[i] + grown
        log_v = np.where(e < -600.0, -e - best[i] - np.log(v0[i]), np.log1p(grown / v0[i]))
        return rest[i] * e - pull[i] * exp_excess(e) - 0.5 * log_v + 0.5 * (d[i] ** 2 / v0[i]) * (grown / v)

    # tau itself, and the share of a cavity that survives, which may be largest where the density is small
    rule = adapt(log_density, edges, lambda e, i: [bounded_exp(e), 1.0 / (1.0 + s[i] * bounded_exp(best[i] + e))], best)
    return rule._replace(log_z=rule.log_z - 0.5 * np.log(v0) - 0.5 * d**2 / v0)


def _where_it_counts(
    edges: np.ndarray,
    turns: np.ndarray,
    best: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    s: np.ndarray,
    d: np.ndarray,
) -> np.ndarray:
    """The edges without the panels at either end that hold nothing, neither of the density nor of what is averaged over it.

    Between two turns the density is monotone, and so are tau and the share of a cavity that survives: a panel without a turn
    holds no more than its ends do.
    """

    def logs(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        survives = np.log1p(np.minimum(s[:, None] * bounded_exp(u), 1e300))
        return _height(u, a, b, s, d), u, -survives

    top, at_best, share = logs(best[:, None])
    height, tau, survives = logs(edges)
    most = np.maximum(height[:, :-1], height[:, 1:]) - top
    holds = most + np.maximum(np.maximum(tau[:, 1:] - at_best, survives[:, :-1] - share), 0.0)
    turning = ((turns[:, None, :] >= edges[:, :-1, None]) & (turns[:, None, :] <= edges[:, 1:, None])).any(axis=2)
    keep = np.logical_or(turning, ~(holds < _NOTHING))
    first, last = keep.argmax(axis=1), keep.shape[1] - keep[:, ::-1].argmax(axis=1)
    ends = (np.take_along_axis(edges, k[:, None], axis=1) for k in (first, last))
    return np.where(np.any(keep, axis=1, keepdims=True), np.clip(edges, *ends), edges)


def _height(u: np.ndarray, a: np.ndarray, b: np.ndarray, s: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The log density at the points `u` (rows, k)."""
    v = s[:, None] + bounded_exp(-u)
    return a[:, None] * u - b[:, None] * bounded_exp(u) - 0.5 * np.log(v) - 0.5 * d[:, None] ** 2 / v
