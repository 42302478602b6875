"""The memory of the default operator: a correction to a reference for each kind of rows and each direction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from heliograph.operators.learned.calibration import Calibration
from heliograph.operators.learned.decide import FINEST_SHARE, tolerance_of_one
from heliograph.operators.learned.learn import directions_of, labels_of, statement_of
from heliograph.operators.learned.predict import Correction
from heliograph.operators.learned.records import Kind, Task, View
from heliograph.operators.learned.references import References
from heliograph.operators.learned.view import kind_key, kinds_of, rows_at, view_of
from heliograph.operators.protocol import AnswerLike, Incoming, Setting
from heliograph.storage import below

__all__ = ["LOG_Z", "Group", "Memory", "nobody"]

LOG_Z = "log z"  # the name under which the log normaliser is kept, like one more port


def nobody(incoming: Incoming, precision: float | None = None) -> AnswerLike:
    """Stand in for an oracle in tasks that must not ask; raise."""
    raise AssertionError("a question where only predictions are wanted")


class Group(NamedTuple):
    """Rows of one kind in one call, their views, and the correction of their direction."""

    kind: Kind
    incoming: Incoming
    view: View
    known: Correction
    referred: bool  # whether they have a reference
    n_evaluations: int  # of the function, for their references


class Memory:
    """Corrections by kind of rows and port, and the references that they are corrections to.

    Parameters
    ----------
    reference : see `References`
    start : labels of a direction before anything is predicted
    budget : labels of a direction beyond which no more are learned
    landmarks : labels beyond which a direction is a process on as many landmarks
    """

    def __init__(self, reference: Any, start: int, budget: int, landmarks: int) -> None:
        self.references = References(reference)
        self.start, self.budget, self.landmarks = start, budget, landmarks
        self.kinds: dict[str, dict[str, Correction]] = {}  # kind -> port -> what is known
        self._latest: tuple[Task, Group] | None = None  # rows that were seen, for which call

    def look(self, task: Task, kind: Kind, incoming: Incoming) -> Group:
        """See rows of one kind, with what is known of such rows; those seen last are not evaluated again in the same call."""
        if self._latest is not None and self._latest[0] is task and self._latest[1].incoming is incoming:
            return self._latest[1]
        started, before = time.perf_counter(), task.costs.n_evaluations
        reference = self.references.refer(task.rng, incoming, task.setting, task.to)
        if reference is not None:
            task.costs.n_evaluations += reference.n_evaluations
        task.costs.n_evaluations += self.references.n_tried
        self.references.n_tried = 0
        view = view_of(kind, incoming, task.to, reference)
        known = self._known(kind_key(kind, incoming, reference is not None), view)
        known.process.use()
        task.costs.seconds_prediction += time.perf_counter() - started
        self._latest = (
            task,
            Group(kind, incoming, view, known, reference is not None, task.costs.n_evaluations - before),
        )
        return self._latest[1]

    def learn(
        self,
        rng: np.random.Generator,
        kind: Kind,
        incoming: Incoming,
        answer: AnswerLike,
        setting: Setting,
        referred: bool,
        novelty: float | None = None,
        asked: str | None = "",
        audited: bool = False,
    ) -> int:
        """Take in an oracle's answer about rows of one kind: one run teaches every direction. Failed rows are left out.

        Gives the number of evaluations that the references of these rows cost.

        Parameters
        ----------
        rng : for references that draw
        kind : what each port holds
        incoming, answer : the rows, and what an oracle says of them
        setting : what the factor says of itself
        referred : whether such rows have a reference
        novelty : if given, what was expected of the directions besides `asked` is compared with the answer first, where hardly
            anything was compared yet: all of them learn from a question, and should not be trusted unchecked
        asked : the direction that the question was about
        audited : whether it was an audit, a row that nothing but chance chose: then it is one of every direction that would have
            been trusted there
        """
        key, n_evaluations = kind_key(kind, incoming, referred), 0
        for to in directions_of(answer, kind):
            reference = self.references.refer(rng, incoming, setting, to) if referred else None
            if reference is not None:
                n_evaluations += reference.n_evaluations
            view = view_of(kind, incoming, to, reference)
            known = self._known(key, view)
            statement, ratio = statement_of(answer, to), 1.0
            if novelty is not None and to != asked and (known.unchecked or (audited and known.ready)):
                ratio = known.check(view, statement, novelty, tolerance_of_one(setting), audited)
            labels = labels_of(view, statement, self.budget - len(known))
            if labels is not None:
                known.append(labels)
                known.surprise(ratio)
        return n_evaluations

    def learn_asked(
        self, task: Task, group: Group, incoming: Incoming, answer: AnswerLike, novelty: float, audited: bool
    ) -> None:
        """Take in an answer about some rows of a group."""
        started = time.perf_counter()
        n_evaluations = self.learn(
            task.rng, group.kind, incoming, answer, task.setting, group.referred, novelty, task.to, audited
        )
        task.costs.n_evaluations += n_evaluations
        task.costs.seconds_learning += time.perf_counter() - started

    def predicted(self, task: Task, incoming: Incoming, novelty: float) -> tuple[np.ndarray, np.ndarray]:
        """Centres of predicted beliefs of a port of one number, and their standard errors; infinite where nothing is known."""
        n = len(next(iter(incoming.values())))
        mean, sd = np.full(n, np.nan), np.full(n, np.inf)
        for kind, some in kinds_of(incoming):
            rows = np.arange(n) if some is None else some
            group = self.look(task, kind, rows_at(incoming, some))
            if not group.known.ready or not group.view.chart.scalar:
                continue
            said = group.known.predict(group.view, novelty, FINEST_SHARE * task.tolerance)
            centre, variance = group.view.base
            mean[rows] = centre + np.sqrt(variance) * said.mean[:, 0]
            error = np.sqrt(variance * said.variance[:, 0] * group.known.trust().factor)
            sd[rows] = np.where(said.unseen, np.inf, error)
        return mean, sd

    def _known(self, key: str, view: View) -> Correction:
        directions, name = self.kinds.setdefault(key, {}), LOG_Z if view.to is None else view.to
        if name not in directions:
            directions[name] = Correction(view.inputs.shape[1], view.chart.n_outputs, self.start, self.landmarks)
        return directions[name]

    def calibration(self) -> dict[str, Calibration]:
        """Expected against realised KL for every direction of every kind of rows that was predicted."""
        return {
            f"{to} | {key}": c.calibration
            for key, directions in self.kinds.items()
            for to, c in directions.items()
            if len(c.calibration)
        }

    # ---- keeping ------------------------------------------------------------------------------------------------
    def state(self) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
        """Every label, width and calibration pair as arrays, and the names that say which are whose."""
        arrays: dict[str, np.ndarray] = {}
        entries: list[dict[str, Any]] = []
        for k, (key, directions) in enumerate(self.kinds.items()):
            entries.append({"key": key, "ports": list(directions)})
            for j, c in enumerate(directions.values()):
                arrays |= {f"{k}/{j}/{name}": a for name, a in c.state().items()}
        return arrays, entries

    def restore(self, arrays: Mapping[str, np.ndarray], entries: list[Mapping[str, Any]]) -> None:
        """The reverse of `state`."""
        self.kinds = {
            str(entry["key"]): {
                str(port): Correction.from_state(below(arrays, f"{k}/{j}/"), self.start, self.landmarks)
                for j, port in enumerate(entry["ports"])
            }
            for k, entry in enumerate(entries)
        }
