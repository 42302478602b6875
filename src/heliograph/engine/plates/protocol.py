"""The protocol between a run and its plates: send, log Z and evidence, and the ports that a direction reads.

A part of a model that is not a plate of equal factors (a block of jointly Gaussian variables, say) joins a run by
implementing this protocol: the schedule, the loop, the evidence and the posterior use nothing else.
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
    """A plate as a run uses it; a kind that inherits from this says only what it does otherwise."""

    plate: Plate  # of the graph
    n_learned: int = 0  # messages per direction that are learned and not computed

    def reads(self, to: str) -> tuple[str, ...]:
        """The ports whose messages the one to `to` depends on."""
        return tuple(self.plate.factor.depends(to, frozenset()))

    def start(self, rng: np.random.Generator, tables: Tables) -> None:
        """Store the messages that a run begins with, where these are not uniform."""

    def send(self, exchange: Exchange, task: Task, damping: float, rows: Rows = None) -> None:
        """Compute and store one direction, for the whole plate or some rows of it."""
        ...

    def repeat(self, exchange: Exchange, task: Task, earlier: Exchange) -> None:
        """Send one direction again without damping; answers of oracles and regressions in `earlier` are used again."""
        self.send(exchange, task, 0.0)

    def log_z(self, tables: Tables) -> np.ndarray | None:
        """``log Z`` of every element at the current messages; None where there is no formula, or nothing can be impossible."""
        return None

    def log_evidence(self, at: EvidencePoint) -> float:
        """The terms of this plate, and of its edges, in the log evidence."""
        ...

    def centres(self, tables: Tables, known: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """Better centres for its nodes than the means of their beliefs, where the plate knows some."""
        return {}
