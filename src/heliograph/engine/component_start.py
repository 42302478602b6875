"""The start of a run with mixtures of any factors: rows get labels, and components get messages as if these were known.

Components that begin alike stay alike. Labels are proposed by k-means++ of what was seen, and by a few rows drawn for every
component, which the others then join: in every round each row goes to the component under which it is most probable given all
other rows. The proposal with the largest evidence is kept (decision 0056).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, cast

import numpy as np

from heliograph.engine.compiled import CompiledModel
from heliograph.engine.evidence import log_evidence
from heliograph.engine.forms.choice import chooser_of
from heliograph.engine.plates import Exchange
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.tables import Tables
from heliograph.errors import AccuracyWarning
from heliograph.factors import OneOf
from heliograph.families import Beta, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.graph.records import Graph, Plate
from heliograph.graph.sparse import connected_parts
from heliograph.numerics.assignment import best_assignment
from heliograph.numerics.k_means import k_means
from heliograph.numerics.special import logsumexp

__all__ = ["start_components"]

_ROUNDS = 12  # in which rows may change their component, at most
_SEEDS = (1, 2, 4, 8)  # rows that every component begins with
_REPEATS = 4  # proposals for each of these numbers, at most
_MANY = 2000  # rows of all repeats together: with many rows, k-means and few proposals suffice
_TRIAL = 3  # rounds after which the proposals are compared
_FOLLOWED = 3  # of them that are followed to their end
_IMPOSSIBLE = -1e4  # nats: the most that one row counts against a component


class _Rows(NamedTuple):
    """The rows of all mixtures of K components that share selectors: a point is an entry of a selector."""

    plates: list[Plate]
    point: list[np.ndarray]  # for every plate, the number of each element's point
    seen: list[np.ndarray]  # and whether anything is known of its child
    n: int  # points
    k: int
    part: np.ndarray  # (n,) number of the group of points that share their components
    log_p: np.ndarray  # (n, K) of the selectors
    n_passes: int  # 2 where the message to one parameter of a component depends on another one


def start_components(rng: np.random.Generator, compiled: CompiledModel, exchange: Exchange) -> bool:
    """Store the first messages of all mixtures made of other factors; False where there are none."""
    found: dict[int, list[Plate]] = {}
    for plate in compiled.graph.plates:
        factor = chooser_of(plate.factor)
        if isinstance(factor, OneOf):
            found.setdefault(factor.n, []).append(plate)
    for plates in found.values():
        rows = _rows(compiled.graph, exchange.tables, plates)
        if any(seen.any() for seen in rows.seen):
            _start(rng, compiled, exchange, rows)
    return bool(found)


def _start(rng: np.random.Generator, compiled: CompiledModel, exchange: Exchange, rows: _Rows) -> None:
    """Try the proposals for a while, follow the best of them to their end, and keep the messages of the winner."""
    tables = exchange.tables
    before = tables.snapshot(copy=False)
    tried: list[_Trial] = []
    for label in _proposals(rng, tables, rows, _scores(tables, rows)):
        tables.restore(before, copy=False)
        tried.append(_followed(compiled, exchange, rows, label, _TRIAL))
    tried.sort(key=lambda t: -t.total)
    best = tried[0]
    for one in tried[:_FOLLOWED]:
        if one.state is not None:
            tables.restore(one.state, copy=False)
            one = _followed(compiled, exchange, rows, one.label, _ROUNDS)
        best = one if one.total > best.total else best
    tables.restore(before if best.state is None else best.state, copy=False)


class _Trial(NamedTuple):
    """How far a proposal got."""

    total: float  # log evidence
    label: np.ndarray  # the component of every point next
    state: Any  # the messages; None where they leave no distribution
    ended: bool  # whether no row changes its component any more


def _followed(compiled: CompiledModel, exchange: Exchange, rows: _Rows, label: np.ndarray, n_rounds: int) -> _Trial:
    """Let rows change to the component under which they are most probable, for some rounds or until none does."""
    tables, best = exchange.tables, _Trial(-np.inf, label, None, True)
    for _ in range(n_rounds):
        for _ in range(rows.n_passes):
            for k, plate in enumerate(rows.plates):
                _tell(compiled.graph, tables, plate, label[rows.point[k]], rows.seen[k])
            _answer(compiled, exchange, rows)
        if not all(tables.belief(node).proper.all() for node in compiled.watched()):
            break
        log_weight = rows.log_p + _scores(tables, rows)
        new, total = log_weight.argmax(axis=1), _total(compiled, exchange, log_weight)
        trial = _Trial(total, new, tables.snapshot(copy=False), bool((new == label).all()))
        best = trial if trial.total > best.total else best
        if trial.ended:
            break
        label = new
    return best


def _total(compiled: CompiledModel, exchange: Exchange, log_weight: np.ndarray) -> float:
    """The log evidence; where a block is too large for one, the log probability of the rows, each given all others."""
    if any(block.factor.refused is not None for block in compiled.blocks):
        return float(logsumexp(log_weight, axis=1).sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # of a state that no user will see
        total = log_evidence(compiled.graph, compiled.plates, exchange)
    return total if np.isfinite(total) else -np.inf


def _answer(compiled: CompiledModel, exchange: Exchange, rows: _Rows) -> None:
    """Send the messages of all other factors, given those that the components got."""
    own = {plate.position for plate in rows.plates}
    for task in compiled.schedule.sweep:
        if task.plate not in own and not compiled.plates[task.plate].n_learned:
            compiled.send(exchange, task)


def _tell(graph: Graph, tables: Tables, plate: Plate, label: np.ndarray, seen: np.ndarray) -> None:
    """Store the messages of one plate to its components' parents, given the labels; none where the factor gives none."""
    incoming = gather_all(tables, plate)
    joined = seen & (label >= 0)
    selector = incoming["s"]
    incoming["s"] = selector.point_like(np.where(label >= 0, label, 0))
    for port, edge in plate.edges.items():
        if port != plate.factor.child and not graph.nodes[edge.node].fully_observed:
            message: Any = plate.factor.message(port, {**incoming, "s": selector} if port == "s" else incoming)
            fine = joined & message.finite & ~message.is_point
            tables.store(plate, port, message.where(fine, message.as_uniform()), None)


def _scores(tables: Tables, rows: _Rows) -> np.ndarray:
    """The log probability of each point under every component, given what the components know from other points."""
    score = np.zeros((rows.n, rows.k))
    for plate, point, seen in zip(rows.plates, rows.point, rows.seen, strict=True):
        incoming = gather_all(tables, plate)
        for k in range(rows.k):
            incoming["s"] = incoming["s"].point_like(np.full(plate.size, k))
            log_z = plate.factor.log_z(incoming)
            log_z = np.where(np.isnan(log_z) | (log_z == np.inf), _IMPOSSIBLE, np.maximum(log_z, _IMPOSSIBLE))
            score[:, k] += np.bincount(point, np.where(seen, log_z, 0.0), minlength=rows.n)
    return score


# ---- reading ----------------------------------------------------------------------------------------------------
def _rows(graph: Graph, tables: Tables, plates: list[Plate]) -> _Rows:
    first = np.cumsum([0, *(node.size for node in graph.nodes)])
    entry = [first[p.edges["s"].node] + p.edges["s"].entries(p.size) for p in plates]
    _, number = np.unique(np.concatenate(entry), return_inverse=True)
    point = np.split(number, np.cumsum([p.size for p in plates])[:-1])
    n, k = int(number.max()) + 1, _one_of(plates[0]).n
    log_p = np.zeros((n, k))
    seen: list[np.ndarray] = []
    for plate, at in zip(plates, point, strict=True):
        log_p[at] = np.maximum(cast(Any, tables.incoming(plate, "s", None)).log_p, _IMPOSSIBLE)
        child = plate.factor.child
        seen.append(
            tables.incoming(plate, child, None).proper if child in plate.edges else np.ones(plate.size, dtype=bool)
        )
    several = any(
        sum(wire[i] in p.edges | p.joined for i in f.ports if i != f.child) > 1
        for p in plates
        for f, wire in zip(_one_of(p).components, _one_of(p).wires, strict=True)
    )
    return _Rows(plates, point, seen, n, k, _parts(plates, point, n, first), log_p, 2 if several else 1)


def _one_of(plate: Plate) -> OneOf:
    return cast(OneOf, chooser_of(plate.factor))


def _vectors(plate: Plate) -> tuple[str, ...]:
    """The port that stands for the joined ones."""
    return ("+".join(plate.joined),) if plate.joined else ()


def _parts(plates: list[Plate], point: list[np.ndarray], n: int, first: np.ndarray) -> np.ndarray:
    """The groups of points that share entries of the components' parents.

    Where nearly every row has entries of its own, as rows of a regression have, nothing is known of groups, and all are one.
    """
    ends = [
        (at, n + first[e.node] + e.entries(p.size))
        for p, at in zip(plates, point, strict=True)
        for port, e in (p.edges | p.joined).items()
        if port not in ("s", p.factor.child, *_vectors(p))
    ]
    if not ends:
        return np.zeros(n, dtype=int)
    a, b = (np.concatenate(side) for side in zip(*ends, strict=True))
    _, part = np.unique(connected_parts(n + int(first[-1]), a, b)[:n], return_inverse=True)
    return part if 2 * (part.max() + 1) <= n else np.zeros(n, dtype=int)


# ---- proposals --------------------------------------------------------------------------------------------------
def _proposals(rng: np.random.Generator, tables: Tables, rows: _Rows, prior: np.ndarray) -> list[np.ndarray]:
    """First labels of all points, -1 where a point joins later."""
    certain = rows.log_p.max(axis=1) > -1e-12
    known = rows.log_p.argmax(axis=1)
    if certain.all():
        return [known]
    found: list[np.ndarray] = []
    points = _coordinates(tables, rows)
    if points is not None:
        label = np.zeros(rows.n, dtype=int)
        for part in range(int(rows.part.max()) + 1):
            here = np.flatnonzero(rows.part == part)
            cluster = k_means(rng, points[here], rows.k)
            label[here] = _matched(rows.log_p[here] + prior[here], cluster)[cluster]
        found.append(label)
    for m in _SEEDS * max(1, min(_REPEATS, _MANY // rows.n)):
        shuffled = rng.permutation(rows.n)
        order = shuffled[np.argsort(rows.part[shuffled], kind="stable")]
        count = np.bincount(rows.part)
        rank = np.arange(rows.n) - np.repeat(np.cumsum(count) - count, count)
        label = np.full(rows.n, -1)
        label[order] = np.where(rank < m * rows.k, rank // m, -1)
        found.append(label)
    return [np.where(certain, known, label) for label in found]


def _matched(score: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """The component of every cluster: the assignment under which all points together are most probable before anything was seen."""
    member = np.asarray(cluster == np.arange(score.shape[1])[:, None], dtype=float)
    return best_assignment(member @ score)


def _coordinates(tables: Tables, rows: _Rows) -> np.ndarray | None:
    """What was seen of every point on axes on which it can be clustered, NaN where nothing was; None where it cannot be."""
    columns: list[np.ndarray] = []
    for plate, point, seen in zip(rows.plates, rows.point, rows.seen, strict=True):
        child = plate.factor.child
        value = _on_a_line(tables.incoming(plate, child, None) if child in plate.edges else plate.data[child])
        if value is None or len(np.unique(point)) < len(point):
            continue
        whole = np.full((rows.n, value.shape[1]), np.nan)
        whole[point] = np.where(seen[:, None], value, np.nan)
        columns.append(whole)
    if not columns:
        return None
    points = np.concatenate(columns, axis=1)
    known = np.isfinite(points)
    centre = np.where(known, points, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    spread = np.sqrt(np.where(known, (points - centre) ** 2, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1))
    return (points - centre) / np.maximum(spread, 1e-300)


def _on_a_line(child: Any) -> np.ndarray | None:
    """Values as coordinates, ``(n, d)``: positive ones by their logarithm, shares by their logit, counts by a root."""
    if not isinstance(child, Family):
        value = np.asarray(child, dtype=float)
        return np.sqrt(np.maximum(value, 0.0)).reshape(len(value), -1)
    mean = child.mean
    with np.errstate(all="ignore"):
        if isinstance(child, Gaussian):
            return mean[:, None]
        if isinstance(child, MultivariateGaussian):
            return mean
        if isinstance(child, Gamma):
            return np.log(mean)[:, None]
        if isinstance(child, Beta):
            return (np.log(mean) - np.log1p(-mean))[:, None]
    return None
