"""The start of a run with mixtures: points are clustered, and the first messages are the conjugate ones given the clusters.

Components that begin alike stay alike, and components that begin at random have messages so far from any fixed point that EP
diverges. So the points that share their components (the entries of selectors, with what every mixture says of each) are
clustered by k-means++; the clusters are given to the components under whose priors they are most probable; and every
component gets the messages of its cluster as if the selectors were known. Where too few points share their components for clusters,
as in a mixture of regressions, each draws its component from its probability under the priors.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from heliograph.engine.forms.choice import JointChoice, chooser_of
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.tables import Tables
from heliograph.factors.mixture import Mixture
from heliograph.families import Family, Gamma, Gaussian
from heliograph.graph.records import Graph, Plate
from heliograph.graph.sparse import connected_parts
from heliograph.numerics.assignment import best_assignment
from heliograph.numerics.k_means import k_means
from heliograph.numerics.special import gammaln

__all__ = ["start_mixtures"]

_IMPOSSIBLE = -50.0  # nats: the most that one selector counts against a component when clusters are matched
_WIDE = 1e10  # variance that stands for a mean without a prior
_MOST_NUMBERS = 10_000_000  # points times coordinates that are clustered at once


class _Elements(NamedTuple):
    """All elements of some plates of mixtures of K components."""

    point: np.ndarray  # (n,) number of the selector's entry
    feature: np.ndarray  # (n,) number of the tuple of means that it belongs to
    x: np.ndarray  # (n,) NaN where nothing is known
    variance: np.ndarray  # (n,) of x
    log_p: np.ndarray  # (n, K) of the selector
    mean: np.ndarray  # (n, K) of the components' means before anything was seen
    spread: np.ndarray  # (n, K) their variances
    shape: np.ndarray  # (n, K) of the precisions; NaN where they are known
    rate: np.ndarray  # (n, K); 1 / precision where that is known, with shape NaN


def start_mixtures(rng: np.random.Generator, graph: Graph, tables: Tables) -> bool:
    """Store the first messages of all mixtures; False where there are none."""
    plates: dict[int, list[Plate]] = {}
    for plate in graph.plates:
        factor = chooser_of(plate.factor)
        if isinstance(factor, Mixture):
            plates.setdefault(factor.n, []).append(plate)
    for alike in plates.values():
        parts = [_elements(graph, tables, plate) for plate in alike]
        every = _Elements(*(np.concatenate(a) for a in zip(*parts, strict=True)))
        every = every._replace(point=_numbered(every.point[:, None]), feature=_numbered(every.feature))
        seen = np.isfinite(every.x)
        label = np.full(len(seen), -1)
        if seen.any():
            label[seen] = _labels(rng, _Elements(*(a[seen] for a in every)))
        start = 0
        for plate, part in zip(alike, parts, strict=True):
            rows = slice(start, start + plate.size)
            start += plate.size
            _store(graph, tables, plate, part._replace(feature=every.feature[rows]), label[rows])
    return bool(plates)


# ---- reading ----------------------------------------------------------------------------------------------------
def _elements(graph: Graph, tables: Tables, plate: Plate) -> _Elements:
    """The messages of one plate as numbers; `feature` still holds the entries of all K means."""
    incoming, k = gather_all(tables, plate), int(cast(Any, plate.factor).n)
    if isinstance(plate.factor, JointChoice):
        incoming = plate.factor.alone(incoming)
    offset = np.cumsum([0, *(node.size for node in graph.nodes)])

    def entries(port: str) -> np.ndarray:
        edge = (plate.edges | plate.joined).get(port)
        if edge is None:
            return np.full(plate.size, -1 - plate.position)
        return offset[edge.node] + edge.entries(plate.size)

    x = incoming["x"]
    known = x.proper
    means = [incoming[f"mean{j}"] for j in range(k)]
    precisions = [incoming[_precision_port(plate, j)] for j in range(k)]
    at = [m.proper for m in means]
    fixed = np.stack([p.is_point for p in precisions], axis=1)
    value = np.stack([np.where(p.is_point, p.mean, 1.0) for p in precisions], axis=1)
    shape = np.stack([np.maximum(p.naturals[0] + 1.0, 0.0) for p in precisions], axis=1)
    rate = np.stack([np.maximum(p.naturals[1], 0.0) for p in precisions], axis=1)
    return _Elements(
        entries("s"),
        np.stack([entries(f"mean{j}") for j in range(k)], axis=1),
        np.where(known, x.mean, np.nan),
        np.where(known, x.variance, 0.0),
        np.maximum(incoming["s"].log_p, _IMPOSSIBLE),
        np.stack([np.where(ok, m.mean, 0.0) for m, ok in zip(means, at, strict=True)], axis=1),
        np.stack([np.where(ok, m.variance, _WIDE) for m, ok in zip(means, at, strict=True)], axis=1),
        np.where(fixed, np.nan, shape),
        np.where(fixed, 1.0 / value, rate),
    )


def _precision_port(plate: Plate, component: int) -> str:
    return "precision" if _mixture(plate).one_precision else f"precision{component}"


def _mixture(plate: Plate) -> Mixture:
    return cast(Mixture, chooser_of(plate.factor))


def _numbered(keys: np.ndarray) -> np.ndarray:
    """A number from 0 for every different row of some columns."""
    number = np.zeros(len(keys), dtype=int)
    for column in keys.T:
        if (column != column[0]).any():
            _, value = np.unique(column, return_inverse=True)
            _, number = np.unique(number * len(keys) + value, return_inverse=True)
    return number


# ---- labels -----------------------------------------------------------------------------------------------------
def _labels(rng: np.random.Generator, e: _Elements) -> np.ndarray:
    """The component that each element starts with."""
    k = e.log_p.shape[1]
    point, feature = _numbered(e.point[:, None]), _numbered(e.feature[:, None])
    n_points, n_features = int(point.max()) + 1, int(feature.max()) + 1
    part = connected_parts(n_points + n_features, point, n_points + feature)[:n_points]
    n_in = np.bincount(part)
    log_p = np.zeros((n_points, k))
    log_p[point] = e.log_p
    label = _drawn(rng, e, point, log_p)
    for number in np.flatnonzero(n_in >= 2 * k):
        inside = part[point] == number if len(n_in) > 1 else np.ones(len(point), dtype=bool)
        members = np.flatnonzero(part == number)
        some = _Elements(*(a[inside] for a in e))
        row, column = np.searchsorted(members, point[inside]), _numbered(feature[inside][:, None])
        cluster = k_means(rng, _coordinates(row, column, some.x, len(members)), k)
        label[members] = _matched(some, row, column, cluster, log_p[members])[cluster]
    certain = log_p.max(axis=1) > -1e-12
    label[certain] = log_p[certain].argmax(axis=1)
    return label[point]


def _coordinates(row: np.ndarray, column: np.ndarray, x: np.ndarray, n: int) -> np.ndarray:
    """An array of points with a column for every tuple of means, NaN where a point has no value; columns have one scale."""
    count = np.bincount(column)
    kept = np.argsort(-count, kind="stable")[
        : max(1, _MOST_NUMBERS // n)
    ]  # the most frequent ones, if there are too many
    place = np.full(len(count), -1)
    place[kept] = np.arange(len(kept))
    here = place[column] >= 0
    at = row[here] * len(kept) + place[column[here]]
    size = n * len(kept)
    total, times = np.bincount(at, x[here], minlength=size), np.bincount(at, minlength=size)
    points = np.where(times > 0, total / np.maximum(times, 1), np.nan).reshape(n, len(kept))
    if len(kept) > 1:
        points = points / np.maximum(np.nanstd(points, axis=0), 1e-300)
    return points


def _drawn(rng: np.random.Generator, e: _Elements, point: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """A component for every point, drawn with its probability under the priors."""
    v = e.spread + 1.0 / _expected_precision(e, 0.0, 0.0) + e.variance[:, None]
    each = -0.5 * np.log(v) - 0.5 * (e.x[:, None] - e.mean) ** 2 / v
    log_weight = log_p + np.stack([np.bincount(point, a, minlength=len(log_p)) for a in each.T], axis=1)
    return (log_weight + rng.gumbel(size=log_weight.shape)).argmax(axis=1)


def _matched(e: _Elements, row: np.ndarray, column: np.ndarray, cluster: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """The component of every cluster: the assignment under which all clusters together are most probable."""
    k = log_p.shape[1]
    score = np.asarray(cluster == np.arange(k)[:, None], dtype=float) @ log_p
    _, first = np.unique(column, return_index=True)
    prior = _Elements(*(a[first] for a in e))
    for j in range(k):
        mine = cluster[row] == j
        n = np.bincount(column[mine], minlength=len(first))
        mean = np.bincount(column[mine], e.x[mine], minlength=len(first)) / np.maximum(n, 1)
        squares = np.bincount(column[mine], (e.x[mine] - mean[column[mine]]) ** 2, minlength=len(first))
        n, squares = n[:, None], squares[:, None]
        v = prior.spread + 1.0 / (np.maximum(n, 1) * _expected_precision(prior, n, squares))
        fit = -0.5 * np.log(v) - 0.5 * (mean[:, None] - prior.mean) ** 2 / v + _log_spread(prior, n, squares)
        score[j] += np.where(n > 0, fit, 0.0).sum(axis=0)
    return best_assignment(score)


def _expected_precision(e: _Elements, n: np.ndarray | float, squares: np.ndarray | float) -> np.ndarray:
    """The precision of each component, after `n` deviations with that sum of squares where it is not known."""
    known = np.isnan(e.shape)
    a, b = np.where(known, 1.0, e.shape) + 0.5 * n, np.where(known, e.rate, e.rate + 0.5 * squares)
    return np.where(known, 1.0 / np.where(known, e.rate, 1.0), np.maximum(a, 1e-6) / np.maximum(b, 1e-300))


def _log_spread(e: _Elements, n: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """``log`` density of deviations with that sum of squares, but for what all components have in common."""
    known = np.isnan(e.shape)
    tau = 1.0 / np.where(known, e.rate, 1.0)
    at = 0.5 * n * np.log(tau) - 0.5 * squares * tau
    a, b = np.where(known, 1.0, np.maximum(e.shape, 1e-6)), np.where(known, 1.0, np.maximum(e.rate, 1e-300))
    integrated = gammaln(a + 0.5 * n) - gammaln(a) + a * np.log(b) - (a + 0.5 * n) * np.log(b + 0.5 * squares)
    return np.where(known, at, integrated)


# ---- messages ---------------------------------------------------------------------------------------------------
def _store(graph: Graph, tables: Tables, plate: Plate, e: _Elements, label: np.ndarray) -> None:
    """The conjugate messages of one plate, given the labels; uniform where there is none."""
    seen = label >= 0
    at = np.where(seen, label, 0)
    x = np.where(seen, e.x, 0.0)
    group = _numbered(np.stack([e.feature, label], axis=1))
    n = np.bincount(group, seen)
    mean = np.bincount(group, x) / np.maximum(n, 1)
    squares = (x - mean[group]) ** 2 + e.variance
    squares *= (n / np.maximum(n - 1, 1))[group]  # points are nearer to their own average than to the mean
    tau = np.ones(len(x))
    for j in range(plate.factor.n):  # type: ignore[attr-defined]
        mine = at == j
        pool = plate.edges.get(_precision_port(plate, j))
        entry = np.zeros(len(x), dtype=int) if pool is None else pool.entries(len(x))
        with_it = seen if _precision_port(plate, j) == "precision" else seen & mine
        count, total = np.bincount(entry, with_it), np.bincount(entry, squares * with_it)
        tau[mine] = _expected_precision(e, count[entry][:, None], total[entry][:, None])[mine, j]
    precision = 1.0 / (1.0 / tau + e.variance)
    found: dict[str, Any] = {}
    for j in range(plate.factor.n):  # type: ignore[attr-defined]
        counted = seen & (label == j)
        shift, weight = np.where(counted, precision * x, 0.0), np.where(counted, precision, 0.0)
        found[f"mean{j}"] = Gaussian.from_naturals((shift, weight))
        counted = seen if _mixture(plate).one_precision else counted
        half, rate = np.where(counted, 0.5, 0.0), np.where(counted, 0.5 * squares, 0.0)
        found[_precision_port(plate, j)] = Gamma.from_naturals((half, rate))
    if isinstance(plate.factor, JointChoice):
        found[plate.factor.port] = plate.factor.together([found[p] for p in plate.factor.joined])
    for port, message in found.items():
        _tell(graph, tables, plate, port, message)


def _tell(graph: Graph, tables: Tables, plate: Plate, port: str, message: Family) -> None:
    """Store a message if there is a variable at the port."""
    if port in plate.edges and not graph.nodes[plate.edges[port].node].fully_observed:
        tables.store(plate, port, message, None)
