"""Statements that cannot all hold: found where a factor is zero at values that the rest of the model has fixed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heliograph.engine.plates import PlateKind
from heliograph.engine.tables import Tables
from heliograph.errors import ContradictionError
from heliograph.graph.records import Graph, Plate

__all__ = ["check_possible"]


def check_possible(graph: Graph, plates: Sequence[PlateKind], tables: Tables) -> None:
    """Raise where a factor has probability zero under the messages of a run.

    Only factors among known values and categories are looked at: a factor of a continuous unknown vanishes nowhere that
    its belief could be. Names the factor, its variables and the first such row.
    """
    for kind in plates:
        plate = kind.plate
        log_z = kind.log_z(tables) if plate.edges and _decided(graph, tables, plate) else None
        if log_z is None:
            continue
        impossible = np.flatnonzero(np.isneginf(np.broadcast_to(log_z, plate.size)))
        if len(impossible):
            names = ", ".join(repr(graph.nodes[e.node].name) for e in plate.edges.values())
            row = "" if plate.size == 1 else f" (row {impossible[0]} of {plate.size})"
            raise ContradictionError(
                f"factor {plate.factor.name!r}{row}: its variables {names} have probability zero under what else is known "
                "of them, so the model is impossible; correct the observed values or take one of the statements back"
            )


def _decided(graph: Graph, tables: Tables, plate: Plate) -> bool:
    for edge in plate.edges.values():
        node = graph.nodes[edge.node]
        if node.fully_observed or node.family.discrete:
            continue
        belief = tables.total(node)
        if belief.point is None or not belief.is_point.all():
            return False
    return True
