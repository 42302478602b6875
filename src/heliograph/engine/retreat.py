"""Where a run goes back to when a sweep breaks a belief: not always to the state just before it.

From broad beliefs many sites answer at once. Where their sum is no log concave function (a bend, a saturating curve), the
beliefs that come of it may be narrow and in the wrong place, and the sweep after that moves them hundreds of times as far, to
a place from which no step leads back, however short. What went wrong is the step before, so the run goes back to where its
sweeps moved least, and leaves that place by half the step (docs/decisions/0064).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.tables import Snapshot
from heliograph.families import Family

__all__ = ["Calm", "Retreat"]

_LOST = 10.0  # times the least change so far, from which on a sweep led away (chosen on regressions through tanh, decision 0064)


class Calm(NamedTuple):
    """The state that a sweep moved least."""

    sent: Snapshot
    beliefs: list[Family]
    step: float  # by which it was left
    change: float  # of that sweep, undamped


class Retreat:
    """The calmest state of a run so far, and how far the last sweep has led away from it."""

    def __init__(self) -> None:
        self._calm: Calm | None = None
        self._last = 0.0

    def note(self, sent: Snapshot, beliefs: list[Family], step: float, change: float) -> None:
        """Remember a sweep that was not undone: the state that it left, and how far it moved that."""
        if self._calm is None or change <= self._calm.change:
            self._calm = Calm(sent, beliefs, step, change)
        self._last = change

    def back(self) -> Calm | None:
        """Where to go back to after a sweep that broke a belief; None if the state before it was calm enough."""
        calm = self._calm
        if calm is None or not self._last > _LOST * calm.change:
            return None
        # it is left by a shorter step now, so that what it was left by before says nothing any more
        self._calm = calm._replace(step=0.5 * calm.step, change=np.inf)
        self._last = 0.0
        return calm
