"""What a run may ask of a plate, whatever its factor is: send, give its evidence, say what it reads and what it shares.

A part of a model that is not a plate of equal factors (a block of jointly Gaussian variables, say) joins a run by keeping
this protocol: the schedule, the loop, the evidence and the posterior know nothing else about it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Rows, Tables
from heliograph.graph.records import Plate

__all__ = ["EvidencePoint", "PlateKind"]


class EvidencePoint(NamedTuple):
    """The messages at which the evidence is taken, and the points from which statistics are counted."""

    exchange: Exchange
    centres: dict[int, np.ndarray]  # node -> a value for every entry; nodes that are not Gaussian have none


class PlateKind(Protocol):
    """A plate as a run uses it."""

    @property
    def plate(self) -> Plate:
        """The plate of the graph."""
        ...

    @property
    def n_learned(self) -> int:
        """How many messages per direction are learned; 0 where they are computed."""
        ...

    def reads(self, to: str) -> tuple[str, ...]:
        """The ports whose messages the one to `to` depends on."""
        ...

    def start(self, rng: np.random.Generator, tables: Tables) -> None:
        """Store the messages that a run begins with, where these are not uniform."""
        ...

    def send(self, exchange: Exchange, task: Task, damping: float, rows: Rows = None) -> None:
        """Compute and store one direction, for the whole plate or some rows of it."""
        ...

    def repeat(self, exchange: Exchange, task: Task, earlier: Exchange) -> None:
        """Send one direction again without damping; what `earlier` was told by an oracle or a regression stands."""
        ...

    def log_z(self, tables: Tables) -> np.ndarray | None:
        """``log Z`` of every element at the current messages; None where there is no formula."""
        ...

    def log_evidence(self, at: EvidencePoint) -> float:
        """The terms of this plate, and of its edges, in the log evidence."""
        ...

    def centres(self, tables: Tables, known: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Better centres for its nodes than the means of their beliefs, where the plate knows some."""
        ...
