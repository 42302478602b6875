"""The step: how much of every new message is taken in a sweep, and where a run goes back to when that was too much.

1. The first step is whole. A user's own ``damping=`` is kept as it is, and none of the rules below applies.
2. Changes are measured as if nothing were damped: KL grows with the square of the step, so they are divided by it.
3. A sweep that leaves a belief improper or NaN is undone, and the step halved; `Retreat` says how far it is undone.
4. A few sweeps without progress (no change smaller by a twentieth than the smallest so far) halve the step, unless the beliefs
   go on in one direction all the while: then shorter steps would only be slower, and it grows instead.
5. Progress lets the step grow by a quarter, up to a little below the last step that failed, and slowly beyond it: what failed
   once may succeed nearer to the fixed point.
6. No run ends because its step is short, and none is converged that moves only because it is (docs/convergence.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heliograph.engine.tables import Snapshot
from heliograph.families import Family

__all__ = ["LeastMoved", "Pace", "Retreat"]

_PATIENCE = 6  # sweeps without progress before the step is shortened
_PROGRESS = 0.95  # the change over the smallest so far, below which a sweep made progress
_GROWTH = 1.25
_CEILING = 0.8  # of a step that failed: the step grows to this again, and slowly further
_BEYOND = 1.05  # by which that ceiling rises with every sweep of progress
_LEAST = 1e-6  # a step this short moves nothing that floating point could see


class Pace:
    """The step of a run; ``damping`` is ``1 - step``."""

    def __init__(self, damping: float | None) -> None:
        self.adaptive = damping is None
        self.step = 1.0 - (damping or 0.0)
        self._ceiling = 1.0
        self._best, self._stalled = float("inf"), 0

    @property
    def damping(self) -> float:
        """The share of the old message that is kept."""
        return 1.0 - self.step

    @property
    def stalled(self) -> int:
        """Sweeps since the last progress."""
        return self._stalled

    def undamped(self, change: float) -> float:
        """The change that a whole step would have made, to first order."""
        return change / self.step**2

    def failed(self) -> None:
        """Shorten the step: a sweep made a belief improper and was undone."""
        self._shorten()

    def back_to(self, step: float) -> None:
        """Set the step for leaving a state once more, half of the one that failed."""
        self.step = step
        self._shorten()
        self._best, self._stalled = float("inf"), 0

    def note(self, change: float, drifting: Callable[[int], bool]) -> bool:
        """Adapt the step to a sweep that moved the beliefs by `change` nats, undamped; return whether it was judged.

        `drifting` tells whether they went on in one direction over that many sweeps, since one was last judged; it is called only
        when progress has stalled.
        """
        if change < _PROGRESS * self._best:
            self._best, self._stalled = change, 0
            self._grow()
            return True
        self._stalled += 1
        if self._stalled % _PATIENCE:
            return False
        if drifting(_PATIENCE):
            self._grow()
        else:
            self._shorten()
        self._best = change
        return True

    def _grow(self) -> None:
        if self.adaptive:
            self._ceiling = min(1.0, self._ceiling * _BEYOND)
            self.step = min(self.step * _GROWTH, max(self._ceiling, self.step))

    def _shorten(self) -> None:
        if self.adaptive:
            self._ceiling = _CEILING * self.step
            self.step = max(self.step / 2, _LEAST)


# ---- where a run goes back to ----------------------------------------------------------------------------------------
_LOST = 10.0  # times the least change so far, above which a sweep led away (chosen on regressions through tanh, decision 0064)


class LeastMoved(NamedTuple):
    """The state that a sweep moved least."""

    sent: Snapshot
    beliefs: list[Family]
    step: float  # with which the run left it
    change: float  # of that sweep, undamped


class Retreat:
    """The state that its sweep moved least so far, and a way back to it from a sweep that led far away.

    From broad beliefs, many sites change at once. Where their product is not log-concave (a bend, a saturating curve), the
    resulting beliefs may be narrow and in the wrong place, and the next sweep moves them hundreds of times as far, to a place
    from which no step leads back, however short. The mistake was the step before, so the run goes back to where its sweeps
    moved least, and leaves that place by half the step (docs/decisions/0064).
    """

    def __init__(self) -> None:
        self._least: LeastMoved | None = None
        self._last = 0.0

    def note(self, sent: Snapshot, beliefs: list[Family], step: float, change: float) -> None:
        """Remember a sweep that was not undone: the state before it, and how far it moved that."""
        if self._least is None or change <= self._least.change:
            self._least = LeastMoved(sent, beliefs, step, change)
        self._last = change

    def back(self) -> LeastMoved | None:
        """The state to go back to after a sweep that broke a belief; None if the one before the sweep will do."""
        least = self._least
        if least is None or not self._last > _LOST * least.change:
            return None
        # the run leaves it with a shorter step now, so its old change is no longer comparable
        self._least = least._replace(step=0.5 * least.step, change=np.inf)
        self._last = 0.0
        return least
