"""One call of the just-in-time operator for a plate of tuples: which rows are predicted, which are asked, and in which order."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from heliograph.families import Family, Gaussian, concatenate
from heliograph.kernels import embeddable
from heliograph.operators.protocol import Ask, Incoming, Reply, rows_of

if TYPE_CHECKING:
    from heliograph.operators.kjit.just_in_time import JustInTime

__all__ = ["Call"]

_SENT_INSTEAD = 1e5  # variance of the message that the authors' program sends for an improper one


class Call:
    """What has been decided about each row so far."""

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
        self.expected_kl = np.full(self.n, np.nan)  # of answers of an oracle; unknown for predictions
        self.log_variance: np.ndarray | None = None
        self.n_asked, self.learning, self.prediction = 0, 0.0, 0.0

    def run(self) -> Reply:
        """Decide about every row."""
        can = embeddable(self.seen)
        self._absorb()
        if not can.all():
            self._ask(np.flatnonzero(~can))  # an improper message has no embedding
        rest = np.flatnonzero(can)
        while len(rest) and self.direction.learner is None:
            missing = self.operator.minibatch - self.direction.n_waiting
            self._ask(rest[:missing])
            rest = rest[missing:]
        if self.operator.order == "in turn":
            self._in_turn(rest)
        else:
            self._worst_first(rest)
        return self._reply()

    def _in_turn(self, rows: np.ndarray) -> None:
        """Row after row; those ahead are predicted together, and again after each question, which changes no number."""
        ahead = 1
        while len(rows):
            some = rows[:ahead]
            message, _, doubtful = self._predict(some)
            certain = int(np.argmax(doubtful)) if doubtful.any() else len(some)
            self._keep(some[:certain], message[:certain])
            self._ask(some[certain : certain + 1])
            ahead = 2 * ahead if certain == len(some) else max(1, ahead // 2)
            rows = rows[certain + (certain < len(some)) :]

    def _worst_first(self, rows: np.ndarray) -> None:
        block = self.operator.block or self.n
        while len(rows):
            message, log_variance, doubtful = self._predict(rows)
            self._keep(rows[~doubtful], message[~doubtful])
            rows, worst = rows[doubtful], log_variance[doubtful].max(axis=1, initial=-np.inf)
            # the most uncertain first: the others may be certain after these are learned
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
        except BaseException as error:  # whatever the exception, the answers so far are learned before it goes on
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
