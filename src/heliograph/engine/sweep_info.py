"""The records of a run: one per sweep, and one per invocation of a learned direction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["AHEAD", "Invocation", "SweepInfo"]

# draws of two sweeps differ by twice the noise of one on average; a change below twice that is no progress
_FRESH_DRAWS = 4.0
AHEAD = 10.0  # the limit on one sweep's change, by which the beliefs may still move in all sweeps to come


class SweepInfo(NamedTuple):
    """The record of one sweep."""

    sweep: int  # its number
    change: float  # largest KL(new belief || old belief) over the user's variables, in nats, as if nothing were damped
    moving: str  # the variable that changed most
    damping: float  # the share of the old messages that was kept
    rolled_back: bool  # the sweep diverged; the beliefs are those before it, and the damping was raised
    n_messages: int  # messages that were computed
    n_improper: int  # of these, the ones that were no distributions
    n_skipped: int  # messages that were not sent: not finite, or the belief would have been improper
    n_failed: int  # messages that the oracle could not compute; the old ones were kept
    n_asked: int  # questions to oracles
    n_evaluations: int  # of black-box functions, by oracle and reference together
    noise: float  # nats by which fresh draws alone may have moved the beliefs; 0 where nothing was asked
    seconds: float  # of the whole sweep
    seconds_oracle: float  # of these, for questions to oracles
    seconds_learning: float  # for learning from the answers
    seconds_prediction: float  # for predictions
    to_go: float = 0.0  # nats by which the beliefs may still move at the rate of the last sweeps; inf where unknown
    n_unsent: int = 0  # messages whose latest value could not be computed, so that an older one (or none) is in use
    tolerated: float = np.inf  # nats of posterior error that the run tolerates
    hidden: bool = False  # the noise of the oracle hides whether the beliefs have settled
    n_shortened: int = 0  # messages of which only a part was sent, so that no belief lost too much of its precision
    in_vain: int = 0  # questions since the sweep of least change, where asking more would not help the run converge

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
        unsent = self.rolled_back or self.n_unsent > 0 or self.n_shortened > 0
        return not unsent and quiet and self.change <= level and self.to_go <= AHEAD * level

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
    n_answer_evaluations: int = 0  # of the function, for answers of the oracle
    n_reference_evaluations: int = 0  # for references of the messages at hand
    # for tables of predictions (docs/decisions/0021, 0062) that spare later messages theirs
    n_table_evaluations: int = 0
