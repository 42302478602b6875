"""The way of a new message into the tables: policy, failures, damping, storing, counting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.properness import allowed_step, apply_policy, keeps_enough, lowers
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Rows
from heliograph.families import Family, Gaussian
from heliograph.graph.records import Plate

__all__ = ["Delivered", "Proposal", "deliver"]


class Proposal(NamedTuple):
    """New messages of one direction, as a factor gave them."""

    message: Family
    cavity: Family | None  # what came in from the receiver; None where the factor did not need it
    policy: str
    error: np.ndarray | None = None  # nats that each message may be wrong by, where that is known
    failed: np.ndarray | None = None  # rows that have no new message
    exact: bool = False  # a formula's: shortened where a belief would lose too much; estimates are left to the policy


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
        message = old.where(failed, message)
    else:
        failed = None
    exchange.unsent.note(task, plate.size, rows, checked.skipped, failed)
    delivered = Delivered(message, checked.n_improper)
    if damping:
        message = old**damping * message ** (1.0 - damping)
    if proposal.exact and rows is None and exchange.sweep > 0:
        _store_shortened(exchange, plate, task, old, message, proposal.cavity)
    else:
        exchange.tables.store(plate, task.to, message, rows)
    counts = exchange.counts
    counts.n_messages += message.size
    counts.n_improper += checked.n_improper
    counts.n_skipped += checked.n_skipped
    return delivered


def _store_shortened(
    exchange: Exchange, plate: Plate, task: Task, old: Family, message: Family, cavity: Family | None
) -> None:
    """Store new messages of a sweep, shortened where a belief would lose too much of its precision.

    Messages that are sent only once, as those of priors, never come here. Nor do single elements: they are sent one after the
    other, each to a belief that the policy keeps proper.
    """
    tables, edge = exchange.tables, plate.edges[task.to]
    if old.point is not None or message.point is not None or not lowers(message, old):
        tables.store(plate, task.to, message, None)
        return
    # where no other plate can lower the belief before blocks answer, the cavity tells
    alone = edge.index is None and edge.node in tables.lone and exchange.power == 1.0
    rest = cavity.naturals[1] if alone and isinstance(cavity, Gaussian) and cavity.point is None else None
    if rest is not None and keeps_enough(message.naturals[1], old.naturals[1], rest):
        tables.store(plate, task.to, message, None)
        return
    node = tables.graph.nodes[edge.node]
    now = tables.total(node)
    before = exchange.began.setdefault(edge.node, now)
    tables.store(plate, task.to, message, None)
    step = allowed_step(before, now, tables.total(node))
    if step is None:
        return
    step = step if edge.index is None else step[edge.index]
    tables.store(plate, task.to, old ** (1.0 - step) * message**step, None)
    exchange.counts.n_shortened += int((step < 1.0).sum())
