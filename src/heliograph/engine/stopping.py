"""Stopping rules, predicates on the record of a sweep that combine with ``|`` and ``&``; and whether asking oracles still helps."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable

from heliograph.engine.sweep_info import SweepInfo
from heliograph.errors import ModelError
from heliograph.numerics.checks import in_words

__all__ = ["InVain", "StopRule", "after", "after_seconds", "changed_less_than"]


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
        _check_rule(other)
        return StopRule(
            lambda info: self(info) or other(info), f"{self._text} | {other._text}", _of(max, self.limit, other.limit)
        )

    def __and__(self, other: StopRule) -> StopRule:
        _check_rule(other)
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

    It also stops, without convergence, when the noise of a sampling oracle hides whether the beliefs have settled,
    and when further questions to the oracle do not help.
    """
    _check_positive("changed_less_than", "nats", nats)
    return StopRule(
        lambda info: info.settled(nats) or info.hidden or info.in_vain > 0, f"changed_less_than({nats:g})", nats
    )


def after(sweeps: int) -> StopRule:
    """Stop after that many sweeps."""
    _check_positive("after", "sweeps", sweeps)
    if not isinstance(sweeps, numbers.Integral):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"after takes a whole number of sweeps, not {in_words(sweeps)}")
    return StopRule(lambda info: info.sweep >= sweeps, f"after({sweeps})")


def after_seconds(seconds: float) -> StopRule:
    """Stop when that much time has passed since the rule was made."""
    _check_positive("after_seconds", "seconds", seconds)
    end = time.monotonic() + seconds
    return StopRule(lambda info: time.monotonic() >= end, f"after_seconds({seconds:g})")


def _check_rule(other: object) -> None:
    if not isinstance(other, StopRule):
        raise ModelError(f"a stopping rule combines with another, such as hg.after(50), not with {in_words(other)}")


def _check_positive(rule: str, what: str, value: object) -> None:
    """Refuse a rule that can never hold, or always holds."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not float(value) > 0:
        raise ModelError(f"{rule} takes a positive number of {what}, not {in_words(value)}")


# ---- asking in vain --------------------------------------------------------------------------------------------------
_SWEEPS = 20  # at the least, since the sweep that moved the beliefs least
_QUESTIONS = 100  # questions in them, at the least (both numbers were chosen after |X @ w| had asked 3,241 times)
_CALMER = 0.1  # of the least change: one that falls by less in twenty sweeps takes hundreds more (chosen likewise)


class InVain:
    """Counts questions to oracles before and since the sweep that moved the beliefs least; with `wanted` none counts as in vain.

    A run that does not converge meets new messages in every sweep, and asks about them. Where EP has no fixed point in reach (two
    solutions that differ by a sign, and a start half-way between them), and incoming messages are improper, nothing can be
    learned: a run of 200 sweeps asks thousands of times and ends where it began. It ends once it has asked more questions since
    the sweep that moved it least than before.
    """

    def __init__(self, wanted: bool = False) -> None:
        self._wanted = wanted
        self._least = float("inf")
        self._before = self._since = self._sweeps = 0

    def note(self, change: float, n_asked: int) -> int:
        """Take in a sweep that moved the beliefs by `change` nats; the number of questions asked in vain, if they are.

        >>> asking = InVain()
        >>> [asking.note(change, 40) for change in (80.0, 1.0, *[2.0] * 30)].index(800)
        21
        """
        if change < _CALMER * self._least:
            self._least, self._sweeps = change, 0
            self._before, self._since = self._before + self._since + n_asked, 0
            return 0
        self._sweeps, self._since = self._sweeps + 1, self._since + n_asked
        vain = not self._wanted and self._sweeps >= _SWEEPS and self._since > max(_QUESTIONS, self._before)
        return self._since if vain else 0
