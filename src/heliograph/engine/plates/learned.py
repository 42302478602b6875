"""A plate of black boxes: an operator predicts its messages, and asks an oracle for those that it does not know."""

from __future__ import annotations

from typing import cast

import numpy as np

from heliograph.engine.evidence_terms import edge_terms
from heliograph.engine.plates.delivery import Proposal, deliver
from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.plates.gathering import gather, gather_all
from heliograph.engine.plates.plain import read_ports
from heliograph.engine.plates.protocol import EvidencePoint, PlateKind
from heliograph.engine.schedule import Task
from heliograph.engine.sweep_info import Invocation
from heliograph.engine.tables import Rows
from heliograph.factors.black_box import BlackBox
from heliograph.families import Family
from heliograph.graph.records import Graph, Plate
from heliograph.operators.protocol import Reply

__all__ = ["LearnedPlate"]


class LearnedPlate(PlateKind):
    """A plate that gets its messages from `BlackBox.send`, each with an estimate of its error; its log Z is an oracle's."""

    def __init__(self, graph: Graph, plate: Plate) -> None:
        self.plate = plate
        self.n_learned = plate.size
        self._box = cast(BlackBox, plate.factor)
        self._reads = read_ports(graph, plate)

    def reads(self, to: str) -> tuple[str, ...]:
        """The ports that the factor depends on: all of them, for a black box."""
        return self._reads[to]

    def send(self, exchange: Exchange, task: Task, damping: float, rows: Rows = None) -> None:
        """Send predicted or asked messages; rows that no oracle could answer keep the old ones."""
        incoming = gather(exchange.tables, self.plate, self._reads[task.to], rows, 1.0)
        reply = self._box.send(task.to, incoming, exchange.learning)
        policy, error = exchange.policy, None
        if policy == "auto":
            policy, error = "keep mean", reply.expected_kl
        proposal = Proposal(reply.message, incoming.get(task.to), policy, error, reply.failed)
        delivered = deliver(exchange, self.plate, task, proposal, damping, rows)
        if damping:
            exchange.replies.setdefault(task, []).append((rows, delivered.message))
        self._count(exchange, task.to, reply, delivered.n_improper)

    def repeat(self, exchange: Exchange, task: Task, earlier: Exchange) -> None:
        """Store the replies of the last sweep again; no oracle is asked."""
        for rows, message in earlier.replies.get(task, ()):
            exchange.tables.store(self.plate, task.to, message, rows)

    def log_evidence(self, at: EvidencePoint) -> float:
        """Log Z, as learned by the run's operator or computed by its oracle, and the terms of the edges."""
        incoming = gather_all(at.exchange.tables, self.plate)
        terms = edge_terms(at.exchange.tables, self.plate, incoming, 1.0, at.centres)
        return float(np.sum(self._box.log_z(incoming, options=at.exchange.learning))) + terms

    def _count(self, exchange: Exchange, to: str, reply: Reply, n_improper: int) -> None:
        counts, asked, failed = exchange.counts, reply.asked, reply.failed
        counts.n_failed += int(np.count_nonzero(failed))
        counts.n_asked += int(reply.n_asked)
        counts.n_evaluations += int(reply.n_evaluations)
        if reply.expected_kl is not None and asked.any():
            counts.noise += float(np.sum(reply.expected_kl[asked & ~failed]))
        counts.seconds_oracle += reply.seconds_oracle
        counts.seconds_learning += reply.seconds_learning
        counts.seconds_prediction += reply.seconds_prediction
        improper = _improper(reply.message) if n_improper else np.zeros(reply.message.shape, dtype=bool)
        counts.invocations.append(
            Invocation(
                exchange.sweep,
                self.plate.factor.name,
                to,
                reply.log_variance,
                asked,
                failed,
                improper,
                reply.n_answer_evaluations,
                reply.n_evaluations - reply.n_answer_evaluations - reply.n_table_evaluations,
                reply.n_table_evaluations,
            )
        )


def _improper(message: Family) -> np.ndarray:
    return ~message.proper & ~message.is_uniform
