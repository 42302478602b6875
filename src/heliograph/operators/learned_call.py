"""One call of the default operator: a lattice settles what it knows, the process predicts or asks about the rest.

A plate of millions is done in blocks, so memory is bounded; what a block teaches serves the next.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.operators.joint_error import RARE, joint_error, shared_unknowns
from heliograph.operators.lattice import Lattice, lattice_for
from heliograph.operators.learned_plate import Plate, auditable
from heliograph.operators.learned_process import Correction
from heliograph.operators.protocol import Ask, Incoming, Reply, Setting, rows_of
from heliograph.operators.sight import POINT, WILD, kinds_of, rows_at

__all__ = ["EvidenceCall", "MessageCall"]

_BLOCK = 8192  # rows seen at once
_MOST_TIMES = 10.0  # its equal share of what a plate may be wrong by, that one row may
_CALM = 3000  # rows settled without asking before a lattice is laid
_LATTICE_SHARE = 0.05  # of what a message may be wrong by, that interpolation may add
_SURE = 0.3  # of what a message may be wrong by: what a lattice knows better than that, another label need not change
_WORSE = 1.1  # the calibration factor over what it was, above which a lattice is laid anew
_MOST_LEFT = 0.25  # of a plate: if a lattice knows less than the rest, the process takes all of it
_NOTHING = np.zeros(0, dtype=int)


class Shortcut:
    """What is needed to answer plates of one kind from a lattice, once a process has settled them for a while."""

    def __init__(self, known: Correction, kind: dict[str, str], incoming: Incoming) -> None:
        self.known, self.kind = known, kind
        self.n_refits, self.factor = known.n_refits, known.calibration.factor
        self.types = {p: (type(m), getattr(m, "point", None) is None) for p, m in incoming.items()}
        self.n_rows = 0  # settled without asking
        self.n_refused = 0  # that its lattice did not know
        self.lattice: Lattice | None = None
        self.hopeless = False  # no lattice will do

    @property
    def stale(self) -> bool:
        """Whether what was thought since then changed: widths were chosen anew, or errors were larger than expected."""
        return self.known.n_refits != self.n_refits or self.known.calibration.factor > _WORSE * self.factor

    def fits(self, incoming: Incoming, to: str) -> bool:
        """Whether a plate may be of this kind, all of it; what other ports hold a lattice looks up by itself."""
        for port, message in incoming.items():
            if (type(message), getattr(message, "point", None) is None) != self.types[port]:
                return False
        return bool(incoming[to].proper.all())


class _Call:
    """What has been decided about each row so far."""

    to: str | None

    def __init__(self, operator: Any, rng: np.random.Generator, incoming: Incoming, ask: Ask, setting: Setting) -> None:
        self.operator, self.rng, self.incoming, self.ask, self.setting = operator, rng, incoming, ask, setting
        self.n = len(next(iter(incoming.values())))
        # what one message may be wrong by, if all are and all errors pull the same way
        self.tolerance = setting.tolerance * max(setting.share, 1 / setting.together) / RARE
        self.parts: list[tuple[Any, Any]] = []  # rows and what is known of them; the later counts
        self.asked = np.zeros(self.n, dtype=bool)
        self.failed = np.zeros(self.n, dtype=bool)
        self.expected_kl = np.zeros(self.n)
        self.log_variance: np.ndarray | None = None
        self.sure: list[
            tuple[np.ndarray, float]
        ] = []  # expected KL of rows that a lattice settled, unknowns they share
        self.beside: list[tuple[np.ndarray, float]] = []  # of those that share the tolerance with the rows at hand
        self.n_evaluations = 0
        self.learning, self.prediction = 0.0, 0.0

    def settle(self) -> None:
        """Decide every row."""
        left = []
        for start in range(0, self.n, _BLOCK):
            block = slice(start, min(start + _BLOCK, self.n))
            seen = self.incoming if self.n <= _BLOCK else rows_of(self.incoming, block)
            some = self.shortcut(block, seen)
            if some is None:
                self._settle(np.arange(block.start, block.stop), seen)
            elif len(some):
                left.append(start + some)
        if left:  # of all blocks together
            rows = np.concatenate(left)
            self.beside = self.sure[:1]  # as in one block: the tolerance of each is its own
            if self.n <= _BLOCK and not self._certain(rows):
                # before anything is asked: what the process itself expects of all rows leaves more of the tolerance
                self.parts, self.log_variance, self.beside = [], None, []
                rows = np.arange(self.n)
            for start in range(0, len(rows), _BLOCK):
                some = rows[start : start + _BLOCK]
                self._settle(some, rows_of(self.incoming, some))
            self.beside = []

    def _certain(self, rows: np.ndarray) -> bool:
        """Whether the process would ask about none of these rows."""
        for kind, some in kinds_of(rows_of(self.incoming, rows)):
            of_kind = rows if some is None else rows[some]
            if not Plate(self, kind, of_kind, rows_of(self.incoming, of_kind)).certain():
                return False
        return True

    def _settle(self, rows: np.ndarray, seen: Incoming) -> None:
        """Decide some rows by what the process says of them, or an oracle."""
        for kind, some in kinds_of(seen):
            of_kind, incoming = rows if some is None else rows[some], rows_at(seen, some)
            if WILD in kind.values() or (self.to is not None and kind[self.to] == POINT):
                # nothing to learn from: what an oracle makes of it is all there is
                self.take(of_kind, self.ask(incoming))
            else:
                Plate(self, kind, of_kind, incoming).run()

    def shortcut(self, block: slice, seen: Incoming) -> np.ndarray | None:
        """Settle what can be settled without the process; the numbers of the rows left over, None: all of them."""
        return None

    def calm(self, plate: Plate) -> None:
        """A plate was settled without asking."""

    def keep(self, rows: Any, told: Any, kl: np.ndarray, log_variance: np.ndarray, known: Correction) -> None:
        """Take predictions for good; `kl` is what was decided by, what is stated may be less."""
        self.parts.append((rows, told))
        known.n_trusted += len(kl)
        factor, stated = known.calibration.factor, known.calibration.stated
        if (
            stated < factor
        ):  # that predictions fared better says nothing of the noise of labels, which all of them share
            kl = np.maximum(kl * (stated / factor), np.minimum(kl, known.label_kl))
        self.expected_kl[rows] = kl
        if self.log_variance is None:
            self.log_variance = np.full((self.n, log_variance.shape[1]), np.nan)
        self.log_variance[rows] = log_variance

    def limit(self, kl: np.ndarray, share: np.ndarray | None, known: Correction) -> float:
        """The expected KL above which a row is asked about, so that the rest together is within the tolerance.

        `share` is the leverage of each row. Never less than ``known.least``, which more answers would not get below.
        """
        unknowns = shared_unknowns(share, len(kl), self.setting)
        if self.beside:
            unknowns += sum(d for _, d in self.beside)
            kl = np.concatenate([kl, *(k for k, _ in self.beside)])
        allowed = self.setting.tolerance * len(kl)
        top = min(allowed, _MOST_TIMES * allowed * min(unknowns / len(kl), 1.0) / (RARE * len(kl)) if len(kl) else 0.0)
        if joint_error(kl, unknowns) > allowed:
            ordered = np.sort(kl)
            joint = RARE * np.maximum(np.cumsum(ordered), np.cumsum(np.sqrt(ordered)) ** 2 / unknowns)
            n_kept = int(np.searchsorted(joint, allowed, side="right"))
            top = min(top, float(ordered[n_kept - 1]) if n_kept else 0.0)
        least = known.least
        noisy = least > self.tolerance and known.label_kl >= known.nugget_kl
        if noisy and top < float(kl.max(initial=0.0)):  # all rows at that would be too much
            self.operator.say(
                f"the answers of an oracle, even averaged, are wrong by about {least:.0e} nats, more than the "
                f"{self.tolerance:.0e} that a message may be here: posterior.error_estimate says what was reached; "
                "give the oracle more draws, or raise the tolerance"
            )
        return max(top, least)

    def told(self, answer: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """What an answer says of the direction in question, where that is of use, and its own expected error."""
        raise NotImplementedError  # pragma: no cover

    def unanswered(self, answer: Any) -> np.ndarray:
        """The rows of an answer that say nothing of the direction in question."""
        raise NotImplementedError  # pragma: no cover

    def error(self, told: Any, predicted: Any) -> np.ndarray:
        """By how much predictions were wrong."""
        raise NotImplementedError  # pragma: no cover

    def take(self, rows: np.ndarray, answer: Any) -> None:
        """Keep what the oracle says of rows."""
        told, _, expected = self.told(answer)
        self.operator.n_asked += len(rows)
        self.asked[rows] = True
        self.failed[rows] = failed = self.unanswered(answer)
        self.expected_kl[rows] = np.where(failed, np.inf, expected)
        self.parts.append((rows, told))


class MessageCall(_Call):
    """Messages to one port."""

    def __init__(
        self, operator: Any, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting
    ) -> None:
        super().__init__(operator, rng, incoming, ask, setting)
        self.to: str = to
        self.cavity: Family = incoming[to]

    def told(self, answer: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """The beliefs of this port."""
        belief = answer.beliefs[self.to]
        return belief, ~answer.failed_at(self.to) & belief.proper & ~belief.is_point, answer.expected_kl[self.to]

    def unanswered(self, answer: Any) -> np.ndarray:
        """Rows that failed, or whose belief of this port alone is unknown."""
        return answer.failed_at(self.to)

    def error(self, told: Any, predicted: Any) -> np.ndarray:
        """KL in nats."""
        return told.kl(predicted)

    def shortcut(self, block: slice, seen: Incoming) -> np.ndarray | None:
        """Rows that a lattice knows, for as long as its process is in use and no audit is due."""
        shortcut = self.operator.shortcuts.get(self.to)
        if shortcut is None or shortcut.lattice is None:
            return None
        lattice, known = shortcut.lattice, shortcut.known
        if shortcut.stale or lattice.allowed > _LATTICE_SHARE * self.tolerance:
            del self.operator.shortcuts[self.to]
            return None
        if lattice.process is not known.process:
            lattice.renew(known.process, _SURE * self.tolerance / known.calibration.factor)
        if not shortcut.fits(seen, self.to) or (self.operator.audit > 0 and auditable(known)):
            return None
        started = time.perf_counter()
        found = lattice.read(seen, lambda made: Plate(self, shortcut.kind, _NOTHING, made).teach())
        kl = found.kl * known.calibration.factor
        share = np.abs(np.expm1(np.minimum(found.gap[:, 1], 0.0)))
        limit = self.limit(kl, share, known)
        left = np.flatnonzero(kl > limit) if kl.max(initial=0.0) > limit else _NOTHING
        if len(left) <= _MOST_LEFT * len(kl):
            if len(left):  # settled anew afterwards, with what is left of the tolerance
                found.gap[left] = 0.0
                n_sure = len(kl) - len(left)
                self.sure.append((np.delete(kl, left), shared_unknowns(np.delete(share, left), n_sure, self.setting)))
            chart = lattice.chart
            self.keep(block, chart.belief(found.gap, chart.moments(seen[self.to])), kl, found.log_variance, known)
        else:
            left = None
            shortcut.n_refused += len(kl)
            if shortcut.n_refused >= _CALM:  # laid where messages were then, and not where they are now
                del self.operator.shortcuts[self.to]
        self.prediction += time.perf_counter() - started
        return left

    def calm(self, plate: Plate) -> None:
        """Note that a plate was settled without asking; when that has been so for long, lay a lattice."""
        operator, known = self.operator, plate.known
        shortcut = operator.shortcuts.get(self.to)
        if shortcut is None or shortcut.known is not known or shortcut.stale:
            shortcut = operator.shortcuts[self.to] = Shortcut(known, plate.kind, plate.incoming)
        shortcut.n_rows += len(plate.rows)
        calm = shortcut.n_rows >= _CALM and plate.kind == shortcut.kind
        if calm and shortcut.lattice is None and not shortcut.hopeless:
            started = time.perf_counter()
            shortcut.lattice = lattice_for(
                self.to,
                plate.chart,
                known.process,
                _LATTICE_SHARE * self.tolerance,
                plate.incoming,
                lambda made: Plate(self, plate.kind, _NOTHING, made).teach(),
            )
            shortcut.hopeless = shortcut.lattice is None
            self.prediction += time.perf_counter() - started

    def run(self) -> Reply:
        """Settle every row and divide by what came in, eq. (1)."""
        self.settle()
        belief = _joined(self.parts, self.n) if self.n else self.cavity
        return Reply(
            belief / self.cavity,
            self.failed,
            self.asked,
            self.log_variance,
            self.expected_kl,
            n_evaluations=self.n_evaluations,
            seconds_learning=self.learning,
            seconds_prediction=self.prediction,
        )


class EvidenceCall(_Call):
    """The log normaliser of each tuple; what is tolerated is the variance of an error, of the size of the tolerance."""

    to = None

    def told(self, answer: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """The log normalisers."""
        return answer.log_z, ~answer.failed & np.isfinite(answer.log_z), answer.log_z_error**2

    def unanswered(self, answer: Any) -> np.ndarray:
        """Rows that failed."""
        return answer.failed

    def error(self, told: Any, predicted: Any) -> np.ndarray:
        """The square of the difference."""
        return (told - predicted) ** 2

    def run(self) -> np.ndarray:
        """Settle every row."""
        self.settle()
        log_z = np.zeros(self.n)
        for rows, told in self.parts:
            log_z[rows] = told
        return log_z


def _joined(parts: list[tuple[Any, Family]], n: int) -> Family:
    """Messages of all rows from those of some, of which the later count; one part may hold all rows in another order."""
    if len(parts) == 1 and np.array_equal(parts[0][0], np.arange(n)):
        return parts[0][1]
    kind = type(parts[0][1])
    naturals = tuple(np.empty((n, *a.shape[1:])) for a in parts[0][1].naturals)
    point = None
    for rows, message in parts:
        for a, b in zip(naturals, message.naturals, strict=True):
            a[rows] = b
        if message.point is not None and point is None:
            point = np.full((n, *message.point.shape[1:]), np.nan)
        if point is not None:
            point[rows] = np.nan if message.point is None else message.point
    return kind.from_naturals(naturals, point)
