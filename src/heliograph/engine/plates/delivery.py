"""The way of a new message into the tables: policy, failures, damping, storing, counting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.properness import allowed_step, apply_policy, choose, lowers
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
    _store(exchange, plate, task, old, message, rows)
    counts = exchange.counts
    counts.n_messages += message.size
    counts.n_improper += checked.n_improper
    counts.n_skipped += checked.n_skipped
    return delivered


def _store(exchange: Exchange, plate: Plate, task: Task, old: Family, message: Family, rows: Rows) -> None:
    """Store new messages, shortened where a belief would lose too much of its precision in this sweep.

    Messages that are sent only once, as those of priors, are never shortened. Nor are single elements: they are sent one after the
    other, each to a belief that the policy keeps proper.
    """
    tables, edge = exchange.tables, plate.edges[task.to]
    whole = rows is None and exchange.sweep > 0 and old.point is None and message.point is None
    if not (whole and lowers(message, old)):
        tables.store(plate, task.to, message, rows)
        return
    node = tables.graph.nodes[edge.node]
    now = tables.total(node)
    before = exchange.began.setdefault(edge.node, now)
    tables.store(plate, task.to, message, rows)
    step = allowed_step(before, now, tables.total(node))
    if step is None:
        return
    step = step if edge.index is None else step[edge.index]
    tables.store(plate, task.to, old ** (1.0 - step) * message**step, rows)
    exchange.counts.n_shortened += int((step < 1.0).sum())
