"""The way of a new message into the tables: policy, failures, damping, storing, counting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.properness import apply_policy, choose
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Rows
from heliograph.families import Family
from heliograph.graph.records import Plate

__all__ = ["Delivered", "Proposal", "deliver"]


class Proposal(NamedTuple):
    """New messages of one direction, as a factor gave them."""

    message: Family
    cavity: Family | None  # what came in from the receiver; None where the factor did not need it
    policy: str
    error: np.ndarray | None = None  # nats that each message may be wrong by, where that is known
    failed: np.ndarray | None = None  # rows that have no new message


class Delivered(NamedTuple):
    """New messages after the policy."""

    message: Family  # as it would be stored without damping
    n_improper: int


def deliver(exchange: Exchange, plate: Plate, task: Task, proposal: Proposal, damping: float, rows: Rows) -> Delivered:
    """Store new messages after the policy and the damping; rows that failed or may not be sent keep their old ones."""
    old = exchange.tables.sent[task]
    old = old if rows is None else old[rows]
    checked = apply_policy(proposal.message, old, proposal.cavity, proposal.policy, proposal.error)
    message, failed = checked.message, proposal.failed
    if failed is not None and failed.any():
        message = choose(failed, old, message)
    else:
        failed = None
    exchange.unsent.note(task, plate.size, rows, checked.skipped, failed)
    delivered = Delivered(message, checked.n_improper)
    if damping:
        message = old**damping * message ** (1.0 - damping)
    exchange.tables.store(plate, task.to, message, rows)
    counts = exchange.counts
    counts.n_messages += message.size
    counts.n_improper += checked.n_improper
    counts.n_skipped += checked.n_skipped
    return delivered
