"""The rows of one kind in one call of the default operator: predict, ask about the worst, learn, and again until certain.

Rows are asked in batches: the worst first, each as if those before it were known already, which needs no label.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from heliograph.operators.joint_error import leverage
from heliograph.operators.lattice import Taught
from heliograph.operators.learned_process import Correction, design
from heliograph.operators.protocol import Incoming, rows_of
from heliograph.operators.sight import PROPER, kind_key, look

__all__ = ["Plate", "auditable"]

_AUDITED_SHARE = 0.1  # audits at most, for every label
_LONG_RUN = 10_000  # trusted messages, beyond which each tenfold allows one more: audits never stop for good
_LABEL_SHARE = 0.5  # of what one message may be wrong by, that a label may
_PLAUSIBLE = 4.0  # deviations by which a prediction may be improper and the truth still proper
_SURPRISE = 5.0  # realised over expected KL of a batch, above which the widths are chosen anew
_ENOUGH = 4  # new labels for that
_NOTHING = np.zeros(0, dtype=int)


def auditable(known: Correction) -> bool:
    """Whether there may be one more audit: a share of the labels, and one for every tenfold of trusted messages."""
    long_run = int(math.log10(known.n_trusted / _LONG_RUN)) if known.n_trusted > _LONG_RUN else 0
    return known.calibration.n_audits < int(_AUDITED_SHARE * len(known)) + long_run


class Plate:
    """The rows of one kind in one call."""

    def __init__(self, call: Any, kind: dict[str, str], rows: np.ndarray, incoming: Incoming) -> None:
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
        known.note_scale(weights, self._scale(self.open))
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
        limit = call.limit(self.kl, self._leverage(), known)
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

    def _leverage(self) -> np.ndarray | None:
        """The share of each open row's belief that its message would bring."""
        excess, to = self.sight.excess, self.call.to
        if excess is not None:
            log_ratio = (excess if self.open is None else excess[self.open]) + self.mean[:, 1]
            return np.abs(np.expm1(np.minimum(log_ratio, 0.0)))
        if to is None or self.kind[to] != PROPER:
            return None if to is None else np.ones(len(self.mean))
        cavity = self.incoming[to] if self.open is None else self.incoming[to][self.open]
        return leverage(self.chart.belief(self.mean, self._at(self.open)) / cavity, cavity)

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
        self.call.keep(rows, self._belief(), self.kl, self._log_variance(), self.known)
        self.call.prediction += time.perf_counter() - started

    def certain(self) -> bool:
        """Whether no row would be asked about; nothing is decided."""
        return self.known.process is not None and not len(self._predict())

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
        predicted = self.known.process is not None
        self._learn(incoming, answer)  # at once: an interrupt must not come between
        ratio = self._compare(chosen, answer, auditing) if predicted else 1.0
        self.call.take(self.rows[chosen], answer)
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
        ours = self.kl[place[good]] / self.known.calibration.factor
        expected = ours + own[good]
        realised = self.call.error(told[good], predicted)
        self.known.calibration.note(expected, realised, auditing, ours / np.maximum(expected, 1e-300))
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
