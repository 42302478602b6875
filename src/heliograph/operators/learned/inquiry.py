"""Predictions at made-up messages, from which lattices and digests are filled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heliograph.families import Family
from heliograph.operators.learned.decide import FINEST_SHARE, decide, improper_rows, stated_kl
from heliograph.operators.learned.digest import Said, said_of
from heliograph.operators.learned.lattice import Sample
from heliograph.operators.learned.memory import Group, Memory
from heliograph.operators.learned.predict import belief_of
from heliograph.operators.learned.records import Kind, Prediction, Settled, Task
from heliograph.operators.learned.view import view_of
from heliograph.operators.protocol import Incoming

__all__ = ["Inquiry"]


@dataclass(frozen=True)
class Inquiry:
    """Asks the learned process about messages that no factor sent; no oracle is asked."""

    memory: Memory
    novelty: float

    def sample(self, task: Task, kind: Kind, made: Incoming) -> Sample:
        """For a lattice."""
        assert task.to is not None
        group, prediction = self._predict(task, kind, made)
        return _sample_of(group, prediction, made[task.to])

    def say(self, task: Task, kind: Kind, made: Incoming) -> Said:
        """For a digest: the beliefs that the process would send, where it is certain enough."""
        group, prediction = self._predict(task, kind, made)
        trust = group.known.trust()
        decision = decide(group.view, prediction, trust, task.setting)
        part = Settled(None, belief_of(group.view, prediction, trust), stated_kl(decision.kl, trust))
        said = said_of(view_of(kind, made, task.to, None), [part])
        return said._replace(kl=np.where(decision.doubtful | decision.unseen, np.inf, said.kl))

    def _predict(self, task: Task, kind: Kind, made: Incoming) -> tuple[Group, Prediction]:
        """Predict messages; what that costs is counted apart."""
        before = task.costs.n_evaluations
        group = self.memory.look(task, kind, made)
        task.costs.n_table_evaluations += task.costs.n_evaluations - before
        return group, group.known.predict(group.view, self.novelty, FINEST_SHARE * task.tolerance)


def _sample_of(group: Group, prediction: Prediction, cavity: Family) -> Sample:
    """The predictions of a process at some rows, for a lattice."""
    view, trust, chart = group.view, group.known.trust(), group.view.chart
    improper = improper_rows(prediction, trust)
    good = ~prediction.unseen if improper is None else ~prediction.unseen & ~improper
    moments = chart.moments(cavity)
    gap = chart.gap(chart.moments(belief_of(view, prediction, trust)), moments)
    good &= np.isfinite(gap).all(axis=1)
    return Sample(gap, chart.weights(gap, moments), prediction.kl, prediction.log_variance, good)
