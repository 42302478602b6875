"""Likelihoods of a score that contains a product of two unknowns: one site on the unknowns instead of two on the product.

``z = a b + rest`` with a label of z is an item response with two parameters, a dose-response curve with an unknown middle, a
table of labels factorised. As a product and a likelihood, each with a Gaussian site, it loses the shape of the product's
distribution. Here both are one factor of the numbers a, b and the rest (`ScoredProduct`); the product and the sums that led to
the score become leaves, which are computed when a posterior is asked for them (docs/decisions/0054).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.grouping import is_gaussian_prior
from heliograph.engine.blocks.joining import stacked
from heliograph.engine.blocks.records import Block
from heliograph.engine.forms.scored_product import ProductAndRest, ScoredProduct
from heliograph.factors import (
    BinomialLogit,
    Difference,
    LogisticBernoulli,
    NegativeBinomial,
    OrdinalLogit,
    OrdinalProbit,
    PoissonLog,
    ProbitBernoulli,
    Product,
    Scale,
    Shift,
    Sum,
)
from heliograph.families import Gaussian
from heliograph.graph.records import Edge, Graph, Node, Plate

__all__ = ["with_scored_products"]

_SCORED = (
    LogisticBernoulli,
    ProbitBernoulli,
    BinomialLogit,
    NegativeBinomial,
    PoissonLog,
    OrdinalLogit,
    OrdinalProbit,
)  # likelihoods of a score z
_STEPS = (Sum, Difference, Scale, Shift)
_ROWS = 3000  # rows that may share a product: with more, the product is nearly Gaussian, and every row would need an integral


class _Path(NamedTuple):
    """A product, the steps that lead from it to a score, and the likelihood of that."""

    product: Plate
    steps: tuple[tuple[Plate, str], ...]  # a plate, and the port that the previous step is at
    likelihood: Plate


class _Score(NamedTuple):
    """``sign a b + rest + offset``, so far."""

    a: Edge
    b: Edge
    sign: np.ndarray  # (n,)
    offset: np.ndarray  # (n,)
    rest: Edge | None  # an expression; None where there is none


def with_scored_products(graph: Graph, blocks: Sequence[Block]) -> Graph:
    """The graph with one factor for every product that leads, by sums, to the score of one likelihood."""
    products = [p for p in graph.plates if isinstance(p.factor, Product) and set(p.edges) == {"a", "b", "out"}]
    if not products or not any(isinstance(p.factor, _SCORED) for p in graph.plates):
        return graph
    known = {k for block in blocks for k in block.nodes} | _lone_nodes(graph)
    met = graph.meetings()
    paths = [path for p in products if (path := _path(graph, met, p, known)) is not None]
    paths = [q for q in paths if sum(o.likelihood is q.likelihood for o in paths) == 1]
    if not paths:
        return graph
    return _rewritten(graph, paths)


def _lone_nodes(graph: Graph) -> set[int]:
    """Nodes of numbers with a proper Gaussian prior, in a block or not."""
    return {p.edges["x"].node for p in graph.plates if is_gaussian_prior(p) and p.edges["x"].index is None}


def _path(graph: Graph, met: dict[int, list[tuple[Plate, str]]], product: Plate, known: set[int]) -> _Path | None:
    if not all(_usable(graph, product.edges[p], known) for p in "ab"):
        return None
    steps: list[tuple[Plate, str]] = []
    plate = product
    while True:
        edge = plate.edges["out"]
        node = graph.nodes[edge.node]
        others = [(p, port) for p, port in met[edge.node] if p is not plate]
        if edge.index is not None or node.size != plate.size or node.observed is not None or len(others) != 1:
            return None
        following, port = others[0]
        if following.size > max(product.size, _ROWS):
            return None
        if isinstance(following.factor, _SCORED) and port == "z":
            return _Path(product, tuple(steps), following)
        own = isinstance(following.factor, _STEPS) and port != "out"
        ends = [e for p, e in following.edges.items() if p not in (port, "out")]
        if not own or not all(_usable(graph, e, known) for e in ends):
            return None
        steps.append((following, port))
        plate = following


def _usable(graph: Graph, edge: Edge, known: set[int]) -> bool:
    """Whether an end of a product or a sum is a number of a block, or one with a Gaussian prior."""
    node = graph.nodes[edge.node]
    return node.family is Gaussian and node.dimension is None and edge.node in known and not node.fully_observed


# ---- the new graph -----------------------------------------------------------------------------------------------
def _rewritten(graph: Graph, paths: list[_Path]) -> Graph:
    made = replace(graph, nodes=list(graph.nodes), plates=[])
    steps = {step.position for path in paths for step, _ in path.steps}
    scored = {path.likelihood.position: path for path in paths}
    for plate in graph.plates:
        if plate.position in scored:
            _write(made, scored[plate.position])
        elif plate.position not in steps:
            made.plates.append(replace(plate, position=len(made.plates)))
    return made


def _write(graph: Graph, path: _Path) -> None:
    """The likelihood as a factor of a, b and the rest; the sums on the way as leaves."""
    n = path.product.size
    score = _Score(path.product.edges["a"], path.product.edges["b"], np.ones(n), np.zeros(n), None)
    for step, port in path.steps:
        score = _after(graph, _taken(score, step.edges[port], step.size), step, port)
        ends, data = _ends(graph, score)
        edges = {"ends": ends, "out": step.edges["out"]}
        graph.plates.append(Plate(len(graph.plates), step.name, ProductAndRest(), step.shape, edges, data))
    plate = path.likelihood
    score = _taken(score, plate.edges["z"], plate.size)
    ends, data = _ends(graph, score)
    form = ScoredProduct(plate.factor, ("a", "b") if score.rest is None else ("a", "b", "rest"))
    edges = {form.port: ends, **{p: e for p, e in plate.edges.items() if p != "z"}}
    joined = {"a": score.a, "b": score.b}
    data = {**plate.data, **data}
    graph.plates.append(replace(plate, position=len(graph.plates), factor=form, edges=edges, data=data, joined=joined))


def _taken(score: _Score, edge: Edge, size: int) -> _Score:
    """The score at the elements of a plate that sees it through an edge."""
    if edge.index is None and len(score.sign) == size:
        return score
    at = edge.entries(size)
    n = len(score.sign)
    a, b, rest = (e if e is None else _rows(e, at, n) for e in (score.a, score.b, score.rest))
    assert a is not None and b is not None
    return _Score(a, b, score.sign[at], score.offset[at], rest)


def _ends(graph: Graph, score: _Score) -> tuple[Edge, dict[str, np.ndarray]]:
    """The vector of a, b and the rest, and the numbers that go with it."""
    edges = [score.a, score.b, *(() if score.rest is None else (score.rest,))]
    return stacked(graph, edges, len(score.sign)), {"sign": score.sign, "offset": score.offset}


def _rows(edge: Edge, at: np.ndarray, n: int) -> Edge:
    index = edge.entries(n)[at]
    return Edge(edge.node, index, len(np.unique(index)) == len(index))


def _after(graph: Graph, score: _Score, step: Plate, port: str) -> _Score:
    """The score after one more step."""
    _, _, sign, offset, rest = score
    factor = step.factor
    if isinstance(factor, Shift):
        return score._replace(offset=offset + step.data["constant"])
    if isinstance(factor, Scale):
        c = np.broadcast_to(np.asarray(step.data["constant"], dtype=float), sign.shape)
        return score._replace(sign=c * sign, offset=c * offset, rest=None if rest is None else _scaled(graph, rest, c))
    minus = isinstance(factor, Difference)
    mine, its = (-1.0 if minus and port == "b" else 1.0), (-1.0 if minus and port == "a" else 1.0)
    other = step.edges["b" if port == "a" else "a"]
    if rest is None:
        rest = other if its > 0 else _scaled(graph, other, np.full(len(sign), -1.0))
    else:
        ends = {"a": rest, "b": other} if port == "a" else {"a": other, "b": rest}
        rest = _derived(graph, Difference() if minus else Sum(), ends, {}, len(sign))
    return score._replace(sign=mine * sign, offset=mine * offset, rest=rest)


def _scaled(graph: Graph, x: Edge, constant: np.ndarray) -> Edge:
    return _derived(graph, Scale(), {"x": x}, {"constant": constant}, len(constant))


def _derived(
    graph: Graph, factor: Sum | Difference | Scale, ends: dict[str, Edge], data: dict[str, np.ndarray], n: int
) -> Edge:
    """A new expression of some ends."""
    node = Node(len(graph.nodes), "rest of a score", Gaussian, (n,), None, False)
    graph.nodes.append(node)
    out = Edge(node.position, None, True)
    graph.plates.append(Plate(len(graph.plates), factor.name, factor, (n,), {**ends, "out": out}, data))
    return out
