"""Which nodes of a graph are jointly Gaussian: those that plates which are linear in them join."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from heliograph.factors import (
    Difference,
    Dot,
    Equal,
    GaussianFactor,
    GaussianPrecision,
    LaplaceFactor,
    MultivariateGaussianFactor,
    Prior,
    Scale,
    Shift,
    Stack,
    StudentT,
    Sum,
)
from heliograph.families import Gaussian, MultivariateGaussian
from heliograph.graph.records import Edge, Graph, Node, Plate
from heliograph.numerics.joined_sets import joined_sets

__all__ = ["DETERMINISTIC", "Linear", "groups", "is_gaussian_prior", "is_linear", "is_product", "with_differences"]

DETERMINISTIC = (
    Sum,
    Difference,
    Scale,
    Shift,
    Dot,
    Stack,
)  # factors whose child is an affine function of their parents
_LINEAR = (*DETERMINISTIC, Equal, GaussianFactor, MultivariateGaussianFactor)
_GAUSSIAN = (Gaussian, MultivariateGaussian)
Linear: TypeAlias = Callable[[Graph, Plate], bool]  # which plates disappear into blocks
_OF_DIFFERENCE = (GaussianPrecision, LaplaceFactor, StudentT)  # factors in which only x - mean counts


def with_differences(graph: Graph) -> Graph:
    """The graph with ``N(x; mean, 1 / precision)`` of two unknowns written as ``N(x - mean; 0, 1 / precision)``; other noise too.

    The factor then sees one expression of the block, and not two that it would take for independent.
    """
    if not any(isinstance(plate.factor, _OF_DIFFERENCE) for plate in graph.plates):
        return graph
    made = replace(graph, nodes=list(graph.nodes), plates=[])
    met = graph.meetings()
    for plate in graph.plates:
        # a child without another factor is in no loop, and the difference would have no distribution of its own
        leaf = isinstance(plate.factor, _OF_DIFFERENCE) and "x" in plate.edges and len(met[plate.edges["x"].node]) == 1
        if not leaf and isinstance(plate.factor, _OF_DIFFERENCE) and len(_open_ports(graph, plate, ("mean", "x"))) == 2:
            name = f"({graph.nodes[plate.edges['x'].node].name} - its mean)"
            node = Node(len(made.nodes), name, Gaussian, (plate.size,), None, False)
            made.nodes.append(node)
            out = Edge(node.position, None, True)
            ends = {"a": plate.edges["x"], "b": plate.edges["mean"], "out": out}
            made.plates.append(Plate(len(made.plates), "difference", Difference(), (plate.size,), ends))
            edges = {port: edge for port, edge in plate.edges.items() if port != "mean"} | {"x": out}
            data = {**plate.data, "mean": Gaussian.point_mass(np.zeros(plate.size))}
            plate = replace(plate, edges=edges, data=data)
        made.plates.append(replace(plate, position=len(made.plates)))
    return made


def _open_ports(graph: Graph, plate: Plate, ports: tuple[str, ...] | None = None) -> list[str]:
    """The ports at Gaussian nodes that are not wholly observed."""
    return [
        port
        for port, edge in plate.edges.items()
        if (ports is None or port in ports)
        and issubclass(graph.nodes[edge.node].family, _GAUSSIAN)
        and not graph.nodes[edge.node].fully_observed
    ]


def is_linear(graph: Graph, plate: Plate) -> bool:
    """Whether a plate is a linear relation of Gaussian variables, with noise of a known variance or none."""
    if not isinstance(plate.factor, _LINEAR):
        return False
    return all(issubclass(graph.nodes[e.node].family, _GAUSSIAN) for e in plate.edges.values())


def is_product(graph: Graph, plate: Plate) -> bool:
    """Return whether a plate holds the rows of ``X @ w``, which share one vector and always stay with it."""
    return isinstance(plate.factor, Dot)


def groups(graph: Graph, linear: Linear = is_linear) -> list[set[int]]:
    """Sets of nodes that linear plates join (two uncertain ends at a time), and vectors with exactly known products."""
    plates = [p for p in graph.plates if linear(graph, p)]
    ends = [[p.edges[port].node for port in _open_ports(graph, p)] for p in plates]
    return joined_sets(
        nodes for p, nodes in zip(plates, ends, strict=True) if len(nodes) > 1 or (nodes and is_product(graph, p))
    )


def is_gaussian_prior(plate: Plate) -> bool:
    """Whether a plate is a proper Gaussian prior."""
    factor = plate.factor
    return isinstance(factor, Prior) and isinstance(factor.fixed, _GAUSSIAN) and bool(np.all(factor.fixed.proper))
