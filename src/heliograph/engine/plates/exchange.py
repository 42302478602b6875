"""The state that sending reads and writes: the tables, the settings, and counts of what happened."""

from __future__ import annotations

from dataclasses import dataclass, field

from heliograph.engine.schedule import Task
from heliograph.engine.sweep_info import Invocation
from heliograph.engine.tables import Rows, Tables
from heliograph.engine.unsent import Unsent
from heliograph.factors.black_box import RunOptions
from heliograph.families import Family

__all__ = ["Counts", "Exchange", "Replies"]

Replies = dict[Task, list[tuple[Rows, Family]]]  # undamped messages by direction, some rows at a time


@dataclass
class Counts:
    """Counts of what happened while messages were sent."""

    n_messages: int = 0
    n_improper: int = 0
    n_skipped: int = 0
    n_failed: int = 0
    n_shortened: int = 0
    n_asked: int = 0
    n_evaluations: int = 0
    noise: float = 0.0
    seconds_oracle: float = 0.0
    seconds_learning: float = 0.0
    seconds_prediction: float = 0.0
    invocations: list[Invocation] = field(default_factory=list[Invocation])


@dataclass
class Exchange:
    """The tables of a run (or of one of its posteriors) with the settings by which messages are sent to them."""

    tables: Tables
    policy: str  # for messages that are not distributions, see `properness`
    power: float  # of power EP
    learning: RunOptions  # the run's operator, oracle, tolerance and random generator, for black boxes
    counts: Counts = field(default_factory=Counts)
    unsent: Unsent = field(default_factory=Unsent)
    sweep: int = 0
    beginning: frozenset[int] = frozenset()  # plates that send by `Factor.mean_field`, while a run is being started
    replies: Replies = field(default_factory=Replies)  # of black boxes in a damped sweep
    began: dict[int, Family] = field(
        default_factory=dict[int, Family]
    )  # node -> its belief before this sweep lowered it

    def over(self, tables: Tables, unsent: Unsent | None = None) -> Exchange:
        """The same settings over other tables, with counts of their own."""
        return Exchange(tables, self.policy, self.power, self.learning, unsent=Unsent() if unsent is None else unsent)
