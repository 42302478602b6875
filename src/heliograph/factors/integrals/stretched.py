"""Integrals over a positive scale that a Gaussian number is multiplied with, where the product meets a Gaussian message."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.factors.integrals.mixing import Ends, Mixed, mixed_over_multiplier
from heliograph.families import Gamma, Gaussian
from heliograph.numerics.adaptive_quadrature import Rule, adapt, around, bounded_exp, far_end
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.excess import exp_excess
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["StretchedTilt", "mixed_over_scale", "tilt_of_scale"]


class StretchedTilt(NamedTuple):
    """The tilted distribution over the scale, with the nodes that x and out are averaged over."""

    valid: np.ndarray
    log_z: np.ndarray
    mean: np.ndarray  # E scale
    log_gap: np.ndarray  # log E scale - E log scale
    rules: list[tuple[np.ndarray, Rule]]  # (flat positions of the rows, nodes in log scale, less the log of its unit)


class _Rows(NamedTuple):
    """The messages of some rows in units in which each is about 1."""

    a: np.ndarray  # shape of the scale
    b: np.ndarray  # rate of the scale
    m: np.ndarray  # mean and variance of x
    v: np.ndarray
    mo: np.ndarray  # mean and variance of out
    vo: np.ndarray


def tilt_of_scale(scale: Gamma, x: Gaussian, out: Gaussian, where: np.ndarray) -> StretchedTilt:
    """Integrate over the scale, given which everything is Gaussian, in the rows that are asked for and have an integral."""
    soft = scale.proper & ~scale.is_point & x.proper & out.proper & ~(x.is_point & out.is_point)
    valid = (
        where & soft & ~(out.is_point & (out.mean == 0))
    )  # of which nothing is left but an infinite density of x at 0
    log_z, mean, gap = np.full(valid.shape, np.inf), np.ones(valid.shape), np.ones(valid.shape)
    units = _units(scale, x)
    whole = [np.asarray(f).reshape(-1) for f in _in_units(scale, x, out, *units)]
    unit_s, unit_x = (u.reshape(-1) for u in units)
    prior, rules = scale.reshape((scale.size,)), []
    positions = np.flatnonzero(valid.reshape(-1))
    for part in integral_chunks(positions.size):
        rows = positions[part]
        r = _Rows(*(f[rows] for f in whole))
        rule = _integrate(r)
        rules.append((rows, rule))
        s0 = np.exp(rule.centre)
        total, miss = r.vo + r.v * s0**2, r.mo - r.m * s0
        at_top = prior[rows].log_density(s0 * unit_s[rows]) + rule.centre + np.log(unit_s[rows])
        at_top = at_top - 0.5 * (LOG_2PI + np.log(total) + miss**2 / total) - np.log(unit_s[rows] * unit_x[rows])
        log_z.reshape(-1)[rows] = rule.log_z + at_top
        ratio = rule.mean(bounded_exp(rule.offset))
        mean.reshape(-1)[rows] = ratio * s0 * unit_s[rows]
        gap.reshape(-1)[rows] = rule.mean(exp_excess(rule.offset - rule.of(np.log(ratio))))
    return StretchedTilt(valid, log_z, mean, gap, rules)


def mixed_over_scale(tilt: StretchedTilt, to: str, scale: Gamma, x: Gaussian, out: Gaussian) -> Mixed:
    """The belief of x, or of out, mixed over the scale."""
    units = _units(scale, x)
    ends = Ends(*_in_units(scale, x, out, *units)[2:])
    target, unit = (out, units[0] * units[1]) if to == "out" else (x, units[1])
    return mixed_over_multiplier(tilt.rules, lambda rule: bounded_exp(rule.x), ends, target, unit, to == "out")


def _units(scale: Gamma, x: Gaussian) -> tuple[np.ndarray, np.ndarray]:
    """Powers of 2 near the sizes of the scale and of x, so that both can be measured in them without rounding."""
    good = scale.proper & ~scale.is_point
    sizes = np.where(good, scale.mean, 1.0), np.where(x.proper, np.maximum(np.abs(x.mean), np.sqrt(x.variance)), 1.0)
    exponents = (np.clip(np.frexp(np.where(s > 0, s, 1.0))[1], -500, 500) for s in sizes)
    first, second = (np.ldexp(1.0, e) for e in exponents)
    return first, second


def _in_units(
    scale: Gamma, x: Gaussian, out: Gaussian, unit_s: np.ndarray, unit_x: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The fields of `_Rows`, with stand-ins where a message is no distribution."""
    good, fine, known = scale.proper & ~scale.is_point, x.proper, out.proper
    unit = unit_s * unit_x
    return (
        np.where(good, scale.naturals[0] + 1.0, 1.0),
        np.where(good, scale.naturals[1] * unit_s, 1.0),
        np.where(fine, x.mean, 0.0) / unit_x,
        np.where(fine, x.variance, 1.0) / unit_x / unit_x,
        np.where(known, out.mean, 0.0) / unit,
        np.where(known, out.variance, 1.0) / unit / unit,
    )


def _integrate(r: _Rows) -> Rule:
    """Nodes over u = log s of ``s^a exp(-b s) D^(-1/2) exp(-(mo - m s)^2 / (2 D))`` with ``D = vo + v s^2``."""
    turns = _modes(r)
    index = np.arange(r.a.size)
    first = turns[:, 0]
    heights = _rise(r, first[:, None], turns - first[:, None], index[:, None])
    best = np.take_along_axis(turns, np.nan_to_num(heights, nan=-np.inf).argmax(axis=1)[:, None], axis=1)[:, 0]
    widths = 1.0 / np.sqrt(np.maximum(np.abs(_slopes(r, turns)[1]), 1e-4))
    low, high = (far_end(lambda u: _rise(r, best, u - best, index), turns, widths, side) for side in (-1.0, 1.0))
    return adapt(
        lambda e, i: _rise(r, best[i], e, i),
        around(low, high, turns, np.minimum(widths, (high - low)[:, None])),
        lambda e, i: _tests(r, bounded_exp(best[i] + e), i),
        best,
    )


def _tests(r: _Rows, s: np.ndarray, i: np.ndarray) -> list[np.ndarray]:
    """What may be largest where the scale is unlikely: the scale, and the squares of x and of out given it."""
    total = r.vo[i] + r.v[i] * s**2
    miss = (r.mo[i] - r.m[i] * s) / total
    return [
        s,
        (r.v[i] * s * miss) ** 2 + r.v[i] * (r.vo[i] / total),
        (r.vo[i] * miss) ** 2 + r.v[i] * s**2 * (r.vo[i] / total),
    ]


def _rise(r: _Rows, u0: np.ndarray, e: np.ndarray, i: np.ndarray) -> np.ndarray:
    """The log density at u0 + e less its value at u0, in terms that vanish with e."""
    a, b, m, v, mo, vo = (f[i] for f in r)
    s0 = bounded_exp(u0)
    more = s0 * np.expm1(np.minimum(e, 600.0))  # s - s0
    d0, miss0 = vo + v * s0**2, mo - m * s0
    grown = v * s0**2 * np.expm1(np.minimum(2.0 * e, 600.0))
    s = bounded_exp(u0 + e)
    d = vo + v * s**2
    near = np.abs(grown) < 0.5 * d0  # elsewhere the differences have their digits
    fit = (miss0**2 / d0 * grown + m * more * (2.0 * miss0 - m * more)) / d
    fit = np.where(near, fit, miss0**2 / d0 - (mo - m * s) ** 2 / d)
    log_ratio = np.where(near, np.log1p(np.where(near, grown, 0.0) / d0), np.log(d / d0))
    return (a - b * s0) * e - b * s0 * exp_excess(np.minimum(e, 600.0)) + 0.5 * (fit - log_ratio)


def _modes(r: _Rows) -> np.ndarray:
    """Up to three modes in u = log s (rows, 3): where the slope changes its sign, between points where its parts balance."""
    a, b, m, v, mo, vo = (np.asarray(f) for f in (r.a, r.b, np.abs(r.m), r.v, np.abs(r.mo), r.vo))
    own = a / b
    balances = [
        own,
        np.sqrt(vo / v),
        mo / m,
        np.sqrt(a * vo) / m,
        a * vo / (mo * m),
        b * vo / m**2,
        mo / np.sqrt(a * v),
    ]
    balances += [mo * m / (a * v), np.cbrt(mo**2 / (b * v)), np.sqrt(mo * m / (b * v)), np.abs(a - 1.0) / b]
    at = np.stack(balances, axis=1)
    at = np.log(np.where((at > 1e-250) & (at < 1e250), at, own[:, None]))
    grid = np.sort((at[:, :, None] + np.array([-5.0, -1.5, 0.0, 1.5, 5.0])).reshape(a.size, -1), axis=1)
    up = _slopes(r, grid)[0] > 0
    falls = up[:, :-1] & ~up[:, 1:]
    where = np.argsort(~falls, axis=1, kind="stable")[:, :3]
    found = np.take_along_axis(falls, where, axis=1)
    where = np.where(found, where, where[:, :1])
    low, high = np.take_along_axis(grid, where, axis=1), np.take_along_axis(grid, where + 1, axis=1)
    for _ in range(60):  # bisection: a mode may be far narrower than its place is known
        middle = 0.5 * (low + high)
        rising = _slopes(r, middle)[0] > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return 0.5 * (low + high)


def _slopes(r: _Rows, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative of the log density at the points `u` (rows, k)."""
    a, b, m, v, mo, vo = (f[:, None] for f in r)
    s = bounded_exp(u)
    d = vo + v * s**2
    p, q = v * s**2 / d, vo / d
    h, e = m * s / np.sqrt(d), (mo - m * s) / np.sqrt(d)
    w = h + e * p
    return a - b * s - p + e * w, -b * s - 2.0 * p * q - w**2 + e * (h * q - w * p + 2.0 * e * p * q)
