"""A report on a black box and on what was learned about it, in ten lines, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.charts import chart_of
from heliograph.operators.protocol import Reply, rows_of

__all__ = ["Account", "FactorReport", "draw", "report_of"]

_POINTS = 81  # of a drawn line
_SPREAD = 3.0  # deviations of the messages' own centres to which it is drawn
_BAND = 2.0  # standard errors of the drawn band


@dataclass
class Account:
    """Seconds that messages of a factor took, added up over every run."""

    oracle: float = 0.0
    learning: float = 0.0
    prediction: float = 0.0
    reference_evaluations: int = 0

    def add(self, reply: Reply, seconds_oracle: float) -> None:
        """Add what one call took."""
        self.oracle += seconds_oracle + reply.seconds_oracle
        self.learning += reply.seconds_learning
        self.prediction += reply.seconds_prediction
        self.reference_evaluations += reply.n_evaluations


class Reported(Protocol):
    """The part of a factor that is used here."""

    name: ClassVar[str]
    ports: ClassVar[tuple[str, ...]]
    sampler: Any
    n_asked: int
    n_messages: int
    n_evaluations: int
    account: Account
    seen: dict[str, Any]


@dataclass(frozen=True)
class FactorReport:
    """What became of a factor's messages so far; it prints as ten lines."""

    title: str
    n_messages: int
    n_asked: int
    n_evaluations: int
    n_reference_evaluations: int
    seconds: float  # that messages took
    seconds_saved: float  # saved against asking about every message; negative while learning has cost more
    labels: Mapping[str, int]  # direction -> answers learned
    expected_kl: float  # mean of what was expected of predictions that were asked all the same; NaN if none were
    realised_kl: float  # mean of what they were wrong by
    n_audits: int
    weakest: str  # the direction whose errors were most above what was expected

    def __str__(self) -> str:
        share = 100 * self.n_asked / max(self.n_messages, 1)
        compared = "nothing was compared yet"
        if np.isfinite(self.expected_kl):
            compared = f"expected {self.expected_kl:.1e} nats per message, found {self.realised_kl:.1e}"
        word = "less" if self.seconds_saved >= 0 else "more"
        saved = f"about {abs(self.seconds_saved):.3g} s {word} than asking about every message"
        return "\n".join([
            self.title,
            f"  messages          {self.n_messages:,}",
            f"  asked             {self.n_asked:,} ({share:.2g} %)",
            f"  evaluations       {self.n_evaluations:,} of the function",
            f"  by references     {self.n_reference_evaluations:,} of these",
            f"  time              {self.seconds:.3g} s, {saved}",
            f"  labels            {', '.join(f'{k} {n}' for k, n in self.labels.items()) or 'none'}",
            f"  errors            {compared}",
            f"  audits            {self.n_audits} trusted messages were checked",
            f"  weakest           {self.weakest}",
        ])  # fmt: skip

    __repr__ = __str__


def report_of(factor: Reported, operator: Any) -> FactorReport:
    """The report of a factor and one of its operators."""
    account = factor.account
    each = account.oracle / factor.n_asked if factor.n_asked else 0.0
    spent = account.oracle + account.learning + account.prediction
    calibration = operator.calibration() if callable(getattr(operator, "calibration", None)) else {}
    kinds = getattr(operator, "kinds", {})
    labels: dict[str, int] = {}
    for directions in kinds.values():
        for port, known in directions.items():
            labels[port] = labels.get(port, 0) + len(known)
    expected = np.concatenate([c.expected for c in calibration.values()] or [np.zeros(0)])
    realised = np.concatenate([c.realised for c in calibration.values()] or [np.zeros(0)])
    sampler = factor.sampler
    return FactorReport(
        f"factor {factor.name}({', '.join(sampler.inputs)}) -> {sampler.output.__name__}, operator {operator.name}",
        factor.n_messages,
        factor.n_asked,
        factor.n_evaluations,
        account.reference_evaluations,
        spent,
        each * factor.n_messages - spent,
        labels,
        float(expected.mean()) if len(expected) else float("nan"),
        float(realised.mean()) if len(realised) else float("nan"),
        sum(c.n_audits for c in calibration.values()),
        _weakest(calibration),
    )


def _weakest(calibration: Mapping[str, Any]) -> str:
    """The direction whose errors were most above what was expected."""
    if not calibration:
        return "unknown: no prediction was compared with an answer yet"
    key = max(calibration, key=lambda k: calibration[k].factor)
    worst = calibration[key]
    if worst.factor <= 1.0:
        return "none: no direction was wrong by more than was expected"
    to = key.split(" | ")[0]
    return f"{to!r}: errors were {worst.factor:.2g} times what was expected, and expectations are raised by that"


def draw(factor: Reported, axes: Any, operator: Any, to: str | None, over: str | None) -> Any:
    """The centre of the learned belief of `to` as the centre of the message at `over` moves, with its error bars.

    The other messages are those of the middle row of what came in last.
    """
    if not factor.seen:
        raise ModelError(f"factor {factor.name!r} has sent no message yet: run infer first, and plot then")
    to = next(iter(factor.seen)) if to is None else to
    over = to if over is None else over
    unknown = [p for p in (to, over) if p not in factor.ports]
    if unknown:
        raise ModelError(f"factor {factor.name!r} has no ports {unknown}; it has {list(factor.ports)}")
    incoming, setting = factor.seen.get(to, next(iter(factor.seen.values())))
    if not callable(getattr(operator, "predicted", None)):
        raise ModelError(
            f"operator {getattr(operator, 'name', operator)!r} does not say how sure it is, so nothing can be drawn"
        )
    chart: Any = chart_of(incoming[over])
    if not hasattr(chart, "from_features") or not incoming[over].proper.all():
        raise ModelError(f"a line can only be drawn over a message of one number, and {over!r} has more")
    features = chart.features(incoming[over])
    middle = np.argsort(features[:, 0], kind="stable")[len(features) // 2]
    half = _SPREAD * (features[:, 0].std() + np.exp(0.5 * features[middle, 1]))
    centres = features[middle, 0] + np.linspace(-half, half, _POINTS)
    moved = chart.from_features(np.column_stack([centres, np.full(_POINTS, features[middle, 1])]))
    made = rows_of(incoming, np.full(_POINTS, middle)) | {over: moved}
    mean, sd = operator.predicted(np.random.default_rng(0), to, {p: made[p] for p in incoming}, setting)
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots()[1]
    mean = np.where(np.isfinite(sd), mean, np.nan)  # a gap where no similar message was seen
    axes.fill_between(centres, mean - _BAND * sd, mean + _BAND * sd, alpha=0.3, label="two standard errors")
    axes.plot(centres, mean, label="learned")
    axes.set_xlabel(f"centre of the message at {over}")
    axes.set_ylabel(f"centre of the belief of {to}")
    axes.legend()
    return axes
