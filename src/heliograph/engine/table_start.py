"""The start of a run with unknown tables: rows that begin alike would stay alike, so each is given a taste of its own.

Every row draws a distribution over the child's categories from the run's seed, and the first messages are the counts that
the observations would have under these rows. Rows whose priors differ are left as they are.
"""

from __future__ import annotations

import numpy as np

from heliograph.engine.discrete.counts import CountsFactor
from heliograph.engine.tables import Tables
from heliograph.factors import ChosenProbability, DirichletTable, DirichletTuple
from heliograph.families import Beta, Dirichlet, Family
from heliograph.graph.records import Graph, Plate

__all__ = ["start_tables"]


def start_tables(rng: np.random.Generator, graph: Graph, tables: Tables) -> bool:
    """Store first messages to the rows of unknown tables whose rows are alike and whose parents were not seen; False if none."""
    found = False
    for plate in graph.plates:
        factor = plate.factor
        if isinstance(factor, ChosenProbability):
            found |= _start_entries(rng, graph, tables, plate, factor)
        elif isinstance(factor, (DirichletTable, DirichletTuple)):
            found |= _start_rows(rng, graph, tables, plate, factor)
    return found


def _alike(messages: list[Family]) -> bool:
    first = messages[0].naturals
    return all(np.array_equal(a, b) for m in messages[1:] for a, b in zip(m.naturals, first, strict=True))


def _start_rows(
    rng: np.random.Generator, graph: Graph, tables: Tables, plate: Plate, factor: DirichletTable | DirichletTuple
) -> bool:
    rows = [tables.incoming(plate, row, None) for row in factor.rows]
    ends = factor.parents if isinstance(factor, DirichletTable) else ("x",)
    if not _alike(rows) or all(graph.nodes[plate.edges[p].node].fully_observed for p in ends):
        return False
    j = rows[0].naturals[0].shape[-1]
    taste = rng.dirichlet(np.ones(j), len(rows))  # (R, J)
    weight = np.broadcast_to(taste, (plate.size, *taste.shape))
    if isinstance(factor, DirichletTable):
        child = tables.incoming(plate, "child", None)
        weight = weight * np.exp(child.log_p)[:, None]  # type: ignore[attr-defined]
    weight = weight / weight.sum(axis=(1, 2), keepdims=True)
    for k, row in enumerate(factor.rows):
        tables.store(plate, row, Dirichlet.from_naturals((weight[:, k].copy(),)), None)
    return True


def _start_entries(
    rng: np.random.Generator, graph: Graph, tables: Tables, plate: Plate, factor: ChosenProbability
) -> bool:
    if not _alike([tables.incoming(plate, port, None) for port in factor.q]):
        return False
    port = f"n{plate.edges['q0'].node}"
    categories = next(
        p.factor.entries[port].category
        for p in graph.plates
        if isinstance(p.factor, CountsFactor) and port in p.factor.entries
    )
    taste = rng.dirichlet(np.ones(int(categories.max()) + 1), factor.n)
    weight = taste[:, categories]
    weight /= weight.sum(axis=0)
    for k, port in enumerate(factor.q):
        tables.store(plate, port, Beta.from_naturals((weight[k].copy(), np.zeros(plate.size))), None)
    return True
