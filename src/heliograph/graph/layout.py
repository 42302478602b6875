"""The factor graph as a picture of matplotlib's, in layers from parents to children."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.tables import shortened
from heliograph.graph.records import Graph

__all__ = ["draw_graph", "layers_of"]

_MOST = 60  # nodes and factors, beyond which a picture shows nothing
_LABEL = 16  # letters of a name


def layers_of(graph: Graph) -> tuple[list[int], list[int]]:
    """The layer of every node and of every plate: a plate is below its parents, and a node below what makes it."""
    node = [0] * len(graph.nodes)
    plate = [0] * len(graph.plates)
    for _ in range(len(graph.plates) + 1):
        before = list(node)
        for k, p in enumerate(graph.plates):
            parents = [node[e.node] for port, e in p.edges.items() if port not in p.factor.children]
            plate[k] = 1 + max(parents, default=-2)
            for child in (e for port, e in p.edges.items() if port in p.factor.children and parents):
                node[child.node] = max(node[child.node], plate[k] + 1)
        if node == before:
            break
    return node, plate


def draw_graph(graph: Graph, ax: Any = None) -> Any:
    """Draw variables as circles (grey: observed) and factors as squares, with lines between; returns the axes."""
    if len(graph.nodes) + len(graph.plates) > _MOST:
        raise ModelError(
            f"a picture of {len(graph.nodes)} variables and {len(graph.plates)} factors would show nothing; see model.summary()"
        )
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(8, 6))[1]
    nodes, plates = layers_of(graph)
    places = _places([*nodes, *plates])
    at_node, at_plate = places[: len(nodes)], places[len(nodes) :]
    for p, here in zip(graph.plates, at_plate, strict=True):
        for edge in p.edges.values():
            there = at_node[edge.node]
            ax.plot([here[0], there[0]], [here[1], there[1]], color="0.6", linewidth=1, zorder=1)
    box = {"boxstyle": "square", "facecolor": "lightyellow", "edgecolor": "0.4"}
    for p, (x, y) in zip(graph.plates, at_plate, strict=True):
        many = f" x{p.size}" if p.size > 1 else ""
        ax.text(x, y, shortened(p.factor.name, _LABEL) + many, ha="center", va="center", fontsize=7, bbox=box, zorder=2)
    for n, (x, y) in zip(graph.nodes, at_node, strict=True):
        round_ = {"boxstyle": "round", "facecolor": "0.85" if n.observed is not None else "white", "edgecolor": "0.2"}
        size = f"\n{'x'.join(map(str, n.shape))}" if n.shape else ""
        ax.text(x, y, shortened(n.name, _LABEL) + size, ha="center", va="center", fontsize=8, bbox=round_, zorder=3)
    ax.set_axis_off()
    ax.margins(0.15)
    return ax


def _places(layers: list[int]) -> np.ndarray:
    """Every layer spread evenly from side to side, parents on top."""
    found = np.zeros((len(layers), 2))
    for layer in sorted(set(layers)):
        inside = [k for k, l in enumerate(layers) if l == layer]
        found[inside, 0] = (np.arange(len(inside)) + 0.5) / len(inside)
        found[inside, 1] = -float(layer)
    return found
