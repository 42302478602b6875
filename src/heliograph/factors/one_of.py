"""A category chooses which of several factors holds: ``f_k(parents_k, x)`` if s = k, whatever the factors are.

Each component is a factor of its own. Its log Z, weighted with the probability of s, says how likely it is the one; the
messages to its parents are mixed with that probability.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.gaussian import GaussianFactor
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.blending import blended
from heliograph.factors.integrals.mixing import branch_probabilities
from heliograph.families import Bernoulli, Categorical, Family
from heliograph.numerics.special import logsumexp

__all__ = ["OneOf"]

Wires = Mapping[str, str]  # a component's port -> the port of the whole


class OneOf(Factor):
    """``f_k`` where ``s = k``, for K factors with one child.

    s is a Categorical, or a Bernoulli of two components that chooses component 1 when it is 1. Where a component that s may
    choose has a uniform or improper parent, or its log Z is infinite, there is no normalisable tilted distribution, and the
    messages are uniform.

    Parameters
    ----------
    components
        The factors.
    wires
        For every component the port of the whole at which each of its own ports is; ports of several components may be one. By
        default the child is at "x", and the port p of component k at "p_k".
    """

    name = "one_of"
    ports = ("s", "mean_0", "variance_0", "mean_1", "variance_1", "x")
    families = {  # noqa: RUF012  (each instance has its own, for its components)
        "s": (Categorical, Bernoulli),
        **{f"mean_{k}": GaussianFactor.families["mean"] for k in range(2)},
        **{f"variance_{k}": () for k in range(2)},
        "x": GaussianFactor.families["x"],
    }
    how = dict.fromkeys(("s", "mean_0", "mean_1", "x"), "as its components")
    ignores_own = ("s",)

    def __init__(
        self, components: Sequence[Factor] = (GaussianFactor(), GaussianFactor()), wires: Sequence[Wires] | None = None
    ) -> None:
        self.components = tuple(components)
        if wires is None:
            wires = [{p: "x" if p == f.child else f"{p}_{k}" for p in f.ports} for k, f in enumerate(components)]
        self.wires = tuple(dict(w) for w in wires)
        child = self.wires[0][self.components[0].child]
        outer = dict.fromkeys(p for w in self.wires for p in w.values() if p != child)
        self.ports = ("s", *outer, child)  # type: ignore[misc]
        self.families = {"s": (Categorical, Bernoulli)}  # type: ignore[misc]
        ranks: dict[str, int] = {}
        for f, wire in zip(self.components, self.wires, strict=True):
            for inner, port in wire.items():
                mine = f.families.get(inner, ())
                both = self.families.get(port, mine)
                self.families[port] = tuple(family for family in both if family in mine)
                ranks[port] = f.data_ranks.get(inner, 0)
        self.data_ranks = {port: rank for port, rank in ranks.items() if rank}  # type: ignore[misc]
        self.how = {p: "as its components" for p in self.ports if self.families[p]}  # type: ignore[misc]
        self._latest: dict[int, tuple[list[np.ndarray], np.ndarray]] = {}  # log Z by component, see `_log_z`

    @property
    def n(self) -> int:
        """The number of components."""
        return len(self.components)

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The mixture of what the components send, and of the cavity; for s their log evidences, which do not look at s."""
        given = self._read(incoming)
        if to == "s":
            return _to_selector(given)
        cavity = as_message(self, incoming, to).broadcast_to(given.valid.shape)
        mine = [(k, inner) for k, wire in enumerate(self.wires) for inner, port in wire.items() if port == to]
        messages = [self._sent(k, inner, given).broadcast_to(given.valid.shape) for k, inner in mine]
        shares = [np.where(given.valid, given.probability[..., k], 0.0) for k, _ in mine]
        silent = [k for k in range(self.n) if k not in {k for k, _ in mine}]
        rest = np.where(given.valid, given.probability[..., silent].sum(axis=-1), 1.0)
        return blended(cavity, messages, shares, rest)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log sum_k P(s = k) Z_k`` over the components' own normalisers; infinite where one diverges."""
        given = self._read(incoming)
        log_weight = np.where(given.valid[..., None], given.log_p + given.log_z, 0.0)
        possible = np.asarray((log_weight > -np.inf).any(axis=-1))
        total = logsumexp(np.where(possible[..., None], log_weight, 0.0), axis=-1)
        return np.where(given.valid, np.where(possible, total, -np.inf), np.inf)

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Family | None:
        """The message that each component would begin with, to the power of its probability; proper where theirs is."""
        if to == "s":
            return self.message(to, incoming)
        given = self._read(incoming)
        message: Any = None
        for k, wire in enumerate(self.wires):
            for inner in (i for i, port in wire.items() if port == to):
                mine = {i: beliefs[port] for i, port in wire.items()}
                first: Any = self.components[k].mean_field(inner, given.incoming[k], mine)
                first = self._sent(k, inner, given) if first is None else first
                first = _raised(first, np.where(given.valid, given.probability[..., k], 0.0))
                message = first if message is None else message * first
        return message

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the component that s chooses."""
        chosen = np.asarray(incoming["s"].point if isinstance(incoming["s"], Family) else incoming["s"])
        found: list[np.ndarray] | None = None
        for k, (factor, wire) in enumerate(zip(self.components, self.wires, strict=True)):
            drawn = factor.draw(rng, {inner: incoming[port] for inner, port in wire.items() if port in incoming})
            if found is None:
                found = [np.array(a) for a in drawn]
            for whole, part in zip(found, drawn, strict=True):
                whole[chosen == k] = part[chosen == k]
        assert found is not None
        return found[0], found[1], found[2]

    # ---- for forms with several of its ports as one (`engine/forms`) ------------------------------------------------
    def parents(self, k: int) -> list[tuple[str, str]]:
        """The ports at which component k has its parents, and what it calls them itself."""
        factor, wire = self.components[k], self.wires[k]
        return [(port, inner) for inner, port in wire.items() if inner != factor.child]

    def message_if_chosen(self, k: int, inner: str, incoming: Incoming) -> Family:
        """The message of component k to one of its parents, if k is chosen."""
        return self._sent(k, inner, self._read(incoming))

    def probabilities(self, incoming: Incoming) -> np.ndarray:
        """The probability (..., K) of every component under all that comes in; 0 of all where there is none."""
        given = self._read(incoming)
        return np.where(given.valid[..., None], given.probability, 0.0)

    # ---- the components -----------------------------------------------------------------------------------------
    def _read(self, incoming: Incoming) -> _Given:
        s: Any = incoming["s"]
        if not isinstance(s, Family):
            s = Categorical.point_mass(s, self.n)
        parts = [{inner: incoming[port] for inner, port in wire.items()} for wire in self.wires]
        log_zs = [self._log_z(k, part) for k, part in enumerate(parts)]
        shape = np.broadcast_shapes(s.shape, *(z.shape for z in log_zs))
        s = s.broadcast_to(shape)
        log_z = np.stack([np.broadcast_to(z, shape) for z in log_zs], axis=-1)
        tame = np.stack([np.broadcast_to(self._proper(k, part), shape) for k, part in enumerate(parts)], axis=-1)
        tame &= log_z < np.inf  # and a number
        log_p = s.log_p
        valid = np.asarray((tame | np.isneginf(log_p)).all(axis=-1))
        log_z = np.where(tame, log_z, 0.0)
        log_weight = log_p + log_z
        return _Given(s, parts, log_p, log_z, tame, valid, branch_probabilities(log_weight, valid))

    def _proper(self, k: int, part: Incoming) -> np.ndarray:
        """Where every parent of a component is a distribution."""
        factor = self.components[k]
        good = np.asarray(True)
        for inner, message in part.items():
            if inner != factor.child and isinstance(message, Family):
                good = good & message.proper
        return good

    def _sent(self, k: int, inner: str, given: _Given) -> Any:
        return self.components[k].message(inner, given.incoming[k])

    def _log_z(self, k: int, part: Incoming) -> np.ndarray:
        """The log Z of one component, the latest one again where its messages are the same.

        A sweep asks for many directions, and what one of them changes concerns one component. The messages are compared by value
        with copies, as a sequential run changes arrays in place.
        """
        key = [a for m in part.values() if isinstance(m, Family) for a in (*m.naturals, *_points(m))]
        key += [np.asarray(a) for a in part.values() if not isinstance(a, Family)]
        latest = self._latest.get(k)
        if latest is not None and _same(latest[0], key):
            return latest[1]
        log_z = np.asarray(self.components[k].log_z(part))
        self._latest[k] = [a.copy() for a in key], log_z
        return log_z


class _Given(NamedTuple):
    """What came in, and what every direction needs of it."""

    s: Any
    incoming: list[dict[str, Any]]  # of every component, by its own ports
    log_p: np.ndarray  # (..., K) of s
    log_z: np.ndarray  # (..., K) of the components
    tame: np.ndarray  # (..., K) where a component's log Z is a number (or -inf) under distributions
    valid: np.ndarray
    probability: np.ndarray  # (..., K) of s under the tilted distribution


def _to_selector(given: _Given) -> Family:
    known = np.asarray(given.tame.all(axis=-1) & (given.log_z > -np.inf).any(axis=-1))
    log_z = np.where(known[..., None], given.log_z, 0.0)
    return given.s.from_log_weights(log_z, strict=False)


def _raised(m: Any, power: np.ndarray) -> Any:
    """A message to a power of its own in every row; rows that are point masses are left out."""
    plain = tuple(a * power.reshape(power.shape + (1,) * rank) for a, rank in zip(m.naturals, m.ranks, strict=True))
    return m.from_naturals(plain)


def _points(m: Family) -> list[np.ndarray]:
    return [] if m.point is None else [m.point]


def _same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return len(a) == len(b) and all(np.array_equal(p, q, equal_nan=True) for p, q in zip(a, b, strict=True))
