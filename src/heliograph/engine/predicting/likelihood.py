"""How probable each observed value is under the posterior of its parents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.graph.records import Graph, Node, Plate

__all__ = ["pointwise_log_likelihood"]


def pointwise_log_likelihood(graph: Graph, belief: Callable[[Node], Family]) -> dict[str, np.ndarray]:
    """``log E p(y_i | parents)`` under the beliefs of the parents, for every observed value, by the name of its variable.

    NaN where a value is missing, and for exact outputs of deterministic functions: given its inputs such a value has no density.
    Parents of one value that the run keeps joint are taken as independent here, unless they are one expression.
    """
    found: dict[str, np.ndarray] = {}
    for node in graph.nodes:
        if node.observed is not None and node.maker is not None and (node.given or node.maker.factor.learns):
            at = np.flatnonzero(node.observed.is_point)
            values = np.full(node.size, np.nan)
            if not _is_exact(node.maker):
                values[at] = _log_z(graph, node.maker, belief, node)[at]
            found[node.name] = values.reshape(node.shape)
    for name, plate in graph.counts.items():
        seen = ~np.isnan(plate.data[plate.factor.child])
        if seen.any():
            data = {port: np.where(seen, a, 0.0) if port == plate.factor.child else a for port, a in plate.data.items()}
            log_z = _log_z(graph, replace(plate, data=data), belief, None)
            found[name] = np.where(seen, log_z, np.nan).reshape(plate.shape)
    return found


def _is_exact(plate: Plate) -> bool:
    """Whether a plate is a deterministic function of which no density was given."""
    sampler = getattr(plate.factor, "sampler", None)
    return sampler is not None and not sampler.stochastic and sampler.log_density is None


def _log_z(graph: Graph, plate: Plate, belief: Callable[[Node], Family], child: Node | None) -> np.ndarray:
    incoming: dict[str, Any] = dict(plate.data)
    for port, edge in plate.edges.items():
        node = graph.nodes[edge.node]
        message = node.observed if child is not None and port == plate.factor.child else belief(node)
        assert message is not None
        incoming[port] = message[edge.entries(plate.size)]
    return np.asarray(plate.factor.log_z(incoming))
