"""Integrals over a number whose square, or whose magnitude, meets a Gaussian message.

In natural parameters the tilted density is ``exp(s x - t x^2 / 2 + so g - to g^2 / 2)`` with ``g = x^2`` or ``g = |x|``, so that
uniform and improper messages at one end need no case of their own as long as the other end tames them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heliograph.factors.integrals.tilt import Tilt
from heliograph.families import Gaussian
from heliograph.numerics.adaptive_quadrature import Rule, adapt, around, far_end
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.polynomial_roots import real_roots

__all__ = ["Even", "EvenTilt", "magnitude", "square", "tilt_of_even"]


class EvenTilt(NamedTuple):
    """The tilted distribution; every field has the shape of the plate, and holds where `valid`."""

    valid: np.ndarray
    log_z: np.ndarray
    x: Tilt  # with the cavity N(m, v) of x, where it is proper
    weak: np.ndarray  # where the factor bends so little that the derivatives in `x` have their digits
    x_mean: np.ndarray
    x_variance: np.ndarray
    out_mean: np.ndarray
    out_variance: np.ndarray


class _Rows(NamedTuple):
    """Natural parameters of x and of out, flat, in units in which x is about 1."""

    s: np.ndarray
    t: np.ndarray
    so: np.ndarray
    to: np.ndarray


class Even(NamedTuple):
    """One even function: what its integrals need to know of it."""

    degree: int  # out is measured in the unit of x to this power
    of: Callable[[np.ndarray], np.ndarray]
    normalisable: Callable[[_Rows], np.ndarray]
    turns: Callable[[_Rows], np.ndarray]  # (rows, k) where the log density turns
    bend: Callable[[_Rows, np.ndarray], np.ndarray]  # its second derivative at points (rows, k)
    slope: Callable[[_Rows, np.ndarray, np.ndarray], np.ndarray]  # of ``so g - to g^2 / 2`` at points, with rows
    rise: Callable[[_Rows, np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # of the log density, from b to b + y
    curve: Callable[[_Rows, Rule, np.ndarray], np.ndarray]  # E of the second derivative of ``so g - to g^2 / 2``


def tilt_of_even(kind: Even, x: Gaussian, out: Gaussian, where: np.ndarray) -> EvenTilt:
    """Integrate over x, row by row, where it is asked for and there is something to normalise."""
    unit = _unit(x, out, kind.degree)
    scales = (unit, unit**2, unit**kind.degree, unit ** (2 * kind.degree))
    whole = _Rows(*(n.reshape(-1) * u.reshape(-1) for n, u in zip((*x.naturals, *out.naturals), scales, strict=True)))
    valid = where & kind.normalisable(whole).reshape(x.shape) & ~x.is_point & ~out.is_point
    fields = [np.full(x.shape, fill) for fill in (np.inf, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0)]
    flat = [f.reshape(-1) for f in fields]
    positions = np.flatnonzero(valid.reshape(-1))
    for part in integral_chunks(positions.size):
        rows = positions[part]
        for f, value in zip(flat, _integrate(kind, _Rows(*(a[rows] for a in whole))), strict=True):
            f[rows] = value
    log_z, mean, variance, slope, bend, g, g_variance, at, ratio, weak = fields
    log_z = log_z + np.where(valid, _at_top(x, at * unit) + np.log(unit), 0.0)
    log_z = np.where(valid, log_z + _at_top(out, kind.of(at * unit)), np.inf)
    tilt = Tilt(log_z, mean * unit, ratio, slope / unit, bend / unit**2)
    powers = unit**kind.degree
    return EvenTilt(valid, log_z, tilt, weak > 0, mean * unit, variance * unit**2, g * powers, g_variance * powers**2)


def _unit(x: Gaussian, out: Gaussian, degree: int) -> np.ndarray:
    """A power of 2 near the size of x, as it is known from its own message or else from its function's."""
    own = np.where(x.proper & ~x.is_point, np.maximum(np.abs(x.mean), np.sqrt(x.variance)), 1.0)
    other = np.where(out.proper & ~out.is_point, np.maximum(np.abs(out.mean), np.sqrt(out.variance)), 1.0)
    _, exponent = np.frexp(np.where(x.proper, own, other ** (1.0 / degree)))
    return np.ldexp(1.0, np.clip(exponent, -200, 200))


def _at_top(m: Gaussian, x: np.ndarray) -> np.ndarray:
    """The log density of a message at x, in a completed square where it is proper; what is improper has no constant."""
    s, t = m.naturals
    safe = np.where(t > 0, t, 1.0)
    square = -0.5 * safe * (x - np.where(t > 0, s / safe, 0.0)) ** 2 + 0.5 * (np.log(safe) - LOG_2PI)
    return np.where(t > 0, square, s * x - 0.5 * t * x**2)


def _integrate(kind: Even, r: _Rows) -> tuple[np.ndarray, ...]:
    """Log Z from the top, and the moments of x and of its function, in the units of the rows."""
    index = np.arange(r.s.size)
    turns = kind.turns(r)
    first = turns[:, 0]
    heights = kind.rise(r, first[:, None], turns - first[:, None], index[:, None])
    best = np.take_along_axis(turns, heights.argmax(axis=1)[:, None], axis=1)[:, 0]
    widths = 1.0 / np.sqrt(np.maximum(np.abs(kind.bend(r, turns)), 1e-300))
    low, high = (far_end(lambda x: kind.rise(r, best, x - best, index), turns, widths, side) for side in (-1.0, 1.0))
    edges = around(low, high, turns, np.minimum(widths, (high - low)[:, None]))
    fold = np.clip(0.0 * low, low, high)[:, None]  # where |x| has its kink
    rule = adapt(
        lambda y, i: kind.rise(r, best[i], y, i),
        np.sort(np.concatenate([edges, fold], axis=1), axis=1),
        lambda y, i: [(best[i] + y) ** 2, kind.of(best[i] + y) ** 2],
        best,
    )
    move = rule.mean(rule.offset)
    variance = rule.mean((rule.offset - rule.of(move)) ** 2)
    g0 = kind.of(best)
    g = kind.of(rule.x) - rule.of(g0)
    g_move = rule.mean(g)
    slopes = kind.slope(r, rule.x, rule.row[:, None])
    slope = rule.mean(slopes)
    curve, steep = kind.curve(r, rule, best), rule.mean((slopes - rule.of(slope)) ** 2)
    weak = np.abs(curve) + steep < 10.0 * r.t
    g_variance = rule.mean((g - rule.of(g_move)) ** 2)
    ratio = np.where(r.t > 0, variance * r.t, 1.0)
    return rule.log_z, best + move, variance, slope, curve + steep, g0 + g_move, g_variance, best, ratio, weak


# ---- x^2 ---------------------------------------------------------------------------------------------------------
def _square_turns(r: _Rows) -> np.ndarray:
    """Roots of ``s - (t - 2 so) x - 2 to x^3``."""
    quartic = r.to > 0
    to = np.where(quartic, 2.0 * r.to, 1.0)
    inner = r.t - 2.0 * r.so
    alone = np.where(inner != 0, r.s / np.where(inner != 0, inner, 1.0), 0.0)
    cubic = np.stack([np.zeros(r.s.size), inner / to, -r.s / to], axis=1)
    default = np.where(quartic, np.cbrt(r.s / to), alone)
    roots = np.where(quartic[:, None], real_roots(np.where(quartic[:, None], cubic, 0.0), default), alone[:, None])
    for _ in range(3):  # Newton's steps: the roots are good to a few digits
        value = r.s[:, None] - inner[:, None] * roots - 2.0 * r.to[:, None] * roots**3
        slope = -inner[:, None] - 6.0 * r.to[:, None] * roots**2
        step = np.where(slope != 0, value / np.where(slope != 0, slope, 1.0), 0.0)
        roots = roots - np.where(np.abs(step) <= 0.1 * np.abs(roots), step, 0.0)
    return roots


def _square_rise(r: _Rows, b: np.ndarray, y: np.ndarray, i: np.ndarray) -> np.ndarray:
    s, t, so, to = (a[i] for a in r)
    grown = y * (2.0 * b + y)  # of x^2: near -b as small as it is there, so that the other mode has its weight
    return s * y + grown * (so - 0.5 * t - to * b**2 - 0.5 * to * grown)


square = Even(
    2,
    lambda x: x**2,
    lambda r: (r.to > 0) | ((r.to == 0) & (r.t - 2.0 * r.so > 0)),
    _square_turns,
    lambda r, x: (2.0 * r.so - r.t)[:, None] - 6.0 * r.to[:, None] * x**2,
    lambda r, x, i: 2.0 * x * (r.so[i] - r.to[i] * x**2),
    _square_rise,
    lambda r, rule, best: 2.0 * r.so - 6.0 * r.to * rule.mean(rule.x**2),
)


# ---- |x| ---------------------------------------------------------------------------------------------------------
def _magnitude_turns(r: _Rows) -> np.ndarray:
    """The peak of each side, where it has one, and 0."""
    total = r.t + r.to
    safe = np.where(total > 0, total, 1.0)
    right, left = np.maximum((r.s + r.so) / safe, 0.0), np.minimum((r.s - r.so) / safe, 0.0)
    return np.where((total > 0)[:, None], np.stack([right, left, 0.0 * right, 0.0 * left], axis=1), 0.0)


def _magnitude_bend(r: _Rows, x: np.ndarray) -> np.ndarray:
    """That of the two sides, and at 0 the squared slope of each: what is left of a cusp falls like an exponential."""
    total = np.maximum(r.t + r.to, 0.0)
    cusps = [np.maximum(total, (r.s + side * r.so) ** 2) for side in (1.0, -1.0)]
    return np.stack([total, total, *cusps], axis=1)


def _magnitude_rise(r: _Rows, b: np.ndarray, y: np.ndarray, i: np.ndarray) -> np.ndarray:
    s, t, so, to = (a[i] for a in r)
    x = b + y
    same = x * b > 0
    grown = np.where(same, np.sign(b) * y, np.abs(x) - np.abs(b))
    slope = np.where(same, s + np.sign(b) * so - (t + to) * b, 0.0)
    return np.where(same, y * (slope - 0.5 * (t + to) * y), s * y + so * grown - 0.5 * (t + to) * y * (b + x))


def _magnitude_curve(r: _Rows, rule: Rule, best: np.ndarray) -> np.ndarray:
    """``-to``, and twice `so` times the density at 0, where the slope jumps."""
    index = np.arange(best.size)
    return -r.to + 2.0 * r.so * np.exp(_magnitude_rise(r, best, -best, index) - rule.log_z)


magnitude = Even(
    1,
    np.abs,
    lambda r: (r.t + r.to > 0) | ((r.t + r.to == 0) & (np.abs(r.s) < -r.so)),
    _magnitude_turns,
    _magnitude_bend,
    lambda r, x, i: np.sign(x) * (r.so[i] - r.to[i] * np.abs(x)),
    _magnitude_rise,
    _magnitude_curve,
)
