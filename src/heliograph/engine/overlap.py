"""Mixtures whose components overlap, while weights, precisions or vectors are unknown beside their means.

The Gaussian numbers of components are kept joint; all other unknowns of a mixture are factorised from them and from each
other. While rows tell their component that costs nothing. Where many do not, standard deviations are too small (decision 0060).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.forms.choice import JointChoice, chooser_of
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.tables import Tables
from heliograph.families import Beta, Dirichlet, Gamma, MultivariateGaussian
from heliograph.graph.records import Graph, Plate

__all__ = ["Overlap", "overlapping"]

_SHARE = 0.02  # of the rows that are expected to be of another component than the most probable one


class Overlap(NamedTuple):
    """A mixture of which many rows could be of several components."""

    selector: str
    share: float  # of rows that are expected to be of another component than the most probable one
    unknown: list[str]  # what is factorised


def overlapping(graph: Graph, tables: Tables) -> list[Overlap]:
    """The mixtures that overlap while more than the joint numbers of their components is unknown."""
    found: list[Overlap] = []
    for plate in graph.plates:
        factor = chooser_of(plate.factor)
        if factor is None or "s" not in plate.edges or graph.nodes[plate.edges["s"].node].fully_observed:
            continue
        unknown, seen = _factorised(graph, plate), _seen(graph, plate)
        if not unknown or seen.sum() < 2:  # one row by itself is integrated exactly
            continue
        incoming = gather_all(tables, plate)
        incoming = plate.factor.alone(incoming) if isinstance(plate.factor, JointChoice) else incoming
        share = float(np.mean(1.0 - factor.probabilities(incoming)[seen].max(axis=-1)))  # pyright: ignore[reportUnknownArgumentType]
        if share > _SHARE:
            found.append(Overlap(graph.nodes[plate.edges["s"].node].name, share, unknown))
    return found


def _seen(graph: Graph, plate: Plate) -> np.ndarray:
    """The rows of which something was observed."""
    edge = plate.edges.get(plate.factor.child)
    if edge is None:
        return np.ones(plate.size, dtype=bool)
    seen = graph.nodes[edge.node].observed
    return np.zeros(plate.size, dtype=bool) if seen is None else seen.is_point[edge.entries(plate.size)]


def _factorised(graph: Graph, plate: Plate) -> list[str]:
    """The unknown parents of components and selector that are no part of a joint vector of numbers."""
    joint = plate.factor.port if isinstance(plate.factor, JointChoice) else ""
    nodes = [e.node for port, e in plate.edges.items() if port not in ("s", plate.factor.child, joint)]
    chosen = plate.edges["s"].node
    makers = [p for p, port in graph.edges_of(chosen) if port == p.factor.child and p is not plate]
    nodes += [e.node for p in makers for e in p.edges.values() if e.node != chosen]
    families = (Beta, Dirichlet, Gamma, MultivariateGaussian)
    open_ = [graph.nodes[k] for k in dict.fromkeys(nodes)]
    return [n.name for n in open_ if issubclass(n.family, families) and not n.fully_observed]
