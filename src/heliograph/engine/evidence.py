"""The log evidence at the current messages: Bethe's form of EP's own estimate.

With every message ``m`` normalised, ``log Z = sum_f log Z_f + sum_v A(belief_v) + sum_edges A(cavity) - A(belief)``,
where ``Z_f`` integrates the factor times its incoming messages and ``A`` is the log normaliser. It is exact on trees
of exact factors. A factor that fixes a variable to a value adds nothing for it: the other factors' terms are taken at
that value. With power EP a factor's terms are taken at ``f^alpha`` and divided by alpha.

The sum stays the same when the statistics of a variable are counted from another point c: every A becomes ``-log m(c)``.
For Gaussians c is the mean of the belief, so that nothing large cancels: A itself grows with ``mean^2 / variance``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from heliograph.engine.evidence_terms import counted, log_normaliser
from heliograph.engine.plates import EvidencePoint, Exchange, PlateKind
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.tables import Tables
from heliograph.errors import AccuracyWarning
from heliograph.graph.records import Graph

__all__ = ["log_evidence"]

_UNRESOLVED = 1e-2  # nats: what the rounding of means may cost; above this the evidence is not known
_RELATIVE = 1e-9  # and this share of the evidence itself


def log_evidence(graph: Graph, plates: Sequence[PlateKind], exchange: Exchange) -> float:
    """``log`` of the probability of everything observed, as EP (or power EP) estimates it.

    It is NaN, and a warning says so, where messages are so narrow that double precision does not resolve it, where a block was
    only estimated, and where the integral of a factor diverges.
    """
    tables = exchange.tables
    if any(plate.factor.refused is not None for plate in plates if isinstance(plate, BlockPlate)):
        return _unknown(
            "there is no log evidence: a block of variables was too large to be solved jointly, and its determinant is not known; "
            "a larger budget= solves it, structure='factorised' gives the evidence of factorised messages"
        )
    with np.errstate(
        over="ignore", invalid="ignore", divide="ignore"
    ):  # values that are not finite are handled at the end
        centres = _centres(graph, plates, tables)
        total, rounding = 0.0, _rounding(graph, tables, centres)
        outside = {e.node for p in graph.plates for e in p.edges.values() if not e.joint}
        joint = {e.node for p in graph.plates for e in p.edges.values() if e.joint}
        inside = {n.position for n in graph.nodes if n.position not in outside} | joint  # a block counts its own nodes
        for node in graph.nodes:
            if node.fully_observed or node.position in inside:
                continue
            belief = tables.belief(node)
            a = counted(np.where(belief.is_point, 0.0, log_normaliser(belief, centres.get(node.position))), node.times)
            rounding = max(rounding, float(np.spacing(np.abs(a).max(initial=0.0))))  # terms that cancel elsewhere
            total += float(np.sum(a))
        at = EvidencePoint(exchange, centres)
        for plate in plates:
            total += plate.log_evidence(at)
    if np.isposinf(total):
        return _unknown(
            "there is no log evidence: where this run came to rest, messages that are no distributions meet in a factor whose "
            "integral diverges; other priors, damping= or another schedule= may come to rest elsewhere"
        )
    if np.isnan(total) or rounding > _UNRESOLVED + _RELATIVE * abs(total):
        return _unknown(
            "the log evidence is lost to rounding: some variances are too small, or values too large, for double precision; "
            "choose units in which the values are near 1, or larger variances"
        )
    return total


def _unknown(why: str) -> float:
    """NaN, and a warning that says why."""
    warnings.warn(why, AccuracyWarning, stacklevel=4)
    return np.nan


def _centres(graph: Graph, plates: Sequence[PlateKind], tables: Tables) -> dict[int, np.ndarray]:
    """A point for every Gaussian node: the mean of its belief, or a more exact one where a plate has it."""
    centres: dict[int, np.ndarray] = {}
    met = {e.node for p in graph.plates for e in p.edges.values()}
    for node in graph.nodes:
        if node.family.gaussian and node.position in met and not node.fully_observed:
            mean = np.asarray(tables.belief(node).mean)
            centres[node.position] = np.where(np.isfinite(mean), mean, 0.0)
    for plate in plates:
        centres.update(plate.centres(tables, centres))
    return centres


def _rounding(graph: Graph, tables: Tables, centres: dict[int, np.ndarray]) -> float:
    """Nats of error by the rounding of means: a belief narrower than the spacing of floating-point numbers is not resolved."""
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
