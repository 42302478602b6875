"""Learning just in time, the paper's section 3.3: ask while uncertain, learn what was answered, else predict.

The loop knows neither what learns nor what is learned: a `Learner` gives numbers with error bars, a `Target` says what
the numbers mean. The first `minibatch` tuples are always asked; then the learner is fitted, and a tuple is asked about
when the log predictive variance of any output reaches its threshold, or when no belief has the predicted numbers. What
was asked is sent as the oracle gave it, not as it would now be predicted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.families.packing import join_plates
from heliograph.kernels import embeddable
from heliograph.operators.kjit.call import Call
from heliograph.operators.kjit.directions import Direction, directions_from, state_of
from heliograph.operators.kjit.targets import target_named
from heliograph.operators.protocol import (
    NOTHING_MORE,
    Ask,
    Incoming,
    Learner,
    Reply,
    Setting,
    State,
    rows_of,
    signature,
)

__all__ = ["Extend", "JustInTime"]

Extend = Callable[[np.random.Generator, Incoming, Setting], tuple[Incoming, int]]


@dataclass(eq=False, repr=False)
class JustInTime:
    """An operator that asks, learns, and soon hardly asks.

    `learner` is a recipe: each direction gets a copy of it. `threshold` is one number for the log predictive variances
    of all outputs, or one for each. `block` bounds how many uncertain tuples of a plate are asked at once: the rest
    are predicted again with what was learned, and most need not be asked any more (None: all at once; see
    docs/decisions/0010). `order` is "worst first", or "in turn": row after row as the paper's operator meets them, each asked
    alone and learned before the next is looked at; `block` then has no meaning. With `share` one
    oracle run teaches every direction, else only the one that asked. `improper` says what to do with an oracle's
    message that is not a distribution: "engine" sends it (the engine has a policy) and learns its belief, "program"
    sends N(0, 1e5), or the uniform message of another family, and learns nothing, as the authors' program. `view` may
    add data to the incoming messages that the learner sees; it returns the number of calls of the factor for them.
    """

    learner: Learner
    _: KW_ONLY
    name: str = ""  # by default that of the learner
    target: Any = "log"
    threshold: float | Sequence[float] = -8.5
    minibatch: int = 300
    block: int | None = 64
    order: str = "worst first"
    share: bool = False
    improper: str = "engine"
    view: Extend | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)  # arguments with which it can be made again
    directions: dict[str, Direction] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.minibatch < 1 or (self.block is not None and self.block < 1):
            raise ModelError(f"minibatch and block must be 1 or more, not {self.minibatch} and {self.block}")
        if self.improper not in ("engine", "program"):
            raise ModelError(f"improper must be 'engine' or 'program', not {self.improper!r}")
        if self.order not in ("worst first", "in turn"):
            raise ModelError(f"order must be 'worst first' or 'in turn', not {self.order!r}")
        self.name = self.name or type(self.learner).__name__.lower()
        self.target = target_named(self.target)

    # ---- what a factor needs ------------------------------------------------------------------------------------
    @property
    def key(self) -> str:
        """Under which a factor keeps it: operators of equal settings share what they learned."""
        chosen = ", ".join(f"{k}={v!r}" for k, v in sorted(self.settings.items()))
        return f"{self.name}({chosen})" if chosen else self.name

    @property
    def empty(self) -> bool:
        """Return whether it has learned nothing yet."""
        return not self.directions

    def fresh(self) -> JustInTime:
        """Make one with the same settings that has learned nothing."""
        other = copy.copy(self)
        other.learner = copy.deepcopy(self.learner)
        other.directions = {}
        return other

    # ---- the loop -----------------------------------------------------------------------------------------------
    def send(
        self, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> Reply:
        """Messages to port `to` for a plate of tuples: predicted where certain, else asked and learned."""
        seen, n_evaluations = (incoming, 0) if self.view is None else self.view(rng, incoming, setting)
        reply = Call(self, rng, to, incoming, seen, ask).run()
        return reply._replace(n_evaluations=n_evaluations)

    def direction(self, to: str, incoming: Incoming) -> Direction:
        """What is known about this direction."""
        return self.directions.setdefault(f"{to} | {signature(incoming)}", Direction(to))

    def learn(self, rng: np.random.Generator, to: str, incoming: Incoming, answer: Any) -> None:
        """Take in what an oracle answered about rows of tuples; rows it failed at are left out."""
        for port in answer.beliefs if self.share else (to,):
            if not isinstance(incoming.get(port), Family):
                continue
            direction = self.direction(port, incoming)
            self._store(direction, port, incoming, answer)
            self.absorb(rng, direction)

    def _store(self, direction: Direction, to: str, incoming: Incoming, answer: Any) -> None:
        belief, cavity = answer.beliefs[to], incoming[to]
        y, good = self.target.forward(belief, cavity)
        self._check_thresholds(to, y.shape[1])
        good = good & ~answer.failed_at(to) & embeddable(incoming)
        if self.improper == "program":
            good &= (belief / cavity).proper
        if good.any():
            direction.waiting.append((rows_of(incoming, good), y[good]))

    def absorb(self, rng: np.random.Generator, direction: Direction) -> None:
        """Learn the rows that wait: all at once when the minibatch is full, then as they come.

        They wait until the learner has taken them, so an interruption loses nothing.
        """
        if not direction.waiting or (direction.learner is None and direction.n_waiting < self.minibatch):
            return
        rows = join_plates([r for r, _ in direction.waiting])
        y = np.concatenate([v for _, v in direction.waiting])
        if direction.learner is None:
            learner = copy.deepcopy(self.learner)
            learner.fit(rng, direction.to, rows, y)
            direction.learner = learner
        else:
            direction.learner.update(rows, y)
        direction.waiting = []
        direction.n_learned += len(y)

    def _check_thresholds(self, to: str, n_outputs: int) -> None:
        """One threshold for all outputs, or one for each."""
        if np.size(self.threshold) not in (1, n_outputs):
            raise ModelError(
                f"messages to {to!r} have {n_outputs} outputs to be certain of, but {np.size(self.threshold)} thresholds were "
                f"given: give one number for all of them, or {n_outputs}"
            )

    def uncertain(self, log_variance: np.ndarray) -> np.ndarray:
        """The rows in which any output reaches its threshold."""
        return np.asarray((log_variance >= np.asarray(self.threshold)).any(axis=1))

    # ---- keeping ------------------------------------------------------------------------------------------------
    def state(self) -> State:
        """Every direction's learner and waiting rows."""
        return state_of(self.directions)

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """Take the place of the operator that gave this state."""
        self.directions = directions_from(arrays, header, self.learner)

    def __repr__(self) -> str:
        known = "; ".join(f"{k}: {d.n_learned} learned, {d.n_asked} asked" for k, d in self.directions.items())
        return f"<operator {self.key}: {known or 'nothing learned'}>"
