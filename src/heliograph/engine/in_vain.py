"""When questions are asked in vain: beliefs that never come to rest meet new messages in every sweep, and ask on and on.

Where EP has no fixed point in reach (two solutions that differ by a sign, and a start half-way between them), every sweep is a
new place for a learned message, and messages that come in improper have nothing to be learned from: a run of 200 sweeps asks
thousands of times and ends where it began. It ends once it has asked more since its calmest sweep than before it.
"""

from __future__ import annotations

__all__ = ["InVain"]

_SWEEPS = 20  # at the least since the calmest
_QUESTIONS = (
    100  # at the least in them: fewer are no price (both numbers were chosen after |X @ w| had asked 3,241 times)
)
_CALMER = 0.1  # of the change of the calmest sweep: one that falls by less in twenty sweeps asks for hundreds more (chosen so, too)


class InVain:
    """Counts questions before and since the sweep that moved the beliefs least; none is in vain where all are `wanted`."""

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
