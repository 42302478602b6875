"""The start of a run with unknown tables: rows that begin alike would stay alike, so each begins with a distribution of its own.

Every row draws a distribution over the child's categories from the run's seed, and the first messages are the counts that
the observations would have under these rows. Rows whose priors differ are left as they are. Where a large table's parents are
drawn from several distributions (the documents of a topic model), these are clustered, and each row begins at one of the clusters
(docs/decisions/0049).
"""

from __future__ import annotations

import numpy as np

from heliograph.engine.discrete.counts import CountsFactor
from heliograph.engine.tables import Tables
from heliograph.factors import CategoricalDirichlet, ChosenProbability, DirichletTable, DirichletTuple
from heliograph.families import Beta, Dirichlet, Family
from heliograph.graph.records import Graph, Plate
from heliograph.numerics.k_means import k_means

__all__ = ["start_tables"]

_RANDOM = 0.2  # share of a cluster's distribution that is drawn: clusters may be equal, and none may exclude a category
_MOST_NUMBERS = 2e7  # frequencies of categories in documents that are clustered; beyond, some documents are


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
    taste = _with_clusters(rng, graph, plate, categories, taste)
    weight = taste[:, categories]
    weight /= weight.sum(axis=0)
    for k, port in enumerate(factor.q):
        tables.store(plate, port, Beta.from_naturals((weight[k].copy(), np.zeros(plate.size))), None)
    return True


def _with_clusters(
    rng: np.random.Generator, graph: Graph, plate: Plate, categories: np.ndarray, taste: np.ndarray
) -> np.ndarray:
    """Tastes (K, V) of clusters of documents, and a little of these random ones; the random ones where there are no documents.

    Documents are what the parents are drawn from. They are clustered by the square roots of their categories' frequencies, the
    distances of which hardly depend on how frequent a category is.
    """
    parent = plate.edges["parent"].node
    sources = [p for p in graph.plates if isinstance(p.factor, CategoricalDirichlet) and p.edges["x"].node == parent]
    if not sources or "p" not in sources[0].edges or sources[0].size != plate.size:
        return taste
    k, v = taste.shape
    document = np.unique(sources[0].edges["p"].entries(plate.size), return_inverse=True)[1]
    n = int(document.max()) + 1
    if n < k:
        return taste
    chosen = np.arange(n) if n * v <= _MOST_NUMBERS else rng.permutation(n)[: max(k, int(_MOST_NUMBERS / v))]
    place = np.full(n, -1)
    place[chosen] = np.arange(len(chosen))
    at = place[document] >= 0
    times = np.ones(plate.size) if plate.times is None else plate.times
    counts = np.bincount(place[document[at]] * v + categories[at], times[at], len(chosen) * v).reshape(-1, v)
    label = k_means(rng, np.sqrt(counts / counts.sum(axis=1, keepdims=True)), k)
    of_cluster = np.zeros((k, v))
    np.add.at(of_cluster, label, counts)
    overall = counts.sum(axis=0)
    size: np.ndarray = of_cluster.sum(axis=1, keepdims=True)
    cluster = np.where(size > 0, of_cluster / np.maximum(size, 1.0), overall / overall.sum())
    return (1.0 - _RANDOM) * cluster + _RANDOM * taste
