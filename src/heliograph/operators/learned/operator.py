"""The default operator: learn the correction to a cheap reference, and ask while that may be wrong by too much.

What is learned is how the belief differs from a reference belief on the chart of its family (docs/decisions/0013), by a
Gaussian process on what is seen of the messages. This file reads top to bottom as the algorithm. A call settles every row:

1. `_settle`: in blocks of rows; what a lattice knows (`shortcut.py`) needs no process.
2. `_settle_rows`: the rest, rows of one kind at a time (`view.py`).
3. `_settle_kind`: predict (`predict.py`), decide (`decide.py`), ask about the worst, learn (`learn.py`), and again until
   every row is certain.
4. `_ask`: one run of the oracle teaches every direction, and shows how good predictions were (`calibration.py`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from heliograph.errors import ModelError, OracleWarning
from heliograph.operators.learned import decide, records
from heliograph.operators.learned.calibration import Calibration
from heliograph.operators.learned.digests import Digests
from heliograph.operators.learned.inquiry import Inquiry
from heliograph.operators.learned.learn import compare, statement_of
from heliograph.operators.learned.memory import Group, Memory, nobody
from heliograph.operators.learned.outcome import Outcome, answered
from heliograph.operators.learned.predict import Correction
from heliograph.operators.learned.records import ALONE, Beside, Costs, Decision, Prediction, Settled, Task, View
from heliograph.operators.learned.shortcut import Shortcut, note_settled, read
from heliograph.operators.learned.view import POINT, WILD, kinds_of, rows_at
from heliograph.operators.protocol import NOTHING_MORE, Ask, Incoming, LogNormalisers, Reply, Setting, State, rows_of

__all__ = ["Learned"]


class Learned:
    """Ask, learn, and soon hardly ask, to a tolerance in nats.

    Parameters
    ----------
    reference : "auto" (what the factor can have, unless it is too slow), "none" (the cavity), or a function of
        (rng, incoming, to) that gives moments on the chart and summaries
    start : labels that are asked by a pivoted design before anything is predicted
    budget : labels of a direction past which it learns no more: what it does not know is asked every time
    landmarks : labels beyond which a direction is a process on as many landmarks, helped by the nearest labels
    audit : the share of trusted messages that are checked by the oracle, as long as they are fewer than a tenth of the
        labels, and one more for every tenfold of trusted messages
    novelty : a row whose best correlation c with a label's row has ``1 - c^2`` above this is asked about whatever its
        expected KL, since how large corrections are is itself only known where there are labels
    """

    name: ClassVar[str] = "learned"

    def __init__(
        self,
        *,
        reference: Any = "auto",
        start: int = 20,
        budget: int = 20_000,
        landmarks: int = 800,
        audit: float = 0.01,
        novelty: float = 0.6,
    ) -> None:
        if not (callable(reference) or reference in ("auto", "none")):
            raise ModelError(f"reference must be 'auto', 'none' or a function, not {reference!r}")
        if start < 2 or budget < start or landmarks < start:
            raise ModelError(
                f"start must be 2 or more, budget and landmarks no less than it, not {start}, {budget} and {landmarks}"
            )
        if not (0 <= audit <= 1 and novelty > 0):
            raise ModelError(f"audit must lie in [0, 1] and novelty be positive, not {audit} and {novelty}")
        self.memory = Memory(reference, start, budget, landmarks)
        self.audit, self.novelty = audit, novelty
        self.inquiry = Inquiry(self.memory, novelty)
        self.n_asked = 0
        self.digests = Digests(audit)  # what answers the rows of other plates that nothing is asked about any more
        self.shortcuts: dict[str, Shortcut] = {}  # port -> what answers plates that nothing is asked about any more
        self._said: set[str] = set()

    # ---- the algorithm ------------------------------------------------------------------------------------------
    def send(
        self, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> Reply:
        """Messages to port `to`: predicted where certain enough for `setting.tolerance`, else asked and learned."""
        task = Task(rng, to, ask, setting, decide.tolerance_of_one(setting), Costs())
        return self._settle(task, incoming).reply(incoming[to], task.costs)

    def log_z(
        self, rng: np.random.Generator, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> LogNormalisers:
        """The log normaliser of every tuple, learned from the same answers; asked where its error may be too large.

        What is tolerated is the variance of an error, of the size of the tolerance.
        """
        task = Task(rng, None, ask, setting, decide.tolerance_of_one(setting), Costs())
        return LogNormalisers(self._settle(task, incoming).log_z(), task.costs.n_evaluations)

    def _settle(self, task: Task, incoming: Incoming) -> Outcome:
        """Settle every row: in blocks so that memory is bounded, and what a block teaches serves the next."""
        n, beside = len(next(iter(incoming.values()))), ALONE
        outcome = Outcome(n)
        left: list[np.ndarray] = []
        for start in range(0, n, decide.BLOCK):
            rows = slice(start, min(start + decide.BLOCK, n))
            seen = incoming if n <= decide.BLOCK else rows_of(incoming, rows)
            kept = read(self.shortcuts, task, rows, seen, self.audit > 0, self.inquiry.sample)
            if kept is not None and kept.warning is not None:
                self._say(kept.warning)
            if kept is None or kept.settled is None:
                self._settle_rows(task, np.arange(rows.start, rows.stop), seen, ALONE, outcome)
                continue
            outcome.add(kept.settled)
            if kept.beside is not None:
                beside = beside if left else kept.beside  # as in one block: the tolerance of each is its own
                left.append(start + kept.left)
        if left:  # rows of all blocks that a lattice is not sure of
            rest = np.concatenate(left)
            of_rest = rows_of(incoming, rest)
            if n <= decide.BLOCK and not self._certain(task, of_rest, beside):
                # before anything is asked: what the process itself expects of all rows leaves more of the tolerance
                outcome, rest, of_rest, beside = Outcome(n), np.arange(n), incoming, ALONE
            for at in (slice(k, k + decide.BLOCK) for k in range(0, len(rest), decide.BLOCK)):
                seen = of_rest if len(rest) <= decide.BLOCK else rows_of(of_rest, at)
                self._settle_rows(task, rest[at], seen, beside, outcome)
        return outcome

    def _settle_rows(self, task: Task, rows: np.ndarray, seen: Incoming, beside: Beside, outcome: Outcome) -> None:
        """Settle some rows by what the process says of them, or an oracle; what comes of it joins `outcome`."""
        for kind, some in kinds_of(seen):
            of_kind, incoming = rows if some is None else rows[some], rows_at(seen, some)
            if task.to is not None and kind[task.to] == POINT:  # point masses are sent as they are
                outcome.add(Settled(of_kind, incoming[task.to], np.zeros(len(of_kind))))
                continue
            if WILD in kind.values():
                # such rows cannot be learned from, so they are always asked
                outcome.add(answered(of_kind, statement_of(task.ask(incoming), task.to)))
                self.n_asked += len(of_kind)
                continue
            digested = self.digests.read(task, kind, incoming, beside)
            if digested.settled is not None:
                outcome.add(digested.settled._replace(rows=of_kind[digested.settled.rows]))
                of_kind, incoming = of_kind[digested.left], rows_of(incoming, digested.left)
                if not len(of_kind):
                    continue
            group = self.memory.look(task, kind, incoming)
            parts = self._settle_kind(task, group, digested.beside)
            for found in parts:
                outcome.add(found._replace(rows=of_kind if found.rows is None else of_kind[found.rows]))
            in_lattice = False
            if not any(found.asked for found in parts):  # rows of this block: a later one may do without its process
                in_lattice = note_settled(self.shortcuts, task, group, self.inquiry.sample)
            if not in_lattice:
                self.digests.note(task, group, parts, self.inquiry.say)

    def _settle_kind(self, task: Task, group: Group, beside: Beside) -> list[Settled]:
        """Predict, decide, ask about the worst, learn, and again until every row is trusted or asked."""
        known, audited = group.known, False
        found: list[Settled] = []
        rest: np.ndarray | None = None  # numbers of the rows not asked yet; None: all
        while rest is None or len(rest):
            view, forecast, auditing = group.view.at(rest), None, False
            if not known.ready:
                chosen = known.first(view)
            else:
                prediction, decision, chosen = self._predict(task, view, known, beside)
                if len(chosen) and time.monotonic() > task.setting.deadline:
                    found.append(known.accept(rest, view, prediction, decide.overdue(decision)))
                    break
                if not len(chosen) and not audited:
                    share = 1.0 if self.digests.audit_now(task, group.kind, group.incoming) else self.audit
                    chosen, auditing, audited = known.audit(task.rng, len(view.inputs), share), True, True
                if not len(chosen):
                    started = time.perf_counter()
                    found.append(known.accept(rest, view, prediction, decision))
                    task.costs.seconds_prediction += time.perf_counter() - started
                    break
                forecast = records.Forecast(prediction.mean[chosen], decision.kl[chosen] / known.calibration.factor)
            rows = chosen if rest is None else rest[chosen]
            found.append(self._ask(task, group, rows, forecast, auditing))
            rest = np.setdiff1d(np.arange(len(group.view.inputs)) if rest is None else rest, rows, assume_unique=True)
        if any(s.asked for s in found):
            smoothed = known.smooth(group.view, found, task.tolerance, self.novelty)
            found += [] if smoothed is None else [smoothed]
        return found

    def _predict(
        self, task: Task, view: View, known: Correction, beside: Beside
    ) -> tuple[Prediction, Decision, np.ndarray]:
        """Predict rows, decide which of them can be trusted, and choose which to ask about next."""
        started = time.perf_counter()
        prediction = known.predict(view, self.novelty, decide.FINEST_SHARE * task.tolerance)
        decision = decide.decide(view, prediction, known.trust(), task.setting, beside)
        if decision.limit.warning is not None:
            self._say(decision.limit.warning)
        decided = time.perf_counter()
        chosen = known.choose(view, prediction, decision)
        task.costs.seconds_prediction += decided - started
        task.costs.seconds_learning += time.perf_counter() - decided
        return prediction, decision, chosen

    def _certain(self, task: Task, seen: Incoming, beside: Beside) -> bool:
        """Whether the process would ask about none of these rows; nothing is settled."""
        for kind, some in kinds_of(seen):
            group = self.memory.look(task, kind, rows_at(seen, some))
            if not group.known.ready or len(self._predict(task, group.view, group.known, beside)[2]):
                return False
        return True

    def _ask(
        self, task: Task, group: Group, rows: np.ndarray, forecast: records.Forecast | None, auditing: bool
    ) -> Settled:
        """Ask about rows, learn before anything else can happen, and keep the oracle's own beliefs."""
        incoming, known = rows_of(group.incoming, rows), group.known
        precision = decide.label_precision(task.tolerance)
        try:
            answer = task.ask(incoming) if precision is None else task.ask(incoming, precision)
        except BaseException as error:  # whatever the exception, the answers so far are learned before it goes on
            done = getattr(error, "answered", None)
            if done is not None:
                self.memory.learn_asked(task, group, rows_of(incoming, done[0]), done[1], self.novelty, False)
            raise
        self.memory.learn_asked(task, group, incoming, answer, self.novelty, auditing)  # before an interrupt can come
        self.n_asked += len(rows)
        statement = statement_of(answer, task.to)
        if forecast is not None:
            ratio = compare(known.calibration, group.view.at(rows), forecast, statement, auditing)
            started = time.perf_counter()
            known.surprise(ratio)
            task.costs.seconds_learning += time.perf_counter() - started
        if len(known) >= self.memory.budget:
            self._say(decide.BUDGET_REACHED.format(self.memory.budget))
        return answered(rows, statement)

    def _say(self, what: str) -> None:
        """Warn once for each sentence, whatever the numbers in it."""
        words = "".join(c for c in what if not c.isdigit())
        if words not in self._said:
            self._said.add(words)
            warnings.warn(what, OracleWarning, stacklevel=6)

    # ---- what a factor needs ------------------------------------------------------------------------------------
    @property
    def settings(self) -> dict[str, Any]:
        """The arguments with which it can be made again."""
        memory = self.memory
        named = {"reference": memory.references.choice, "start": memory.start, "budget": memory.budget}
        return named | {"landmarks": memory.landmarks, "audit": self.audit, "novelty": self.novelty}

    @property
    def key(self) -> str:
        """Under which a factor keeps it: operators of equal settings share what they learned."""
        chosen = ", ".join(f"{k}={v!r}" for k, v in self.settings.items() if v != _DEFAULTS[k])
        return f"{self.name}({chosen})" if chosen else self.name

    @property
    def kinds(self) -> dict[str, dict[str, Correction]]:
        """Kind of rows -> port -> what is known."""
        return self.memory.kinds

    @property
    def empty(self) -> bool:
        """Return whether it has learned nothing yet."""
        return not self.kinds

    def fresh(self) -> Learned:
        """Make one with the same settings that has learned nothing."""
        return Learned(**self.settings)

    def predicted(
        self, rng: np.random.Generator, to: str, incoming: Incoming, setting: Setting = NOTHING_MORE
    ) -> tuple[np.ndarray, np.ndarray]:
        """Centres of the beliefs that it would send to a port of one number, and their standard errors; it asks nobody."""
        task = Task(rng, to, nobody, setting, decide.tolerance_of_one(setting), Costs())
        return self.memory.predicted(task, incoming, self.novelty)

    def calibration(self) -> dict[str, Calibration]:
        """Expected against realised KL of every direction and kind of rows; each prints, and draws itself by ``.plot(axes)``."""
        return self.memory.calibration()

    def state(self) -> State:
        """Every label, width and calibration pair."""
        arrays, kinds = self.memory.state()
        return arrays, {"kinds": kinds, "n_asked": self.n_asked, "dear": self.memory.references.expensive}

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """Take the place of the operator that gave this state."""
        self.memory.restore(arrays, header["kinds"])
        expensive = header["dear"]  # the word of files since the first version
        self.memory.references.expensive = None if expensive is None else bool(expensive)
        self.n_asked, self.shortcuts, self.digests = int(header["n_asked"]), {}, Digests(self.audit)

    def __repr__(self) -> str:
        known = "; ".join(f"{to}: {len(c)}" for d in self.kinds.values() for to, c in d.items())
        return f"<operator {self.key}: labels {known or 'none'}>"


_DEFAULTS = Learned().settings
