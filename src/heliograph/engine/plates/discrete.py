"""Categories in a run: a discrete block, whose one exact sum answers every port, and the rows of a large unknown table."""

from __future__ import annotations

import warnings

import numpy as np

from heliograph.engine.discrete.counts import CountsFactor
from heliograph.engine.discrete.plate import DiscreteFactor, DiscreteJoint
from heliograph.engine.merging import copied
from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.plates.protocol import EvidencePoint, PlateKind
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Rows, Tables
from heliograph.errors import AccuracyWarning
from heliograph.families import Beta, Dirichlet, Family
from heliograph.graph.records import Plate

__all__ = ["CountsPlate", "DiscretePlate"]


class DiscretePlate(PlateKind):
    """Messages by `DiscreteFactor`; the sums are done once for all ports."""

    def __init__(self, plate: Plate, factor: DiscreteFactor) -> None:
        self.plate = plate
        self.factor = factor
        self._latest: tuple[dict[str, Family], DiscreteJoint] | None = None  # the sites, and the joint under them

    def start(self, rng: np.random.Generator, tables: Tables) -> None:
        """Send the block's marginals first, because the other factors need them as cavities."""
        for port in self.factor.site_ports:
            self._store(tables, port)

    def send(self, exchange: Exchange, task: Task, damping: float, rows: Rows = None) -> None:
        """The marginals, without what came in; a block is exact, and never damped."""
        self._store(exchange.tables, task.to)
        exchange.counts.n_messages += exchange.tables.sent[task].size

    def log_z(self, tables: Tables) -> np.ndarray | None:
        """The log normaliser of the whole block."""
        return np.asarray(self.joint(tables).log_z)

    def log_evidence(self, at: EvidencePoint) -> float:
        """The sum over all configurations under the sites; the block's nodes count here, and nowhere else."""
        return self.joint(at.exchange.tables).log_z

    def joint(self, tables: Tables) -> DiscreteJoint:
        """The joint distribution under the messages of a table."""
        sites = {p: tables.others(self.plate, p) for p in self.factor.site_ports}
        if self._latest is None or not all(_same(m, self._latest[0][p]) for p, m in sites.items()):
            # copies: a sequential run changes messages in place
            self._latest = {p: copied(m) for p, m in sites.items()}, self.factor.solve(sites)
        return self._latest[1]

    def _store(self, tables: Tables, port: str) -> None:
        joint = self.joint(tables)
        site = tables.others(self.plate, port) if port in self.factor.site_ports else None
        tables.store(self.plate, port, self.factor.answer(port, site, joint), None)


def _same(a: Family, b: Family) -> bool:
    """Whether two messages have the same numbers."""
    points = (a.point is None and b.point is None) or (
        a.point is not None and b.point is not None and np.array_equal(a.point, b.point, equal_nan=True)
    )
    return points and all(np.array_equal(x, y) for x, y in zip(a.naturals, b.naturals, strict=True))


# ---- the rows of a large unknown table -------------------------------------------------------------------------------
class CountsPlate(PlateKind):
    """Messages of `CountsFactor`: to the rows all counts, to every entry its marginal without its own."""

    def __init__(self, plate: Plate, factor: CountsFactor) -> None:
        self.plate = plate
        self.factor = factor
        # a state of the tables, and all that is known of the rows in it
        self._latest: tuple[object, Dirichlet] | None = None

    def start(self, rng: np.random.Generator, tables: Tables) -> None:
        """Send the messages of the rows first."""
        for port in self.factor.entries:
            self._store(tables, port, self._to_entries(tables, port))

    def send(self, exchange: Exchange, task: Task, damping: float, rows: Rows = None) -> None:
        """Sums and marginals; exact, and never damped."""
        tables = exchange.tables
        to_rows = task.to == self.factor.table
        message = self._to_rows(tables) if to_rows else self._to_entries(tables, task.to)
        self._store(tables, task.to, message)
        exchange.counts.n_messages += exchange.tables.sent[task].size

    def log_evidence(self, at: EvidencePoint) -> float:
        """The integral of the rows under what others say of them and the counts; a warning says that it is rough."""
        warnings.warn(
            "large unknown tables get messages that keep means, whose log evidence is off by a few hundredths of a nat per "
            "observation; compare such models by their predictions",
            AccuracyWarning,
            stacklevel=2,
        )
        return float(np.sum(self._total(at.exchange.tables).log_normaliser()))

    def _store(self, tables: Tables, port: str, message: Family) -> None:
        known = self._latest is not None and self._latest[0] is tables.state
        tables.store(self.plate, port, message, None)
        if known and self._latest is not None:  # the beliefs of the rows do not depend on what this plate sends
            self._latest = tables.state, self._latest[1]

    def _counts(self, tables: Tables, port: str) -> np.ndarray:
        return tables.others(self.plate, port).naturals[0]

    def _to_rows(self, tables: Tables) -> Dirichlet:
        node = tables.graph.nodes[self.plate.edges[self.factor.table].node]
        n, j = node.size, node.dimension or 2
        total = np.zeros(n * j)
        for port, entries in self.factor.entries.items():
            counts = self._counts(tables, port)
            counts = counts if entries.times is None else counts * entries.times
            total += np.bincount(entries.row * j + entries.category, counts, n * j)
        return Dirichlet.from_naturals((total.reshape(n, j),))

    def _total(self, tables: Tables) -> Dirichlet:
        if self._latest is None or self._latest[0] is not tables.state:
            others = tables.others(self.plate, self.factor.table)
            assert isinstance(others, Dirichlet)
            self._latest = tables.state, others * self._to_rows(tables)
        return self._latest[1]

    def _to_entries(self, tables: Tables, port: str) -> Family:
        a = self._total(tables).naturals[0] + 1.0
        entries = self.factor.entries[port]
        mine, whole = a[entries.row, entries.category], a.sum(axis=1)[entries.row]
        return Beta.from_naturals((mine - self._counts(tables, port) - 1.0, whole - mine - 1.0))
