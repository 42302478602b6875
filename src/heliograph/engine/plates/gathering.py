"""The input of a factor: the messages that come in at its ports, and its data."""

from __future__ import annotations

from typing import Any

from heliograph.engine.tables import Rows, Tables
from heliograph.families import Family
from heliograph.graph.records import Graph, Plate

__all__ = ["Gathered", "gather", "gather_all"]


class Gathered(dict[str, Any]):
    """Incoming messages by port; a port that the factor declared unread is uniform if it reads it after all."""

    def __init__(self, graph: Graph, plate: Plate, rows: Rows) -> None:
        super().__init__()
        self._where = graph, plate, rows

    def __missing__(self, port: str) -> Family:
        graph, plate, rows = self._where
        node = graph.nodes[plate.edges[port].node]
        return node.uniform(plate.size if rows is None else rows.stop - rows.start)


def gather(tables: Tables, plate: Plate, ports: tuple[str, ...], rows: Rows, power: float) -> Gathered:
    """The messages at some ports, and all data."""
    incoming = Gathered(tables.graph, plate, rows)
    for port in ports:
        incoming[port] = tables.incoming(plate, port, rows, power)
    for port, data in plate.data.items():
        incoming[port] = data if rows is None else data[rows]
    return incoming


def gather_all(tables: Tables, plate: Plate, power: float = 1.0) -> dict[str, Any]:
    """The messages at every port, and all data."""
    incoming = dict(plate.data)
    incoming.update({port: tables.incoming(plate, port, None, power) for port in plate.edges})
    return incoming
