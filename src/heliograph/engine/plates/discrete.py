"""A discrete block in a run: one exact sum per sweep answers every port."""

from __future__ import annotations

import numpy as np

from heliograph.engine.discrete.plate import DiscreteFactor, DiscreteJoint
from heliograph.engine.merging import copied
from heliograph.engine.plates.exchange import Exchange
from heliograph.engine.plates.protocol import EvidencePoint, PlateKind
from heliograph.engine.schedule import Task
from heliograph.engine.tables import Rows, Tables
from heliograph.families import Family
from heliograph.graph.records import Plate

__all__ = ["DiscretePlate"]


class DiscretePlate(PlateKind):
    """Messages by `DiscreteFactor`; the sums are done once, however many ports are told about them."""

    def __init__(self, plate: Plate, factor: DiscreteFactor) -> None:
        self.plate = plate
        self.factor = factor
        self._latest: tuple[dict[str, Family], DiscreteJoint] | None = None  # the sites, and the joint under them

    def start(self, rng: np.random.Generator, tables: Tables) -> None:
        """A block speaks first: the other factors answer to its marginals."""
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
