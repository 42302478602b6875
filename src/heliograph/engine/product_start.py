"""The start of a run with a table of products whose unknowns are alike under a change of signs: one side is drawn aside.

Where the a and b of a table of products are centred at 0, so are all messages of the products to them, and a run would stay between
its equal modes, or end without a distribution. So a value for every a is drawn from its own distribution, and the first
message to it is around that value, as wide as the distribution itself. It is an ordinary state: the sweeps that follow have the
same fixed points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.engine.forms.product import JointProduct
from heliograph.engine.forms.scored_product import ScoredProduct
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.tables import Tables
from heliograph.factors import Product
from heliograph.families import Gaussian, MultivariateGaussian
from heliograph.graph.records import Edge, Graph, Plate

__all__ = ["start_products"]

_CENTRED = 1e-9  # of a standard deviation: a mean this near to 0 is 0


def start_products(rng: np.random.Generator, graph: Graph, tables: Tables) -> bool:
    """Store first messages of products whose unknowns are centred at 0; False where there are none."""
    drawn: dict[int, np.ndarray] = {}  # by node
    for plate in graph.plates:
        ends = _ends(tables, plate)
        if ends is None or not _is_table(plate):
            continue
        a, b, edge = ends
        if edge.node in drawn or (_centred(a) and _centred(b)):
            entries = edge.entries(plate.size)
            if edge.node not in drawn:
                drawn[edge.node] = rng.standard_normal(graph.nodes[edge.node].size)
            _tell(tables, plate, (a, b), drawn[edge.node][entries], np.bincount(entries)[entries])
    return bool(drawn)


def _ends(tables: Tables, plate: Plate) -> tuple[Gaussian, Gaussian, Edge] | None:
    """What comes in from both unknowns of a product, and the edge to the first."""
    edges = plate.edges | plate.joined
    if not isinstance(plate.factor, (Product, JointProduct, ScoredProduct)) or not {"a", "b"} <= edges.keys():
        return None
    incoming: dict[str, Any] = gather_all(tables, plate)
    if isinstance(plate.factor, (JointProduct, ScoredProduct)):
        vector = incoming[plate.factor.port]
        if not vector.proper.all():
            return None
        for k, port in enumerate(plate.factor.joined):
            incoming[port] = Gaussian.from_mean_variance(vector.mean[:, k], vector.variance[:, k])
    return incoming["a"], incoming["b"], edges["a"]


def _is_table(plate: Plate) -> bool:
    """Whether rows pair many a with many b, as in a table of products, in which no mode leads to its mirror image."""
    edges = plate.edges | plate.joined
    a, b = (edges[port].entries(plate.size) for port in ("a", "b"))
    n_pairs = len(np.unique(np.stack([a, b]), axis=1).T)
    return n_pairs > len(np.unique(a)) + len(np.unique(b))


def _centred(m: Gaussian) -> bool:
    return bool((m.proper & ~m.is_point).all() and (np.abs(m.mean) <= _CENTRED * np.sqrt(m.variance)).all())


def _tell(tables: Tables, plate: Plate, ends: tuple[Gaussian, Gaussian], value: np.ndarray, times: np.ndarray) -> None:
    """A message around the drawn values, of which all rows of an entry together are as wide as what came in.

    The product itself, where it is joint with them, gets a message of that width: otherwise the block would have no distribution.
    """
    a, b = ends
    precision = 1.0 / (a.variance * times)
    shift = precision * value * np.sqrt(a.variance)
    if not isinstance(plate.factor, (JointProduct, ScoredProduct)):
        tables.store(plate, "a", Gaussian.from_naturals((shift, precision)), None)
        return
    nothing = np.zeros(len(shift))
    found = {"a": (shift, precision), "out": (nothing, 1.0 / (a.variance * b.variance))}
    each = [found.get(port, (nothing, nothing)) for port in plate.factor.joined]
    shifts, precisions = (np.stack(part, axis=1) for part in zip(*each, strict=True))
    naturals = shifts, precisions[:, :, None] * np.eye(len(each))
    tables.store(plate, plate.factor.port, MultivariateGaussian.from_naturals(naturals), None)
