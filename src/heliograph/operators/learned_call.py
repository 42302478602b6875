"""One call of the default operator: predict a plate, ask about the worst rows, learn, and again until all are certain.

Rows of a plate are asked in batches: the worst first, each as if those before it were known already, which needs no
label. A plate of millions is done in blocks, so memory is bounded; what a block teaches serves the next.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from heliograph.families import Family, concatenate
from heliograph.operators.lattice import Lattice, Taught, lattice_for
from heliograph.operators.learned_process import Correction, design
from heliograph.operators.protocol import Ask, Incoming, Reply, Setting, rows_of
from heliograph.operators.sight import POINT, WILD, kind_key, kinds_of, look, rows_at

__all__ = ["EvidenceCall", "MessageCall", "joint_error"]

_BLOCK = 8192  # rows seen at once
_AUDITED_SHARE = 0.1  # audits at most, for every label
_LABEL_SHARE = 0.5  # of what one message may be wrong by, that a label may
_CAUTION = 0.5  # of the tolerance is used: realised errors have a heavier tail than expected ones
_AVERAGED = 0.2  # of what an answer is wrong by: so far the regression is asked to average the noise of answers
_FINEST = 1e-9  # nats that one message may always be wrong by: no answer is finer
_MOST_TIMES = 10.0  # its equal share of what a plate may be wrong by, that one row may
_PLAUSIBLE = 4.0  # deviations by which a prediction may be improper and the truth still proper
_SURPRISE = 5.0  # realised over expected KL of a batch, above which the widths are chosen anew
_ENOUGH = 4  # new labels for that
_CALM = 3000  # rows settled without asking before a lattice is laid
_LATTICE_SHARE = 0.05  # of what a message may be wrong by, that interpolation may add
_SURE = 0.3  # of what a message may be wrong by: what a lattice knows better than that, another label need not change
_WORSE = 1.1  # the calibration factor over what it was, above which a lattice is laid anew
_MOST_LEFT = 0.25  # of a plate: if a lattice knows less than the rest, the process takes all of it
_NOTHING = np.zeros(0, dtype=int)


def joint_error(kl: np.ndarray) -> float:
    """What n messages, each wrong by its `kl`, may do to a posterior, in nats.

    Independent errors add to ``sum kl``, errors that all pull the same way to ``(sum sqrt kl)^2``; the errors of one
    regression are between the two, and the geometric mean of these is what we measured (docs/decisions/0204).

    >>> round(joint_error(np.full(100, 1e-6)), 9)
    0.001
    """
    return float(np.sqrt(kl.sum()) * np.sqrt(kl).sum())


class _Call:
    """What has been decided about each row so far."""

    to: str | None

    def __init__(self, operator: Any, rng: np.random.Generator, incoming: Incoming, ask: Ask, setting: Setting) -> None:
        self.operator, self.rng, self.incoming, self.ask, self.setting = operator, rng, incoming, ask, setting
        self.n = len(next(iter(incoming.values())))
        self.tolerance = _CAUTION * setting.tolerance
        if 0 < self.tolerance < _FINEST:  # a plate of a million shares its tolerance among too many
            self.tolerance = _FINEST
        self.parts: list[tuple[np.ndarray, Any]] = []  # rows and what is known of them; the later counts
        self.asked = np.zeros(self.n, dtype=bool)
        self.failed = np.zeros(self.n, dtype=bool)
        self.expected_kl = np.zeros(self.n)
        self.log_variance: np.ndarray | None = None
        self.n_evaluations = 0
        self.learning, self.prediction = 0.0, 0.0

    def settle(self) -> None:
        """Decide every row."""
        for start in range(0, self.n, _BLOCK):
            block = None if self.n <= _BLOCK else np.arange(start, min(start + _BLOCK, self.n))
            seen = rows_at(self.incoming, block)
            left = self.shortcut(block, seen)
            if left is not None:
                if not len(left):
                    continue
                block = left if block is None else block[left]
                seen = rows_of(seen, left)
            for kind, some in kinds_of(seen):
                rows = some if block is None else block if some is None else block[some]
                rows = np.arange(self.n) if rows is None else rows
                incoming = rows_at(seen, some)
                if WILD in kind.values() or (self.to is not None and kind[self.to] == POINT):
                    # nothing to learn from: what an oracle makes of it is all there is
                    self.take(rows, self.ask(incoming))
                else:
                    Plate(self, kind, rows, incoming).run()

    def shortcut(self, block: np.ndarray | None, seen: Incoming) -> np.ndarray | None:
        """Settle what can be settled without the process; the numbers of the rows left over, None: all of them."""
        return None

    def calm(self, plate: Plate) -> None:
        """A plate was settled without asking."""

    def keep(self, rows: np.ndarray, told: Any, kl: np.ndarray, log_variance: np.ndarray) -> None:
        """Take predictions for good."""
        self.parts.append((rows, told))
        if len(rows) == self.n:
            self.expected_kl, self.log_variance = kl, log_variance
            return
        self.expected_kl[rows] = kl
        if self.log_variance is None:
            self.log_variance = np.full((self.n, log_variance.shape[1]), np.nan)
        self.log_variance[rows] = log_variance

    def limit(self, kl: np.ndarray, label_kl: float) -> float:
        """The expected KL above which a row is asked about, so that the rest together is within the tolerance.

        Never less than a fifth of what an answer itself is wrong by: there the regression, which has seen many
        answers, knows more than the oracle would say.
        """
        allowed = self.tolerance * len(kl) ** 1.5
        top = min(allowed, _MOST_TIMES * allowed / len(kl))
        if joint_error(kl) > allowed:
            ordered = np.sort(kl)
            joint = np.sqrt(np.cumsum(ordered)) * np.cumsum(np.sqrt(ordered))
            n_kept = int(np.searchsorted(joint, allowed, side="right"))
            top = min(top, float(ordered[n_kept - 1]) if n_kept else 0.0)
        floor = _AVERAGED * label_kl
        if floor > self.tolerance and top < float(kl.max()):  # all rows at the floor would be too much
            self.operator.say(
                f"the answers of an oracle, even averaged, are wrong by about {floor:.0e} nats, more than the "
                f"{self.tolerance:.0e} that a message may be here: posterior.error_estimate says what was reached; "
                "give the oracle more draws, or raise the tolerance"
            )
        return max(top, floor)

    def told(self, answer: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        """What an answer says of the direction in question, where that is of use, and its own expected error."""
        raise NotImplementedError  # pragma: no cover

    def error(self, told: Any, predicted: Any) -> np.ndarray:
        """By how much predictions were wrong."""
        raise NotImplementedError  # pragma: no cover

    def take(self, rows: np.ndarray, answer: Any) -> None:
        """Keep what the oracle says of rows."""
        told, _, expected = self.told(answer)
        self.operator.n_asked += len(rows)
        self.asked[rows] = True
        self.failed[rows] = answer.failed
        self.expected_kl[rows] = np.where(answer.failed, 0.0, expected)
        self.parts.append((rows, told))

    def places(self) -> np.ndarray:
        """Where each row stands in the parts one after the other."""
        order = np.concatenate([rows for rows, _ in self.parts])
        place = np.empty(self.n, dtype=int)
        place[order] = np.arange(len(order))
        return place


class Shortcut:
    """What is needed to answer plates of one kind from a lattice, once a process has settled them for a while."""

    def __init__(self, known: Correction, kind: dict[str, str], incoming: Incoming) -> None:
        self.known, self.kind = known, kind
        self.n_refits, self.factor = known.n_refits, known.calibration.factor
        self.types = {p: (type(m), getattr(m, "point", None) is None) for p, m in incoming.items()}
        self.n_rows = 0
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
        return belief, ~answer.failed & belief.proper & ~belief.is_point, answer.expected_kl[self.to]

    def error(self, told: Any, predicted: Any) -> np.ndarray:
        """KL in nats."""
        return told.kl(predicted)

    def shortcut(self, block: np.ndarray | None, seen: Incoming) -> np.ndarray | None:
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
        limit = self.limit(kl, known.label_kl)
        left = np.flatnonzero(kl > limit) if kl.max(initial=0.0) > limit else _NOTHING
        self.prediction += time.perf_counter() - started
        if len(left) > _MOST_LEFT * len(kl):
            return None
        cavity, gap, log_variance = seen[self.to], found.gap, found.log_variance
        rows = np.arange(len(kl)) if block is None else block
        if len(left):
            rest = np.setdiff1d(np.arange(len(kl)), left, assume_unique=True)
            rows, cavity, gap, kl, log_variance = rows[rest], cavity[rest], gap[rest], kl[rest], log_variance[rest]
        self.keep(rows, lattice.chart.belief(gap, lattice.chart.moments(cavity)), kl, log_variance)
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
        if len(self.parts) == 1:
            belief = self.parts[0][1]
        else:
            belief = concatenate([b for _, b in self.parts])[self.places()] if self.n else self.cavity
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

    def error(self, told: Any, predicted: Any) -> np.ndarray:
        """The square of the difference."""
        return (told - predicted) ** 2

    def run(self) -> np.ndarray:
        """Settle every row."""
        self.settle()
        return np.concatenate([b for _, b in self.parts])[self.places()] if self.n else np.zeros(0)


def auditable(known: Correction) -> bool:
    """Whether there may be one more audit."""
    return known.calibration.n_audits < int(_AUDITED_SHARE * len(known))


class Plate:
    """The rows of one kind in one call."""

    def __init__(self, call: _Call, kind: dict[str, str], rows: np.ndarray, incoming: Incoming) -> None:
        started = time.perf_counter()
        self.call, self.operator, self.kind, self.rows, self.incoming = call, call.operator, kind, rows, incoming
        reference = self.operator.refer(call.rng, incoming, call.setting, call.to)
        self.referred = reference is not None
        if reference is not None:
            call.n_evaluations += reference.n_evaluations
        self.sight = look(kind, incoming, call.to, reference)
        self.chart = self.sight.chart
        self.key = kind_key(kind, incoming, self.referred)
        self.known = self.operator.correction(self.key, call.to, self.sight)
        self.known.use()
        self.open: np.ndarray | None = None  # numbers of the rows not asked in this call; None: all
        call.prediction += time.perf_counter() - started

    def run(self) -> None:
        """Settle every row."""
        audited = False
        while self.open is None or len(self.open):
            if self.known.process is None:
                at = self._open()
                chosen = at[design(self.sight.inputs[at], self.known.inputs, self.operator.start - len(self.known))]
                self._ask(chosen, False)
                continue
            chosen = self._predict()
            auditing = not len(chosen) and not audited
            if auditing:
                chosen, audited = self._audit(), True
            if not len(chosen):
                self._keep()
                break
            self._ask(chosen, auditing)
        if self.call.asked.any():
            self._smooth()
        elif self.open is None:
            self.call.calm(self)

    def _open(self) -> np.ndarray:
        return np.arange(len(self.rows)) if self.open is None else self.open

    def _at(self, rows: Any) -> tuple[np.ndarray, ...]:
        """The bases of some rows."""
        return self.sight.base if rows is None else tuple(a[rows] for a in self.sight.base)

    def _scale(self, rows: Any) -> np.ndarray | None:
        """The scales of some rows."""
        scale = self.sight.scale
        return scale if rows is None or scale is None else scale[rows]

    # ---- predicting ---------------------------------------------------------------------------------------------
    def _judge(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Predict the open rows: what errors in their targets cost, which are like none seen, and which are improper."""
        known = self.known
        x = self.sight.inputs if self.open is None else self.sight.inputs[self.open]
        mean, variance, new = known.predict(x, self._scale(self.open), 0.1 * self.call.tolerance)
        weights = self.chart.weights(mean, self._at(self.open))
        self.mean, self.variance, self.kl = mean, variance, np.einsum("nq,nq->n", weights, variance)
        unseen = new > self.operator.novelty
        if unseen.any():  # no label is near, but many together may know it all the same
            far = np.flatnonzero(unseen)
            unseen[far] = known.unseen(x[far])
        return weights, unseen, self._improper()

    def _predict(self) -> np.ndarray:
        """Predict the open rows; the numbers of those to ask about."""
        started = time.perf_counter()
        known, call = self.known, self.call
        weights, unseen, improper = self._judge()
        factor = known.calibration.factor
        self.kl *= factor
        limit = call.limit(self.kl, known.label_kl)
        doubtful = self.kl > limit
        if improper is not None:
            doubtful |= improper
        call.prediction += time.perf_counter() - started
        if not (doubtful.any() or unseen.any()):
            return _NOTHING
        started = time.perf_counter()
        x = self.sight.inputs if self.open is None else self.sight.inputs[self.open]
        scale = self._scale(self.open)
        room = max(1, known.due - len(known))  # the widths are chosen anew then, and with them who is uncertain
        size = min(room, max(8, len(known) // 2))
        chosen = _NOTHING
        if unseen.any():  # places first: what is uncertain elsewhere may look different then
            some = np.flatnonzero(unseen)
            chosen = some[known.spread(x[some], size)]
        if not len(chosen) and doubtful.any():
            some = np.flatnonzero(doubtful)
            scores = weights[some] * factor
            if scale is not None:
                scores *= (scale[some] ** 2)[:, None]
            chosen = some[known.choose(x[some], scores, limit, size)]
            if not len(chosen):
                chosen = some[:size]
        call.learning += time.perf_counter() - started
        return chosen if self.open is None else self.open[chosen]

    def _improper(self) -> np.ndarray | None:
        """Where a message would be improper beyond doubt, though no answer ever was.

        The excess is the log variance of the predicted belief over the cavity's: above 0 the message is improper.
        """
        self.excess = None
        excess = self.sight.excess
        if excess is None or not self.known.always_proper:
            return None
        self.excess = (excess if self.open is None else excess[self.open]) + self.mean[:, 1]
        self.sd = np.sqrt(self.variance[:, 1])
        return self.excess > _PLAUSIBLE * self.sd

    def _belief(self) -> Any:
        """The beliefs of the open rows as predicted."""
        if self.excess is not None:
            close = np.flatnonzero(self.excess > -3 * self.sd)
            if len(close):  # all answers were proper: condition on that, so that none is improper by a rounding error
                s, e = self.sd[close], self.excess[close]
                t = -e / s
                hazard = np.exp(-0.5 * t * t - 0.5 * np.log(2 * np.pi) - log_ndtr(t))
                self.mean[close, 1] -= s * hazard
        return self.chart.belief(self.mean, self._at(self.open))

    def _log_variance(self) -> np.ndarray:
        return np.log(np.maximum(self.variance, 1e-300))

    def _keep(self) -> None:
        """Take the predictions of the open rows for good."""
        started = time.perf_counter()
        rows = self.rows if self.open is None else self.rows[self.open]
        self.call.keep(rows, self._belief(), self.kl, self._log_variance())
        self.call.prediction += time.perf_counter() - started

    def teach(self) -> Taught:
        """What the process says of all rows, for a lattice; nothing is decided and nothing asked."""
        _, unseen, improper = self._judge()
        good = ~unseen if improper is None else ~unseen & ~improper
        assert self.call.to is not None
        belief, cavity = self._belief(), self.chart.moments(self.incoming[self.call.to])
        gap = self.chart.gap(self.chart.moments(belief), cavity)
        return Taught(
            gap, self.chart.weights(gap, cavity), self.kl, self._log_variance(), good & np.isfinite(gap).all(axis=1)
        )

    # ---- asking -------------------------------------------------------------------------------------------------
    def _audit(self) -> np.ndarray:
        """Now and then a row that would be trusted."""
        known, n = self.known, len(self.rows) if self.open is None else len(self.open)
        if not auditable(known) or not self.call.rng.random() < self.operator.audit * n:
            return _NOTHING
        return self.call.rng.choice(self._open(), 1)

    def _ask(self, chosen: np.ndarray, auditing: bool) -> None:
        """Ask about rows, learn before anything else can happen, and keep the oracle's own beliefs."""
        incoming = rows_of(self.incoming, chosen)
        try:
            answer = self._answer(incoming)
        except BaseException as error:  # whatever it is, what was paid for is learned before it goes on
            done = getattr(error, "answered", None)
            if done is not None:
                self._learn(rows_of(incoming, done[0]), done[1])
            raise
        ratio = 1.0 if self.known.process is None else self._compare(chosen, answer, auditing)
        self.call.take(self.rows[chosen], answer)
        self._learn(incoming, answer)
        if ratio > _SURPRISE and len(self.known) >= self.known.n_fitted + _ENOUGH:
            self._refit()  # the world is not what the widths were chosen for
        self.open = np.setdiff1d(self._open(), chosen, assume_unique=True)
        if len(self.known) >= self.operator.budget:
            self.operator.say(
                f"a learned operator has reached its budget of {self.operator.budget} answers for one direction and "
                "learns no more: what it does not know is asked every time; raise the tolerance, or the budget with "
                "operator=Learned(budget=...)"
            )

    def _answer(self, incoming: Incoming) -> Any:
        if not self.call.tolerance > 0:
            return self.call.ask(incoming)
        # an oracle that can will go on until its own error is a small share of what is tolerated
        return self.call.ask(incoming, np.sqrt(2 * _LABEL_SHARE * self.call.tolerance))  # type: ignore[call-arg]

    def _learn(self, incoming: Incoming, answer: Any) -> None:
        started = time.perf_counter()
        call = self.call
        call.n_evaluations += self.operator.learn(
            call.rng, self.key, self.kind, incoming, answer, call.setting, self.referred
        )
        call.learning += time.perf_counter() - started

    def _refit(self) -> None:
        started = time.perf_counter()
        self.known.refit()
        self.call.learning += time.perf_counter() - started

    def _compare(self, chosen: np.ndarray, answer: Any, auditing: bool) -> float:
        """What was expected of predictions, beside what the oracle says; the mean ratio of the two."""
        told, good, own = self.call.told(answer)
        if not good.any():
            return 1.0
        place = chosen if self.open is None else np.searchsorted(self.open, chosen)
        predicted = self.chart.belief(self.mean[place[good]], self._at(chosen[good]))
        expected = self.kl[place[good]] / self.known.calibration.factor + own[good]
        realised = self.call.error(told[good], predicted)
        self.known.calibration.note(expected, realised, auditing)
        return float(realised.sum() / max(expected.sum(), 1e-300))

    def _smooth(self) -> None:
        """Where an answer is noisier than is tolerated, what the regression makes of all answers is the better one."""
        call, known = self.call, self.known
        if known.process is None:
            return
        noisy = call.asked[self.rows] & ~call.failed[self.rows] & (call.expected_kl[self.rows] > call.tolerance)
        at = np.flatnonzero(noisy)
        if not len(at):
            return
        mean, variance, new = known.predict(self.sight.inputs[at], self._scale(at))
        base = self._at(at)
        kl = np.einsum("nq,nq->n", self.chart.weights(mean, base), variance) * known.calibration.factor
        better = (kl < call.expected_kl[self.rows[at]]) & (new < self.operator.novelty)
        if better.any():
            rows = self.rows[at[better]]
            call.parts.append((rows, self.chart.belief(mean[better], tuple(a[better] for a in base))))
            call.expected_kl[rows] = kl[better]
