"""From an oracle's answer to labels of one direction: targets with noise, in the rows that can be learned from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.operators.learned.calibration import Calibration
from heliograph.operators.learned.decide import ROUNDED, improper_answers
from heliograph.operators.learned.records import Forecast, Kind, Labels, Statement, View
from heliograph.operators.learned.view import POINT
from heliograph.operators.protocol import AnswerLike

__all__ = ["compare", "directions_of", "labels_of", "realised_error", "statement_of"]

_LEAST = 1e-300  # keeps a quotient finite where nothing was expected


def directions_of(answer: AnswerLike, kind: Kind) -> Iterator[str | None]:
    """Every direction that an answer teaches, log Z (None) last; a port that holds point masses learns nothing."""
    for to in answer.beliefs:
        if to in kind and kind[to] != POINT:
            yield to
    yield None


def statement_of(answer: AnswerLike, to: str | None) -> Statement:
    """The part of an answer that is about one direction."""
    if to is None:
        variance = answer.log_z_error**2
        good = ~answer.failed & np.isfinite(answer.log_z)
        return Statement(answer.log_z, variance, variance, answer.failed, good)
    belief, failed = answer.beliefs[to], answer.failed_at(to)
    good = ~failed & belief.proper & ~belief.is_point
    return Statement(belief, answer.chart_covariances[to], answer.expected_kl[to], failed, good)


def labels_of(view: View, statement: Statement, room: int) -> Labels | None:
    """Labels of the rows that can be learned from, `room` at most; None if there are none.

    A target is the correction that makes the stated belief of the view's base, in the units of the view's scale.
    """
    good = statement.good & np.isfinite(view.inputs).all(axis=1)
    good &= np.cumsum(good) <= room
    if not good.any():
        return None
    base, value = tuple(a[good] for a in view.base), statement.value[good]
    targets = view.chart.gap(view.chart.moments(value), base)
    noise = view.chart.noise(value, statement.error[good], base)
    fine = np.isfinite(targets).all(axis=1) & np.isfinite(noise).all(axis=1)
    targets, noise, rows = targets[fine], noise[fine], np.flatnonzero(good)[fine]
    n_improper = 0 if view.excess is None else improper_answers(view.excess[rows] + targets[:, 1], noise[:, 1])
    if view.scale is not None:
        scale = view.scale[rows]
        targets, noise = targets / scale[:, None], noise / (scale * scale)[:, None]
    return Labels(view.inputs[rows], targets, noise, statement.kl[rows], n_improper)


def realised_error(value: Any, predicted: Any) -> np.ndarray:
    """The errors of predictions: KL in nats of beliefs, the square of the difference of log Z."""
    return value.kl(predicted) if isinstance(value, Family) else (value - predicted) ** 2


def compare(calibration: Calibration, view: View, forecast: Forecast, statement: Statement, audited: bool) -> float:
    """Note what was expected of predictions beside what the oracle says; the ratio of the two in all, 1 if it says nothing.

    Parameters
    ----------
    calibration : where the pairs are noted
    view, forecast : the rows that were asked, and what was predicted of them
    statement : what the oracle says of the same rows
    audited : whether the predictions would have been trusted
    """
    good = statement.good
    if not good.any():
        return 1.0
    predicted = view.chart.belief(forecast.mean[good], tuple(a[good] for a in view.base))
    ours = forecast.kl[good]
    realised = realised_error(statement.value[good], predicted)
    expected = np.maximum(
        ours + statement.kl[good], ROUNDED
    )  # smaller errors are hidden by the rounding of the comparison
    calibration.note(expected, realised, audited, ours / np.maximum(expected, _LEAST))
    return float(realised.sum() / max(expected.sum(), _LEAST))
