"""One direction of one plate: gather what comes in, compute, settle, damp, store."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from heliograph.engine.properness import choose, finite, settle
from heliograph.engine.schedule import Task, points_of
from heliograph.engine.tables import Tables
from heliograph.engine.trace import Invocation
from heliograph.engine.unsent import Unsent
from heliograph.factors import Dot, dot_backward, dot_forward
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.graph.records import Graph, Plate

__all__ = ["Counts", "Sender"]


@dataclass
class Counts:
    """What happened while messages were sent."""

    n_messages: int = 0
    n_improper: int = 0
    n_skipped: int = 0
    n_failed: int = 0
    n_asked: int = 0
    n_evaluations: int = 0
    noise: float = 0.0
    seconds_oracle: float = 0.0
    seconds_learning: float = 0.0
    seconds_prediction: float = 0.0
    invocations: list[Invocation] = field(default_factory=list)


class _Gathered(dict[str, Any]):
    """What came in, by port; a port that the factor said it does not read is uniform if it looks after all."""

    def __init__(self, graph: Graph, plate: Plate, rows: slice | None) -> None:
        super().__init__()
        self._where = graph, plate, rows

    def __missing__(self, port: str) -> Family:
        graph, plate, rows = self._where
        node = graph.nodes[plate.edges[port].node]
        return node.uniform(plate.size if rows is None else rows.stop - rows.start)


class Sender:
    """Sends messages between the tables of one run.

    `conduct` is handed to black-box factors: the run's operator, oracle, tolerance and random generator.
    """

    def __init__(
        self, graph: Graph, tables: Tables, policy: str, power: float, conduct: Any, unsent: Unsent | None = None
    ) -> None:
        self.graph = graph
        self.tables = tables
        self.policy = policy
        self.power = power
        self.conduct = conduct
        self.counts = Counts()
        self.unsent = Unsent() if unsent is None else unsent
        self.replies: dict[Task, list[tuple[slice | None, Family]]] = {}  # black boxes' messages of a sweep, undamped
        self.sweep = 0
        self._needs: dict[Task, tuple[tuple[str, ...], tuple[str, ...]]] = {}  # ports with an edge, ports with data
        self._moments: tuple[Family, tuple[np.ndarray, np.ndarray] | None] | None = None

    def send(self, task: Task, damping: float, rows: slice | None = None) -> None:
        """Compute and store one direction, for a whole plate or some rows of it."""
        plate = self.graph.plates[task.plate]
        if isinstance(plate.factor, Dot):
            self._send_dot(plate, task.to, rows)
            return
        power = self.power if plate.factor.powers else 1.0
        incoming = self.gather(task, plate, rows, power)
        old = self.tables.sent[plate.position, task.to]
        old = old if rows is None else old[rows]
        policy = self.policy
        failed = error = None
        if plate.factor.learns:
            reply = plate.factor.send(task.to, incoming, self.conduct)  # type: ignore[attr-defined]
            new, failed = reply.message, reply.failed
            if policy == "auto":
                policy, error = "keep mean", reply.expected_kl
        else:
            new = plate.factor.message(task.to, incoming, power)
            reply = None
            policy = "allow" if policy == "auto" else policy
        if power != 1.0:
            new = new ** (1.0 / power)
        settled = settle(new, old, incoming.get(task.to), policy, error)
        message = settled.message
        if failed is not None and failed.any():
            message = choose(failed, old, message)
        else:
            failed = None
        self.unsent.note(task, plate.size, rows, settled.skipped, failed)
        if damping:
            if reply is not None:
                self.replies.setdefault(task, []).append((rows, message))
            message = old**damping * message ** (1.0 - damping)
        self.tables.store(plate, task.to, message, rows)
        counts = self.counts
        counts.n_messages += message.size
        counts.n_improper += settled.n_improper
        counts.n_skipped += settled.n_skipped
        if reply is not None:
            improper = np.zeros(new.shape, dtype=bool)
            if settled.n_improper:
                improper = ~new.proper & ~new.is_uniform
            self._count_reply(plate, task.to, reply, improper)

    def _count_reply(self, plate: Plate, to: str, reply: Any, improper: np.ndarray) -> None:
        counts, asked, failed = self.counts, reply.asked, reply.failed
        counts.n_failed += int(np.count_nonzero(failed))
        counts.n_asked += int(reply.n_asked)
        counts.n_evaluations += int(reply.n_evaluations)
        if reply.expected_kl is not None and asked.any():
            counts.noise += float(np.sum(reply.expected_kl[asked & ~failed]))
        counts.seconds_oracle += reply.seconds_oracle
        counts.seconds_learning += reply.seconds_learning
        counts.seconds_prediction += reply.seconds_prediction
        counts.invocations.append(
            Invocation(self.sweep, plate.factor.name, to, reply.log_variance, asked, failed, improper)
        )

    def gather(self, task: Task, plate: Plate, rows: slice | None, power: float = 1.0) -> _Gathered:
        """What the factor looks at for this direction."""
        if task not in self._needs:
            read = plate.factor.depends(task.to, points_of(self.graph, plate))
            edges = tuple(p for p in plate.edges if p in read)
            self._needs[task] = edges, tuple(plate.data)
        edges, data = self._needs[task]
        incoming = _Gathered(self.graph, plate, rows)
        for port in edges:
            incoming[port] = self.tables.incoming(plate, port, rows, power)
        for port in data:
            incoming[port] = plate.data[port] if rows is None else plate.data[port][rows]
        return incoming

    # ---- the shared vector --------------------------------------------------------------------------------------
    def _send_dot(self, plate: Plate, to: str, rows: slice | None) -> None:
        tables = self.tables
        x = plate.data["x"] if rows is None else plate.data["x"][rows]
        if to == "out":
            used = tables.used[plate.position]
            message = self._rows_forward(plate, x, used) if rows is None else self._row_forward(plate, x, used[rows])
            old = tables.sent[plate.position, "out"]
            bad = _not_finite(message)
            self.unsent.note(Task(plate.position, to), plate.size, rows, bad, None)
            if bad is not None:
                message = choose(bad, old if rows is None else old[rows], message)
            tables.store(plate, "out", message, rows)
            self.counts.n_messages += message.size
            return
        new = tables.incoming(plate, "out", rows)
        if rows is None:
            shift, precision = dot_backward(x, *new.naturals)
            message = MultivariateGaussian.from_naturals((shift[None], precision[None]))
            lost = _not_finite(message)
            self.unsent.note(Task(plate.position, to), 1, None, lost, None)
            if lost is None:
                tables.store_vector(plate, message, new)
        else:
            self._move_vector(plate, x, new, rows)
        self.counts.n_messages += 1

    def _vector(self, plate: Plate) -> tuple[Family, MultivariateGaussian]:
        """The node's total and, out of it, the belief of this plate's vector."""
        edge = plate.edges["w"]
        total = self.tables.total(self.graph.nodes[edge.node])
        one = total if edge.index is None else total[edge.index]
        assert isinstance(one, MultivariateGaussian)
        return total, one

    def _rows_forward(self, plate: Plate, x: Any, used: Any) -> Family:
        _, belief = self._vector(plate)
        if not belief.proper.all():
            return used.as_uniform()
        mean, variance = dot_forward(x, belief.mean[0], root=belief.whitener()[0].T)
        if not (variance > 0).all():  # a row of zeros: its product is known
            return Gaussian.from_mean_variance(mean, variance) / used
        precision = 1.0 / variance
        return Gaussian.from_naturals((mean * precision, precision)) / used

    def _row_forward(self, plate: Plate, x: Any, used: Any) -> Family:
        total, belief = self._vector(plate)
        if self._moments is None or self._moments[0] is not total:
            moments = (belief.mean[0], belief.covariance[0]) if belief.proper.all() else None
            self._moments = (total, moments)
        moments = self._moments[1]
        if moments is None:
            return used.as_uniform()
        row = _row(x)
        return Gaussian.from_mean_variance(np.array([row @ moments[0]]), np.array([row @ moments[1] @ row])) / used

    def _move_vector(self, plate: Plate, x: Any, new: Family, rows: slice) -> None:
        """A rank-one change of the vector's total when one row's message changes, O(d^2)."""
        tables = self.tables
        edge = plate.edges["w"]
        node = self.graph.nodes[edge.node]
        total = tables.total(node)
        entry = 0 if edge.index is None else int(edge.index[0])
        used = tables.used[plate.position]
        row = _row(x)
        d_shift = float(new.naturals[0][0] - used.naturals[0][rows][0])
        d_precision = float(new.naturals[1][0] - used.naturals[1][rows][0])
        for family in (total, tables.sent[plate.position, "w"]):
            family.naturals[0][entry] += d_shift * row
            family.naturals[1][entry] += d_precision * np.outer(row, row)
        for a, b in zip(used.naturals, new.naturals, strict=True):
            a[rows] = b
        changed = total.from_naturals(
            total.naturals
        )  # a new value, so that cached moments are not mistaken for its own
        tables._total[edge.node] = changed
        if self._moments is not None and self._moments[0] is total and self._moments[1] is not None:
            _, covariance = self._moments[1]
            vx = covariance @ row
            growth = 1.0 + d_precision * (row @ vx)
            if growth > 1e-6:  # otherwise the update would amplify rounding: start again from the precision
                covariance = covariance - np.outer(vx, vx) * (d_precision / growth)
                shift = total.naturals[0][entry]
                self._moments = (changed, (covariance @ shift, covariance))
                return
        self._moments = None


def _not_finite(message: Family) -> np.ndarray | None:
    """The entries that are not finite numbers; None where all are."""
    if np.isfinite(sum(float(a.sum()) for a in message.naturals)):  # a sum is cheap, and finite only if all are
        return None
    bad = ~finite(message)
    return bad if bad.any() else None


def _row(x: Any) -> np.ndarray:
    """The single row of a slice of X, dense."""
    return np.asarray(x.toarray() if hasattr(x, "toarray") else x).reshape(-1)


def clock() -> float:
    """Seconds for measuring work."""
    return time.perf_counter()
