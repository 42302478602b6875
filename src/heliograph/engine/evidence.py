"""The log evidence at the current messages: Bethe's form of EP's own estimate.

With every message ``m`` normalised, ``log Z = sum_f log Z_f + sum_v A(belief_v) + sum_edges A(cavity) - A(belief)``,
where ``Z_f`` integrates the factor times its incoming messages and ``A`` is the log normaliser. It is exact on trees
of exact factors. A factor that fixes a variable to a value adds nothing for it: the other factors' terms are taken at
that value. With power EP a factor's terms are taken at ``f^alpha`` and divided by alpha. A row of ``X @ w`` adds
``-A(belief of the row)``: its other terms cancel against the vector's.

The sum stays the same when the statistics of a variable are counted from another point c: every A becomes ``-log m(c)``.
For Gaussians c is the mean of the belief, so that nothing large cancels: A itself grows with ``mean^2 / variance``.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from heliograph.engine.tables import Tables
from heliograph.errors import AccuracyWarning
from heliograph.factors import Dot
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.graph.records import Graph, Plate

__all__ = ["log_evidence"]

_UNRESOLVED = 1e-2  # nats: what the rounding of means may cost; above this the evidence is not known
_RELATIVE = 1e-9  # of the evidence itself, that rounding may cost besides


def log_evidence(graph: Graph, tables: Tables, power: float = 1.0, conduct: Any = None) -> float:
    """``log`` of the probability of everything observed, as EP (or power EP) estimates it.

    `conduct` tells black boxes how the run treated them, so that they use what it learned of their log Z. It is NaN,
    and a warning says so, where messages are so narrow that double precision does not resolve it.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # looked at in the end
        centres = _centres(graph, tables)
        total = 0.0
        for node in graph.nodes:
            if node.fully_observed:
                continue
            belief = tables.belief(node)
            a = _log_normaliser(belief, centres.get(node.position))
            total += float(np.sum(np.where(belief.is_point, 0.0, a)))
        rounding = _rounding(graph, tables, centres)
        for plate in graph.plates:
            if isinstance(plate.factor, Dot):
                total += _row_evidence(graph, tables, plate, centres)
            else:
                total += _evidence(graph, tables, plate, power if plate.factor.powers else 1.0, conduct, centres)
    if np.isnan(total) or rounding > _UNRESOLVED + _RELATIVE * abs(total):
        warnings.warn(
            "the log evidence is lost to rounding: some variances are too small, or values too large, for double precision; "
            "choose units in which the values are near 1, or larger variances",
            AccuracyWarning,
            stacklevel=3,
        )
        return np.nan
    return total


def _centres(graph: Graph, tables: Tables) -> dict[int, np.ndarray]:
    """A point for every Gaussian node: the mean of its belief, for a row of ``X @ w`` that of the vector in this row."""
    centres: dict[int, np.ndarray] = {}
    for node in graph.nodes:
        if issubclass(node.family, (Gaussian, MultivariateGaussian)) and not node.fully_observed:
            belief = tables.belief(node)
            mean = np.asarray(belief.mean)
            centres[node.position] = np.where(np.isfinite(mean), mean, 0.0)
    for plate in graph.plates:
        if isinstance(plate.factor, Dot) and plate.edges["out"].node in centres:
            edge = plate.edges["w"]
            w = centres.get(edge.node)
            w = tables.belief(graph.nodes[edge.node]).mean if w is None else w
            centres[plate.edges["out"].node] = plate.data["x"] @ w[0 if edge.index is None else edge.index[0]]
    return centres


def _log_normaliser(message: Family, centre: np.ndarray | None) -> np.ndarray:
    """A of every entry, its statistics counted from the centre if there is one."""
    return message.log_normaliser() if centre is None else -message.log_density(centre)


def _rounding(graph: Graph, tables: Tables, centres: dict[int, np.ndarray]) -> float:
    """Nats that the rounding of means costs: a belief narrower than the spacing of numbers around it is not resolved."""
    worst = 0.0
    for position, centre in centres.items():
        belief = tables.belief(graph.nodes[position])
        precision = belief.naturals[1]
        if precision.ndim > 1:
            precision = np.einsum("...ii->...i", precision)
        cost = precision * np.spacing(np.abs(centre)) ** 2
        free = belief.is_point[..., None] if cost.ndim > belief.ndim else belief.is_point
        worst = max(worst, float(np.max(np.where(free, 0.0, cost), initial=0.0)))
    return worst


def _row_evidence(graph: Graph, tables: Tables, plate: Plate, centres: dict[int, np.ndarray]) -> float:
    node = graph.nodes[plate.edges["out"].node]
    if node.fully_observed:
        return 0.0
    belief = tables.sent[plate.position, "out"] * tables.used[plate.position]
    a = _log_normaliser(belief, centres[node.position])
    return -float(np.sum(np.where(belief.is_point, 0.0, a)))


def _evidence(
    graph: Graph, tables: Tables, plate: Plate, power: float, conduct: Any, centres: dict[int, np.ndarray]
) -> float:
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
        centre = centres.get(edge.node)
        centre = centre if centre is None or edge.index is None else centre[edge.index]
        gap = _log_normaliser(plain, centre) - _log_normaliser(belief, centre)
        correction += float(np.sum(np.where(cavity.is_point | sent.is_point, 0.0, gap)))
        correction -= _said_elsewhere(plain, cavity, sent)
    if plate.factor.learns:
        log_z = plate.factor.log_z(incoming, options=conduct)  # type: ignore[call-arg]
    else:
        log_z = plate.factor.log_z(incoming, power)
    return (float(np.sum(log_z)) + correction) / power


def _said_elsewhere(plain: Family, cavity: Family, sent: Family) -> float:
    """What a factor that fixes a variable finds there: the others' own terms are taken at that value already."""
    fixes = sent.is_point & ~cavity.is_point
    if sent.point is None or not fixes.any():
        return 0.0
    return float(np.sum(plain[fixes].log_density(sent.point[fixes])))
