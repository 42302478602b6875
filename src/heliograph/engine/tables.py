"""The messages of one run: those that every plate has sent, and the belief of every node."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from heliograph.engine.merging import copied, overlaid, scattered, times, with_rows
from heliograph.families import Categorical, Family
from heliograph.graph.records import Edge, Graph, Node, Plate

__all__ = ["Rows", "Snapshot", "Tables"]

_FEW = 4  # edges of a node up to which a cavity is the product of the other messages (no subtraction, no lost digits)

Rows = slice | None  # None: the whole plate

K = TypeVar("K")
F = TypeVar("F", bound=Family)


class Snapshot(NamedTuple):
    """The messages of a moment, from which all else follows."""

    sent: dict[tuple[int, str], Family]
    scattered: dict[tuple[int, str], Family]


class Tables:
    """Sent messages by (plate, port), and sums of them by node, kept in step.

    ``incoming`` gives a plate the product of a node's other messages. ``store`` records a new message. Rows that are not
    None address part of a plate, for the sequential schedule; the arrays are then changed in place, so a run that uses
    rows owns its arrays (`own`).
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.sent: dict[tuple[int, str], Family] = {}
        self._scattered: dict[tuple[int, str], Family] = {}  # messages of indexed edges, summed per node entry
        self._total: dict[int, Family] = {}  # node -> product of all messages, made when asked for
        self._meets: dict[int, list[tuple[Plate, str]]] = {n.position: [] for n in graph.nodes}
        self._observed: dict[tuple[int, str], Family] = {}
        self.state = object()  # a new object after every change, by which a block sees whether any message is new
        for plate in graph.plates:
            for port, edge in plate.edges.items():
                self._meets[edge.node].append((plate, port))
                node = graph.nodes[edge.node]
                self.sent[plate.position, port] = node.uniform(node.size if edge.joint else plate.size)
                if edge.index is not None:
                    self._scattered[plate.position, port] = node.uniform()
                if node.observed is not None:
                    seen = node.observed if edge.index is None else node.observed[edge.index]
                    self._observed[plate.position, port] = seen
        # a node whose edges all run entry by entry and are few gets its cavities as products
        self._plain = {
            n: len(meets) <= _FEW and all(p.edges[port].index is None for p, port in meets)
            for n, meets in self._meets.items()
        }

        # nodes that one plate meets besides joint ones
        self.lone = {n for n, meets in self._meets.items() if sum(not p.edges[port].joint for p, port in meets) == 1}

    # ---- reading ------------------------------------------------------------------------------------------------
    def total(self, node: Node) -> Family:
        """The product of all messages to a node, its belief where it was not observed."""
        k = node.position
        if k not in self._total:
            product: Family | None = None
            for plate, port in self._meets[k]:
                part = self._scattered.get((plate.position, port), self.sent[plate.position, port])
                product = part if product is None else times(node, product, part, plate)
            self._total[k] = node.uniform() if product is None else product
        return self._total[k]

    def belief(self, node: Node) -> Family:
        """The belief of a node; a point mass where it was observed."""
        if node.fully_observed:
            assert node.observed is not None
            return node.observed
        total = self.total(node)
        return total if node.observed is None else overlaid(total, node.observed)

    def incoming(self, plate: Plate, port: str, rows: Rows, power: float = 1.0) -> Family:
        """The message from the node at a port to the plate: the cavity, its belief without the plate's own message."""
        edge = plate.edges[port]
        node = self.graph.nodes[edge.node]
        key = (plate.position, port)
        seen = self._observed.get(key)
        if node.fully_observed:
            assert seen is not None
            return seen if rows is None else seen[rows]
        own = self.sent[key]
        if self._plain[edge.node]:
            product: Family | None = None
            for other, name in self._meets[edge.node]:
                if (other.position, name) != key:
                    part = self.sent[other.position, name]
                    part = part if rows is None else part[rows]
                    product = part if product is None else times(node, product, part, other)
            if product is None:
                product = own.as_uniform() if rows is None else own[rows].as_uniform()
            if power != 1.0:
                product = product * (own if rows is None else own[rows]) ** (1.0 - power)
        else:
            total = self.total(node)
            index = edge.index if rows is None else (rows if edge.index is None else edge.index[rows])
            part = own if rows is None else own[rows]
            total = total if index is None else total[index]
            product = total / (part if power == 1.0 else part**power)
        if seen is not None:
            product = overlaid(product, seen if rows is None else seen[rows])
        return product

    def others(self, plate: Plate, port: str) -> Family:
        """The product of what all other plates sent to the node at a port, entry by entry of the node."""
        node = self.graph.nodes[plate.edges[port].node]
        product: Family | None = None
        for other, name in self._meets[node.position]:
            key = other.position, name
            if key != (plate.position, port):
                part = self._scattered.get(key, self.sent[key])
                product = part if product is None else times(node, product, part, other)
        return node.uniform() if product is None else product

    # ---- writing ------------------------------------------------------------------------------------------------
    def store(self, plate: Plate, port: str, message: Family, rows: Rows) -> None:
        """Record a message; the node's total follows."""
        self.state = object()
        key = (plate.position, port)
        edge = plate.edges[port]
        if rows is None:
            self.sent[key] = message
            if edge.index is not None and key in self._scattered:
                self._scattered[key] = self._summed(plate, edge, message)
            self._total.pop(edge.node, None)
            return
        own = self.sent[key]
        certain = own.point is not None or message.point is not None
        if certain or isinstance(message, Categorical):  # point masses and impossible categories cannot be subtracted
            self.sent[key] = with_rows(own, message, rows)
            if edge.index is not None and key in self._scattered:
                self._scattered[key] = self._summed(plate, edge, self.sent[key])
            self._total.pop(edge.node, None)
            return
        if edge.index is None and self._plain[edge.node]:
            self._total.pop(edge.node, None)
        else:
            self._shift_total(plate, port, own[rows], message, rows)
        for a, b in zip(own.naturals, message.naturals, strict=True):
            a[rows] = b

    def _summed(self, plate: Plate, edge: Edge, message: Family) -> Family:
        """The product of messages per entry of the node, each as often as its element counts."""
        assert edge.index is not None
        message = message if plate.times is None else message**plate.times
        return scattered(self.graph.nodes[edge.node], edge.index, message)

    def _shift_total(self, plate: Plate, port: str, old: Family, new: Family, rows: slice) -> None:
        edge = plate.edges[port]
        index = rows if edge.index is None else edge.index[rows]
        if plate.times is not None and edge.index is not None:
            old, new = old ** plate.times[rows], new ** plate.times[rows]
        targets = [self.total(self.graph.nodes[edge.node])]
        if (plate.position, port) in self._scattered:
            targets.append(self._scattered[plate.position, port])
        for family in targets:
            for a, before, after in zip(family.naturals, old.naturals, new.naturals, strict=True):
                if isinstance(index, slice):
                    a[index] += after - before
                else:
                    np.add.at(a, index, after - before)
        # a new value over the changed arrays: the old one may have kept moments of what they were
        self._total[edge.node] = targets[0].from_naturals(targets[0].naturals, targets[0].point)

    # ---- whole states -------------------------------------------------------------------------------------------
    def own(self) -> None:
        """Make every array this run's own, so that rows can be changed in place."""
        self.restore(self.snapshot(copy=True), copy=False)

    def snapshot(self, copy: bool) -> Snapshot:
        """Everything needed to come back to this state; `copy` where arrays are changed in place."""
        return Snapshot(_kept(self.sent, copy), _kept(self._scattered, copy))

    def restore(self, snapshot: Snapshot, copy: bool) -> None:
        """Go back to a snapshot."""
        self.sent, self._scattered = _kept(snapshot.sent, copy), _kept(snapshot.scattered, copy)
        self._total = {}
        self.state = object()

    def view(self, copy: bool) -> Tables:
        """A second table of the same messages, which later sweeps leave alone."""
        other = Tables.__new__(Tables)
        other.__dict__.update(self.__dict__)
        other.restore(self.snapshot(copy), copy=False)
        other.state = self.state
        if not copy:
            other._total = dict(self._total)
        return other

    def refresh(self) -> None:
        """Forget running totals, so that rounding does not pile up over sweeps."""
        self._total = {}


def _kept(table: dict[K, F], copy: bool) -> dict[K, F]:
    return {key: copied(message) for key, message in table.items()} if copy else dict(table)
