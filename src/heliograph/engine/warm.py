"""Messages of an earlier run for a run of the same model with other data: a start, and not part of the answer."""

from __future__ import annotations

from heliograph.engine.tables import Snapshot, Tables
from heliograph.families import Family
from heliograph.graph.records import Graph, Plate

__all__ = ["warm_messages"]


def warm_messages(graph: Graph, earlier: Graph, messages: Snapshot) -> Snapshot:
    """The messages that a run over `graph` begins with, where an `earlier` run had messages of the same kind.

    Plates are matched by their factors and by the names of their variables, rows by their numbers: rows that were added at the end
    begin uniform. What has no match begins uniform too.
    """
    tables = Tables(graph)
    waiting: dict[tuple[str, ...], list[Plate]] = {}
    for plate in earlier.plates:
        waiting.setdefault(_key(earlier, plate), []).append(plate)
    for plate in graph.plates:
        found = waiting.get(_key(graph, plate))
        if not found or any(edge.joint for edge in plate.edges.values()):
            continue
        before = found.pop(0)
        for port, edge in plate.edges.items():
            if not edge.shared:
                message = _fitted(messages.sent[before.position, port], tables.sent[plate.position, port])
                if message is not None:
                    tables.store(plate, port, message, None)
    return tables.snapshot(copy=False)


def _key(graph: Graph, plate: Plate) -> tuple[str, ...]:
    return (plate.factor.name, *(f"{port}: {graph.nodes[e.node].name}" for port, e in plate.edges.items()))


def _fitted(old: Family, uniform: Family) -> Family | None:
    """The old messages, with uniform ones for rows that were added; None where they do not fit."""
    if type(old) is not type(uniform) or old.size > uniform.size:
        return None
    if any(a.shape[1:] != b.shape[1:] for a, b in zip(old.naturals, uniform.naturals, strict=True)):
        return None
    return old if old.size == uniform.size else Family.join([old, uniform[old.size :]])
