"""The default operator's regression, given labelled messages in batch instead of asking for them.

The same reference, chart, inputs and process as `operators.learned`; only who decides on the next label differs. It may
choose a few labels itself from a pool, each time the rows that it knows least about, or be given all of them: then it
keeps those that say most, by a pivoted factorisation, since an exact process costs the cube of its labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.experiments.batch_messages import Labelled
from heliograph.experiments.logistic import logistic_factor
from heliograph.families import Gaussian
from heliograph.operators.chart import Moments, chart_of
from heliograph.oracles.reference import reference_of
from heliograph.regression.gaussian_process import Process, choose, condition, predict, start_widths
from heliograph.regression.process_evidence import fit_widths

__all__ = ["LearnedInBatch", "Prediction", "learned"]

_START = 20  # labels of the first design, as the operator
_FITTED = 320  # labels up to which the widths are chosen anew


class Prediction(NamedTuple):
    """Beliefs of z and what their errors are expected to be worth."""

    belief: Gaussian  # (n,)
    expected_kl: np.ndarray  # (n,) nats


class LearnedInBatch(NamedTuple):
    """A correction to the reference that has been learned."""

    process: Process

    def predict(self, incoming: dict[str, Any]) -> Prediction:
        """The corrected reference."""
        chart, base, x = _see(incoming)
        mean, variance = predict(self.process, x)
        return Prediction(chart.belief(mean, base), (chart.weights(mean, base) * variance).sum(axis=1))


def _see(incoming: dict[str, Any]) -> tuple[Any, Moments, np.ndarray]:
    """The chart of z, the reference there, and what the regression sees: messages, and how the reference came about."""
    refer = reference_of(logistic_factor().sampler)
    assert refer is not None
    # the logistic function draws nothing, so the reference never uses these numbers
    reference = refer(np.random.default_rng(0), incoming, "z")
    assert reference is not None
    z, out = incoming["z"], incoming["out"]
    chart, base = chart_of(z), reference.moments
    columns = [z.mean, np.log(z.variance)]
    for moment in out.chart_moments():
        columns.append(moment)
    seen = np.stack(columns, axis=1)
    return chart, base, np.concatenate([seen, reference.summaries, chart.gap(base, z.chart_moments())], axis=1)


def learned(data: Labelled, n_labels: int) -> LearnedInBatch:
    """Learn from `n_labels` of the labelled messages, chosen as the operator would ask for them. Nothing is random."""
    chart, base, x = _see(data.incoming)
    y = chart.gap(chart.moments(data.belief), base)
    noise = chart.noise(data.belief, data.noise[:, :, None] * np.eye(2), base) if data.noise.any() else None
    # before anything is known: by variance alone, with wide widths
    kept = choose(condition(start_widths(x, 1), x[:0], np.zeros((0, 1)), profile=False), x, limit=_START)
    widths = None
    while True:
        some = None if noise is None else noise[kept]
        if widths is None or len(kept) <= _FITTED:
            widths = fit_widths(x[kept], y[kept], some, start=widths)
        process = condition(widths, x[kept], y[kept], some)
        more = min(2 * len(kept), n_labels, len(x)) - len(kept)
        rest = np.setdiff1d(np.arange(len(x)), kept)
        if more <= 0:
            return LearnedInBatch(process)
        mean, _ = predict(process, x[rest])
        chosen = choose(process, x[rest], chart.weights(mean, tuple(a[rest] for a in base)), 0.0, more)
        if not len(chosen):
            return LearnedInBatch(process)
        kept = np.concatenate([kept, rest[chosen]])
