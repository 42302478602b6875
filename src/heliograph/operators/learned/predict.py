"""The correction of one direction: its labels, the process that grows with them, its predictions and their record.

The process (exact, on landmarks, or of the nearest labels) is `regression/growing_process.py`; here it meets views and
labels. Everything goes through `append`, `predict` and `choose`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from heliograph.errors import FileFormatError
from heliograph.operators.learned.calibration import Calibration
from heliograph.operators.learned.decide import (
    CERTAIN,
    CHECKED,
    CONTRADICTED,
    EXACT,
    FINEST_SHARE,
    SEEN,
    audited_rows,
    batch_size,
    stated_kl,
    surprised,
    usual_error,
)
from heliograph.operators.learned.learn import compare
from heliograph.operators.learned.records import Decision, Forecast, Labels, Prediction, Settled, Statement, Trust, View
from heliograph.regression.growing_process import LEAST_NOISE, GrowingProcess, design
from heliograph.storage import below

__all__ = ["Correction", "belief_of"]

_CLOSE = 3.0  # deviations from being improper, within which conditioning on being proper moves the mean at all
_NOTHING = np.zeros(0, dtype=int)
_LEAST = 1e-300  # keeps a quotient finite where nothing was expected


class Correction:
    """What is known of the corrections of one direction: a process, the errors of its labels, and its calibration."""

    def __init__(self, n_inputs: int, n_outputs: int, start: int, landmarks: int = 800) -> None:
        self.process = GrowingProcess(n_inputs, n_outputs, start, landmarks)
        self.calibration = Calibration()
        self.own_kl = np.zeros(0)  # what each answer itself may be wrong by
        self.label_kl = 0.0  # what an answer is usually wrong by
        self.nugget_kl = 0.0  # what the least noise that the regression puts on every label is worth
        self.n_trusted = 0  # messages that were predicted and sent
        self.n_improper = 0  # answers whose message was improper
        self._checked = -1  # times that widths were chosen, when labels were last compared with one another

    def __len__(self) -> int:
        return len(self.process)

    @property
    def ready(self) -> bool:
        """Whether there are labels enough to predict."""
        return self.process.fitted is not None

    @property
    def unchecked(self) -> bool:
        """Whether it predicts, and hardly any prediction was compared with an answer yet."""
        return self.ready and len(self.calibration) < CHECKED

    def trust(self) -> Trust:
        """How far what it predicts can be trusted now."""
        calibration, process = self.calibration, self.process
        if self.ready and self._checked != process.n_refits:
            residual, variance = process.leave_one_out()
            ratio = float(((residual**2).sum(axis=1) / np.maximum(variance.sum(axis=1), _LEAST)).mean())
            calibration.expect(ratio if ratio > CONTRADICTED else 1.0)
            self._checked = process.n_refits
        proper = self.n_improper == 0 and len(process.targets) >= process.start
        return Trust(calibration.factor, calibration.stated, self.label_kl, self.nugget_kl, proper)

    def append(self, labels: Labels) -> None:
        """Take in labelled rows."""
        if not len(labels.inputs):
            return
        self.own_kl = np.concatenate([self.own_kl, labels.kl])
        self.label_kl = usual_error(self.own_kl)
        self.n_improper += labels.n_improper
        self.process.append(labels.inputs, labels.targets, labels.noise)

    def predict(self, view: View, novelty: float, finest: float) -> Prediction:
        """Predict every row of a view, and remember what the least noise of a label is worth among such rows.

        Parameters
        ----------
        view : the rows
        novelty : how new a row may be, from 0 to 1, before it counts as unseen
        finest : the variance of a target below which errors do not count, and the doubt of a base that needs no correction
        """
        mean, variance, new = self.process.predict(view.inputs, view.scale, finest)
        weights = view.chart.weights(mean, view.base)
        kl = np.einsum("nq,nq->n", weights, variance)
        self._note_nugget(weights, view.scale)
        unseen = new > novelty
        if unseen.any():  # no label is near, but many together may determine the prediction
            far = np.flatnonzero(unseen)
            unseen[far] = self.process.unseen(view.inputs[far], SEEN)
        if view.sure is not None and finest > 0:
            sure = np.flatnonzero(view.sure <= min(finest, CERTAIN))
            mean[sure], unseen[sure] = 0.0, False
            own = np.maximum(view.sure[sure], EXACT)
            variance[sure] *= (own / np.maximum(kl[sure], _LEAST))[:, None]
            kl[sure] = own
        log_ratio = None if view.excess is None else view.excess + mean[:, 1]
        return Prediction(mean, variance, weights, kl, unseen, log_ratio)

    def _note_nugget(self, weights: np.ndarray, scale: np.ndarray | None) -> None:
        assert self.process.fitted is not None
        squares = np.ones(1) if scale is None else scale * scale
        cost = np.median(weights * squares[:, None], axis=0) if len(weights) else np.zeros(weights.shape[1])
        self.nugget_kl = float(LEAST_NOISE * cost @ self.process.fitted.widths.signal)

    def check(self, view: View, statement: Statement, novelty: float, allowed: float, audited: bool = False) -> float:
        """Compare what is expected of rows like some that were seen with what an oracle says: realised over expected in all.

        An audit is of rows that would be trusted: that are expected to be wrong by no more than is `allowed`.
        """
        said = self.predict(view, novelty, FINEST_SHARE * allowed)
        seen = statement.good & ~said.unseen & np.isfinite(said.kl)
        if audited:
            trusted = seen & (said.kl * self.trust().factor <= allowed)
            audited = bool(trusted.any())
            seen = trusted if audited or not self.unchecked else seen
        return compare(self.calibration, view, Forecast(said.mean, said.kl), statement._replace(good=seen), audited)

    def surprise(self, ratio: float) -> None:
        """Choose the widths anew, because errors were much larger than expected."""
        if self.ready and surprised(ratio, len(self), self.process.n_fitted):
            self.process.refit()

    def choose(self, view: View, prediction: Prediction, decision: Decision) -> np.ndarray:
        """Rows to ask about next: places like none seen first, else the worst, each as if those before it were known."""
        if decision.certain:
            return _NOTHING
        size = batch_size(len(self), self.process.due)
        if decision.unseen.any():  # new places first: other rows may be certain afterwards
            some = np.flatnonzero(decision.unseen)
            chosen = some[self.process.spread(view.inputs[some], SEEN, size)]
            if len(chosen):
                return chosen
        some = np.flatnonzero(decision.doubtful)
        if not len(some):
            return _NOTHING
        scores = prediction.weights[some] * self.calibration.factor
        if view.scale is not None:
            scores *= (view.scale[some] ** 2)[:, None]
        chosen = some[self.process.choose(view.inputs[some], scores, decision.limit.kl, size)]
        return chosen if len(chosen) else some[:size]

    def first(self, view: View) -> np.ndarray:
        """Rows to ask about before anything can be predicted: a design that fills the plate."""
        return design(view.inputs, self.process.inputs, self.process.start - len(self))

    def audit(self, rng: np.random.Generator, n: int, share: float) -> np.ndarray:
        """Choose rows to check among n that would be trusted."""
        counts = {"n_audits": self.calibration.n_audits, "n_labels": len(self), "n_trusted": self.n_trusted}
        return audited_rows(rng, n, share, **counts)

    def accept(self, rows: np.ndarray | None, view: View, prediction: Prediction, decision: Decision) -> Settled:
        """Settle rows as predicted, and count them."""
        trust = self.trust()
        belief = belief_of(view, prediction, trust)
        return self.settled(rows, belief, decision.kl, prediction.log_variance, trust)

    def settled(self, rows: Any, belief: Any, kl: np.ndarray, log_variance: np.ndarray, trust: Trust) -> Settled:
        """Settle rows as given, and count them.

        Parameters
        ----------
        rows : which they are; None: all
        belief, log_variance : what is predicted
        kl : ``(n,)``, what was decided by; what is stated may be less
        trust : by which it was decided
        """
        self.n_trusted += len(kl)
        return Settled(rows, belief, stated_kl(kl, trust), log_variance)

    def smooth(self, view: View, found: Sequence[Settled], tolerance: float, novelty: float) -> Settled | None:
        """Rows whose prediction is better than their own answer, because that is noisier than `tolerance`; None if there are none.

        What the regression makes of all answers is then sent in place of the row's own (docs/decisions/0016).
        """
        noisy = np.zeros(len(view.inputs))
        for part in found:
            if part.failed is not None:
                noisy[part.rows] = np.where(part.failed, 0.0, part.expected_kl)
        at = np.flatnonzero(noisy > tolerance)
        if not self.ready or not len(at):
            return None
        view = view.at(at)
        mean, variance, new = self.process.predict(view.inputs, view.scale)
        kl = np.einsum("nq,nq->n", view.chart.weights(mean, view.base), variance) * self.calibration.factor
        better = (kl < noisy[at]) & (new < novelty)
        if not better.any():
            return None
        belief = view.chart.belief(mean[better], tuple(a[better] for a in view.base))
        return Settled(at[better], belief, kl[better])

    # ---- keeping ------------------------------------------------------------------------------------------------
    def state(self) -> dict[str, np.ndarray]:
        """Labels, widths and calibration as arrays."""
        arrays = {"own_kl": self.own_kl, "n_improper": np.array(self.n_improper), "n_trusted": np.array(self.n_trusted)}
        return self.process.state() | arrays | {f"calibration.{k}": a for k, a in self.calibration.state().items()}

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], start: int, landmarks: int = 800) -> Correction:
        """The reverse of `state`; raises `FileFormatError` where the arrays do not fit together."""
        process = GrowingProcess.from_state(arrays, start, landmarks)
        made = cls(process.inputs.shape[1], process.targets.shape[1], start, landmarks)
        made.process = process
        made.own_kl, made.n_improper = np.asarray(arrays["own_kl"], dtype=float), int(arrays["n_improper"])
        made.n_trusted = int(arrays.get("n_trusted", 0))  # older files have none
        if made.own_kl.shape != (len(process),):
            raise FileFormatError("the labels of a learned operator do not fit together")
        made.label_kl = usual_error(made.own_kl)
        made.calibration.restore(below(arrays, "calibration."))
        return made


def belief_of(view: View, prediction: Prediction, trust: Trust) -> Any:
    """Predicted beliefs; if all answers were proper, on condition of that: none is improper by a rounding error."""
    mean, log_ratio = prediction.mean, prediction.log_ratio
    if log_ratio is not None and trust.always_proper:
        sd = np.sqrt(prediction.variance[:, 1])
        close = np.flatnonzero(log_ratio > -_CLOSE * sd)
        if len(close):
            s, e = sd[close], log_ratio[close]
            t = -e / s
            hazard = np.exp(-0.5 * t * t - 0.5 * np.log(2 * np.pi) - log_ndtr(t))
            mean = mean.copy()
            mean[close, 1] -= s * hazard
    return view.chart.belief(mean, view.base)
