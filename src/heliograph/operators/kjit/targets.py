"""The targets of a regression: a belief in one of two coordinate systems, or the outgoing message itself.

A target turns an oracle's belief into numbers (`forward`) and predicted numbers into the message to send (`inverse`).
Each direction says which rows are valid; an operator asks about the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.families import Family, Gamma
from heliograph.families.coordinates import Coordinates, event_size, logs_of, naturals_of, statistics_of

__all__ = ["OutgoingRate", "Target", "target_named"]


class Target(Protocol):
    """What the regression of one direction aims at."""

    @property
    def name(self) -> str: ...  # noqa: D102 - the word that selects it

    def forward(self, belief: Family, cavity: Family) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (n, q) to learn, and the rows (n,) that can be learned."""
        ...

    def inverse(self, y: np.ndarray, cavity: Family) -> tuple[Family, np.ndarray]:
        """The messages to send, and the rows (n,) where the numbers are those of a belief."""
        ...


class OfBelief(NamedTuple):
    """A belief in coordinates: its expected sufficient statistics, as in the paper's text, or as in the authors' program.

    These are (mean, log variance), (log a, log b) or (log shape, log rate).

    >>> from heliograph.families import Gaussian
    >>> target_named("statistics").forward(Gaussian([1.0], 2.0), Gaussian([0.0], 4.0))[0]
    array([[1., 3.]])
    >>> message, valid = target_named("log").inverse(np.array([[1.0, np.log(2.0)]]), Gaussian([0.0], 4.0))
    >>> message, valid  # N(1, 2) / N(0, 4): precision 1/2 - 1/4, shift 1/2
    (Gaussian[mean 2., variance 4.], array([ True]))
    """

    name: str
    coordinates: Callable[[type[Family]], Coordinates]

    def forward(self, belief: Family, cavity: Family) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of proper beliefs that are not points."""
        y = self.coordinates(type(belief)).encode(belief)
        valid = np.asarray(belief.proper & ~belief.is_point) & np.isfinite(y).all(axis=-1)
        return np.where(valid[:, None], y, np.nan), valid

    def inverse(self, y: np.ndarray, cavity: Family) -> tuple[Family, np.ndarray]:
        """The belief divided by the cavity, eq. (1)."""
        belief, valid = self.coordinates(type(cavity)).decode(y, event_size(cavity))
        quotient = belief / cavity
        # a belief of parameters far apart from the cavity's may round to none at all when they meet again
        valid = valid & np.asarray((quotient * cavity).proper) & np.isfinite(naturals_of(quotient)).all(axis=-1)
        if valid.all():
            return quotient, valid
        # without a belief the message is uniform
        naturals = tuple(
            np.where(valid.reshape(valid.shape + (1,) * r), a, 0.0)
            for a, r in zip(quotient.naturals, quotient.ranks, strict=True)
        )
        return quotient.from_naturals(naturals, quotient.point), valid


class OutgoingMessage(NamedTuple):
    """The natural parameters of the message itself; its belief may turn out to be none.

    >>> from heliograph.families import Gaussian
    >>> OutgoingMessage().forward(Gaussian([1.0], 2.0), Gaussian([0.0], 4.0))[0]
    array([[0.5 , 0.25]])
    """

    name: str = "message"

    def forward(self, belief: Family, cavity: Family) -> tuple[np.ndarray, np.ndarray]:
        """The naturals of belief / cavity."""
        y = naturals_of(belief) - naturals_of(cavity)
        valid = np.asarray(belief.proper & ~belief.is_point & ~cavity.is_point & np.isfinite(y).all(axis=-1))
        return np.where(valid[:, None], y, np.nan), valid

    def inverse(self, y: np.ndarray, cavity: Family) -> tuple[Family, np.ndarray]:
        """The message with these naturals, valid where it makes a belief with the cavity."""
        finite = np.asarray(np.isfinite(y).all(axis=-1))
        message = _from_rows(np.where(finite[:, None], y, 0.0), cavity)
        return message, finite & np.asarray((message * cavity).proper)


class OutgoingRate(NamedTuple):
    """The log rate of an outgoing Gamma message whose shape is forced to 1, as the authors' program in Experiment 4.

    The rate is the one that gives the belief its mean; the belief's shape is then the cavity's.

    >>> from heliograph.families import Gamma
    >>> cavity = Gamma([6.0], 2.0)
    >>> message, valid = OutgoingRate().inverse(OutgoingRate().forward(Gamma([5.0], 2.0), cavity)[0], cavity)
    >>> message, (message * cavity).mean
    (Gamma[shape 1., rate 0.4], array([2.5]))
    """

    name: str = "rate"

    def forward(self, belief: Family, cavity: Family) -> tuple[np.ndarray, np.ndarray]:
        """The log rate where it is positive."""
        shape, rate = self._parameters(cavity)
        proper = np.asarray(belief.proper & ~belief.is_point & cavity.proper & ~cavity.is_point)
        outgoing = np.where(proper, shape / np.where(proper, belief.mean, 1.0) - rate, 0.0)
        valid = outgoing > 0
        return np.where(valid, np.log(np.where(valid, outgoing, 1.0)), np.nan)[:, None], valid

    def inverse(self, y: np.ndarray, cavity: Family) -> tuple[Family, np.ndarray]:
        """An exponential message."""
        valid = np.abs(y[:, 0]) < 600.0  # beyond that its exponential overflows
        rate = np.where(valid, np.exp(np.where(valid, y[:, 0], 0.0)), 0.0)
        message = cavity.from_naturals((np.zeros(len(y)), rate))
        return message, valid & np.asarray((message * cavity).proper)

    @staticmethod
    def _parameters(cavity: Family) -> tuple[np.ndarray, np.ndarray]:
        if not isinstance(cavity, Gamma):
            raise UnsupportedError(f"target 'rate' is for Gamma messages, not {type(cavity).__name__}; use 'message'")
        return cavity.naturals[0] + 1.0, cavity.naturals[1]


_ALL: tuple[Target, ...] = (
    OfBelief("statistics", statistics_of),
    OfBelief("log", logs_of),
    OutgoingMessage(),
    OutgoingRate(),
)
_TARGETS = {target.name: target for target in _ALL}


def target_named(name: Any) -> Target:
    """The target that a word selects; an object that already is one comes back as it is."""
    if isinstance(name, str):
        if name not in _TARGETS:
            raise ModelError(f"there is no target {name!r}; there are {sorted(_TARGETS)}")
        return _TARGETS[name]
    return name


def _from_rows(y: np.ndarray, like: Family) -> Family:
    naturals, at, d = [], 0, event_size(like)
    for rank in like.ranks:
        size = (1, d, d * (d + 1) // 2)[rank]
        part = y[:, at : at + size]
        at += size
        if rank == 2:
            square = np.empty((len(y), d, d))
            i, j = np.triu_indices(d)
            square[:, i, j] = square[:, j, i] = part
            part = square
        naturals.append(part[:, 0] if rank == 0 else part)
    return like.from_naturals(tuple(naturals))
