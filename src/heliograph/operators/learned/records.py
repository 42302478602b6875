"""What flows through the default operator: task -> view -> prediction -> decision -> settled rows, and labels on the way back.

Every stage reads the records of the stages before it and makes one of its own; no record knows who made it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Family
from heliograph.families.charts import Chart, Moments
from heliograph.operators.protocol import Ask, Setting

__all__ = [
    "ALONE",
    "Beside",
    "Costs",
    "Decision",
    "Forecast",
    "Kind",
    "Labels",
    "Limit",
    "Prediction",
    "Settled",
    "Statement",
    "Task",
    "Trust",
    "View",
]

Kind = dict[str, str]  # port -> what it holds: PROPER, POINT, UNIFORM, WILD or DATA (view.py)


@dataclass(slots=True)
class Costs:
    """The account of one call; the oracle keeps its own."""

    n_evaluations: int = 0  # of the user's function, for references
    n_table_evaluations: int = 0  # of these, at messages that nobody sent: for lattices and digests
    seconds_learning: float = 0.0
    seconds_prediction: float = 0.0


class Task(NamedTuple):
    """What one call of the operator has to do."""

    rng: np.random.Generator
    to: str | None  # the port in question; None: log Z
    ask: Ask
    setting: Setting
    tolerance: float  # nats that one message may be wrong by, if all are and all errors pull the same way
    costs: Costs


class View(NamedTuple):
    """Rows of one kind, as the regression of one direction sees them."""

    chart: Chart  # of the port in question
    base: Moments  # what the target is relative to
    inputs: np.ndarray  # (n, k)
    scale: np.ndarray | None  # (n,) how large corrections to the base are by its own account; None: alike everywhere
    excess: np.ndarray | None  # (n,) log variance of the base over the cavity's, where both are plain numbers
    to: str | None
    cavity: Family | None  # (n,) what came in from the port in question; None: no proper messages
    # (n,) nats that the base itself is wrong by at most, by its own account; None: unknown
    sure: np.ndarray | None = None

    def at(self, rows: np.ndarray | None) -> View:
        """Some rows, or all of them as they are."""
        if rows is None:
            return self
        return View(
            self.chart,
            tuple(a[rows] for a in self.base),
            self.inputs[rows],
            None if self.scale is None else self.scale[rows],
            None if self.excess is None else self.excess[rows],
            self.to,
            None if self.cavity is None else self.cavity[rows],
            None if self.sure is None else self.sure[rows],
        )


class Trust(NamedTuple):
    """How far predictions and labels of one direction can be trusted, by what was found so far."""

    factor: float = 1.0  # by which expected KLs are multiplied to decide what to ask: never below 1
    stated: float = 1.0  # by which they are multiplied to say how wrong predictions are
    label_kl: float = 0.0  # nats that an answer of the oracle is usually wrong by
    nugget_kl: float = 0.0  # nats that the least noise which the regression puts on every label is worth
    always_proper: bool = False  # every answer so far gave a proper message


class Prediction(NamedTuple):
    """What the process says of n rows; nothing is decided yet."""

    mean: np.ndarray  # (n, q) of the targets
    variance: np.ndarray  # (n, q)
    weights: np.ndarray  # (n, q) what errors in the targets cost, in nats per variance
    kl: np.ndarray  # (n,) expected, before calibration
    unseen: np.ndarray  # (n,) bool: like no row that has a label
    log_ratio: np.ndarray | None  # (n,) log variance of the belief over the cavity's: above 0 the message is improper

    @property
    def log_variance(self) -> np.ndarray:
        """Logarithms of the variances, ``(n, q)``, for the trace."""
        return np.log(np.maximum(self.variance, 1e-300))


class Beside(NamedTuple):
    """Rows that share the tolerance with those at hand, and are settled already."""

    kl: np.ndarray  # (m,) expected
    unknowns: float  # that they share


ALONE = Beside(np.zeros(0), 0.0)


class Limit(NamedTuple):
    """The expected KL above which a row is asked about."""

    kl: float
    warning: str | None = None  # a warning for the user: the oracle's answers are too noisy for the tolerance


class Decision(NamedTuple):
    """Which of n predicted rows cannot be trusted."""

    kl: np.ndarray  # (n,) expected, corrected by how such expectations fared
    limit: Limit
    doubtful: np.ndarray  # (n,) bool: expected to be wrong by too much, or improper beyond doubt
    unseen: np.ndarray  # (n,) bool

    @property
    def certain(self) -> bool:
        """Whether every row can be trusted."""
        return not (self.doubtful.any() or self.unseen.any())


class Forecast(NamedTuple):
    """What was predicted of n rows that are asked all the same."""

    mean: np.ndarray  # (n, q)
    kl: np.ndarray  # (n,) expected, before calibration


class Statement(NamedTuple):
    """What an oracle's answer says of one direction of n rows."""

    value: Any  # (n,) beliefs of the port, or log Z
    error: np.ndarray  # its covariance on the chart (n, r, r), or the variance of log Z (n,)
    kl: np.ndarray  # (n,) nats that its own error is worth
    failed: np.ndarray  # (n,) bool: nothing is known
    good: np.ndarray  # (n,) bool: can be compared with and learned from


class Labels(NamedTuple):
    """Rows to learn, in the units of their scale."""

    inputs: np.ndarray  # (n, k)
    targets: np.ndarray  # (n, q)
    noise: np.ndarray  # (n, q) variances
    kl: np.ndarray  # (n,) nats that each answer itself may be wrong by
    n_improper: int = 0  # answers whose message was improper


class Settled(NamedTuple):
    """What a call has found about some of its rows; of several for one row the last counts."""

    rows: Any  # a slice or numbers; None: all
    belief: Any  # beliefs of the port, or log Z
    expected_kl: np.ndarray  # infinite where nobody knows
    log_variance: np.ndarray | None = None  # of a prediction
    failed: np.ndarray | None = None  # bool, of rows that were asked; None: they were not

    @property
    def asked(self) -> bool:
        """Whether an oracle said it."""
        return self.failed is not None
