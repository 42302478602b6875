# pyright: basic
"""Any factor of two Gaussian numbers, when these are jointly Gaussian: by its own messages given one of them.

Given the second number the first one is Gaussian, and the factor itself gives log Z and beliefs.
Only an integral over the second number remains.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.forms.messages import as_wide_as, message_from_moments
from heliograph.factors import Factor, Incoming
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.numerics.adaptive_quadrature import Rule, adapt, around
from heliograph.numerics.chunks import chunks

__all__ = ["ConditionedForm"]

_SCANNED = 97  # places of the first scan of the density over the second number
_REACH = 12.0  # standard deviations of the cavity within which it lies, unless it is still high at the end
_ROUNDS = 6  # of refining the scan around the highest place
_ROWS = 64  # integrated at once
# chosen where some evidences were NaN without them, and confirmed on no other models
_ROUNDING = 1e-9  # of a variance
_FLOOR = 1e-12  # of the variance before


class _Tilted(NamedTuple):
    """Nodes of the second number, with the factor's log Z and beliefs there."""

    rule: Rule
    incoming: dict[str, Any]  # at every node
    shape: tuple[int, int]  # (panels, nodes)


class ConditionedForm(Factor):
    """A factor with a vector port for two of its Gaussian numbers."""

    def __init__(self, factor: Factor, joined: tuple[str, str]) -> None:
        self.factor, self.joined = factor, joined
        self.port = "+".join(joined)
        rest = tuple(p for p in factor.ports if p not in joined)
        last = factor.child not in joined
        vars(self).update(
            name=factor.name,
            ports=(self.port, *rest) if last else (*rest, self.port),
            families={
                **{p: f for p, f in factor.families.items() if p not in joined},
                self.port: (MultivariateGaussian,),
            },
            how=dict.fromkeys((self.port, *rest), "quadrature over one number"),
            data_ranks=factor.data_ranks,
        )

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity; uniform where the cavity of the two numbers is no distribution."""
        n = len(incoming[self.port])
        parts = [self._message(to, _some(incoming, np.arange(s.start, s.stop))) for s in chunks(n, _ROWS)]
        return parts[0] if len(parts) == 1 else type(parts[0]).join(parts)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of the factor times all messages."""
        n = len(incoming[self.port])
        found = []
        for s in chunks(n, _ROWS):
            part = _some(incoming, np.arange(s.start, s.stop))
            good = part[self.port].proper
            found.append(np.where(good, self._integrate(part, good).rule.log_z, np.inf))
        return np.concatenate(found)

    def log_at(self, incoming: Incoming, values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """``log`` of the factor at draws (n, S, 2) of the vector, and of which components it is a function: both.

        None where one of the two may be the value of the other, which has no density.
        """
        if self.factor.child in self.joined:
            return None
        n, draws = values.shape[:2]
        rows = np.repeat(np.arange(n), draws)
        at = {p: m[rows] for p, m in incoming.items() if p != self.port}
        at |= {p: Gaussian.point_mass(values[..., k].reshape(-1)) for k, p in enumerate(self.joined)}
        return self.factor.log_z(at).reshape(n, draws), np.arange(2)

    def _message(self, to: str, incoming: dict[str, Any]) -> Family:
        joint = incoming[self.port]
        good = joint.proper & ~joint.is_point
        rule, at_nodes, shape = self._integrate(incoming, good)
        if to != self.port:
            belief = self.factor.belief(to, at_nodes)
            statistics = [_mean(rule, s, shape) for s in belief.expected_statistics()]
            known = good & np.all([np.isfinite(s).reshape(len(s), -1).all(axis=1) for s in statistics], axis=0)
            made = type(belief).from_statistics(*(np.where(as_wide_as(known, s), s, 0.5) for s in statistics))
            lost = type(belief).from_naturals(
                tuple(np.full_like(a, np.nan) for a in made.naturals)
            )  # an error concerns its own row only
            return (made / incoming[to]).where(known, lost.where(good, incoming[to].as_uniform()))
        first = self.factor.belief(self.joined[0], at_nodes)
        mean1, x2 = first.mean.reshape(shape), rule.x
        means = np.stack([rule.mean(mean1), rule.mean(x2)], axis=1)
        gap1, gap2 = mean1 - rule.of(means[:, 0]), x2 - rule.of(means[:, 1])
        across = rule.mean(gap1 * gap2)
        own = rule.mean(gap1**2 + first.variance.reshape(shape)), rule.mean(gap2**2)
        # a maximum that is surely one of its arguments varies with it alone: no more than a rounding apart
        cavity = np.where(good[:, None, None], joint.covariance, 0.0)
        own = [v * (1.0 + _ROUNDING) + _FLOOR * cavity[:, k, k] for k, v in enumerate(own)]
        covariance = np.stack([own[0], across, across, own[1]], axis=1).reshape(-1, 2, 2)
        return message_from_moments(joint, means, covariance, good)

    # ---- the integral over the second number -------------------------------------------------------------------
    def _integrate(self, incoming: dict[str, Any], good: np.ndarray) -> _Tilted:
        joint = incoming[self.port]
        mean = np.where(good[:, None], joint.mean, 0.0)
        v = np.where(good[:, None, None], joint.covariance, np.eye(2))
        slope = v[:, 0, 1] / v[:, 1, 1]
        rest = v[:, 0, 0] - slope * v[:, 0, 1]

        def given(x: np.ndarray, row: np.ndarray) -> dict[str, Any]:
            """What comes in at the nodes, the second number known."""
            rows = np.broadcast_to(row, x.shape).reshape(-1)
            flat = x.reshape(-1)
            at = {p: m[rows] for p, m in incoming.items() if p != self.port}
            centre = mean[rows, 0] + slope[rows] * (flat - mean[rows, 1])
            at[self.joined[0]] = Gaussian.from_mean_variance(centre, rest[rows])
            at[self.joined[1]] = Gaussian.point_mass(flat)
            return at

        def log_density(x: np.ndarray, row: np.ndarray) -> np.ndarray:
            own = (x - mean[row, 1]) ** 2 / v[row, 1, 1] + np.log(2 * np.pi * v[row, 1, 1])
            return self.factor.log_z(given(x, row)).reshape(x.shape) - 0.5 * own

        sd = np.sqrt(v[:, 1, 1])
        centre, width = _peak(log_density, mean[:, 1], sd)
        reach = np.maximum(_REACH * sd, np.abs(centre - mean[:, 1]) + _REACH * width)
        edges = around(mean[:, 1] - reach, mean[:, 1] + reach, centre[:, None], width[:, None])
        rule = adapt(log_density, edges)
        return _Tilted(rule, given(rule.x, rule.row[:, None]), rule.x.shape)


def _peak(log_density: Any, mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mode of a density and its width there, by scans of ever smaller ranges."""
    n, reach = len(mean), _REACH * sd
    centre = mean.copy()
    row = np.arange(n)[:, None]
    for _ in range(_ROUNDS):
        x = centre[:, None] + reach[:, None] * np.linspace(-1.0, 1.0, _SCANNED)
        height = log_density(x, row)
        height = np.where(np.isfinite(height), height, -np.inf)
        best = height.argmax(axis=1)
        centre = x[np.arange(n), best]
        high = height >= height.max(axis=1, keepdims=True) - 2.0  # within two standard deviations of a Gaussian
        spread = 2.0 * reach / (_SCANNED - 1) * np.maximum(high.sum(axis=1), 1) / 4.0
        if (high.sum(axis=1) > 8).all():
            break
        reach = np.where(high.sum(axis=1) > 8, reach, 4.0 * spread * 4.0 / np.maximum(high.sum(axis=1), 1))
    return centre, np.maximum(spread, 1e-12 * sd)


def _some(incoming: Incoming, rows: np.ndarray) -> dict[str, Any]:
    return {p: m[rows] for p, m in incoming.items()}


def _mean(rule: Rule, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The expectation of a statistic, which may have axes of its own."""
    flat = np.asarray(values).reshape(shape[0], shape[1], -1)
    found = np.stack([rule.mean(flat[:, :, k]) for k in range(flat.shape[2])], axis=1)
    return found.reshape(len(rule.log_z), *np.shape(values)[1:])
