"""A Bernoulli chooses which of two Gaussians is seen: ``out = a if s = 1 else b``, closed form."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import log_expit

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_plate
from heliograph.factors.integrals.mixing import Mixed, branch_probabilities, cavity_centre, mix_branches
from heliograph.factors.line import gaussian_overlap
from heliograph.families import Bernoulli, Family, Gaussian

__all__ = ["Select"]


class Select(Factor):
    """``out = a if s = 1 else b``.

    With s known this is an equality with one side, whatever the messages. With s unknown a uniform or improper a or b,
    or an out that neither makes proper, leaves no normalisable tilted distribution, and the message is uniform.
    """

    name = "select"
    families: ClassVar = {"a": (Gaussian,), "b": (Gaussian,), "s": (Bernoulli,), "out": (Gaussian,)}
    how: ClassVar = {"a": "closed form", "b": "closed form", "s": "closed form", "out": "closed form"}
    ignores_own = ("s",)
    exact_given: ClassVar = {"a": ("s",), "b": ("s",), "out": ("s",)}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity for the Gaussians; for s the log odds of the two overlaps, which do not look at s."""
        a, b, s, out = as_plate(self, incoming, self.ports)
        if to == "s":
            return _log_odds(a, b, out)
        target, mixed, valid = self._mixed(to, a, b, s, out)
        return self._known(to, a, b, s, out).where(s.is_point, mixed.message(target, valid))

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Mean and variance of the mixture, or the probability of s."""
        a, b, s, out = as_plate(self, incoming, self.ports)
        if to == "s":
            return _log_odds(a, b, out) * s
        target, mixed, valid = self._mixed(to, a, b, s, out)
        belief = mixed.belief(target, valid)
        if not np.any(s.is_point):
            return belief
        # elsewhere the two may be different points, which is no contradiction while s is open
        nothing = target.as_uniform()
        known = self._known(to, a, b, s, out).where(s.is_point, nothing) * target.where(s.is_point, nothing)
        return known.where(s.is_point, belief)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the two overlaps weighted with p and 1 - p."""
        a, b, s, out = as_plate(self, incoming, self.ports)
        (first, second), certain = _weights(a, b, out)
        l = np.where(s.is_point, 0.0, s.naturals[0])
        first, second = first + log_expit(l), second + log_expit(-l)
        nothing = np.isneginf(first) & np.isneginf(second)
        log_z = np.logaddexp(np.where(nothing, 0.0, first), np.where(nothing, 0.0, second))
        log_z = np.where(nothing, -np.inf, log_z)
        log_z = np.where((a.proper & b.proper) | certain, log_z, np.inf)
        if not np.any(s.is_point):
            return log_z
        chosen = np.where(s.mean == 1, gaussian_overlap(a, out), gaussian_overlap(b, out))
        other_proper = np.where(s.mean == 1, b.proper, a.proper)
        return np.where(s.is_point, np.where(other_proper, chosen, np.inf), log_z)

    def _known(self, to: str, a: Gaussian, b: Gaussian, s: Bernoulli, out: Gaussian) -> Gaussian:
        """The message where s is a point mass."""
        if to == "out":
            return a.where(s.mean == 1, b)
        return out.where(s.mean == (1.0 if to == "a" else 0.0), out.as_uniform())

    def _mixed(
        self, to: str, a: Gaussian, b: Gaussian, s: Bernoulli, out: Gaussian
    ) -> tuple[Gaussian, Mixed, np.ndarray]:
        target = {"a": a, "b": b, "out": out}[to]
        (first, second), _ = _weights(a, b, out)
        l = np.where(s.is_point, 0.0, s.naturals[0])
        weight = np.stack([first + log_expit(l), second + log_expit(-l)], axis=-1)
        meets = [m.is_point | out.is_point | (m.naturals[1] + out.naturals[1] > 0) for m in (a, b)]
        valid = a.proper & b.proper & meets[0] & meets[1] & ~s.is_point
        valid &= np.isfinite(weight.max(axis=-1))
        probability = branch_probabilities(weight, valid)
        if to == "out":
            parts = [met(out, a), met(out, b)]
        else:
            parts = [met(target, out), alone(target)]
            parts = parts if to == "a" else parts[::-1]
        stacked = [np.where(valid[..., None], np.stack(pair, axis=-1), 1.0) for pair in zip(*parts, strict=True)]
        return target, mix_branches(probability, target, *stacked), valid


def met(cavity: Gaussian, other: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gap, variance and gain of a cavity that meets one Gaussian message."""
    m, at = cavity_centre(cavity), other.is_point
    (s, t), own = other.naturals, cavity.naturals
    total = own[1] + t
    v = np.where(at | (total <= 0), 0.0, 1.0 / np.where(total > 0, total, 1.0))
    # with no centre (precision 0) the cavity's own shift still counts
    gap = (s - t * m + np.where(own[1] == 0, own[0], 0.0)) * v
    return np.where(at, np.where(at, other.mean, 0.0) - m, gap), v, np.where(at, 1.0, t * v)


def alone(cavity: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gap, variance and gain of a cavity that meets nothing."""
    zero = np.zeros(cavity.shape)
    return zero, np.where(cavity.proper, cavity.variance, 1.0), zero


def _weights(a: Gaussian, b: Gaussian, out: Gaussian) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Log overlap of out with a and with b, and where a mass in one leaves nothing for a density in the other."""
    first, second = gaussian_overlap(a, out), gaussian_overlap(b, out)
    same_a = a.is_point & out.is_point & (a.mean == out.mean)
    same_b = b.is_point & out.is_point & (b.mean == out.mean)
    first, second = np.where(same_b & ~same_a, -np.inf, first), np.where(same_a & ~same_b, -np.inf, second)
    return (first, second), (same_a | same_b) & a.proper & b.proper


def _log_odds(a: Gaussian, b: Gaussian, out: Gaussian) -> Bernoulli:
    (first, second), _ = _weights(a, b, out)
    neither = ~np.isfinite(first) & ~np.isfinite(second)
    known = a.proper & b.proper & ~neither & ~np.isposinf(first) & ~np.isposinf(second) & ~out.is_uniform
    odds = np.where(known, np.where(neither, 0.0, first) - np.where(neither, 0.0, second), 0.0)
    return Bernoulli.from_log_odds(odds, strict=False)
