"""Integrals over one of two Gaussian numbers whose product meets a Gaussian message."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.factors.integrals.mixing import Ends, Mixed, mixed_over_multiplier
from heliograph.families import Gaussian
from heliograph.numerics.adaptive_quadrature import Rule, adapt, around
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.polynomial_roots import real_roots

__all__ = ["TiltOfProduct", "mixed_over_product", "tilt_of_product"]


class TiltOfProduct(NamedTuple):
    """The tilted distribution over one of the two factors of a product."""

    valid: np.ndarray
    log_z: np.ndarray
    rules: list[tuple[np.ndarray, Rule]]  # (flat positions of the rows, nodes in b)


def tilt_of_product(a: Gaussian, b: Gaussian, out: Gaussian, where: np.ndarray) -> TiltOfProduct:
    """Integrate over b, given which everything is Gaussian."""
    soft = a.proper & b.proper & ~a.is_point & ~b.is_point & out.proper
    valid = where & soft & ~(out.is_point & (out.mean == 0))
    log_z = np.full(valid.shape, np.inf)
    unit_a, unit_b = _unit(a), _unit(b)
    flat = [v.reshape(-1) for m, u in ((a, unit_a), (b, unit_b), (out, unit_a * unit_b)) for v in _in_units(m, u)]
    log_unit = np.log(unit_a * unit_b).reshape(-1)
    positions = np.flatnonzero(valid.reshape(-1))
    rules = []
    for part in integral_chunks(positions.size):
        rows = positions[part]
        values = [v[rows] for v in flat]
        rule = _integrate(*values)
        rules.append((rows, rule))
        log_z.reshape(-1)[rows] = rule.log_z - LOG_2PI - 0.5 * np.log(values[3]) - log_unit[rows]
    return TiltOfProduct(valid, log_z, rules)


def _unit(m: Gaussian) -> np.ndarray:
    """A power of 2 near the size of each entry, so that it can be measured in that unit without rounding."""
    _, exponent = np.frexp(np.maximum(np.abs(m.mean), np.sqrt(m.variance)))
    return np.where(m.proper & ~m.is_point, np.ldexp(1.0, exponent), 1.0)


def _in_units(m: Gaussian, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance in the unit given: squares of scales beyond 1e80 would overflow in what is done with them."""
    return m.mean / unit, m.variance / unit / unit


def mixed_over_product(tilt: TiltOfProduct, to: str, a: Gaussian, b: Gaussian, out: Gaussian) -> Mixed:
    """The belief of a, or of out, mixed over b."""
    unit_a, unit_out = _unit(a), _unit(a) * _unit(b)
    ends = Ends(*_in_units(a, unit_a), *_in_units(out, unit_out))
    target, unit = (out, unit_out) if to == "out" else (a, unit_a)
    return mixed_over_multiplier(tilt.rules, lambda rule: rule.x, ends, target, unit, to == "out")


def _integrate(ma: np.ndarray, va: np.ndarray, mb: np.ndarray, vb: np.ndarray, mo: np.ndarray, vo: np.ndarray) -> Rule:
    """Nodes of ``exp(-(b - mb)^2 / (2 vb)) D^(-1/2) exp(-(mo - ma b)^2 / (2 D))`` with ``D = vo + va b^2``."""

    def log_likelihood(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        total = vo[i] + va[i] * x**2
        safe = np.where(total > 0, total, 1.0)
        return np.where(total > 0, -0.5 * np.log(safe) - 0.5 * (mo[i] - ma[i] * x) ** 2 / safe, -np.inf)

    def log_density(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        return log_likelihood(x, i) - 0.5 * (x - mb[i]) ** 2 / vb[i]

    centres = _stationary_points(ma, va, mb, vb, mo, vo)
    index = np.arange(ma.shape[0])[:, None]
    heights = log_density(centres, index)
    top = heights.max(axis=1)
    # the likelihood is at most 1 / sqrt(vo), and, where out is exactly known, at most its value at these two points
    root, twice = np.sqrt(ma**2 + 4 * va), np.where(mo == 0, 1.0, 2 * mo)
    y = np.stack([(ma + root) / twice, (ma - root) / twice], axis=1)
    y = np.where(y == 0, 1.0, y)
    ceiling = np.where(vo > 0, -0.5 * np.log(np.where(vo > 0, vo, 1.0)), log_likelihood(1.0 / y, index).max(axis=1))
    reach = np.sqrt(2 * vb * (np.maximum(ceiling - top, 0.0) + 60.0))
    bend = _bend(centres, ma, va, mb, vb, mo, vo)
    widths = np.minimum(1.0 / np.sqrt(np.maximum(np.abs(bend), 1e-300)), reach[:, None])
    edges = around(mb - reach, mb + reach, centres, widths)

    def given(x: np.ndarray, i: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Mean and variance of a, and of out, given b = x."""
        total = vo[i] + va[i] * x**2
        total = np.where(total > 0, total, 1.0)
        miss = (mo[i] - ma[i] * x) / total
        return ma[i] + va[i] * x * miss, va[i] * (vo[i] / total), mo[i] - vo[i] * miss, va[i] * (x**2 * (vo[i] / total))

    best = np.take_along_axis(centres, heights.argmax(axis=1)[:, None], axis=1)[:, 0]
    a0, _, out0, _ = (v[:, 0] for v in given(best[:, None], index))
    total0, miss0, step0 = vo + va * best**2, mo - ma * best, best - mb

    def log_rise(y: np.ndarray, i: np.ndarray) -> np.ndarray:
        """The log density at best + y less its value at best, near there with every part proportional to y."""
        x, t0 = best[i] + y, total0[i]
        total, grown = vo[i] + va[i] * x**2, va[i] * y * (2 * best[i] + y)
        ok, near = total > 0, np.abs(grown) < 0.5 * t0
        safe, miss = np.where(ok, total, 1.0), mo[i] - ma[i] * x
        slope = ma[i] * (2 * miss0[i] - ma[i] * y) / safe + (miss0[i] ** 2 / t0) * va[i] * ((2 * best[i] + y) / safe)
        fit = np.where(near, y * slope, miss0[i] ** 2 / t0 - miss**2 / safe)
        log_ratio = np.where(near, np.log1p(np.where(near, grown, 0.0) / t0), np.log(safe / t0))
        return np.where(ok, 0.5 * (fit - log_ratio) - y * (step0[i] + 0.5 * y) / vb[i], -np.inf)

    def second_moments(y: np.ndarray, i: np.ndarray) -> list[np.ndarray]:
        """Of a and of out about where they most likely are: they may be largest where b is unlikely."""
        a, a_variance, out, out_variance = given(best[i] + y, i)
        return [(a - a0[i]) ** 2 + a_variance, (out - out0[i]) ** 2 + out_variance]

    rule = adapt(log_rise, edges, second_moments, best)
    return rule._replace(log_z=rule.log_z + top)


def _stationary_points(
    ma: np.ndarray, va: np.ndarray, mb: np.ndarray, vb: np.ndarray, mo: np.ndarray, vo: np.ndarray
) -> np.ndarray:
    """Where the log density turns, (rows, 6): the real roots of a quintic in b / L, and the prior's mean."""
    L = np.abs(mb) + np.sqrt(vb)
    w, k, z = vo / va / L**2, vb / L**2, mb / L
    e = (ma / va / L) * mo  # ma mo / (va L)
    f = (mo / L) ** 2 / va
    g = ma**2 / va
    coefficients = np.stack(
        [
            -z,
            2 * w + k,
            -2 * w * z + e * k,
            w**2 + w * k - f * k + g * w * k,
            -(w**2) * z - e * w * k,
        ],
        axis=1,
    )
    roots = real_roots(coefficients, z) * L[:, None]
    return np.concatenate([roots, mb[:, None]], axis=1)


def _bend(
    b: np.ndarray, ma: np.ndarray, va: np.ndarray, mb: np.ndarray, vb: np.ndarray, mo: np.ndarray, vo: np.ndarray
) -> np.ndarray:
    """The second derivative of the log density at the points `b` (rows, k)."""
    ma, va, vb, mo, vo = (v[:, None] for v in (ma, va, vb, mo, vo))
    total = vo + va * b**2
    total = np.where(total > 0, total, 1.0)
    e, x = (mo - ma * b) / np.sqrt(total), np.sqrt(va) * b / np.sqrt(total)
    inner = -(ma**2) - 4 * ma * np.sqrt(va) * x * e + va * e**2 * (1 - 4 * x**2) - va * (1 - 2 * x**2)
    return inner / total - 1.0 / vb
