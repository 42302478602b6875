"""A lattice in place of the process, for plates of one kind that have long been settled without asking (docs/decisions/0021).

Shortcuts are kept by port; `read` and `note_settled` are all that the operator calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heliograph.operators.learned.decide import (
    LATTICE_LEFT,
    LATTICE_SHARE,
    LATTICE_SURE,
    LATTICE_WORSE,
    SETTLED_CALLS,
    SETTLED_LITTLE,
    SETTLED_ROWS,
    audits_allowed,
    limit_of,
    shared_unknowns,
)
from heliograph.operators.learned.lattice import Lattice, Sample, Sampled
from heliograph.operators.learned.made import pooled
from heliograph.operators.learned.memory import Group
from heliograph.operators.learned.predict import Correction
from heliograph.operators.learned.records import Beside, Kind, Settled, Task
from heliograph.operators.learned.spacing import in_classes, lattice_for
from heliograph.operators.protocol import Incoming

__all__ = ["Read", "Shortcut", "note_settled", "read"]

SampleKind = Callable[[Task, Kind, Incoming], Sample]
_NOTHING = np.zeros(0, dtype=int)


class Read(NamedTuple):
    """What a lattice says of a block of rows."""

    settled: Settled | None  # all rows of the block; None: it knows too little, and the process takes all of them
    left: np.ndarray  # numbers of the rows that it is not sure enough of: to be settled anew
    beside: Beside | None = None  # the others, where some are left
    warning: str | None = None  # for the user


class Shortcut:
    """A lattice of one direction and kind of rows, or what has to be known until there is one."""

    def __init__(self, known: Correction, kind: Kind, incoming: Incoming) -> None:
        self.known, self.kind = known, kind
        self.n_refits, self.factor = known.process.n_refits, known.calibration.factor
        self.types = {p: (type(m), getattr(m, "point", None) is None) for p, m in incoming.items()}
        self.n_rows = self.n_calls = 0  # settled without asking
        self.n_refused = 0  # that its lattice did not know
        self.lattice: Lattice | None = None
        self.unusable = False  # no lattice will do
        self.pool: Incoming | None = None  # rows of the plates so far, until there is a lattice

    @property
    def stale(self) -> bool:
        """Whether what was thought since then changed: widths were chosen anew, or errors were larger than expected."""
        known = self.known
        return known.process.n_refits != self.n_refits or known.calibration.factor > LATTICE_WORSE * self.factor

    def fits(self, incoming: Incoming, to: str) -> bool:
        """Whether a plate may be of this kind, all of it; what other ports hold a lattice looks up by itself."""
        for port, message in incoming.items():
            if (type(message), getattr(message, "point", None) is None) != self.types[port]:
                return False
        return bool(incoming[to].proper.all())

    def serves(self, tolerance: float) -> bool:
        """Whether its lattice is fine enough and in step with the process; brings it in step if that is all it needs."""
        lattice, fitted = self.lattice, self.known.process.fitted
        if lattice is None or self.stale or lattice.allowed > LATTICE_SHARE * tolerance:
            return False
        if lattice.process is not fitted:
            lattice.renew(fitted, LATTICE_SURE * tolerance / self.known.calibration.factor)
        return True

    def read(self, task: Task, rows: slice, seen: Incoming, sampled: Sampled) -> Read:
        """What the lattice says of a block of rows."""
        assert self.lattice is not None and task.to is not None
        found = self.lattice.read(seen, sampled)
        trust, setting = self.known.trust(), task.setting
        kl = found.kl * trust.factor + found.off
        share = np.abs(np.expm1(np.minimum(found.gap[:, 1], 0.0)))
        limit = limit_of(kl, share, trust, setting)
        left = np.flatnonzero(kl > limit.kl) if kl.max(initial=0.0) > limit.kl else _NOTHING
        if len(left) > LATTICE_LEFT * len(kl):
            self.n_refused += len(kl)
            return Read(None, left, warning=limit.warning)
        beside = None
        if len(left):  # settled anew afterwards, with what is left of the tolerance
            found.gap[left] = 0.0
            sure = np.delete(kl, left)
            beside = Beside(sure, shared_unknowns(np.delete(share, left), len(sure), setting))
        chart = self.lattice.chart
        belief = chart.belief(found.gap, chart.moments(seen[task.to]))
        settled = self.known.settled(rows, belief, found.kl * trust.factor, found.log_variance, trust)
        # what interpolation adds was measured, not expected: no calibration of the process says anything of it
        settled = settled._replace(expected_kl=settled.expected_kl + found.off)
        return Read(settled, left, beside, limit.warning)

    def lay(self, task: Task, group: Group, sampled: Sampled) -> None:
        """Count rows that were settled without asking; when that has been so for long, lay a lattice."""
        self.n_rows, self.n_calls = self.n_rows + len(group.view.inputs), self.n_calls + 1
        assert task.to is not None
        if self.n_calls == 1:
            self.unusable = not in_classes(task.to, group.view.chart, group.incoming)
        if self.lattice is not None or self.unusable:
            return
        self.pool = pooled(self.pool, group.incoming)
        long = self.n_rows >= SETTLED_ROWS or (self.n_rows >= SETTLED_LITTLE and self.n_calls >= SETTLED_CALLS)
        if not long or group.kind != self.kind:
            return
        fitted, allowed = self.known.process.fitted, LATTICE_SHARE * task.tolerance
        self.lattice = lattice_for(task.to, group.view.chart, fitted, allowed, group.incoming, sampled)
        self.unusable = self.lattice is None
        if self.lattice is not None:
            self.lattice.fill(self.pool, sampled, self.n_rows)
        self.pool = None


def read(
    shortcuts: dict[str, Shortcut], task: Task, rows: slice, seen: Incoming, audited: bool, sample: SampleKind
) -> Read | None:
    """What a lattice says of a block of rows; None where there is none, it does not fit, or an audit is due.

    Parameters
    ----------
    shortcuts : by port; one that serves no more is dropped
    task, rows, seen : the call, the block's place in it and its messages
    audited : whether trusted messages are audited at all
    sample : what the process says of messages of a kind
    """
    shortcut = None if task.to is None else shortcuts.get(task.to)
    if task.to is None or shortcut is None or shortcut.lattice is None:
        return None
    if not shortcut.serves(task.tolerance):
        del shortcuts[task.to]
        return None
    known = shortcut.known
    due = audited and audits_allowed(known.calibration.n_audits, len(known), known.n_trusted)
    if due or not shortcut.fits(seen, task.to):
        return None
    started = time.perf_counter()
    found = shortcut.read(task, rows, seen, lambda made: sample(task, shortcut.kind, made))
    if shortcut.n_refused >= SETTLED_ROWS:  # laid where messages were then, and not where they are now
        del shortcuts[task.to]
    task.costs.seconds_prediction += time.perf_counter() - started
    return found


def note_settled(shortcuts: dict[str, Shortcut], task: Task, group: Group, sample: SampleKind) -> bool:
    """Note that rows were settled without asking; whether in the end a lattice may serve such rows."""
    if task.to is None:
        return False  # log Z is read once a run
    shortcut = shortcuts.get(task.to)
    if shortcut is None or shortcut.known is not group.known or shortcut.stale:
        shortcut = shortcuts[task.to] = Shortcut(group.known, group.kind, group.incoming)
    started = time.perf_counter()
    shortcut.lay(task, group, lambda made: sample(task, group.kind, made))
    task.costs.seconds_prediction += time.perf_counter() - started
    return not shortcut.unusable
