"""Stopping rules: questions about the record of a sweep, combined with ``|`` and ``&``."""

from __future__ import annotations

import time
from collections.abc import Callable

from heliograph.engine.sweep_info import SweepInfo

__all__ = ["StopRule", "after", "after_seconds", "changed_less_than"]


class StopRule:
    """A question asked after every sweep.

    >>> rule = changed_less_than(1e-6) | after(200)
    >>> rule
    changed_less_than(1e-06) | after(200)
    """

    def __init__(self, ask: Callable[[SweepInfo], bool], text: str, limit: float | None = None) -> None:
        self._ask = ask
        self._text = text
        self.limit = limit  # nats at which the beliefs count as settled; None where the rule does not depend on them

    def __call__(self, info: SweepInfo) -> bool:
        """Return whether to stop after this sweep."""
        return self._ask(info)

    def converged(self, info: SweepInfo) -> bool:
        """Return whether the beliefs have settled by the rule's own limit (docs/convergence.md), whatever made it stop."""
        return self.limit is not None and info.settled(self.limit)

    def __or__(self, other: StopRule) -> StopRule:
        return StopRule(
            lambda info: self(info) or other(info), f"{self._text} | {other._text}", _of(max, self.limit, other.limit)
        )

    def __and__(self, other: StopRule) -> StopRule:
        return StopRule(
            lambda info: self(info) and other(info),
            f"({self._text} & {other._text})",
            _of(min, self.limit, other.limit),
        )

    def __repr__(self) -> str:
        return self._text


def _of(choose: Callable[..., float], a: float | None, b: float | None) -> float | None:
    """The larger or the smaller of two limits of which either may be missing."""
    return b if a is None else a if b is None else choose(a, b)


def changed_less_than(nats: float) -> StopRule:
    """Stop when the beliefs have settled to `nats`: see `SweepInfo.settled` and docs/convergence.md.

    It stops, too, when the noise of a sampling oracle hides whether they have, or when questions are asked in vain; the run is then
    not converged.
    """
    return StopRule(
        lambda info: info.settled(nats) or info.hidden or info.in_vain > 0, f"changed_less_than({nats:g})", nats
    )


def after(sweeps: int) -> StopRule:
    """Stop after that many sweeps."""
    return StopRule(lambda info: info.sweep >= sweeps, f"after({sweeps})")


def after_seconds(seconds: float) -> StopRule:
    """Stop when that much time has passed since the rule was made."""
    end = time.monotonic() + seconds
    return StopRule(lambda info: time.monotonic() >= end, f"after_seconds({seconds:g})")
