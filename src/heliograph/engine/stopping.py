"""When to stop: rules on the record of a sweep, combined with ``|`` and ``&``."""

from __future__ import annotations

import time
from collections.abc import Callable

from heliograph.engine.trace import SweepInfo

_NOISE = 4.0  # two sweeps' draws differ by twice the noise of one on average; twice that is no progress any more

__all__ = ["StopRule", "after", "after_seconds", "changed_less_than"]


class StopRule:
    """A question asked after every sweep.

    >>> rule = changed_less_than(1e-6) | after(200)
    >>> rule
    changed_less_than(1e-06) | after(200)
    """

    def __init__(self, ask: Callable[[SweepInfo], bool], text: str, convergence: bool = False) -> None:
        self._ask = ask
        self._text = text
        self._converged: Callable[[SweepInfo], bool] = ask if convergence else (lambda info: False)

    def __call__(self, info: SweepInfo) -> bool:
        """Whether to stop after this sweep."""
        return self._ask(info)

    def converged(self, info: SweepInfo) -> bool:
        """Whether the reason to stop is that the beliefs did."""
        return self._converged(info)

    def __or__(self, other: StopRule) -> StopRule:
        rule = StopRule(lambda info: self(info) or other(info), f"{self._text} | {other._text}")
        rule._converged = lambda info: self.converged(info) or other.converged(info)
        return rule

    def __and__(self, other: StopRule) -> StopRule:
        rule = StopRule(lambda info: self(info) and other(info), f"({self._text} & {other._text})")
        rule._converged = lambda info: rule(info) and (self.converged(info) or other.converged(info))
        return rule

    def __repr__(self) -> str:
        return self._text


def changed_less_than(nats: float) -> StopRule:
    """Stop when no belief moved by more than `nats` (KL) in the last sweep, or by more than sampling noise explains.

    A sweep that asked a sampling oracle anew moves the beliefs by about the noise of its answers for ever after.
    """
    return StopRule(
        lambda info: info.change <= max(nats, _NOISE * info.noise), f"changed_less_than({nats:g})", convergence=True
    )


def after(sweeps: int) -> StopRule:
    """Stop after that many sweeps."""
    return StopRule(lambda info: info.sweep >= sweeps, f"after({sweeps})")


def after_seconds(seconds: float) -> StopRule:
    """Stop when that much time has passed since the rule was made."""
    end = time.monotonic() + seconds
    return StopRule(lambda info: time.monotonic() >= end, f"after_seconds({seconds:g})")
