"""Gamma precisions: which of them keep their messages, and which are integrated over beside the hyper-parameters of a model."""

from __future__ import annotations

from heliograph.engine.blocks.grouping import is_linear
from heliograph.factors import GaussianPrecision, Prior
from heliograph.families import Gamma
from heliograph.graph.hyper import Hyper, hyper_of
from heliograph.graph.records import Graph, Plate

__all__ = ["poorly_messaged"]


def poorly_messaged(graph: Graph) -> list[Hyper]:
    """Precisions whose messages are less accurate than integration: of unseen effects under a likelihood that is not Gaussian.

    The table in docs/hyperparameters.md has the measurements: noise, and effects with Gaussian data, are as good by messages.
    """
    if not any(_is_other_likelihood(graph, p) for p in graph.plates):
        return []
    found: dict[int, Hyper] = {}
    for plate in graph.plates:
        if isinstance(plate.factor, GaussianPrecision) and {"x", "precision"} <= plate.edges.keys():
            node, effects = graph.nodes[plate.edges["precision"].node], graph.nodes[plate.edges["x"].node]
            prior = None if node.maker is None else node.maker.factor
            fixed = isinstance(prior, Prior) and isinstance(prior.fixed, Gamma)
            if fixed and node.size == 1 and node.given and node.observed is None and not effects.fully_observed:
                found[node.position] = hyper_of(node)
    return list(found.values())


def _is_other_likelihood(graph: Graph, plate: Plate) -> bool:
    """Whether a plate says something of Gaussian variables that is neither linear nor Gaussian noise."""
    if isinstance(plate.factor, (Prior, GaussianPrecision)) or is_linear(graph, plate):
        return False
    return any(graph.nodes[e.node].family.gaussian for e in plate.edges.values())
