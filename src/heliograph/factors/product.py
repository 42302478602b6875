"""The product of two Gaussian variables, ``out = a b``, by quadrature over one of them.

Given b, a is Gaussian and so is out; b itself has the tilted density
``N(b) N(m_out; m_a b, v_out + v_a b^2)``, with up to three modes. Its stationary points are the roots of a quintic.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.line import gaussian_overlap, stretch
from heliograph.factors.mixing import Mixed, cavity_centre, mix
from heliograph.families import Gaussian
from heliograph.numerics.adaptive_quadrature import Rule, adapt, around
from heliograph.numerics.chunks import integral_chunks
from heliograph.numerics.polynomial_roots import real_roots

__all__ = ["Product"]

_LOG_2PI = float(np.log(2 * np.pi))


class Product(Factor):
    """``out = a b``.

    Exact where a or b is a point mass, and forwards to a uniform out. Where an incoming message leaves no normalisable
    tilted distribution the message sent is uniform: an improper (or uniform) a or b beside an unknown other one, an
    improper out, and an out known to be exactly 0, whose density under two unknown factors is infinite.
    """

    name = "product"
    ports = ("a", "b", "out")
    families: ClassVar = {"a": (Gaussian,), "b": (Gaussian,), "out": (Gaussian,)}
    how: ClassVar = {"a": "quadrature over b", "b": "quadrature over a", "out": "quadrature over b"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """Belief over cavity, or the exact message where a or b is a point mass."""
        a, b, out = self._read(incoming)
        self.check_port(to)
        if to == "b":
            a, b = b, a  # the factor is symmetric: the target is a from here on
        target = out if to == "out" else a
        known, exact = _exact(to, a, b, out)
        if np.all(known):
            return exact
        tilt = _tilt(a, b, out, ~known)
        sent = _mixed(tilt, to, a, b, out).message(target, tilt.valid)
        return exact.where(known, sent)

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """Mean and variance of the tilted distribution."""
        a, b, out = self._read(incoming)
        self.check_port(to)
        if to == "b":
            a, b = b, a
        target = out if to == "out" else a
        known, exact = _exact(to, a, b, out)
        if np.all(known):
            return exact * target
        tilt = _tilt(a, b, out, ~known)
        belief = _mixed(tilt, to, a, b, out).belief(target, tilt.valid)
        return belief if not np.any(known) else (exact * target).where(known, belief)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of ``m_a(a) m_b(b) m_out(a b)``; infinite where there is none."""
        a, b, out = self._read(incoming)
        soft = ~a.is_point & ~b.is_point
        log_z = np.where(out.is_uniform & a.proper & b.proper, 0.0, np.inf)
        if np.any(soft):
            log_z = np.where(soft & ~out.is_uniform, _tilt(a, b, out, soft).log_z, log_z)
        for fixed, free in ((b, a), (a, b)):
            at = fixed.is_point
            if np.any(at):
                c = np.where(at, fixed.mean, 1.0)
                forward = gaussian_overlap(stretch(free, c), out)
                jacobian = np.where(free.proper, 0.0, -np.log(np.abs(np.where(c == 0, 1.0, c))))
                log_z = np.where(at, np.where((c == 0) & ~free.proper, np.inf, forward + jacobian), log_z)
        return log_z

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """Its own port too, unless a point mass makes the message exact."""
        exact = {"a", "b"} & points if to == "out" else ({"a", "b"} - {to}) & points
        return frozenset(self.ports) - {to} if exact else frozenset(self.ports)

    def _read(self, incoming: Incoming) -> list[Gaussian]:
        messages = [as_message(self, incoming, p) for p in self.ports]
        shape = np.broadcast_shapes(*(m.shape for m in messages))
        return [m.broadcast_to(shape) for m in messages]


def _exact(to: str, a: Gaussian, b: Gaussian, out: Gaussian) -> tuple[np.ndarray, Gaussian]:
    """Where the message needs no integral, and that message."""
    if to != "out":
        # the target is a: a fixed b pulls the message to out back, and a uniform out says nothing
        at = b.is_point
        c = np.where(at, b.mean, 1.0)
        zero = c == 0
        if np.any(at & zero & out.is_point & (out.mean != 0)):
            raise ContradictionError("factor 'product': one side is fixed at 0 but their product is not 0")
        shift, precision = out.naturals[0] * c, out.naturals[1] * c**2
        point = np.full(at.shape, np.nan)
        if out.point is not None:
            point = np.where(at & ~zero, out.point / np.where(zero, 1.0, c), np.nan)
        naturals = np.where(at, shift, 0.0), np.where(at, precision, 0.0)
        return at | out.is_uniform, Gaussian.with_points(naturals, point)
    one, other = _order(a, b)
    at = one.is_point
    exact = stretch(other, np.where(at, one.mean, 1.0))
    # out uniform: mean and variance of the product of two independent Gaussians
    free = ~at & out.is_uniform & a.proper & b.proper
    ma, va = np.where(free, a.mean, 0.0), np.where(free, a.variance, 1.0)
    mb, vb = np.where(free, b.mean, 0.0), np.where(free, b.variance, 1.0)
    tau = 1.0 / (ma**2 * vb + mb**2 * va + va * vb)
    forward = Gaussian.from_naturals((ma * mb * tau, tau))
    return at | free, exact.where(at, forward)


def _order(a: Gaussian, b: Gaussian) -> tuple[Gaussian, Gaussian]:
    """The two messages with a point mass, if there is one, first."""
    swap = b.is_point & ~a.is_point
    return b.where(swap, a), a.where(swap, b)


class _Tilt(NamedTuple):
    valid: np.ndarray
    log_z: np.ndarray
    rules: list[tuple[np.ndarray, Rule]]  # (flat positions of the rows, nodes in b)


def _tilt(a: Gaussian, b: Gaussian, out: Gaussian, where: np.ndarray) -> _Tilt:
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
        log_z.reshape(-1)[rows] = rule.log_z - _LOG_2PI - 0.5 * np.log(values[3]) - log_unit[rows]
    return _Tilt(valid, log_z, rules)


def _unit(m: Gaussian) -> np.ndarray:
    """A power of 2 near the size of each entry, so that it can be measured in that unit without rounding."""
    _, exponent = np.frexp(np.maximum(np.abs(m.mean), np.sqrt(m.variance)))
    return np.where(m.proper & ~m.is_point, np.ldexp(1.0, exponent), 1.0)


def _in_units(m: Gaussian, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance in the unit given: squares of scales beyond 1e80 would overflow in what is done with them."""
    return m.mean / unit, m.variance / unit / unit


def _mixed(tilt: _Tilt, to: str, a: Gaussian, b: Gaussian, out: Gaussian) -> Mixed:
    """The belief of a, or of out, mixed over b."""
    shape = tilt.valid.shape
    parts = [np.zeros(shape), np.full(shape, np.inf), np.zeros(shape)]
    target, unit = (out, _unit(a) * _unit(b)) if to == "out" else (a, _unit(a))
    in_units = (*_in_units(a, _unit(a)), *_in_units(out, _unit(a) * _unit(b)))
    own = cavity_centre(target) / unit, target.naturals[1] * unit * unit
    flat = [v.reshape(-1) for v in (*in_units, *own, unit)]
    for rows, rule in tilt.rules:
        ma, va, mo, vo, m, t, one = (v[rows] for v in flat)
        x = rule.x
        total = rule.of(vo) + rule.of(va) * x**2
        miss = rule.of(mo) - rule.of(ma) * x
        cavity = Gaussian.from_naturals((m * t, t))
        if to == "out":  # N(m_a b, v_a b^2) meets the cavity N(m_out, v_out)
            share = rule.of(vo) / total
            mixed = mix(rule.mean, rule.of, cavity, -miss * share, rule.of(va) * x**2 * share, share)
        else:  # the cavity N(m_a, v_a) meets m_out(a b)
            share = rule.of(va) * x / total
            mixed = mix(rule.mean, rule.of, cavity, miss * share, rule.of(va * vo) / total, share * x)
        back = mixed.gap * one, mixed.variance * one * one, mixed.gain
        for out_part, value in zip(parts, back, strict=True):
            out_part.reshape(-1)[rows] = value
    return Mixed(*parts)


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
