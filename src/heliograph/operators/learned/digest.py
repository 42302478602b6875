"""Digests: predictions of the process, learned once more without references, so that known plates cost no evaluation (0062).

A prediction is a correction to a reference, and a reference evaluates the user's function. A digest is a second process that
sees the messages alone and learns what predictions (and answers) were, so it needs none. Its labels cost a reference each and
no question, so it also learns from rows that nobody sent: messages like those that came (`made.py`). These check it, too: each is
predicted before it is learned, and the difference corrects what the digest expects of its errors. To that is added the error that
the process itself stated for the labels near by. Rows of which a digest is not sure enough are predicted with references and
become its labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from heliograph.operators.learned import decide
from heliograph.operators.learned.made import like, pooled
from heliograph.operators.learned.memory import Group
from heliograph.operators.learned.predict import Correction, belief_of
from heliograph.operators.learned.records import (
    ALONE,
    Beside,
    Decision,
    Kind,
    Labels,
    Limit,
    Prediction,
    Settled,
    Task,
    View,
)
from heliograph.operators.learned.view import view_of
from heliograph.operators.protocol import Incoming

__all__ = ["Digest", "Digested", "Said", "said_of"]

_START = 20  # labels before anything is predicted
_MOST = 640  # labels: predicting takes the square of their number
_MADE = 128  # rows that are made at a time, after
_WORTH_MAKING = 16  # rows that went the long way
_CREDIT = 2048  # rows that may be made before any was saved; then one for each row that was
_NEAREST = 8  # labels by whose worst misfit a row is judged: a rough place shows in them
_CAUTION = 2.0  # more is stated than is expected: errors of a digest have long tails (chosen after seeing those of a / b, y = z^2)
_SOURCES = 4  # of them, by whose worst error a row's share of the process's own error is judged
_ROUNDS = 12  # of choosing labels among rows, at most


class Said(NamedTuple):
    """What the process says of some rows: labels for a digest."""

    target: np.ndarray  # (n, q) beliefs relative to the cavity, on the chart
    kl: np.ndarray  # (n,) nats that they may be wrong by; infinite where nothing is known


class Digested(NamedTuple):
    """What a digest says of a plate of one kind."""

    settled: Settled | None  # rows that it is sure of; None: there are none
    left: np.ndarray  # the others
    beside: Beside  # what the sure ones take of the tolerance


SayOf = Callable[[Incoming], Said]  # what the process says of made rows


class Digest:
    """What was learned of one direction of one kind of rows, without references."""

    def __init__(self, teacher: Correction, kind: Kind, n_before: int = 0) -> None:
        self.teacher, self.kind = teacher, kind
        self.n_before = n_before  # earlier digests of this direction, given up because the process changed
        self.n_refits, self.stated = teacher.process.n_refits, teacher.calibration.stated
        self.n_runs = self.n_rows = 0  # settled almost without asking
        self.known: Correction | None = None  # None: not begun
        self.pool: Incoming | None = None
        self._run: object = None  # the generator of the latest run, which identifies the run
        self._checked: Any = None  # the process whose labels were compared with one another, and the ratios
        self.n_refused = self.n_served = self.n_made = 0  # rows
        self.n_owed = _MADE  # rows that it did not know since rows were last made, as far as that was worthwhile
        self.rng = np.random.default_rng(0)  # of its own: what a run draws must not depend on what is known already

    @property
    def stale(self) -> bool:
        """Return whether the process has changed: its widths were chosen anew, as after unexpected errors."""
        return self.teacher.process.n_refits != self.n_refits

    @property
    def due(self) -> bool:
        """Whether rows have been settled without asking for so long that it is to be begun."""
        return self.n_runs >= decide.DIGEST_RUNS and self.n_rows >= decide.DIGEST_ROWS * len(self.teacher)

    @property
    def unusable(self) -> bool:
        """Whether it has all the labels that it may have, and most rows go the long way all the same."""
        full = self.known is not None and len(self.known) >= _MOST
        return full and self.n_refused > decide.SETTLED_ROWS and self.n_refused > decide.LATTICE_LEFT * self.n_served

    # ---- reading ------------------------------------------------------------------------------------------------
    def read(self, task: Task, incoming: Incoming, beside: Beside) -> Digested:
        """Settle the rows that it is sure of."""
        view, known = view_of(self.kind, incoming, task.to, None), self.known
        n = len(view.inputs)
        tried = known is not None and len(known.calibration) >= _MADE
        if known is None or not tried or self.unusable:
            return Digested(None, np.arange(n), beside)
        prediction, own, source, decision = self._predict(task, view, beside)
        sure = self._sure(task, own, decision)
        left = np.flatnonzero(~sure)
        self.n_refused, self.n_served = self.n_refused + len(left), self.n_served + n
        if len(left) == n:
            return Digested(None, left, beside)
        rows = np.flatnonzero(sure)
        trust = known.trust()
        some, seen = _rows_of(prediction, rows), view.at(rows)
        kl = _CAUTION * own[rows] + source[rows]
        self.teacher.n_trusted += len(rows)
        settled = Settled(rows, belief_of(seen, some, trust), kl, some.log_variance)
        unknowns = decide.shared_unknowns(decide.leverage_of(seen, some), len(rows), task.setting)
        more = Beside(np.concatenate([beside.kl, decision.kl[rows]]), beside.unknowns + unknowns)
        return Digested(settled, left, more if len(left) else beside)

    def _predict(self, task: Task, view: View, beside: Beside) -> tuple[Prediction, np.ndarray, np.ndarray, Decision]:
        """Predict rows: what it may add to the error of the process, what that is itself, and what is decided by both."""
        known = self.known
        assert known is not None
        prediction = known.predict(
            view, decide.DIGEST_NOVELTY, decide.FINEST_SHARE * decide.DIGEST_SHARE * task.tolerance
        )
        near = self._nearest(view.inputs)
        own = prediction.kl * np.maximum(known.trust().factor, self._misfit()[near].max(axis=1))
        worse = max(1.0, self.teacher.calibration.stated / self.stated)  # than the process said of itself at first
        source = worse * known.own_kl[near[:, :_SOURCES]].max(axis=1)
        both = prediction._replace(kl=own + source)
        return (
            prediction,
            own,
            source,
            decide.decide(view, both, known.trust()._replace(factor=1.0), task.setting, beside),
        )

    def _misfit(self) -> np.ndarray:
        """By how much each label is farther from what the others predict of it than expected, as a ratio of squares."""
        assert self.known is not None
        process = self.known.process
        if self._checked is None or self._checked[0] is not process.fitted:
            residual, variance = process.leave_one_out()
            self._checked = process.fitted, (residual**2 / variance).max(axis=1)
        return self._checked[1]

    def _sure(self, task: Task, own: np.ndarray, decision: Decision) -> np.ndarray:
        """Which rows it may settle: what it adds to them together is within its share of the tolerance."""
        setting = task.setting
        alone = setting._replace(tolerance=decide.DIGEST_SHARE * setting.tolerance)
        limit = decide.limit_of(own, None, decide.Trust(), alone)
        return (own <= limit.kl) & ~decision.doubtful & ~decision.unseen

    def _nearest(self, inputs: np.ndarray) -> np.ndarray:
        """The numbers of the labels that are nearest to each row, the nearest first."""
        known = self.known
        assert known is not None and known.process.fitted is not None
        scale = 1.0 / known.process.fitted.widths.widths  # 0 where a column never moved
        labels, rows = known.process.inputs * scale, inputs * scale
        gap = (rows**2).sum(axis=1)[:, None] - 2 * rows @ labels.T + (labels**2).sum(axis=1)
        some = np.argpartition(gap, _NEAREST, axis=1)[:, :_NEAREST]
        return np.take_along_axis(some, np.argsort(np.take_along_axis(gap, some, 1), axis=1), 1)

    # ---- learning -----------------------------------------------------------------------------------------------
    def note(self, task: Task, n: int, n_asked: int) -> None:
        """Count rows that were settled, as long as no more than one was asked about (it may have been an audit)."""
        if n_asked > 1:
            self.n_runs = self.n_rows = 0
        else:
            self.n_runs, self.n_rows = self.n_runs + (task.rng is not self._run), self.n_rows + n
            self._run = task.rng

    def teach(self, task: Task, group: Group, parts: Sequence[Settled], say_of: SayOf) -> None:
        """Learn from rows that went the long way, and from rows like them."""
        incoming = group.incoming
        view = view_of(self.kind, incoming, task.to, None)
        self.pool = pooled(self.pool, incoming)
        if self.known is None:
            self.known = Correction(view.inputs.shape[1], view.chart.n_outputs, _START, _MOST)
            self.known.process.use()
        said = said_of(view, parts)
        self.n_owed += self._news(task, view, said)
        self._take(task, view, said)
        if self.n_owed < _WORTH_MAKING:
            return  # a few outliers cost less by themselves than rows made for them
        self.n_owed = 0
        credit = max(_CREDIT // 4**self.n_before, 4 * _MADE) + self.n_served - self.n_refused
        while self.n_made < credit and len(self.known) < _MOST:
            self.n_made += _MADE
            made = like(self.rng, self.kind, self.pool, _MADE)
            view, said = view_of(self.kind, made, task.to, None), say_of(made)
            if not self._news(task, view, said):
                return  # rows like these need no more labels
            self._take(task, view, said)

    def _news(self, task: Task, view: View, said: Said) -> int:
        """How many rows it may learn from and does not know yet; what it expected of them is compared with what is so."""
        known, rows = self.known, _usable(view, said, task.tolerance)
        assert known is not None
        if not known.ready:
            return len(rows)
        seen = view.at(rows)
        prediction, own, _, _ = self._predict(task, seen, ALONE)
        realised = (prediction.weights * (prediction.mean - said.target[rows]) ** 2).sum(axis=1)
        near = ~prediction.unseen  # rows unlike all labels go the long way, whatever the expected error
        known.calibration.note(prediction.kl[near], realised[near], audited=True)
        return len(rows) - int((near & (own <= decide.DIGEST_SHARE * task.tolerance)).sum())

    def _take(self, task: Task, view: View, said: Said) -> None:
        """Learn those of some rows that it is not sure of, the worst first."""
        known, rest = self.known, _usable(view, said, task.tolerance)
        assert known is not None
        for _ in range(_ROUNDS):
            room = _MOST - len(known)
            if not len(rest) or room <= 0:
                return
            seen = view.at(rest)
            chosen = self._worst(task, seen) if known.ready else known.first(seen)
            if not len(chosen):
                return
            rows = rest[chosen[:room]]
            known.append(_labels(view.at(rows), Said(said.target[rows], said.kl[rows])))
            rest = np.setdiff1d(rest, rows, assume_unique=True)

    def _worst(self, task: Task, view: View) -> np.ndarray:
        """Rows that it is not sure of, the worst, each as if those before it were known."""
        known, most = self.known, decide.DIGEST_SHARE * task.tolerance
        assert known is not None
        prediction, kl, _, _ = self._predict(task, view, ALONE)
        return known.choose(view, prediction, Decision(kl, Limit(most), kl > most, prediction.unseen))


def said_of(view: View, parts: Sequence[Settled]) -> Said:
    """What was found about the rows of a plate, as labels; of several parts about one row the last counts."""
    target = np.full((len(view.inputs), view.chart.n_outputs), np.nan)
    kl = np.full(len(view.inputs), np.inf)
    for part in parts:
        rows = slice(None) if part.rows is None else part.rows
        base = tuple(a[rows] for a in view.base)
        with np.errstate(all="ignore"):  # a row that failed holds no belief
            target[rows] = view.chart.gap(view.chart.moments(part.belief), base)
        kl[rows] = part.expected_kl
    return Said(target, kl)


def _usable(view: View, said: Said, most: float) -> np.ndarray:
    """The rows of which the process is sure enough to teach them."""
    good = (said.kl <= most) & np.isfinite(said.target).all(axis=1)
    return np.flatnonzero(good & np.isfinite(view.inputs).all(axis=1))


def _labels(view: View, said: Said) -> Labels:
    n_improper = 0
    if view.excess is not None:
        n_improper = decide.improper_answers(view.excess + said.target[:, 1], np.zeros(len(said.kl)))
    return Labels(view.inputs, said.target, np.zeros(said.target.shape), said.kl, n_improper)


def _rows_of(prediction: Prediction, rows: np.ndarray) -> Prediction:
    return Prediction(*(None if a is None else a[rows] for a in prediction))  # type: ignore[arg-type]
