"""The base class of factors: ports, and for each port the message that is sent to it, a pure function of the incoming messages.

A factor is one node of the graph, used for a whole plate at once. It never sees the graph. Ask it directly:
``factor.message(to, incoming)``, ``factor.belief(to, incoming)``, ``factor.log_z(incoming)``, where `incoming` maps
every port to a `Family` batch (all of one plate shape, the target's own message included) or, for a data port, to a
plain array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from heliograph.errors import UnsupportedError
from heliograph.factors.lost_rows import isolated
from heliograph.families import Family

__all__ = ["Factor", "Incoming"]

Incoming = Mapping[str, Any]  # port -> Family, or a plain array at a data port


class Factor:
    """One kind of node.

    A subclass sets the class attributes below and writes `message` or `belief` (the other follows by the algebra)
    and `log_z`. Both are vectorised over the plate and must hold for point masses, uniform messages and far tails.

    One bad row costs that row. Where a message cannot be computed (what came in is not a number, or lies beyond what
    floating point can hold) its natural parameters are NaN, `log_z` is NaN there too, and no other row notices: the
    three methods of every subclass are wrapped by `rows.isolated`, which sees to it. An error is raised only for what
    is wrong with the model itself, a contradiction or a combination that is not supported.
    """

    name: ClassVar[str] = ""
    ports: ClassVar[
        tuple[str, ...]
    ] = ()  # parents first, the child last: the keys of `families`, unless a class says otherwise
    families: ClassVar[dict[str, tuple[type[Family], ...]]] = {}  # port -> families it takes; () for data only
    how: ClassVar[dict[str, str]] = {}  # port -> how its message is computed: "closed form", "quadrature", ...
    data_ranks: ClassVar[dict[str, int]] = {}  # data port -> trailing axes of one value (0 for numbers)
    ignores_own: ClassVar[tuple[str, ...]] = ()  # ports whose message does not depend on what came in there
    exact_given: ClassVar[
        dict[str, tuple[str, ...]]
    ] = {}  # port -> ports; once one of them is known, the message does not depend on what came in at its own port
    learns: ClassVar[bool] = False  # a black box: the engine calls `send`, which may ask an oracle and learn
    draws: bool = False  # a black box that draws its output anew at every call
    partial: bool = False  # a black box that may say of its inputs that they are impossible
    begins: ClassVar[bool] = False  # whether the class has a rule for first messages (`mean_field`); set automatically
    smooth: ClassVar[bool] = (
        False  # its log is smooth and concave in its port `z`: at a point mass there, the message to it
    )
    # has the slope and the curvature of that log, a step of Newton's method
    powers: ClassVar[bool] = False  # whether `message` and `log_z` take power=alpha for f^alpha (power EP)

    @property
    def parts(self) -> Mapping[str, np.ndarray] | None:
        """The connected part that each entry belongs to, by port, for factors that join entries; None for all others."""
        return None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "families" in vars(cls) and "ports" not in vars(cls):
            cls.ports = tuple(cls.families)
        cls.begins = cls.mean_field is not Factor.mean_field
        if not cls.learns:  # the oracle of a black box reports failures itself, row by row
            for name in ("message", "belief", "log_z", "mean_field"):
                if name in vars(cls):
                    setattr(cls, name, isolated(vars(cls)[name]))

    @property
    def child(self) -> str:
        """The port that the schedule treats as downstream."""
        return self.ports[-1]

    @property
    def children(self) -> tuple[str, ...]:
        """The ports of all variables that it makes: one, but for black boxes of several outputs."""
        return (self.child,)

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The message to port `to`, eq. (1): the projected tilted belief divided by the message that came in."""
        return self.belief(to, incoming, power) / incoming[to]

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The projection of the tilted distribution on port `to`, the numerator of eq. (1)."""
        return self.message(to, incoming, power) * incoming[to]

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of the factor times all incoming messages, each normalised (or uniform)."""
        raise NotImplementedError  # pragma: no cover

    def log_z_slopes(self, incoming: Incoming) -> dict[str, np.ndarray] | None:
        """The derivatives of `log_z` by the numbers at data ports, row by row; None where a factor has no formula for them.

        They are expectations under the tilted distribution, so one integral gives `log_z` and all of them. Ports without a
        formula are left out.
        """
        return None

    def draw(self, rng: np.random.Generator, incoming: Incoming) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values of the child, drawn given point masses at all other ports, and the mean and variance of each.

        This default is right where the child's family holds the distribution given the parents; a factor with another one
        (a count, noise with heavy tails) draws for itself.
        """
        given = self.message(self.child, incoming)
        return given.sample(rng), given.mean, given.variance

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Family | None:
        """A message to port `to` with which a run may begin: proper, where what came in is; None where there is no rule.

        A rule takes what makes the message of EP hard (a precision, a rate, a selector) as known by its expected statistics
        under the current `beliefs`, those of the nodes with this factor's own messages in them.
        """
        return None

    def rough_site(self, incoming: Incoming, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Shift and precision of the messages to a `smooth` factor's z from cavities N(m, v), with a few digits, for a start.

        None where that is not much cheaper than the message itself; `incoming` holds the messages at the other ports.
        """
        return None

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """The ports whose messages the one to `to` reads, when the ports in `points` are all point masses.

        The schedule sends a message again only when something it depends on has changed. The default is every port, but
        its own where the class says that it `ignores_own`, or does once one of the ports in `exact_given` is known.
        """
        ignored = to in self.ignores_own or not points.isdisjoint(self.exact_given.get(to, ()))
        return frozenset(self.ports) - {to} if ignored else frozenset(self.ports)

    def check_port(self, to: str) -> None:
        """Raise if there is no such port to send to."""
        if to not in self.ports or not self.families.get(to):
            targets = [p for p in self.ports if self.families.get(p)]
            raise UnsupportedError(f"factor {self.name!r} sends no message to {to!r}; it sends to {targets}")
