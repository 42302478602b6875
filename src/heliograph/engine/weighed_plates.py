"""What every plate of a model says of draws of its unknowns: its factor, or the values that it computes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from heliograph.engine.forms.product import JointProduct
from heliograph.engine.forms.scored_product import ScoredProduct
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.tables import Tables
from heliograph.engine.weighed_draws import Drawn
from heliograph.factors import (
    AbsoluteValue,
    Exp,
    Factor,
    Log,
    Logistic,
    Maximum,
    Prior,
    Product,
    ScaledGaussian,
    Select,
    Square,
)
from heliograph.factors.black_box import BlackBox, is_computable, values_of
from heliograph.families import Beta, Family, Gamma, Gaussian
from heliograph.graph.records import Graph, Plate

__all__ = ["Said", "makes_values", "said_of", "scalar_form"]

_NUMBERS = (Gaussian, Gamma, Beta)
_FUNCTIONS = (AbsoluteValue, Exp, Log, Logistic, Maximum, Product, ScaledGaussian, Select, Square)


class Said(NamedTuple):
    """What a plate says of draws."""

    log_density: np.ndarray  # (S,)
    complete: bool  # whether all that it is about was drawn, or summed exactly


def scalar_form(plate: Plate) -> Plate:
    """The plate with its factor's own ports, where a run made a vector of some of them."""
    if not plate.joined or isinstance(plate.factor, ScoredProduct):  # which is a function of its vector
        return plate
    own = "box" if isinstance(plate.factor, BlackBox) else "factor"
    factor: Any = Product() if isinstance(plate.factor, JointProduct) else getattr(plate.factor, own, None)
    if factor is None:
        return plate
    vector = plate.factor.port  # type: ignore[attr-defined]
    edges = {k: e for k, e in plate.edges.items() if k != vector} | dict(plate.joined)
    return replace(plate, factor=factor, edges={p: edges[p] for p in factor.ports if p in edges})


def makes_values(graph: Graph, plate: Plate, boxes: bool) -> bool:
    """Whether a plate computes what nobody saw from its inputs; `boxes`: whether black boxes may be evaluated."""
    edge = plate.edges.get(plate.factor.child)
    if edge is None or graph.nodes[edge.node].fully_observed or graph.nodes[edge.node].family not in _NUMBERS:
        return False
    if isinstance(plate.factor, BlackBox):
        return boxes and is_computable(plate.factor)
    return isinstance(plate.factor, _FUNCTIONS)


def said_of(plate: Plate, tables: Tables, drawn: Drawn, boxes: bool) -> Said | None:
    """What a plate says of draws: its factor, or the messages of a black box that may not be evaluated; None if not known."""
    at = {port: _at(plate, port, drawn) for port in plate.edges}
    at = {port: v for port, v in at.items() if v is not None}
    if not at:
        return _undrawn(plate, tables, drawn)
    if isinstance(plate.factor, BlackBox):
        computed = _computed(plate, drawn, at) if makes_values(drawn.graph, plate, boxes) else None
        return _of_messages(plate, tables, drawn) if computed is None else computed
    rows = np.repeat(np.arange(plate.size), drawn.n)
    incoming: dict[str, Any] = {p: d[rows] for p, d in plate.data.items()}
    seen = True
    for port, edge in plate.edges.items():
        if port in at:
            incoming[port] = type_of(drawn.graph, edge.node).point_mass(at[port])
            continue
        incoming[port] = tables.incoming(tables.graph.plates[plate.position], port, None)[rows]
        summed = _summed(drawn.graph, plate, port)
        if summed is None and type_of(drawn.graph, edge.node).discrete and len(drawn.graph.edges_of(edge.node)) > 1:
            return None  # messages to categories hold what these rows said of them, too
        seen = seen and bool(summed)
    factor = plate.factor
    if isinstance(factor, Prior) and factor.fixed is not None:
        factor = Prior(factor.fixed[rows])
    done = _function(plate, factor, drawn, incoming, at)
    if done is not None:
        return Said(np.zeros(drawn.n), True) if done else None
    log_z = factor.log_z(incoming).reshape(plate.size, drawn.n)
    times = np.ones(plate.size) if plate.times is None else plate.times
    return Said(times @ log_z, seen)


def _undrawn(plate: Plate, tables: Tables, drawn: Drawn) -> Said:
    """What a plate without a drawn unknown adds: a number, or nothing where others sum over what it makes."""
    graph, plate = drawn.graph, tables.graph.plates[plate.position]
    free = [e.node for e in plate.edges.values() if not graph.nodes[e.node].fully_observed]
    if not free:
        own = np.sum(plate.factor.log_z(gather_all(tables, plate)) * (1.0 if plate.times is None else plate.times))
        return Said(np.full(drawn.n, own), True)
    met = [p for p, _ in graph.edges_of(free[0]) if p.position != plate.position]
    return Said(
        np.zeros(drawn.n), len(free) == 1 and any(e.node in drawn.values for p in met for e in p.edges.values())
    )


def _summed(graph: Graph, plate: Plate, port: str) -> bool | None:
    """Whether an unknown that was not drawn is met by one row of the plate, and by one other factor that is its prior.

    False: that one is of another kind, so that the sum is right but for a constant. None: there are others.
    """
    edge = plate.edges[port]
    if graph.nodes[edge.node].fully_observed:
        return True
    meets = graph.edges_of(edge.node)
    others = [p for p, _ in meets if p.position != plate.position]
    if len(meets) != 2 or len(others) != 1 or others[0].parts is not None:
        return None
    known = all(graph.nodes[e.node].fully_observed for e in others[0].edges.values() if e.node != edge.node)
    if not (edge.unique and not edge.shared and known):
        return None
    made = others[0].edges.get(others[0].factor.child)
    return made is not None and made.node == edge.node


def _computed(plate: Plate, drawn: Drawn, at: dict[str, np.ndarray]) -> Said | None:
    """A black box's own values in the place of its output's; None where they are not known. Without one nothing can be."""
    rows = np.repeat(np.arange(plate.size), drawn.n)
    incoming: dict[str, Any] = {p: d[rows] for p, d in plate.data.items()}
    for port, edge in plate.edges.items():
        if port != plate.factor.child and port in at:
            incoming[port] = type_of(drawn.graph, edge.node).point_mass(at[port])
        elif port != plate.factor.child:
            seen = drawn.graph.nodes[edge.node].observed
            if seen is None:
                return None
            incoming[port] = seen[edge.entries(plate.size)][rows]
    found = values_of(cast(BlackBox, plate.factor), incoming, len(rows))
    edge = plate.edges[plate.factor.child]
    if found is None or not drawn.put(edge.node, edge.entries(plate.size), found.out.reshape(plate.size, drawn.n)):
        return None
    return Said(np.where(found.wrong.reshape(plate.size, drawn.n).any(axis=0), -np.inf, 0.0), True)


def type_of(graph: Graph, node: int) -> type[Family]:
    """The family of a node."""
    return graph.nodes[node].family


def _at(plate: Plate, port: str, drawn: Drawn) -> np.ndarray | None:
    """Draws at a port, row by row and draw by draw; None where the node was not drawn."""
    edge = plate.edges[port]
    values = drawn.values.get(edge.node)
    if values is None:
        return None
    picked = values[edge.entries(plate.size)]
    if picked.ndim == 3:
        return picked.transpose(0, 2, 1).reshape(-1, picked.shape[1])
    return picked.reshape(-1)


def _function(
    plate: Plate, factor: Factor, drawn: Drawn, incoming: dict[str, Any], at: dict[str, np.ndarray]
) -> bool | None:
    """Compute what the plate makes, where its factor is a function of what was drawn; None where it is not one."""
    edge = plate.edges.get(factor.child)
    if edge is None or drawn.graph.nodes[edge.node].fully_observed:
        return None
    if drawn.graph.nodes[edge.node].family not in _NUMBERS:
        return None
    parents = [p for p in plate.edges if p != factor.child]
    if not parents or any(not (p in at or incoming[p].point is not None) for p in parents):
        return None
    made = factor.message(factor.child, {**incoming, factor.child: incoming[factor.child].as_uniform()})
    if made.point is None or not made.is_point.all():
        return None
    return drawn.put(edge.node, edge.entries(plate.size), made.point.reshape(plate.size, drawn.n))


def _of_messages(plate: Plate, tables: Tables, drawn: Drawn) -> Said | None:
    """A plate's own messages at draws, in the place of a factor that would have to be evaluated."""
    total = np.zeros(drawn.n)
    plate = tables.graph.plates[plate.position]
    for port, edge in plate.edges.items():
        values = drawn.values.get(edge.node)
        if values is None:
            continue
        sent = tables.sent[plate.position, port]
        if sent.point is not None:
            return None
        values = values[edge.entries(plate.size)]
        flat = values.transpose(2, 0, 1) if values.ndim == 3 else values.T
        total = total + sent.log_density(flat).sum(axis=1)
    return Said(total, False)
