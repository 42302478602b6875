"""The log evidence at the current messages: Bethe's form of EP's own estimate.

With every message ``m`` normalised, ``log Z = sum_f log Z_f + sum_v A(belief_v) + sum_edges A(cavity) - A(belief)``,
where ``Z_f`` integrates the factor times its incoming messages and ``A`` is the log normaliser. It is exact on trees
of exact factors. A factor that fixes a variable to a value adds nothing for it: the other factors' terms are taken at
that value. With power EP a factor's terms are taken at ``f^alpha`` and divided by alpha. A row of ``X @ w`` adds
``-A(belief of the row)``: its other terms cancel against the vector's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.engine.tables import Tables
from heliograph.factors import Dot
from heliograph.families import Family
from heliograph.graph.records import Graph, Plate

__all__ = ["log_evidence"]


def log_evidence(graph: Graph, tables: Tables, power: float = 1.0, conduct: Any = None) -> float:
    """``log`` of the probability of everything observed, as EP (or power EP) estimates it.

    `conduct` tells black boxes how the run treated them, so that they use what it learned of their log Z.
    """
    total = 0.0
    for node in graph.nodes:
        if node.fully_observed:
            continue
        belief = tables.total(node)
        a = belief.log_normaliser()
        total += float(np.sum(a if node.observed is None else np.where(node.observed.is_point, 0.0, a)))
    for plate in graph.plates:
        if isinstance(plate.factor, Dot):
            total += _row_evidence(graph, tables, plate)
        else:
            total += _evidence(graph, tables, plate, power if plate.factor.powers else 1.0, conduct)
    return total


def _row_evidence(graph: Graph, tables: Tables, plate: Plate) -> float:
    node = graph.nodes[plate.edges["out"].node]
    belief = tables.sent[plate.position, "out"] * tables.used[plate.position]
    return 0.0 if node.fully_observed else -float(np.sum(belief.log_normaliser()))


def _evidence(graph: Graph, tables: Tables, plate: Plate, power: float, conduct: Any) -> float:
    incoming = dict(plate.data)
    correction = 0.0
    for port, edge in plate.edges.items():
        cavity = tables.incoming(plate, port, None, power)
        incoming[port] = cavity
        node = graph.nodes[edge.node]
        if node.fully_observed:
            continue
        plain = cavity.from_naturals(cavity.naturals)
        sent = tables.sent[plate.position, port]
        sent = sent if power == 1.0 else sent**power
        belief = plain * sent if sent.point is None else plain * sent.from_naturals(sent.naturals)
        gap = plain.log_normaliser() - belief.log_normaliser()
        correction += float(np.sum(np.where(cavity.is_point | sent.is_point, 0.0, gap)))
        correction -= _said_elsewhere(plain, cavity, sent)
    if plate.factor.learns:
        log_z = plate.factor.log_z(incoming, conduct=conduct)  # type: ignore[call-arg]
    else:
        log_z = plate.factor.log_z(incoming, power)
    return (float(np.sum(log_z)) + correction) / power


def _said_elsewhere(plain: Family, cavity: Family, sent: Family) -> float:
    """What a factor that fixes a variable finds there: the others' own terms are taken at that value already."""
    fixes = sent.is_point & ~cavity.is_point
    if sent.point is None or not fixes.any():
        return 0.0
    return float(np.sum(plain[fixes].log_density(sent.point[fixes])))
