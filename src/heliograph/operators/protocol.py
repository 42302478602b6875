"""The protocol of operators, which send the messages of one factor and ask an oracle about those that they do not know.

An operator knows no oracle and no graph. It gets the incoming messages, a function `ask` that answers for some rows of them
at a price, and a `Setting` with what else is known about the run. `Learner` is the
exchangeable part of the just-in-time operator: a regression that sees tuples of messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from heliograph.families import Family

__all__ = [
    "NOTHING_MORE",
    "AnswerLike",
    "Ask",
    "Incoming",
    "Learner",
    "LogNormalisers",
    "Operator",
    "ReferenceLike",
    "Reply",
    "Setting",
    "State",
    "rows_of",
    "signature",
]

Incoming = Mapping[str, Any]  # port -> Family batch (n,), or a plain array (n, ...) at a data port
State = tuple[dict[str, np.ndarray], dict[str, Any]]  # arrays, and what goes into JSON


class Reply(NamedTuple):
    """The result of one call for one direction of a plate of n messages."""

    message: Family  # (n,) to be sent
    failed: np.ndarray  # (n,) bool: no answer; the engine keeps the old message
    asked: np.ndarray  # (n,) bool
    log_variance: np.ndarray | None = None  # (n, q) log predictive variance, NaN before anything was learned
    # (n,) nats that the belief is expected to be wrong by, infinite where it failed; None if unknown
    expected_kl: np.ndarray | None = None
    n_asked: int = 0  # rows handed to the oracle
    n_evaluations: int = 0  # of the user's function
    seconds_oracle: float = 0.0
    seconds_learning: float = 0.0
    seconds_prediction: float = 0.0
    n_answer_evaluations: int = 0  # of these, for answers of the oracle
    n_table_evaluations: int = 0  # of these, for tables of predictions that later messages are read from


class LogNormalisers(NamedTuple):
    """The log normalisers of n tuples of messages, and what they cost besides the oracle's answers."""

    values: np.ndarray  # (n,)
    n_evaluations: int  # of the user's function, for references


class AnswerLike(Protocol):
    """What an operator reads of an oracle's answer about n rows; the default operator alone reads the last three."""

    @property
    def beliefs(self) -> Mapping[str, Family]:
        """Every random port -> its beliefs (n,)."""
        ...

    @property
    def expected_kl(self) -> Mapping[str, np.ndarray]:
        """Every random port -> (n,) nats, the size of its own error."""
        ...

    @property
    def failed(self) -> np.ndarray:
        """The rows (n,) without an answer."""
        ...

    def failed_at(self, port: str) -> np.ndarray:
        """The rows (n,) at which the belief of this port is unknown."""
        ...

    @property
    def chart_covariances(self) -> Mapping[str, np.ndarray]:
        """Every random port -> covariance of the belief's error on its chart (n, r, r)."""
        ...

    @property
    def log_z(self) -> np.ndarray:
        """The log normalisers (n,)."""
        ...

    @property
    def log_z_error(self) -> np.ndarray:
        """Their standard errors (n,)."""
        ...


class ReferenceLike(Protocol):
    """What an operator reads of a cheap reference belief of one port."""

    @property
    def moments(self) -> tuple[np.ndarray, ...]:
        """Of the port in question, on the chart of its family: mean and variance, or covariance."""
        ...

    @property
    def summaries(self) -> np.ndarray:
        """Numbers without a unit that say how hard each row is, ``(n, s)``."""
        ...

    @property
    def log_z(self) -> np.ndarray | None:
        """The log normaliser ``(n,)``; None unless that was the question."""
        ...

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the user's function that it took."""
        ...

    @property
    def sure(self) -> np.ndarray | None:
        """Nats ``(n,)`` that bound its own error, if it covers the whole domain; None if it does not."""
        ...


class Ask(Protocol):
    """Ask the oracle about rows of incoming messages; rows are answered in order, all directions at once.

    If it is interrupted or the factor raises, the exception that leaves carries what was already paid for as its
    attribute ``answered``: a pair of row numbers and their answer, or None.
    """

    def __call__(self, incoming: Incoming, precision: float | None = None) -> AnswerLike:
        """An answer with one row for each row of `incoming`; `precision` is the relative standard error wished for."""
        ...


class Setting(NamedTuple):
    """What an operator is given with every call besides the messages."""

    tolerance: float = 0.0  # nats of the posterior's error that are one message's share: shares add
    sampler: Any = None  # the factor's description: inputs, child, output, stochastic, expensive
    evaluate: Callable[[np.random.Generator, Mapping[str, np.ndarray]], np.ndarray] | None = None  # the factor itself
    # (rng, incoming, to) -> cheap moments of beliefs, or None
    reference: Callable[..., ReferenceLike | None] | None = None
    share: float = 1.0  # unknowns that the messages of the whole model share, for each message
    together: int = 1  # the largest number of messages that are connected with one another
    deadline: float = math.inf  # by time.monotonic(): afterwards nothing is asked that can be predicted
    # whether the evidence will be compared with that at neighbouring values; tables that cover only some rows are then not used
    compared: bool = False


NOTHING_MORE = Setting()


@runtime_checkable
class Operator(Protocol):
    """Sends the messages of one factor.

    An operator that learns log Z too has a method ``log_z(rng, incoming, ask, setting)`` that returns `LogNormalisers`, and
    the evidence uses it.
    """

    name: str

    def send(
        self, rng: np.random.Generator, to: str, incoming: Incoming, ask: Ask, setting: Setting = NOTHING_MORE
    ) -> Reply:
        """The messages to port `to`; the factor adds `n_asked`, `seconds_oracle` and the oracle's evaluations."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A regression from tuples of messages to q numbers, for one direction; its constructor only stores settings."""

    def fit(self, rng: np.random.Generator, to: str, incoming: Incoming, y: np.ndarray) -> None:
        """Learn from the first rows, and choose whatever is chosen once; the numbers are about messages to `to`."""
        ...

    def update(self, incoming: Incoming, y: np.ndarray) -> None:
        """Learn more rows."""
        ...

    def predict(self, incoming: Incoming) -> tuple[np.ndarray, np.ndarray]:
        """Means (n, q), and variances (n, k) on whose logarithms the decision to ask is taken; NaN: never in doubt."""
        ...

    def state(self) -> State:
        """All that was learned, as arrays and JSON."""
        ...

    def restore(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """The reverse of `state`."""
        ...


def rows_of(incoming: Incoming, rows: Any) -> dict[str, Any]:
    """Some rows of a plate of tuples."""
    return {port: m[rows] for port, m in incoming.items()}


def signature(incoming: Incoming) -> str:
    """The families and dimensions of incoming messages; each signature is learned separately.

    >>> from heliograph.families import Beta, Gaussian
    >>> signature({"z": Gaussian(0.0, [1.0, 2.0]), "scale": np.ones((2, 3)), "out": Beta(1.0, [1.0, 2.0])})
    'z Gaussian, scale data 3, out Beta'
    """
    parts = []
    for port, m in incoming.items():
        if isinstance(m, Family):
            a, rank = m.naturals[0], m.ranks[0]
            parts.append(" ".join([port, type(m).__name__, *(str(k) for k in a.shape[a.ndim - rank :] if rank)]))
        else:
            parts.append(" ".join([port, "data", *(str(k) for k in np.shape(m)[1:])]))
    return ", ".join(parts)
