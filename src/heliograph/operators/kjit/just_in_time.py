"""Learning just in time, the paper's section 3.3: ask while uncertain, learn what was answered, else predict.

The loop knows neither what learns nor what is learned: a `Learner` gives numbers with error bars, a `Target` says what
the numbers mean. The first `minibatch` tuples are always asked; then the learner is fitted, and a tuple is asked about
when the log predictive variance of any output reaches its threshold, or when no belief has the predicted numbers. What
was asked is sent as the oracle gave it, not as it would now be predicted.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family, Gaussian, concatenate
from heliograph.families.packing import join_plates
from heliograph.kernels import embeddable
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

_SENT_INSTEAD = 1e5  # variance of the message that the authors' program sends for an improper one


class JustInTime:
    """An operator that asks, learns, and soon hardly asks.

    `learner` is a recipe: each direction gets a copy of it. `threshold` is one number for the log predictive variances
    of all outputs, or one for each. `block` bounds how many uncertain tuples of a plate are asked at once: the rest
    are predicted again with what was learned, and most need not be asked any more (None: all at once). With `share` one
    oracle run teaches every direction, else only the one that asked. `improper` says what to do with an oracle's
    message that is not a distribution: "engine" sends it (the engine has a policy) and learns its belief, "program"
    sends N(0, 1e5), or the uniform message of another family, and learns nothing, as the authors' program. `view` may
    put more data before the learner's eyes than came in; it says how often it called the factor for them.
    """

    def __init__(
        self,
        learner: Learner,
        *,
        name: str | None = None,
        target: Any = "log",
        threshold: float | Sequence[float] = -8.5,
        minibatch: int = 300,
        block: int | None = 64,
        share: bool = False,
        improper: str = "engine",
        view: Extend | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        if minibatch < 1 or (block is not None and block < 1):
            raise ModelError(f"minibatch and block must be 1 or more, not {minibatch} and {block}")
        if improper not in ("engine", "program"):
            raise ModelError(f"improper must be 'engine' or 'program', not {improper!r}")
        self.name = name or type(learner).__name__.lower()
        self.learner = learner
        self.target = target_named(target)
        self.threshold = threshold
        self.minibatch = minibatch
        self.block = block
        self.share = share
        self.improper = improper
        self.view = view
        self.settings = dict(settings or {})  # what its maker needs to make it again
        self.directions: dict[str, Direction] = {}

    # ---- what a factor needs ------------------------------------------------------------------------------------
    @property
    def key(self) -> str:
        """Under which a factor keeps it: operators of equal settings share what they learned."""
        chosen = ", ".join(f"{k}={v!r}" for k, v in sorted(self.settings.items()))
        return f"{self.name}({chosen})" if chosen else self.name

    @property
    def empty(self) -> bool:
        """Whether it has not learned anything yet."""
        return not self.directions

    def fresh(self) -> JustInTime:
        """One with the same settings that knows nothing."""
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
        reply = _Call(self, rng, to, incoming, seen, ask).run()
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

    def uncertain(self, log_variance: np.ndarray) -> np.ndarray:
        """Where any output reaches its threshold."""
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


class _Call:
    """One call of `send`: what has been decided about each row so far."""

    def __init__(
        self, operator: JustInTime, rng: np.random.Generator, to: str, incoming: Incoming, seen: Incoming, ask: Ask
    ) -> None:
        self.operator, self.rng, self.to, self.ask = operator, rng, to, ask
        self.incoming, self.seen = incoming, seen  # what the oracle is asked about, and what the learner sees
        self.cavity: Family = incoming[to]
        self.direction = operator.direction(to, seen)
        self.n = len(self.cavity)
        self.parts: list[tuple[np.ndarray, Family]] = []
        self.asked = np.zeros(self.n, dtype=bool)
        self.failed = np.zeros(self.n, dtype=bool)
        self.expected_kl = np.full(self.n, np.nan)  # of what an oracle answered; nobody knows it of predictions
        self.log_variance: np.ndarray | None = None
        self.n_asked, self.learning, self.prediction = 0, 0.0, 0.0

    def run(self) -> Reply:
        can = embeddable(self.seen)
        self._absorb()
        if not can.all():
            self._ask(np.flatnonzero(~can))  # no kernel sees an improper message
        rest = np.flatnonzero(can)
        while len(rest) and self.direction.learner is None:
            missing = self.operator.minibatch - self.direction.n_waiting
            self._ask(rest[:missing])
            rest = rest[missing:]
        if len(rest):
            self._predict_or_ask(rest)
        return self._reply()

    def _predict_or_ask(self, rows: np.ndarray) -> None:
        block = self.operator.block or self.n
        while len(rows):
            message, log_variance, doubtful = self._predict(rows)
            self._keep(rows[~doubtful], message[~doubtful])
            rows, worst = rows[doubtful], log_variance[doubtful].max(axis=1, initial=-np.inf)
            # the most uncertain first: what they teach may settle the others
            chosen = np.sort(np.argsort(-worst, kind="stable")[:block])
            self._ask(rows[chosen])
            rows = np.delete(rows, chosen)

    def _predict(self, rows: np.ndarray) -> tuple[Family, np.ndarray, np.ndarray]:
        start = time.perf_counter()
        assert self.direction.learner is not None
        mean, variance = self.direction.learner.predict(rows_of(self.seen, rows))
        message, valid = self.operator.target.inverse(mean, self.cavity[rows])
        log_variance = np.log(variance, out=np.full(variance.shape, -np.inf), where=~(variance <= 0))
        if self.log_variance is None:
            self.log_variance = np.full((self.n, log_variance.shape[1]), np.nan)
        self.log_variance[rows] = log_variance
        self.prediction += time.perf_counter() - start
        return message, log_variance, self.operator.uncertain(log_variance) | ~valid

    def _ask(self, rows: np.ndarray) -> None:
        """Ask about rows, learn the answer before anything else can happen, and keep the oracle's own messages."""
        if not len(rows):
            return
        tuples = rows_of(self.seen, rows)
        try:
            answer = self.ask(rows_of(self.incoming, rows))
        except BaseException as error:  # whatever it is, what was paid for is learned before it goes on
            done = getattr(error, "answered", None)
            if done is not None:
                self._learn(rows_of(tuples, done[0]), done[1])
            raise
        self._learn(tuples, answer)
        self.n_asked += len(rows)
        self.asked[rows] = True
        self.failed[rows] = failed = answer.failed_at(self.to)
        self.expected_kl[rows] = answer.expected_kl[self.to]
        self._keep(rows, self._settled(answer.beliefs[self.to] / self.cavity[rows], failed))

    def _learn(self, tuples: Incoming, answer: Any) -> None:
        start = time.perf_counter()
        self.direction.n_asked += len(answer.failed)
        self.operator.learn(self.rng, self.to, tuples, answer)
        self.learning += time.perf_counter() - start

    def _absorb(self) -> None:
        start = time.perf_counter()
        self.operator.absorb(self.rng, self.direction)
        self.learning += time.perf_counter() - start

    def _settled(self, message: Family, failed: np.ndarray) -> Family:
        improper = ~message.proper & ~failed
        if self.operator.improper != "program" or not improper.any():
            return message
        broad = np.where(improper, 1 / _SENT_INSTEAD, 0.0) if isinstance(message, Gaussian) else None
        naturals = [
            np.where(improper.reshape(improper.shape + (1,) * r), 0.0, a)
            for a, r in zip(message.naturals, message.ranks, strict=True)
        ]
        if broad is not None:
            naturals[1] = naturals[1] + broad
        return message.from_naturals(tuple(naturals), message.point)

    def _keep(self, rows: np.ndarray, message: Family) -> None:
        if len(rows):
            self.parts.append((rows, message))

    def _reply(self) -> Reply:
        message = self.cavity.as_uniform()
        if self.n:
            order = np.argsort(np.concatenate([rows for rows, _ in self.parts]), kind="stable")
            message = concatenate([m for _, m in self.parts])[order]
        return Reply(
            message,
            self.failed,
            self.asked,
            self.log_variance,
            self.expected_kl,
            n_asked=self.n_asked,
            seconds_learning=self.learning,
            seconds_prediction=self.prediction,
        )
