"""The step size: the whole new message at first, less of it when sweeps fail or oscillate, more again when they succeed."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Pace"]

_LEAST_STEP = 0.03  # with shorter steps a sweep moves too little to be worth its time
_PATIENCE = 12  # sweeps without progress before the step is shortened
_PROGRESS = 0.95  # the change over the smallest so far, below which a sweep made progress
_EASY = 3  # sweeps with progress in a row, after which the step grows
_GROWTH = 1.25
_CEILING = 0.8  # of a step that failed: the step grows to this again, and slowly further


class Pace:
    """The step of a run; ``damping`` is ``1 - step``. A user's own damping is kept as it is."""

    def __init__(self, damping: float | None) -> None:
        self.adaptive = damping is None
        self.step = 1.0 - (damping or 0.0)
        self._ceiling = 1.0
        self._best, self._stalled, self._easy = float("inf"), 0, 0

    @property
    def damping(self) -> float:
        """The share of the old message that is kept."""
        return 1.0 - self.step

    @property
    def exhausted(self) -> bool:
        """Whether the step has its smallest size."""
        return self.adaptive and self.step <= _LEAST_STEP

    @property
    def stalled(self) -> int:
        """Sweeps since the last progress."""
        return self._stalled

    def undamped(self, change: float) -> float:
        """The change that a whole step would have made, to first order: KL grows with the square of the step."""
        return change / self.step**2

    def failed(self) -> None:
        """Shorten the step: a sweep made a belief improper and was undone."""
        self._shorten()

    def note(self, change: float, drifting: Callable[[], bool]) -> None:
        """Adapt the step to a sweep that moved the beliefs by `change` nats, undamped.

        `drifting` tells whether they go on in one direction; it is called only when progress has stalled.
        """
        if change < _PROGRESS * self._best:
            self._best, self._stalled, self._easy = change, 0, self._easy + 1
            if self.adaptive and self._easy >= _EASY:
                self._grow()
            return
        self._stalled, self._easy = self._stalled + 1, 0
        if self.adaptive and self._stalled % _PATIENCE == 0:
            if drifting():
                self._grow()
            else:
                self._shorten()
            self._best = change

    def _grow(self) -> None:
        self._ceiling = min(1.0, self._ceiling * 1.05)  # a step that failed once may succeed nearer to the fixed point
        self.step = min(self.step * _GROWTH, max(self._ceiling, self.step))

    def _shorten(self) -> None:
        self._easy = 0
        if self.adaptive:
            self._ceiling = _CEILING * self.step
            self.step = max(self.step / 2, _LEAST_STEP)
