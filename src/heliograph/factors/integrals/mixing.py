"""The Gaussian message of a mixture: the one way in which a mixed belief turns into a message, eq. (1).

Given a latent (a node of a quadrature, a branch, a component) the target's belief has a known mean and variance.
Dividing the mixed belief by the cavity would lose the digits of a message much weaker than the cavity, and leave
rounding noise where the message is uniform; so the parts are carried relative to the cavity from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heliograph.families import Gaussian
from heliograph.numerics.adaptive_quadrature import Rule

__all__ = ["Ends", "Mixed", "branch_probabilities", "cavity_centre", "mix", "mix_branches", "mixed_over_multiplier"]


class Mixed(NamedTuple):
    """A mixed belief relative to its cavity with natural parameters (s, t) and centre m, see `cavity_centre`."""

    gap: np.ndarray  # mean of the belief less m
    variance: np.ndarray  # of the belief
    gain: np.ndarray  # 1 - t variance: 0 where nothing was learned, 1 where the cavity no longer matters

    def message(self, cavity: Gaussian, valid: np.ndarray) -> Gaussian:
        """Belief over cavity; uniform where not `valid`, a point mass where the belief is one."""
        s, t = cavity.naturals
        soft, sharp, v = self._kinds(cavity, valid)
        precision = np.where(soft, self.gain / v, 0.0)
        centre = cavity_centre(cavity)
        shift = np.where(soft, (self.gap + centre * self.gain) / v - np.where(t == 0, s, 0.0), 0.0)
        point = np.where(sharp, centre + self.gap, np.nan) if np.any(sharp) else None
        return Gaussian.from_naturals((shift, precision), point)

    def belief(self, cavity: Gaussian, valid: np.ndarray) -> Gaussian:
        """The mixed belief itself; the cavity where not `valid`."""
        s, t = cavity.naturals
        soft, sharp, v = self._kinds(cavity, valid)
        mean = cavity_centre(cavity) + self.gap
        naturals = np.where(soft, mean / v, np.where(sharp, 0.0, s)), np.where(soft, 1.0 / v, np.where(sharp, 0.0, t))
        if not np.any(sharp):
            return Gaussian.from_naturals(naturals, cavity.point)
        held = np.nan if cavity.point is None else cavity.point
        return Gaussian.from_naturals(naturals, np.where(sharp, mean, held))

    def _kinds(self, cavity: Gaussian, valid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the belief is a distribution, where it is a point mass, and a variance that can be divided by."""
        # an infinite variance does not exist, and nothing is sent; NaN could not be computed, and is sent as NaN
        finite = valid & ~np.isposinf(self.variance) & ~cavity.is_point
        mean = cavity_centre(cavity) + self.gap
        soft = finite & ~(self.variance <= 1e-300 * np.maximum(mean * mean, 1.0))  # below, what is over it overflows
        return soft, finite & ~soft, np.where(soft, self.variance, 1.0)


def cavity_centre(cavity: Gaussian) -> np.ndarray:
    """The cavity's mean, 0 where it has none."""
    s, t = cavity.naturals
    return np.where(t == 0, 0.0, s / np.where(t == 0, 1.0, t))


def mix(
    average: Callable[[np.ndarray], np.ndarray],
    spread: Callable[[np.ndarray], np.ndarray],
    cavity: Gaussian,
    gap: np.ndarray,
    variance: np.ndarray,
    gain: np.ndarray,
) -> Mixed:
    """Mix parts with these gaps (mean less centre), variances and gains (``1 - t variance``).

    `average` is the expectation over the parts, `spread` lays one number per row beside them.
    """
    mean_gap = average(gap)
    between = average((gap - spread(mean_gap)) ** 2)
    return Mixed(mean_gap, average(variance) + between, average(gain) - cavity.naturals[1] * between)


class Ends(NamedTuple):
    """The messages of a Gaussian number and of its product with another, as means and variances in units near their sizes."""

    m: np.ndarray
    v: np.ndarray
    mo: np.ndarray
    vo: np.ndarray


def mixed_over_multiplier(
    rules: list[tuple[np.ndarray, Rule]],
    values: Callable[[Rule], np.ndarray],
    ends: Ends,
    target: Gaussian,
    unit: np.ndarray,
    to_out: bool,
) -> Mixed:
    """The belief of x, or of ``out = s x``, mixed over s.

    Parameters
    ----------
    rules
        Flat positions of some rows, and the nodes of s in them.
    values
        s at the nodes.
    ends
        The messages of x and of out.
    target, unit
        What comes in from x or out, and the unit that it was measured in.
    to_out
        Which of them it is.
    """
    shape = target.shape
    parts = [np.zeros(shape), np.full(shape, np.inf), np.zeros(shape)]
    own = cavity_centre(target) / unit, target.naturals[1] * unit * unit
    flat = [np.asarray(a).reshape(-1) for a in (*ends, *own, unit)]
    for rows, rule in rules:
        m, v, mo, vo, centre, t, one = (a[rows] for a in flat)
        s = values(rule)
        total, miss = rule.of(vo) + rule.of(v) * s**2, rule.of(mo) - rule.of(m) * s
        cavity = Gaussian.from_naturals((centre * t, t))
        if to_out:  # N(s m, s^2 v) meets the cavity N(mo, vo)
            share = rule.of(vo) / total
            mixed = mix(rule.mean, rule.of, cavity, -miss * share, rule.of(v) * s**2 * share, share)
        else:  # the cavity N(m, v) meets the message of out at s x
            share = rule.of(v) * s / total
            mixed = mix(rule.mean, rule.of, cavity, miss * share, rule.of(v * vo) / total, share * s)
        for whole, value in zip(parts, (mixed.gap * one, mixed.variance * one * one, mixed.gain), strict=True):
            whole.reshape(-1)[rows] = value
    return Mixed(*parts)


def branch_probabilities(log_weight: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Probabilities along the last axis from log weights, of which some may be -inf; equal where not `valid`."""
    log_weight = np.where(valid[..., None], log_weight, 0.0)
    top = log_weight.max(axis=-1, keepdims=True)
    weight = np.exp(log_weight - np.where(np.isfinite(top), top, 0.0))
    total = weight.sum(axis=-1, keepdims=True)
    return np.where(total > 0, weight, 1.0) / np.where(total > 0, total, weight.shape[-1])


def mix_branches(
    probability: np.ndarray, cavity: Gaussian, gap: np.ndarray, variance: np.ndarray, gain: np.ndarray
) -> Mixed:
    """`mix` for a few branches along the last axis, with their probabilities."""
    return mix(lambda a: (probability * a).sum(axis=-1), lambda a: a[..., None], cavity, gap, variance, gain)
