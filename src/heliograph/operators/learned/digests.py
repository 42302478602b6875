"""The digests of an operator, by kind of rows and port: which of them serves, when one is begun, and when it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heliograph.operators.learned import decide
from heliograph.operators.learned.digest import Digest, Digested, Said
from heliograph.operators.learned.memory import Group
from heliograph.operators.learned.records import Beside, Kind, Settled, Task
from heliograph.operators.learned.view import kind_key
from heliograph.operators.protocol import Incoming

__all__ = ["Digests"]

SayOfKind = Callable[[Task, Kind, Incoming], Said]


class Digests:
    """Digests of the directions that have references."""

    def __init__(self, audit: float) -> None:
        self.audit = audit
        self.kept: dict[tuple[str, str | None], Digest] = {}

    def read(self, task: Task, kind: Kind, incoming: Incoming, beside: Beside) -> Digested:
        """What a digest says of rows of one kind; it settles none where there is none, or an audit falls due."""
        digest = self.kept.get((kind_key(kind, incoming, True), task.to))
        n = len(next(iter(incoming.values())))
        if digest is None or digest.known is None or n > decide.DIGEST_PLATE or task.setting.compared:
            return Digested(None, np.arange(n), beside)
        if digest.stale or self.audit_now(task, kind, incoming):
            return Digested(None, np.arange(n), beside)
        return digest.read(task, incoming, beside)

    def _audits_left(self, digest: Digest) -> bool:
        teacher = digest.teacher
        n_audits, n_labels = teacher.calibration.n_audits, len(teacher)
        return self.audit > 0 and decide.audits_allowed(n_audits, n_labels, teacher.n_trusted)

    def audit_now(self, task: Task, kind: Kind, incoming: Incoming) -> bool:
        """Whether an audit is due without further chance: those allowed are made before a digest takes over, or goes on."""
        digest = self.kept.get((kind_key(kind, incoming, True), task.to))
        if digest is None or digest.stale or task.setting.compared:
            return False
        return digest.due and self._audits_left(digest)

    def note(self, task: Task, group: Group, parts: Sequence[Settled], say_of: SayOfKind) -> None:
        """Take in what was found about rows that went the long way."""
        # where references find all values in tables, they are faster than a digest, and cost no evaluation either
        of_use = group.referred and group.n_evaluations > 0 and group.known.ready and not task.setting.compared
        if not of_use or len(group.view.inputs) > decide.DIGEST_PLATE:
            return
        key = kind_key(group.kind, group.incoming, True), task.to
        digest = self.kept.get(key)
        if digest is None or digest.stale or digest.teacher is not group.known:
            n_before = 0 if digest is None else digest.n_before + (digest.known is not None)
            digest = self.kept[key] = Digest(group.known, group.kind, n_before)
        digest.note(task, len(group.view.inputs), sum(len(part.belief) for part in parts if part.asked))
        if digest.known is not None or digest.due:
            digest.teach(task, group, parts, lambda made: say_of(task, group.kind, made))
