"""Calibration: the errors that the operator expected, beside those that the oracle then found.

Every row that is asked about had a prediction first, and now and then a prediction that was trusted is audited. The
ratio of realised to expected KL is kept, and its running mean is the factor by which expectations are corrected where it is
decided what to ask: never below 1. What is stated in the end may be less, where predictions were better than expected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import FileFormatError

__all__ = ["Calibration", "CalibrationTable"]

_PRIOR = 10.0  # weight of the belief that the regression is honest, in observations
_MEMORY = 100  # observations after which an old one has lost most of its weight
_MOST_RATIO = 50.0  # a single ratio counts for no more, so that one outlier does not dominate for long
_LEAST_RATIO = 1e-4  # and its logarithm for no less: one good row is little evidence
_LOG_BIAS = 0.577  # by which the mean logarithm of honest ratios (chi-squared, two degrees of freedom) is below 0
_BELIEVED = 0.5  # of that logarithm: asked rows differ from trusted ones (chosen on measured coverage, decision 0035)
# factor on stated errors before predictions were compared with answers (chosen on bench_unseen, decision 0035)
_CAUTION = 4.0
_KEPT = 2000


class CalibrationTable(NamedTuple):
    """Realised against expected KL, in bins of the expected one."""

    low: np.ndarray  # (bins,) of expected KL
    high: np.ndarray
    count: np.ndarray
    expected: np.ndarray  # mean in the bin
    realised: np.ndarray  # mean in the bin
    worst_ratio: np.ndarray
    factor: float  # by which expectations are multiplied now

    def __str__(self) -> str:
        lines = ["expected KL            rows   mean expected   mean realised   worst ratio"]
        for row in zip(*self[:6], strict=True):
            lines.append("{:8.1e} .. {:8.1e}  {:5.0f}   {:13.2e}   {:13.2e}   {:11.3g}".format(*row))
        return "\n".join([*lines, f"factor in use: {self.factor:.3g}"])


class Calibration:
    """Pairs of expected and realised KL of one direction, and the factor that follows from them."""

    def __init__(self) -> None:
        self.expected = np.zeros(0)
        self.realised = np.zeros(0)
        self.audited = np.zeros(0, dtype=bool)
        self.informative = np.zeros(0)  # the share of `expected` that was the prediction's and not the answer's own
        self.n_audits = 0  # trusted predictions that were checked
        # realised over expected KL before anything was compared, from leave-one-out predictions of the labels
        self.at_first = 1.0
        self.factor = 1.0  # by how much to multiply expected KLs to decide what to ask: never below 1
        self.stated = 1.0 + _CAUTION  # by how much to multiply them to say how wrong predictions are

    def __len__(self) -> int:
        return len(self.expected)

    def note(
        self, expected: np.ndarray, realised: np.ndarray, audited: bool = False, informative: np.ndarray | None = None
    ) -> None:
        """Remember expected and realised errors; `informative` is the share of `expected` that is the predictions' own."""
        informative = np.ones(len(expected)) if informative is None else informative
        good = np.isfinite(expected) & np.isfinite(realised) & (expected > 0)
        self.expected = np.concatenate([self.expected, expected[good]])[-_KEPT:]
        self.realised = np.concatenate([self.realised, realised[good]])[-_KEPT:]
        self.audited = np.concatenate([self.audited, np.full(int(good.sum()), audited)])[-_KEPT:]
        self.informative = np.concatenate([self.informative, informative[good]])[-_KEPT:]
        self._weigh()

    def expect(self, ratio: float) -> None:
        """Begin with a ratio above 1 where labels contradict their leave-one-out predictions."""
        self.at_first = min(max(1.0, ratio), _MOST_RATIO)
        self._weigh()

    def _weigh(self) -> None:
        """Means of the latest ratios (the older the lighter), drawn to what is expected at first as by ten observations.

        What is stated follows the mean of the roots, by which errors add, where that is above 1. Otherwise the mean of the
        logarithms: a kernel that expects rougher functions than the one at hand overstates most errors a hundredfold,
        and neither of the other means would show it before there are a hundred pairs.
        """
        self.n_audits = int(self.audited.sum())
        if not len(self):
            self.factor, self.stated = self.at_first, (1.0 + _CAUTION) * self.at_first
            return
        ratio = np.minimum(self.realised / self.expected, _MOST_RATIO)
        weight = np.exp(-np.arange(len(ratio))[::-1] / _MEMORY)
        total = _PRIOR + weight.sum()
        self.factor = max(1.0, float((_PRIOR * self.at_first + weight @ ratio) / total))
        root = float((_PRIOR * np.sqrt(self.at_first) + weight @ np.sqrt(ratio)) / total)
        # where the answer is noisy, agreement says little about the prediction
        weight = weight * self.informative
        log_ratio = np.log(np.maximum(ratio, _LEAST_RATIO)) + _LOG_BIAS
        geometric = float(np.exp(_BELIEVED * (weight @ log_ratio) / (_PRIOR + weight.sum())))
        caution = 1.0 + _CAUTION * _PRIOR / total
        self.stated = caution * (root**2 if root > 1.0 else min(geometric, 1.0))

    def table(self) -> CalibrationTable:
        """One row for every power of ten of the expected KL."""
        if not len(self):
            empty = np.zeros(0)
            return CalibrationTable(empty, empty, empty, empty, empty, empty, 1.0)
        power = np.floor(np.log10(self.expected)).astype(int)
        rows = []
        for p in np.unique(power):
            here = power == p
            e, r = self.expected[here], self.realised[here]
            rows.append((10.0**p, 10.0 ** (p + 1), here.sum(), e.mean(), r.mean(), (r / e).max()))
        low, high, count, expected, realised, worst = np.array(rows, dtype=float).T
        return CalibrationTable(low, high, count, expected, realised, worst, self.factor)

    def __str__(self) -> str:
        return str(self.table())

    def plot(self, axes: Any) -> None:
        """Draw realised against expected KL on logarithmic axes, with the line on which the two are equal."""
        for mask, label in ((~self.audited, "asked"), (self.audited, "audited")):
            if mask.any():
                axes.loglog(self.expected[mask], np.maximum(self.realised[mask], 1e-16), ".", label=label)
        ends = [self.expected.min(), self.expected.max()] if len(self) else [1e-6, 1.0]
        axes.loglog(ends, ends, "-", color="grey", label="perfectly honest")
        axes.set_xlabel("expected KL")
        axes.set_ylabel("realised KL")
        axes.legend()

    def state(self) -> dict[str, np.ndarray]:
        """All pairs as arrays."""
        pairs = {"expected": self.expected, "realised": self.realised, "audited": self.audited}
        return pairs | {"informative": self.informative}

    def restore(self, arrays: Any) -> None:
        """The reverse of `state`."""
        self.expected = np.asarray(arrays["expected"], dtype=float)
        self.realised = np.asarray(arrays["realised"], dtype=float)
        self.audited = np.asarray(arrays["audited"], dtype=bool)
        # older files lack it: the expected errors are then stated as they are
        self.informative = np.asarray(arrays.get("informative", np.zeros(len(self.expected))), dtype=float)
        shapes = {a.shape for a in (self.expected, self.realised, self.audited, self.informative)}
        if len(shapes) > 1 or not (self.expected > 0).all() or not (self.informative >= 0).all():
            raise FileFormatError("the calibration of a learned operator does not fit together")
        self._weigh()
