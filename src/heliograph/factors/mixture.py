"""A category chooses which Gaussian component is seen: ``x ~ N(mean_k, 1 / precision_k)`` if s = k.

Each component is a `GaussianPrecision` factor of its own; its log evidence, weighted with the probability of s, says
how likely it is the one. The messages to its parameters are mixed with that probability.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.mixing import Mixed, branch_probabilities, mix_branches
from heliograph.factors.integrals.precision import TiltOfPrecision, tilt_of_precision
from heliograph.factors.line import add_noise
from heliograph.factors.mean_field import chosen, component, drawn_to
from heliograph.factors.select import alone, met
from heliograph.families import Bernoulli, Categorical, Family, Gamma, Gaussian
from heliograph.numerics.excess import exp_excess
from heliograph.numerics.gamma_function import digamma_gap
from heliograph.numerics.special import logsumexp

__all__ = ["Mixture"]

_NO_POINTS = np.zeros(0)  # stands for the points of messages that have none, where messages are compared


class Mixture(Factor):
    """``N(x; mean_k, 1 / precision_k)`` where ``s = k``, for K components at the ports mean0, precision0, mean1, ...

    s is a Categorical, or a Bernoulli of two components that chooses component 1 when it is 1. A fixed precision is a
    point mass. Where a component that s may choose has a uniform or improper parameter, or x is improper, there is no
    normalisable tilted distribution, and the messages are uniform.
    """

    name = "mixture"
    ports = ("s", "mean0", "precision0", "mean1", "precision1", "x")
    families = {  # noqa: RUF012  (each instance has its own, for its number of components)
        "s": (Categorical, Bernoulli),
        **{f"mean{k}": (Gaussian,) for k in range(2)},
        **{f"precision{k}": (Gamma,) for k in range(2)},
        "x": (Gaussian,),
    }
    how = dict.fromkeys(ports, "quadrature over precisions") | {"s": "closed form, or quadrature over precisions"}
    ignores_own = ("s",)

    def __init__(self, n: int = 2, one_precision: bool = False) -> None:
        self.n = n
        self.one_precision = one_precision  # all components have the same one, at a single port named "precision"
        self._latest: dict[int, tuple[list[np.ndarray], TiltOfPrecision]] = {}  # by component, see `_tilt`
        means = [f"mean{k}" for k in range(n)]
        precisions = ["precision"] if one_precision else [f"precision{k}" for k in range(n)]
        pairs = (
            means + precisions if one_precision else [p for pair in zip(means, precisions, strict=True) for p in pair]
        )
        self.ports = ("s", *pairs, "x")  # type: ignore[misc]
        self.families = {  # type: ignore[misc]
            "s": (Categorical, Bernoulli),
            **dict.fromkeys(means, (Gaussian,)),
            **dict.fromkeys(precisions, (Gamma,)),
            "x": (Gaussian,),
        }
        self.how = dict.fromkeys(self.ports, type(self).how["x"]) | {"s": type(self).how["s"]}  # type: ignore[misc]

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity; for s the components' log evidences, which do not look at s."""
        given = self._read(incoming)
        if to == "s":
            return _to_selector(given)
        if to.startswith("precision"):
            return _to_precision(given, self._components(to))
        target, mixed, valid = _mixed(given, to)
        return mixed.message(target, valid)

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The projection of the tilted mixture."""
        given = self._read(incoming)
        if to == "s":
            return _to_selector(given) * given.s
        if to.startswith("precision"):
            components = self._components(to)
            return _to_precision(given, components) * given.precisions[components[0]]
        target, mixed, valid = _mixed(given, to)
        return mixed.belief(target, valid)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log sum_k P(s = k) Z_k`` over the components' own normalisers; infinite where one diverges."""
        given = self._read(incoming)
        log_weight = np.where(given.valid[..., None], given.log_p + given.log_z, 0.0)
        return np.where(given.valid, logsumexp(log_weight, axis=-1), np.inf)

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Family:
        """Each component with the probability of s, under its expected precision: always proper."""
        s, x, means, precisions = self._plate(beliefs)
        parts = [component(x, m, p) for m, p in zip(means, precisions, strict=True)]
        score = chosen(parts)
        if to == "s":
            return s.from_log_weights(score, strict=False)
        s = self._plate(incoming)[0]  # what others say of s; what this factor says of it is the score
        share = np.moveaxis(branch_probabilities(s.log_p + score, np.ones(s.shape, dtype=bool)), -1, 0)
        if to == "x":
            return drawn_to(means, [c.tau for c in parts], list(share))
        if to.startswith("mean"):
            k = int(to[4:])
            return drawn_to([x], [parts[k].tau], [share[k]])
        mine = [(np.where(parts[k].known, share[k], 0.0), parts[k].square) for k in self._components(to)]
        return Gamma.from_naturals((sum(0.5 * p for p, _ in mine), sum(0.5 * p * square for p, square in mine)))  # type: ignore[arg-type]

    # ---- for forms with several of its ports as one (`engine/forms`) ------------------------------------------------
    def parents(self, k: int) -> list[tuple[str, str]]:
        """The ports at which component k has its parents, twice, for it calls them so itself."""
        precision = "precision" if self.one_precision else f"precision{k}"
        return [(port, port) for port in (f"mean{k}", precision)]

    def message_if_chosen(self, k: int, inner: str, incoming: Incoming) -> Gaussian:
        """The message of component k to its mean, if k is chosen."""
        given = self._read(incoming)
        target = given.means[k]
        gap, variance, gain = _part(given, k, target, given.x)
        return Mixed(gap, variance, gain).message(target, given.valid)

    def probabilities(self, incoming: Incoming) -> np.ndarray:
        """The probability (..., K) of every component under all that comes in; 0 of all where there is none."""
        given = self._read(incoming)
        return np.where(given.valid[..., None], given.probability, 0.0)

    def _tilt(self, k: int, x: Gaussian, mean: Gaussian, precision: Gamma) -> TiltOfPrecision:
        """The tilt of one component, the latest one again where its messages are the same.

        A sweep asks for 2 K + 1 directions, and what one of them changes concerns one component. The messages are compared by
        value with copies, as a sequential run changes arrays in place.
        """
        key = [a for m in (x, mean, precision) for a in (*m.naturals, _NO_POINTS if m.point is None else m.point)]
        latest = self._latest.get(k)
        if latest is not None and _same(latest[0], key):
            return latest[1]
        tilt = tilt_of_precision(x, mean, precision)
        self._latest[k] = [a.copy() for a in key], tilt
        return tilt

    def _components(self, port: str) -> list[int]:
        """The components that have the precision of that port."""
        return list(range(self.n)) if self.one_precision else [int(port[9:])]

    def _plate(self, incoming: Incoming) -> tuple[Any, Gaussian, list[Gaussian], list[Gamma]]:
        """The messages at s, x, the means and the precisions, repeated to one plate shape."""
        s: Any = incoming["s"]
        if not isinstance(s, Family):
            s = Categorical.point_mass(s, self.n)
        means = [as_message(self, incoming, f"mean{k}") for k in range(self.n)]
        if self.one_precision:
            precisions = [as_message(self, incoming, "precision")] * self.n
        else:
            precisions = [as_message(self, incoming, f"precision{k}") for k in range(self.n)]
        x = as_message(self, incoming, "x")
        shape = np.broadcast_shapes(*(m.shape for m in (s, x, *means, *precisions)))
        s, x = s.broadcast_to(shape), x.broadcast_to(shape)
        return s, x, [m.broadcast_to(shape) for m in means], [m.broadcast_to(shape) for m in precisions]

    def _read(self, incoming: Incoming) -> _Given:
        s, x, means, precisions = self._plate(incoming)
        tilts = [self._tilt(k, x, m, p) for k, (m, p) in enumerate(zip(means, precisions, strict=True))]
        log_p = s.log_p
        tame = np.stack([m.proper & p.proper for m, p in zip(means, precisions, strict=True)], axis=-1)
        log_z = np.stack([t.log_z for t in tilts], axis=-1)
        valid = np.asarray(((tame & np.isfinite(log_z)) | np.isneginf(log_p)).all(axis=-1))
        log_z = np.where(np.isfinite(log_z), log_z, 0.0)
        probability = branch_probabilities(log_p + log_z, valid)
        return _Given(s, x, means, precisions, tilts, log_p, log_z, valid, probability)


def _same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(np.array_equal(p, q, equal_nan=True) for p, q in zip(a, b, strict=True))


class _Given(NamedTuple):
    """What came in, and what every direction needs of it."""

    s: Any
    x: Gaussian
    means: list[Gaussian]
    precisions: list[Gamma]
    tilts: list[TiltOfPrecision]
    log_p: np.ndarray  # (..., K) of s
    log_z: np.ndarray  # (..., K) of the components
    valid: np.ndarray
    probability: np.ndarray  # (..., K) of s under the tilted distribution


def _to_selector(given: _Given) -> Family:
    tame = np.stack([m.proper & p.proper for m, p in zip(given.means, given.precisions, strict=True)], axis=-1)
    all_tame = (tame & (given.valid | given.s.is_point)[..., None]).all(axis=-1)
    log_z = np.where(all_tame[..., None], given.log_z, 0.0)
    return given.s.from_log_weights(log_z, strict=False)


def _part(given: _Given, k: int, target: Gaussian, other: Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gap, variance and gain of x or of mean_k, were k the component."""
    precision = given.precisions[k]
    at = precision.is_point
    known = None
    if np.any(at):
        known = met(target, add_noise(other, 1.0 / np.where(at, precision.mean, 1.0)))
        if at.all():
            return known
    mixed = given.tilts[k].mixed(target, other, 1.0)
    if known is None:
        return mixed.gap, mixed.variance, mixed.gain
    return tuple(np.where(at, p, q) for p, q in zip(known, mixed, strict=True))  # type: ignore[return-value]


def _mixed(given: _Given, to: str) -> tuple[Gaussian, Mixed, np.ndarray]:
    """The belief of x or of one component's mean."""
    if to == "x":
        target, probability = given.x, given.probability
        parts = [_part(given, k, target, m) for k, m in enumerate(given.means)]
    else:
        k = int(to[4:])
        target, probability = given.means[k], _one_and_rest(given.probability, k)
        parts = [_part(given, k, target, given.x), alone(target)]
    stacked = [np.stack(part, axis=-1) for part in zip(*parts, strict=True)]
    # a branch that cannot be does not count, however wide it would be
    stacked = [np.where(given.valid[..., None] & (probability > 0), part, 0.0) for part in stacked]
    wide = np.isinf(stacked[1]).any(axis=-1)
    stacked[1] = np.where(np.isinf(stacked[1]), 1.0, stacked[1])
    return target, mix_branches(probability, target, *stacked), given.valid & ~wide


def _one_and_rest(probability: np.ndarray, k: int) -> np.ndarray:
    """The probability of k and that of all others, each without cancellation."""
    others = [j for j in range(probability.shape[-1]) if j != k]
    return np.stack([probability[..., k], probability[..., others].sum(axis=-1)], axis=-1)


def _to_precision(given: _Given, components: list[int]) -> Gamma:
    """Mix the beliefs of the components that have this precision with the message that came in, by E tau and E log tau."""
    own = given.precisions[components[0]]
    p = given.probability[..., components]
    rest = [j for j in range(given.probability.shape[-1]) if j not in components]
    silent = np.stack([given.tilts[k].silent for k in components], axis=-1)
    informed = (given.valid & ~own.is_point)[..., None] & ~silent & (p > 0)
    soft = informed.any(axis=-1)
    a, b = np.where(soft, own.naturals[0] + 1.0, 1.0), np.where(soft, own.naturals[1], 1.0)
    before, gap_before = (a / b)[..., None], digamma_gap(a)[..., None]
    mean = np.where(informed, np.stack([given.tilts[k].mean for k in components], axis=-1), before)
    gap = np.where(informed, np.stack([given.tilts[k].log_gap for k in components], axis=-1), gap_before)
    p, mean, gap = (
        np.concatenate([part, last], axis=-1)
        for part, last in (
            (p, given.probability[..., rest].sum(axis=-1, keepdims=True)),
            (mean, before),
            (gap, gap_before),
        )
    )
    total = (p * mean).sum(axis=-1)
    # log E tau - E log tau, all of its parts positive
    spread = (p * (gap + exp_excess(np.log(mean / total[..., None])))).sum(axis=-1)
    belief = Gamma.from_mean_and_log_gap(total, spread, strict=False)
    first, second = belief.naturals[0] - own.naturals[0], belief.naturals[1] - own.naturals[1]
    for at, k in enumerate(components):
        # certain of the component, with x and its mean known: the conjugate message
        known = given.x.is_point & given.means[k].is_point & (np.delete(p, at, axis=-1) == 0).all(axis=-1)
        d = np.where(known, given.x.mean - given.means[k].mean, 0.0)
        first, second = np.where(known, 0.5, first), np.where(known, 0.5 * d**2, second)
    return Gamma.from_naturals((np.where(soft, first, 0.0), np.where(soft, second, 0.0)))
