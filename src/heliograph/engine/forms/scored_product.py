# pyright: basic
"""A likelihood of ``z = sign a b + rest + offset``, where a, b and the rest are jointly Gaussian: by an integral over b.

Given b the score z is Gaussian, and the likelihood's own integrals apply. With two factors, one for the product and one for the
likelihood, EP would take the product for Gaussian before the likelihood sees it (docs/decisions/0054).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from heliograph.engine.forms.messages import (
    as_wide_as,
    message_from_moments,
    proper_moments,
    scalar_message_from_moments,
)
from heliograph.factors import Factor, Incoming
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.numerics.adaptive_quadrature import adapt
from heliograph.numerics.chunks import chunks

__all__ = ["ProductAndRest", "ScoredProduct"]

_NODES = (20, 28)  # of two Gauss-Hermite rules, which must agree
_AGREE = 1e-8  # in log Z and in the moments of b, in its standard deviations: most likelihoods are smooth in b
_REACH = 12.0  # standard deviations of b that the adaptive rule looks at where they do not
_PANELS = 24
_ROWS = 4096  # integrated at once


class _Given(NamedTuple):
    """The cavity of (a, b[, rest]), and the parts of its conditional given b that are the same for every b."""

    mean: np.ndarray  # (n, d)
    covariance: np.ndarray  # (n, d, d)
    slope: np.ndarray  # (n, d) of the means given b
    rest: np.ndarray  # (n, d, d) the covariance given b


class _Nodes(NamedTuple):
    """Nodes of b, one line per row or panel, and the likelihood's moments there."""

    row: np.ndarray  # (lines,) of which row
    weight: np.ndarray  # (lines, nodes), summing to 1 over each row
    log_z: np.ndarray  # (rows,)
    mean: np.ndarray  # (lines, nodes, d) of a, b and the rest
    pull: np.ndarray  # (lines, nodes, d) their covariance with the score
    bend: np.ndarray  # (lines, nodes) what a unit of pull adds to the covariance
    incoming: dict[str, Any]


class ScoredProduct(Factor):
    """A factor with a Gaussian port z, of ``z = sign a b + rest + offset``, and a vector port for a, b and the rest.

    Where the cavity is no distribution the message is uniform.

    Parameters
    ----------
    factor
        The likelihood.
    joined
        The parts of the vector: "a", "b", and "rest" where there is one.
    """

    def __init__(self, factor: Factor, joined: tuple[str, ...]) -> None:
        self.factor, self.joined = factor, joined
        self.port = "+".join(joined)
        rest = tuple(p for p in factor.ports if p != "z")
        vars(self).update(
            name=factor.name,
            ports=("sign", "offset", self.port, *rest),
            families={
                "sign": (),
                "offset": (),
                self.port: (MultivariateGaussian,),
                **{p: factor.families.get(p, ()) for p in rest},
            },
            how=dict.fromkeys((self.port, *rest), "quadrature over b"),
            data_ranks=factor.data_ranks,
        )

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity; to a label the average of the likelihood's messages to it."""
        found = [(rows, self._message(to, part, nodes)) for rows, part, nodes in self._integrals(incoming)]
        if len(found) == 1:
            return found[0][1]
        order = np.argsort(np.concatenate([rows for rows, _ in found]))
        messages = [m for _, m in found]
        return type(messages[0]).join(messages)[order]

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of the likelihood times all messages."""
        joint = incoming[self.port]
        if joint.point is not None and joint.is_point.all():
            return self.log_at(incoming, joint.point[:, None])[0][:, 0]
        found = np.empty(joint.size)
        for rows, part, nodes in self._integrals(incoming):
            found[rows] = np.where(part[self.port].proper, nodes.log_z, np.inf)
        return found

    def log_at(self, incoming: Incoming, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``log`` of the likelihood at draws (n, S, d) of the vector, and of which components it is a function: all."""
        n, draws, d = values.shape
        z = incoming["sign"][:, None] * values[..., 0] * values[..., 1] + incoming["offset"][:, None]
        z = z + values[..., 2] if d == 3 else z
        at = self._at(incoming, np.repeat(np.arange(n), draws), Gaussian.point_mass(z.reshape(-1)))
        return self.factor.log_z(at).reshape(n, draws), np.arange(d)

    def _message(self, to: str, incoming: dict[str, Any], nodes: _Nodes) -> Family:
        joint = incoming[self.port]
        good = joint.proper & ~joint.is_point
        n = len(good)
        if to != self.port:
            good &= ~incoming[to].is_point
            belief = self.factor.belief(to, nodes.incoming)
            each = [np.asarray(s).reshape(*nodes.weight.shape, *np.shape(s)[1:]) for s in belief.expected_statistics()]
            # an average lies between its terms; without this, rounding could leave the range of probabilities
            means = [np.clip(_mean(nodes, e, n), e.min(axis=(0, 1)), e.max(axis=(0, 1))) for e in each]
            statistics = [np.where(as_wide_as(good, s), s, 0.5 if s.ndim == 1 else 1.0 / s.shape[1]) for s in means]
            made = type(belief).from_statistics(*statistics)
            nothing = incoming[to].as_uniform()
            return (made / incoming[to].where(good, nothing)).where(good, nothing)
        mean = _mean(nodes, nodes.mean, n)
        gap = nodes.mean - mean[nodes.row][:, None]
        outer = gap[..., :, None] * gap[..., None, :]
        outer += nodes.bend[..., None, None] * nodes.pull[..., :, None] * nodes.pull[..., None, :]
        return message_from_moments(joint, mean, self._given(incoming).rest + _mean(nodes, outer, n), good)

    # ---- the integral over b ------------------------------------------------------------------------------------
    def _integrals(self, incoming: Incoming) -> Iterator[tuple[np.ndarray, dict[str, Any], _Nodes]]:
        """Yield groups of rows with their nodes: two fixed rules, and the adaptive one where these do not agree."""
        for part in chunks(incoming[self.port].size, _ROWS):
            rows = np.arange(part.start, part.stop)
            some = _some(incoming, rows)
            given = self._given(some)
            few, many = (self._fixed(some, given, k) for k in _NODES)
            hard = _apart(few, many, given)
            if not hard.any():
                yield rows, some, many
                continue
            if not hard.all():
                easy = np.flatnonzero(~hard)
                some = _some(incoming, rows[easy])
                yield rows[easy], some, self._fixed(some, self._given(some), _NODES[1])
            some = _some(incoming, rows[hard])
            yield rows[hard], some, self._adaptive(some, self._given(some))

    def _given(self, incoming: dict[str, Any]) -> _Given:
        _, mean, v = proper_moments(incoming[self.port])
        slope = v[:, :, 1] / v[:, 1, 1, None]
        slope[:, 1] = 1.0
        rest = v - slope[:, :, None] * v[:, None, 1, :]
        rest[:, 1, :] = rest[:, :, 1] = 0.0
        return _Given(mean, v, slope, rest)

    def _fixed(self, incoming: dict[str, Any], given: _Given, k: int) -> _Nodes:
        u, w = _hermite(k)
        n = len(given.mean)
        b = given.mean[:, 1, None] + np.sqrt(given.covariance[:, 1, 1])[:, None] * u
        row = np.arange(n)
        log_z, rest = self._said(incoming, given, b, row)
        top = log_z.max(axis=1)
        weight = w * np.exp(log_z - np.where(np.isfinite(top), top, 0.0)[:, None])
        total = weight.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return _Nodes(row, weight / total[:, None], top + np.log(total), *rest)

    def _adaptive(self, incoming: dict[str, Any], given: _Given) -> _Nodes:
        mean, sd = given.mean[:, 1], np.sqrt(given.covariance[:, 1, 1])

        def log_density(u: np.ndarray, row: np.ndarray) -> np.ndarray:
            b = mean[row] + sd[row] * u
            return self._said(incoming, given, b, row[:, 0])[0] - 0.5 * (u * u + np.log(2 * np.pi))

        edges = np.broadcast_to(np.linspace(-_REACH, _REACH, _PANELS + 1), (len(mean), _PANELS + 1))
        rule = adapt(log_density, edges)
        _, rest = self._said(incoming, given, rule.of(mean) + rule.of(sd) * rule.x, rule.row)
        return _Nodes(rule.row, rule.weight, rule.log_z, *rest)

    def _said(
        self, incoming: dict[str, Any], given: _Given, b: np.ndarray, row: np.ndarray
    ) -> tuple[np.ndarray, tuple[Any, ...]]:
        """``log Z`` of the likelihood at nodes of b, and the means, pulls and bends of a, b and the rest there."""
        sign, offset = incoming["sign"][row][:, None], incoming["offset"][row][:, None]
        mean = given.mean[row][:, None] + given.slope[row][:, None] * (b - given.mean[row, 1, None])[..., None]
        load = np.zeros(mean.shape)  # of a, b and the rest in the score, given b
        load[..., 0] = sign * b
        if len(self.joined) == 3:
            load[..., 2] = 1.0
        pull = np.einsum("lij,lkj->lki", given.rest[row], load)
        variance = np.maximum(np.einsum("lki,lki->lk", pull, load), 0.0)
        centre = np.einsum("lki,lki->lk", mean, load) + offset
        rows = np.repeat(row, b.shape[1])
        z = Gaussian.from_mean_variance(centre.reshape(-1), variance.reshape(-1))
        at = self._at(incoming, rows, z)
        log_z = self.factor.log_z(at).reshape(b.shape)
        shift, tau = (a.reshape(b.shape) for a in self.factor.message("z", at).naturals)
        grow = 1.0 + tau * variance
        step = (shift - tau * centre) / grow
        return log_z, (mean + pull * step[..., None], pull, -tau / grow, at)

    def _at(self, incoming: Incoming, rows: np.ndarray, z: Gaussian) -> dict[str, Any]:
        """What comes in at the likelihood's own ports."""
        own = {p: incoming[p] for p in self.factor.ports if p != "z"}
        return {"z": z, **{p: m[rows] if isinstance(m, Family) or np.ndim(m) else m for p, m in own.items()}}


class ProductAndRest(Factor):
    """``out = sign a b + rest + offset`` without any other factor at `out`: it only serves to be read."""

    name = "product and rest"
    families: ClassVar = {"sign": (), "offset": (), "ends": (MultivariateGaussian,), "out": (Gaussian,)}
    how: ClassVar = {"ends": "closed form", "out": "closed form"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The moments of the sum; to its parts nothing."""
        ends, sign = incoming["ends"], incoming["sign"]
        if to == "ends":
            return ends.as_uniform()
        if ends.point is not None and ends.is_point.all():
            x = ends.point
            return Gaussian.point_mass(sign * x[:, 0] * x[:, 1] + incoming["offset"] + x[:, 2:].sum(axis=1))
        good = ends.proper
        m, v = ends.mean, ends.covariance
        mean = sign * (m[:, 0] * m[:, 1] + v[:, 0, 1]) + incoming["offset"]
        spread = m[:, 0] ** 2 * v[:, 1, 1] + m[:, 1] ** 2 * v[:, 0, 0] + 2 * m[:, 0] * m[:, 1] * v[:, 0, 1]
        spread = sign**2 * (spread + v[:, 0, 0] * v[:, 1, 1] + v[:, 0, 1] ** 2)
        if ends.dimension == 3:
            mean = mean + m[:, 2]
            spread = spread + v[:, 2, 2] + 2 * sign * (m[:, 0] * v[:, 1, 2] + m[:, 1] * v[:, 0, 2])
        nothing = incoming["out"].as_uniform()
        return scalar_message_from_moments(nothing, mean, spread, good)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """Return 0, because nothing is known of `out`."""
        return np.zeros(incoming["out"].size)


def _some(incoming: Incoming, rows: Any) -> dict[str, Any]:
    return {p: m[rows] if isinstance(m, Family) or np.ndim(m) else m for p, m in incoming.items()}


def _mean(nodes: _Nodes, values: np.ndarray, n: int) -> np.ndarray:
    """The expectation of what has these values (lines, nodes, ...) at the nodes, row by row."""
    inside = np.einsum("lk,lk...->l...", nodes.weight, values)
    found = np.zeros((n, *inside.shape[1:]))
    np.add.at(found, nodes.row, inside)
    return found


def _apart(few: _Nodes, many: _Nodes, given: _Given) -> np.ndarray:
    """The rows in which two rules do not agree on log Z and on the first two moments of b."""
    n = len(given.mean)
    sd = np.sqrt(given.covariance[:, 1, 1])
    off = np.abs(few.log_z - many.log_z)
    for power in (1, 2):
        moment = [_mean(x, ((x.mean[..., 1] - given.mean[:, None, 1]) / sd[:, None]) ** power, n) for x in (few, many)]
        off = off + np.abs(moment[0] - moment[1])
    return ~(off <= _AGREE)


@cache
def _hermite(k: int) -> tuple[np.ndarray, np.ndarray]:
    u, w = np.polynomial.hermite_e.hermegauss(k)
    return u, w / w.sum()
