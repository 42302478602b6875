"""Values that share their mean and their precision are one factor: exact where n factors would each keep the two apart.

EP keeps an unknown mean and an unknown precision apart, once for every factor that joins them. Values with the same mean and
the same precision say of both what their number, average and squares say, so they are one factor (docs/decisions/0047): a
sample of three values with unknown mean and precision has the marginals of the exact posterior, and so has one of a million.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from heliograph.engine.blocks.grouping import groups, is_gaussian_prior, is_linear
from heliograph.factors import Factor, GaussianPrecision
from heliograph.factors.base import Incoming
from heliograph.factors.mean_field import Expected, expected, precision_from_squares
from heliograph.families import Family, Gamma, Gaussian
from heliograph.graph.records import Edge, Graph, Plate
from heliograph.numerics.logarithms import LOG_2PI

__all__ = ["GaussianSample", "with_pooled_samples"]


class GaussianSample(Factor):
    """``prod_i N(x_i; mean, 1 / precision)`` of known values, by their count, average and sum of squares around it.

    With n values it is ``N(average; mean, 1 / (n precision))`` times a Gamma in the precision of shape ``(n + 1) / 2`` and rate
    ``squares / 2``: one `GaussianPrecision` in units where the precision is n times as large, that Gamma in its message.
    """

    name = "gaussian_sample"
    families: ClassVar = {"mean": (Gaussian,), "precision": (Gamma,)}
    how: ClassVar = {"mean": "quadrature over precision", "precision": "quadrature"}
    exact_given: ClassVar = {"mean": ("precision",), "precision": ("mean",)}
    powers = True

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """Belief over cavity."""
        n, squares = power * incoming["count"], power * incoming["squares"]
        sent = GaussianPrecision().message(to, _one(incoming, n, squares))
        if to == "mean":
            return sent
        shape, rate = sent.naturals
        return Gamma.from_naturals((shape + 0.5 * (n - 1.0), n * rate + 0.5 * squares))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral over mean and precision; infinite where there is none."""
        n: np.ndarray = power * incoming["count"]
        squares: np.ndarray = power * incoming["squares"]
        tau: Gamma = incoming["precision"]
        inner = GaussianPrecision().log_z(_one(incoming, n, squares))
        at = np.where(tau.is_point, tau.mean, 1.0)
        # a Gamma of the same precision before and after the squares: both as densities at one value, where nothing large cancels
        after = _after(tau, n, squares)
        value = np.where(after.proper & ~tau.is_point, after.mean, 1.0)
        soft = (
            tau.log_density(value) - after.log_density(value) + 0.5 * (n - 1.0) * np.log(value) - 0.5 * squares * value
        )
        known = 0.5 * (n - 1.0) * np.log(at) - 0.5 * squares * at
        return inner + np.where(tau.is_point, known, soft) - 0.5 * (n - 1.0) * LOG_2PI - 0.5 * np.log(n)

    def mean_field(self, to: str, incoming: Incoming, beliefs: Incoming) -> Family:
        """The mean as under the expected precision; the precision as from the expected squares."""
        n, squares, average = incoming["count"], incoming["squares"], Gaussian.point_mass(incoming["average"])
        tau = expected(beliefs["precision"])
        if to == "mean":
            weight = np.where(tau.known, n * tau.value, 0.0)
            return Gaussian.from_naturals((weight * incoming["average"], weight))
        shape, rate = precision_from_squares(average, incoming["mean"], Expected(n * tau.value, tau.known)).naturals
        return Gamma.from_naturals((shape + 0.5 * (n - 1.0), n * rate + 0.5 * squares))


def _after(tau: Gamma, n: np.ndarray, squares: np.ndarray) -> Gamma:
    """A message to the precision with what the squares around the average say."""
    shape, rate = tau.naturals
    return Gamma.from_naturals((shape + 0.5 * (n - 1.0), rate + 0.5 * squares))


def _one(incoming: Incoming, n: np.ndarray, squares: np.ndarray) -> dict[str, Family]:
    """The average as one value, whose precision is n times the sample's."""
    tau: Gamma = incoming["precision"]
    shape, rate = _after(tau, n, squares).naturals
    at = tau.is_point
    scaled = Gamma.from_naturals(
        (np.where(at, 0.0, shape), np.where(at, 0.0, rate / n)), None if tau.point is None else n * tau.point
    )
    return {"x": Gaussian.point_mass(incoming["average"]), "mean": incoming["mean"], "precision": scaled}


# ---- the graph --------------------------------------------------------------------------------------------------
def with_pooled_samples(graph: Graph) -> Graph:
    """The same model with one factor for all known values that share their mean and their precision.

    What comes in at the mean must be a distribution, so it is done only where nothing but known Gaussians, and other samples,
    meet the variables that the mean is joined to. The effects of a hierarchy whose own precision is unknown keep a factor per
    value: what their prior says of an outlying effect may be improper, and the values beside each other make up for it.
    """
    if not any(_is_sample(graph, plate) for plate in graph.plates):
        return graph
    together = groups(graph)
    plates = [_pooled(graph, p) if _is_sample(graph, p) and _tame(graph, p, together) else p for p in graph.plates]
    return graph if all(a is b for a, b in zip(plates, graph.plates, strict=True)) else replace(graph, plates=plates)


def _is_sample(graph: Graph, plate: Plate) -> bool:
    """Whether a plate has known values of an unknown mean and precision."""
    if type(plate.factor) is not GaussianPrecision or set(plate.edges) != {"mean", "precision", "x"}:
        return False
    return graph.nodes[plate.edges["x"].node].fully_observed


def _tame(graph: Graph, plate: Plate, together: list[set[int]]) -> bool:
    """Whether nothing but known Gaussians and samples meets the nodes that the mean is joined to."""
    mean = plate.edges["mean"].node
    nodes = next((g for g in together if mean in g), {mean})
    others = [p for p in graph.plates if any(e.node in nodes for e in p.edges.values())]
    return all(is_linear(graph, p) or is_gaussian_prior(p) or _is_sample(graph, p) for p in others)


def _pooled(graph: Graph, plate: Plate) -> Plate:
    edges = plate.edges
    seen = graph.nodes[edges["x"].node].observed
    assert seen is not None and seen.point is not None
    mean, precision = (edges[port].entries(plate.size) for port in ("mean", "precision"))
    pairs, first, group, count = np.unique(
        np.stack([mean, precision]), axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    if pairs.shape[1] == plate.size:
        return plate
    x, group = np.asarray(seen.point, dtype=float)[edges["x"].entries(plate.size)], group.reshape(-1)
    average = np.bincount(group, x) / count
    # the average again, of what is left: a sum of values far from 0 loses digits
    average += np.bincount(group, x - average[group]) / count
    data = {"count": count.astype(float), "average": average, "squares": np.bincount(group, (x - average[group]) ** 2)}
    ends = {port: _edge(edges[port], at[first]) for port, at in (("mean", mean), ("precision", precision))}
    return replace(plate, factor=GaussianSample(), shape=(len(count),), edges=ends, data=data)


def _edge(edge: Edge, index: np.ndarray) -> Edge:
    return replace(edge, index=index, unique=len(np.unique(index)) == len(index))
