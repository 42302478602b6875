"""Some elements of a plate, as a plate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heliograph.graph.records import Edge, Plate

__all__ = ["some_elements"]


def some_elements(plate: Plate, rows: np.ndarray) -> Plate:
    """Some elements of a plate."""
    edges = {}
    for port, edge in plate.edges.items():
        index = edge.entries(plate.size)[rows]
        edges[port] = Edge(edge.node, index, len(np.unique(index)) == len(index))
    data = {port: value[rows] for port, value in plate.data.items()}
    return replace(plate, shape=(len(rows),), edges=edges, data=data)
