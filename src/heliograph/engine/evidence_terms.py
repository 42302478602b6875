"""The terms of the evidence that belong to edges: what a plate and its neighbours would otherwise count twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.engine.tables import Tables
from heliograph.families import Family
from heliograph.graph.records import Plate

__all__ = ["counted", "edge_terms", "log_normaliser"]


def counted(terms: np.ndarray, times: np.ndarray | None) -> np.ndarray:
    """Sum terms of the evidence, each as often as its entry or element counts."""
    return terms if times is None else terms * times


def log_normaliser(message: Family, centre: np.ndarray | None) -> np.ndarray:
    """The log normaliser A of every entry, with statistics counted from the centre if there is one."""
    return message.log_normaliser() if centre is None else -message.log_density(centre)


def edge_terms(
    tables: Tables, plate: Plate, incoming: dict[str, Any], power: float, centres: dict[int, np.ndarray]
) -> float:
    """``A(cavity) - A(belief)`` summed over the edges of a plate.

    Parameters
    ----------
    tables
        The messages of the run.
    plate
        The plate whose edges these are.
    incoming
        The cavities by port, taken at this power.
    power
        Of power EP; what the plate sent counts to this power.
    centres
        A value for every entry of each Gaussian node, from which statistics are counted.
    """
    total = 0.0
    for port, edge in plate.edges.items():
        if tables.graph.nodes[edge.node].fully_observed:
            continue
        cavity: Family = incoming[port]
        plain = cavity.from_naturals(cavity.naturals)
        sent = tables.sent[plate.position, port]
        sent = sent if power == 1.0 else sent**power
        belief = plain * sent if sent.point is None else plain * sent.from_naturals(sent.naturals)
        centre = centres.get(edge.node)
        centre = centre if centre is None or edge.index is None else centre[edge.index]
        gap = log_normaliser(plain, centre) - log_normaliser(belief, centre)
        total += float(np.sum(counted(np.where(cavity.is_point | sent.is_point, 0.0, gap), plate.times)))
        total -= _at_fixed_values(plain, cavity, sent)
    return total


def _at_fixed_values(plain: Family, cavity: Family, sent: Family) -> float:
    """The cavity's log density at the values that a factor fixes: the other factors' terms are taken there already."""
    fixes = sent.is_point & ~cavity.is_point
    if sent.point is None or not fixes.any():
        return 0.0
    return float(np.sum(plain[fixes].log_density(sent.point[fixes])))
