"""The history of a run for its reader: one record per sweep, one per invocation of a learned direction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

__all__ = ["Invocation", "SweepInfo", "Trace"]

_FRESH_DRAWS = 4.0  # two sweeps' draws differ by twice the noise of one on average; twice that is no progress any more
_AHEAD = 10.0  # the limit on one sweep's change, by which the beliefs may still move in all sweeps to come


class SweepInfo(NamedTuple):
    """The record of one sweep."""

    sweep: int
    change: float  # largest KL(new belief || old belief) over the user's variables, in nats, as if nothing were damped
    moving: str  # the variable that changed most
    damping: float
    rolled_back: bool  # the sweep diverged; the beliefs are those before it, and the damping was raised
    n_messages: int
    n_improper: int
    n_skipped: int
    n_failed: int  # messages that the oracle could not give; the old ones were kept
    n_asked: int
    n_evaluations: int  # of black-box functions, by oracle and reference together
    noise: float  # nats by which fresh draws alone may have moved the beliefs; 0 where nothing was asked
    seconds: float
    seconds_oracle: float
    seconds_learning: float
    seconds_prediction: float
    to_go: float = 0.0  # nats by which the beliefs may still move at the rate of the last sweeps; inf where unknown
    n_unsent: int = 0  # messages whose latest value could not be computed, so that an older one (or none) stands
    tolerated: float = np.inf  # nats of posterior error that the run tolerates
    hidden: bool = False  # the noise of the oracle hides whether the beliefs have settled

    @property
    def noise_floor(self) -> float:
        """The change that fresh draws alone may cause in a sweep."""
        return _FRESH_DRAWS * self.noise

    def settled(self, nats: float) -> bool:
        """Return whether the beliefs have settled to `nats`, as docs/convergence.md defines it.

        Every message could be sent; the undamped change of the sweep is below `nats`, or below what fresh draws cause
        where that is tolerated; and the changes to come add up to less than ten times that.
        """
        level = max(nats, self.noise_floor)
        quiet = self.noise == 0.0 or level <= max(self.tolerated, nats)
        unsent = self.rolled_back or self.n_unsent > 0
        return not unsent and quiet and self.change <= level and self.to_go <= _AHEAD * level

    @property
    def seconds_rest(self) -> float:
        """Time spent outside black boxes."""
        return self.seconds - self.seconds_oracle - self.seconds_learning - self.seconds_prediction


class Invocation(NamedTuple):
    """One call of one direction of a black-box plate; rows are the messages of the call."""

    sweep: int
    factor: str
    to: str
    log_variance: np.ndarray | None  # (n, outputs) log predictive variance; None where the operator has none
    asked: np.ndarray  # (n,) bool
    failed: np.ndarray  # (n,) bool
    improper: np.ndarray  # (n,) bool


@dataclass
class Trace:
    """The whole run: `sweeps` and, for learned factors, `invocations`."""

    sweeps: list[SweepInfo] = field(default_factory=list[SweepInfo])
    invocations: list[Invocation] = field(default_factory=list[Invocation])
    single_pass: SweepInfo | None = None  # of a tree, where every message was sent once and there was no sweep
    late: object = None  # counts of the messages that were sent only when the posterior was read

    def total(self, name: str) -> float:
        """The sum of one field of `SweepInfo` over the run."""
        once = [] if self.single_pass is None else [self.single_pass]
        return sum(getattr(info, name) for info in (*once, *self.sweeps))

    @property
    def changes(self) -> np.ndarray:
        """The change of every sweep."""
        return np.array([info.change for info in self.sweeps])

    @property
    def n_asked(self) -> int:
        """Oracle calls of the run."""
        return int(self.total("n_asked"))

    def __len__(self) -> int:
        return len(self.sweeps)

    def __repr__(self) -> str:
        if not self.sweeps:
            return "Trace(no sweeps: every message was exact after one pass)"
        last = self.sweeps[-1]
        undone = sum(info.rolled_back for info in self.sweeps)
        damped = f", {undone} sweeps undone" if undone else ""
        damped += f", damping {last.damping:.2g}" if last.damping else ""
        return (
            f"Trace({len(self.sweeps)} sweeps, last change {last.change:.2g} nats in {last.moving!r}, "
            f"{self.n_asked} asked, {int(self.total('n_improper'))} improper, {int(self.total('n_failed'))} failed{damped})"
        )

    def plot(self, path: str | None = None, window: int = 100):
        """The paper's figure of temporal uncertainty: log predictive variance of every message, asks marked.

        Runs without learned factors show the change per sweep instead. Returns the matplotlib figure.
        """
        from heliograph.engine.plotting import plot_trace

        return plot_trace(self, path, window)
