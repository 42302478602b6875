"""The larger of two Gaussian variables, ``out = max(a, b)``, closed form in the log domain.

Two branches: a is the larger and out is a, or b is and out is b. In each the larger one is a Gaussian cut off softly
by the other, with known mean and variance; the belief is their mixture.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.mixing import Mixed, branch_probabilities, cavity_centre, mix_branches
from heliograph.factors.line import gaussian_overlap
from heliograph.families import Gaussian
from heliograph.numerics.truncated_normal import tail

__all__ = ["Maximum"]


class Maximum(Factor):
    """``out = max(a, b)``.

    Where an incoming message leaves no normalisable tilted distribution (a uniform or improper a or b, an improper out
    that neither makes proper) the message sent is uniform.
    """

    name = "maximum"
    families: ClassVar = {"a": (Gaussian,), "b": (Gaussian,), "out": (Gaussian,)}
    how: ClassVar = {"a": "closed form", "b": "closed form", "out": "closed form"}

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """Belief over cavity, computed relative to the cavity."""
        target, mixed, valid = self._mixed(to, incoming)
        return mixed.message(target, valid)

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Gaussian:
        """Mean and variance of the mixture of the two branches."""
        target, mixed, valid = self._mixed(to, incoming)
        return mixed.belief(target, valid)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the sum of the two branches' weights; infinite where it diverges."""
        a, b, out = self._read(incoming)
        first, second = _weights(_branch(a, b, out), _branch(b, a, out))
        nothing = np.isneginf(first) & np.isneginf(second)
        log_z = np.logaddexp(np.where(nothing, 0.0, first), np.where(nothing, 0.0, second))
        return np.where(_valid(a, b, out), np.where(nothing, -np.inf, log_z), np.inf)

    def _mixed(self, to: str, incoming: Incoming) -> tuple[Gaussian, Mixed, np.ndarray]:
        a, b, out = self._read(incoming)
        if to == "b":
            a, b = b, a  # the factor is symmetric: the target is a, or out, from here on
        wins, loses = _branch(a, b, out), _branch(b, a, out)
        target = out if to == "out" else a
        valid = _valid(a, b, out)
        probability = branch_probabilities(np.stack(_weights(wins, loses), axis=-1), valid)
        if to == "out":
            first, second = wins.of_winner(a, out), loses.of_winner(b, out)
        else:
            first, second = wins.of_winner(out, a), loses.of_loser(a)
        parts = [np.where(valid[..., None], np.stack(pair, axis=-1), 1.0) for pair in zip(first, second, strict=True)]
        return target, mix_branches(probability, target, *parts), valid

    def _read(self, incoming: Incoming) -> list[Gaussian]:
        messages = [as_message(self, incoming, p) for p in self.ports]
        shape = np.broadcast_shapes(*(m.shape for m in messages))
        return [m.broadcast_to(shape) for m in messages]


class _Branch(NamedTuple):
    """One of the two is the larger: its belief N(m, v) before it is known to be, and how surely it is."""

    log_weight: np.ndarray
    certain: np.ndarray  # the winner and out are the same point mass: a mass, beside which a density is nothing
    m: np.ndarray  # of winner and out together
    v: np.ndarray
    slope: np.ndarray  # d log Phi(z) / d m, per unit of the winner
    bend: np.ndarray  # minus its second derivative
    rest: np.ndarray  # 1 - v bend, without cancellation
    loser_rest: np.ndarray  # 1 - v_loser bend, without cancellation

    def of_winner(self, other: Gaussian, target: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gap, variance and gain of `target`, the winner or out; `other` is the one of these two it is not."""
        m = cavity_centre(target)
        s, t = other.naturals
        # the mean of the product less the target's own centre, from the other message so that nothing cancels
        step = np.where(target.is_point | other.is_point, self.m - m, (s - t * m) * self.v)
        gain = np.where(other.is_point, 1.0, t * self.v) + target.naturals[1] * self.v * (self.v * self.bend)
        return step + self.v * self.slope, self.v * self.rest, gain

    def of_loser(self, target: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gap, variance and gain of the smaller one."""
        v = np.where(target.proper, target.variance, 1.0)
        return -v * self.slope, v * self.loser_rest, v * self.bend


def _branch(winner: Gaussian, loser: Gaussian, out: Gaussian) -> _Branch:
    """The branch in which `winner` is the larger of the two."""
    (sw, tw), (so, to) = winner.naturals, out.naturals
    at_w, at_o = winner.is_point, out.is_point
    total = np.where(at_w | at_o | (tw + to <= 0), 1.0, tw + to)
    m = np.where(at_w, winner.mean, np.where(at_o, out.mean, (sw + so) / total))
    v = np.where(at_w | at_o, 0.0, 1.0 / total)
    ml, vl = np.where(loser.proper, loser.mean, 0.0), np.where(loser.proper, loser.variance, 1.0)
    spread = v + vl
    sharp = spread == 0  # all three are point masses, or two and the third does not matter
    scale = np.sqrt(np.where(sharp, 1.0, spread))
    z = np.where(sharp, 0.0, (m - ml) / scale)
    cut = tail(z)
    share_l, share_w = np.where(sharp, 0.0, vl / scale**2), np.where(sharp, 0.0, v / scale**2)
    log_phi = np.where(sharp, np.where(m > ml, 0.0, np.where(m < ml, -np.inf, np.log(0.5))), cut.log_mass)
    slope, bend = np.where(sharp, 0.0, cut.hazard / scale), np.where(sharp, 0.0, cut.hazard * cut.mean / scale**2)
    return _Branch(
        gaussian_overlap(winner, out) + log_phi,
        at_w & at_o & (winner.mean == out.mean),
        m,
        v,
        slope,
        bend,
        share_l + share_w * cut.variance,
        share_w + share_l * cut.variance,
    )


def _valid(a: Gaussian, b: Gaussian, out: Gaussian) -> np.ndarray:
    """Where the tilted distribution can be normalised; raises where the three contradict each other."""
    tame = a.proper & b.proper
    for one in (a, b):
        together = one.is_point | out.is_point | (one.naturals[1] + out.naturals[1] > 0)
        tame = tame & together
        if np.any(one.is_point & out.is_point & (one.mean > out.mean)):
            raise ContradictionError("factor 'maximum': one side is fixed above the fixed maximum")
    return tame


def _weights(first: _Branch, second: _Branch) -> tuple[np.ndarray, np.ndarray]:
    """The branches' log weights; a mass in one of them leaves nothing for a density in the other."""
    return (
        np.where(second.certain & ~first.certain, -np.inf, first.log_weight),
        np.where(first.certain & ~second.certain, -np.inf, second.log_weight),
    )
