"""The rows of ``X @ w``: each sends its product on, and all of them send the vector w one summed message.

The message to w is ``X' diag(tau) X`` by BLAS, never n rank-one messages. The cavity of a row is the belief
of its product less the row message that the belief was made of, which the tables keep as `absorbed`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.engine.evidence_terms import log_normaliser
from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.plates.protocol import EvidencePoint, PlateKind
from heliograph.engine.properness import choose, finite
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Rows, Tables
from heliograph.errors import UnsupportedError
from heliograph.factors import dot_backward, dot_forward
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.graph.records import Graph, Plate

__all__ = ["SharedVectorPlate"]

_LEAST_GROWTH = 1e-6  # of a rank-one update: below this it would amplify rounding, and the precision is inverted anew


class SharedVectorPlate(PlateKind):
    """The plate between the rows of a matrix and the one vector that they share; port w is the vector's, out the rows'.

    It has no log Z: a contradiction at an exactly known product is refused when the model is written.
    """

    def __init__(self, graph: Graph, plate: Plate) -> None:
        self.plate = plate
        self._vector = graph.nodes[plate.edges["w"].node]
        self._rows = graph.nodes[plate.edges["out"].node]
        self._entry = plate.edges["w"].entries(1)  # of the vector's node, as an array of one
        self._x = plate.data["x"]  # (n, d), dense or CSR

    def reads(self, to: str) -> tuple[str, ...]:
        """The other end; a row depends on the messages that the vector got from the other rows."""
        return ("out",) if to == "w" else ("w",)

    def send(self, exchange: Exchange, task: Task, damping: float, rows: Rows = None) -> None:
        """Send one direction; it is linear in its input, and so never damped itself."""
        if task.to == "out":
            self._send_rows(exchange, task, rows)
        elif rows is None:
            self._send_vector(exchange, task)
        else:
            self._send_row_to_vector(exchange, rows)

    def log_evidence(self, at: EvidencePoint) -> float:
        """``-A(belief of the row)`` for every row: its other terms cancel against the vector's."""
        if self._rows.fully_observed:
            return 0.0
        tables, position = at.exchange.tables, self.plate.position
        belief = tables.sent[position, "out"] * tables.absorbed[position]
        a = log_normaliser(belief, at.centres[self._rows.position])
        return -float(np.sum(np.where(belief.is_point, 0.0, a)))

    def centres(self, tables: Tables, known: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """The centre of the vector, multiplied with each of the rows."""
        if self._rows.position not in known:
            return {}
        w = known.get(self._vector.position)
        w = np.asarray(tables.belief(self._vector).mean) if w is None else w
        return {self._rows.position: self._x @ w[self._entry[0]]}

    # ---- to the rows --------------------------------------------------------------------------------------------
    def _send_rows(self, exchange: Exchange, task: Task, rows: Rows) -> None:
        tables = exchange.tables
        absorbed = tables.absorbed[self.plate.position]
        old = tables.sent[task]
        if rows is None:
            message = self._all_rows(tables, absorbed)
        else:
            message, old = self._one_row(exchange, rows, absorbed[rows]), old[rows]
        bad = _not_finite(message)
        exchange.unsent.note(task, self.plate.size, rows, bad, None)
        if bad is not None:
            message = choose(bad, old, message)
        tables.store(self.plate, "out", message, rows)
        exchange.counts.n_messages += message.size

    def _belief_of_vector(self, tables: Tables) -> tuple[Family, MultivariateGaussian]:
        """The node's total and, out of it, the belief of this plate's vector."""
        total = tables.total(self._vector)
        one = total if self.plate.edges["w"].index is None else total[self._entry]
        assert isinstance(one, MultivariateGaussian)
        return total, one

    def _all_rows(self, tables: Tables, absorbed: Gaussian) -> Gaussian:
        _, belief = self._belief_of_vector(tables)
        if not belief.proper.all():
            return absorbed.as_uniform()
        mean, variance = dot_forward(self._x, belief.mean[0], root=belief.whitener()[0].T)
        if not (variance > 0).all():  # a row of zeros: its product is known
            return Gaussian.from_mean_variance(mean, variance) / absorbed
        precision = 1.0 / variance
        return Gaussian.from_naturals((mean * precision, precision)) / absorbed

    def _one_row(self, exchange: Exchange, rows: slice, absorbed: Gaussian) -> Gaussian:
        total, belief = self._belief_of_vector(exchange.tables)
        if exchange.moments is None or exchange.moments[0] is not total:
            moments = (belief.mean[0], belief.covariance[0]) if belief.proper.all() else None
            exchange.moments = (total, moments)
        moments = exchange.moments[1]
        if moments is None:
            return absorbed.as_uniform()
        row = _dense_row(self._x[rows])
        mean, variance = np.array([row @ moments[0]]), np.array([row @ moments[1] @ row])
        return Gaussian.from_mean_variance(mean, variance) / absorbed

    def _row_messages(self, tables: Tables, rows: Rows) -> Gaussian:
        """The messages to the rows from the rest of the model."""
        message = tables.incoming(self.plate, "out", rows)
        assert isinstance(message, Gaussian)
        if message.point is not None and message.is_point.any():
            raise UnsupportedError(
                f"some rows of {self._rows.name!r} are known exactly, and one vector {self._vector.name!r} has them all in common: "
                "no message to it says so. Use structure='auto', which solves for the vector jointly, or give what is observed a "
                "small variance"
            )
        return message

    # ---- to the vector ------------------------------------------------------------------------------------------
    def _send_vector(self, exchange: Exchange, task: Task) -> None:
        rows = self._row_messages(exchange.tables, None)
        shift, precision = dot_backward(self._x, *rows.naturals)
        message = MultivariateGaussian.from_naturals((shift[None], precision[None]))
        lost = _not_finite(message)
        exchange.unsent.note(task, 1, None, lost, None)
        if lost is None:
            exchange.tables.store_shared(self.plate, "w", message, rows)
        exchange.counts.n_messages += 1

    def _send_row_to_vector(self, exchange: Exchange, rows: slice) -> None:
        """Change the message to the vector by a rank-one term when one row's message changes, O(d^2)."""
        tables = exchange.tables
        new = self._row_messages(tables, rows)
        total, absorbed = tables.total(self._vector), tables.absorbed[self.plate.position]
        row = _dense_row(self._x[rows])
        shift, precision = (float(a[0] - b[rows][0]) for a, b in zip(new.naturals, absorbed.naturals, strict=True))
        change = shift * row, precision * np.outer(row, row)
        changed = tables.shift_shared(self.plate, "w", change, rows, new)
        exchange.counts.n_messages += 1
        kept, exchange.moments = exchange.moments, None
        if kept is None or kept[0] is not total or kept[1] is None:
            return
        covariance = kept[1][1]
        vx = covariance @ row
        growth = 1.0 + precision * (row @ vx)
        if growth > _LEAST_GROWTH:
            covariance = covariance - np.outer(vx, vx) * (precision / growth)
            shift_of_total = changed.naturals[0][self._entry[0]]
            exchange.moments = (changed, (covariance @ shift_of_total, covariance))


def _not_finite(message: Family) -> np.ndarray | None:
    """The entries that are not finite numbers; None where all are."""
    if np.isfinite(sum(float(a.sum()) for a in message.naturals)):  # a sum is cheap, and finite only if all are
        return None
    bad = ~finite(message)
    return bad if bad.any() else None


def _dense_row(x: Any) -> np.ndarray:
    """The single row of a slice of X, dense."""
    return np.asarray(x.toarray() if hasattr(x, "toarray") else x).reshape(-1)
