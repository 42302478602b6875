"""A plate whose factor has formulas for its messages and its log Z."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.engine.evidence_terms import counted, edge_terms
from heliograph.engine.plates.delivery import Proposal, deliver
from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.plates.gathering import gather, gather_all
from heliograph.engine.plates.protocol import EvidencePoint, PlateKind
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Rows, Tables
from heliograph.families import Family
from heliograph.graph.records import Graph, Plate

__all__ = ["PlainPlate", "read_ports"]


def read_ports(graph: Graph, plate: Plate) -> dict[str, tuple[str, ...]]:
    """The ports whose messages each direction depends on, for every direction that a run may send."""
    points = plate.points(graph)
    found: dict[str, tuple[str, ...]] = {}
    for to, edge in plate.edges.items():
        if not graph.nodes[edge.node].fully_observed:
            read = plate.factor.depends(to, points)
            found[to] = tuple(port for port in plate.edges if port in read)
    return found


class PlainPlate(PlateKind):
    """A plate that gets its messages from `Factor.message`, one per element and port.

    Mixtures, which cannot begin with uniform messages, are started together (`mixture_start`).
    """

    def __init__(self, graph: Graph, plate: Plate) -> None:
        self.plate = plate
        self._reads = read_ports(graph, plate)

    def reads(self, to: str) -> tuple[str, ...]:
        """The ports that the factor depends on."""
        return self._reads[to]

    def send(self, exchange: Exchange, task: Task, damping: float, rows: Rows = None) -> None:
        """Send the factor's message, raised to 1 / power where it was computed for power EP."""
        plate = self.plate
        power = self._power(exchange)
        incoming = gather(exchange.tables, plate, self._reads[task.to], rows, power)
        new = self._first(exchange, task.to) if plate.position in exchange.beginning else None
        if new is None:
            new = plate.factor.message(task.to, incoming, power)
            new = new if power == 1.0 else new ** (1.0 / power)
        policy = "allow" if exchange.policy == "auto" else exchange.policy
        deliver(exchange, plate, task, Proposal(new, incoming.get(task.to), policy, exact=True), damping, rows)

    def log_z(self, tables: Tables) -> np.ndarray | None:
        """The factor's own log Z."""
        return self.plate.factor.log_z(gather_all(tables, self.plate))

    def log_evidence(self, at: EvidencePoint) -> float:
        """Log Z of all elements and the terms of their edges, at ``f^power`` and divided by the power."""
        power = self._power(at.exchange)
        incoming: dict[str, Any] = gather_all(at.exchange.tables, self.plate, power)
        terms = edge_terms(at.exchange.tables, self.plate, incoming, power, at.centres)
        return (float(np.sum(counted(self.plate.factor.log_z(incoming, power), self.plate.times))) + terms) / power

    def _first(self, exchange: Exchange, to: str) -> Family | None:
        """The message of the factor's rule to begin a run by; None where it has none."""
        whole = gather(exchange.tables, self.plate, tuple(self.plate.edges), None, 0.0)
        return self.plate.factor.mean_field(to, gather_all(exchange.tables, self.plate), whole)

    def _power(self, exchange: Exchange) -> float:
        return exchange.power if self.plate.factor.powers else 1.0
