"""Plates over quantities: shapes are made to agree, and no element may touch one random quantity at two ports."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Factor
from heliograph.families import Family
from heliograph.graph.draft import Draft
from heliograph.graph.overlaps import same_quantity
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Edge, Node, Plate
from heliograph.graph.support import makers_of, roots_of

__all__ = ["Data", "Ports", "check_distinct", "make_plate", "plate_shape", "unattached"]

Ports = Mapping[str, Quantity | Family | np.ndarray]  # constants at a family's port are messages, arrays point masses
Data = Mapping[str, np.ndarray]


def plate_shape(
    name: str, factor: Factor, ports: Ports, data: Data, shape: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """The broadcast shape of a plate's ports and data (and of `shape`)."""
    label = f"factor {factor.name!r} ({name})"
    everything = {**ports, **data}
    shapes = [v.shape for v in ports.values() if isinstance(v, Quantity)]
    shapes += [_data_shape(factor, port, v) for port, v in everything.items() if not isinstance(v, Quantity)]
    try:
        full = np.broadcast_shapes(*shapes, *(() if shape is None else (shape,)))
    except ValueError:
        met = [f"{port} {v.shape}" for port, v in everything.items()]
        met += [] if shape is None else [f"what is given by size= or observed= {shape}"]
        raise ModelError(f"{label}: shapes do not fit together: {', '.join(met)}") from None
    if 0 in full:
        raise ModelError(f"{label}: there is no entry to work on, its shape is {full}; leave it out of the model")
    return full


def make_plate(draft: Draft, factor: Factor, ports: Ports, data: Data, shape: tuple[int, ...]) -> Plate:
    """Put one plate of that shape into the graph, over quantities whose nodes are there already."""
    return draft.add_plate(unattached(draft, factor, ports, data, shape))


def unattached(draft: Draft, factor: Factor, ports: Ports, data: Data, shape: tuple[int, ...]) -> Plate:
    """One plate of that shape, over quantities whose nodes are in the graph, which is itself not there."""
    edges: dict[str, Edge] = {}
    constants: dict[str, object] = {}
    for port, value in ports.items():
        if isinstance(value, Quantity):
            edges[port] = _edge(value, shape)
        elif isinstance(value, Family):
            constants[port] = value.broadcast_to(shape).reshape((math.prod(shape),))
        else:
            kind = factor.families[port][0]
            constants[port] = kind.point_mass(np.broadcast_to(value, shape).reshape(-1))
    for port, value in data.items():
        event = value.shape[len(_data_shape(factor, port, value)) :]
        # the plate has a copy, so that later changes to the user's array do not reach the model
        constants[port] = np.array(np.broadcast_to(value, (*shape, *event)).reshape(-1, *event))
    return Plate(len(draft.graph.plates), factor.name, factor, shape, edges, constants)


def check_distinct(factor: Factor, ports: Ports, shape: tuple[int, ...]) -> None:
    """Refuse a factor that touches one random quantity at two ports: it would take it for two independent ones.

    Two different rows of ``X @ w`` are two quantities that share a vector: a loop, which `infer` warns of.
    """
    variables = [v for v in ports.values() if isinstance(v, Quantity)]
    if len(variables) < 2:
        return
    parts = [(v.node, v.flat_entries(shape)) for v in variables]
    order = same_quantity(parts)
    if order is not None:
        names = [v.name for v in variables if order in roots_of(v.node)]
        raise ModelError(_twice(factor, _base_node(order, parts).name, names))


def _data_shape(factor: Factor, port: str, value: np.ndarray | Family) -> tuple[int, ...]:
    return value.shape[: value.ndim - factor.data_ranks.get(port, 0)]


def _edge(x: Quantity, shape: tuple[int, ...]) -> Edge:
    """The edge between a quantity and a plate of that shape."""
    if x.index is None and x.shape == shape:
        return Edge(x.node.position, None, True)
    index = x.flat_entries(shape)
    if index.size == x.node.size and np.array_equal(index, np.arange(x.node.size)):
        return Edge(x.node.position, None, True)
    rising = bool((index[1:] > index[:-1]).all())
    return Edge(x.node.position, np.ascontiguousarray(index), rising or bool(np.bincount(index).max(initial=0) <= 1))


def _base_node(order: int, parts: list[tuple[Node, np.ndarray]]) -> Node:
    """The base node of that order, which one of the parts is made of."""
    stack = [node for node, _ in parts]
    while stack:
        node = stack.pop()
        if node.made is None and node.order == order:
            return node
        stack.extend(makers_of(node))
    raise AssertionError("the order is of none of their base nodes")  # pragma: no cover


_WRITE = {  # factor -> what to write in place of it, when it is given one random quantity twice
    "product": "write a function of one variable, for example @hg.factor(output=hg.Gaussian) def square(x): return x**2",
    "maximum": "take the common part out, as in x + model.maximum(a, b) for model.maximum(x + a, x + b)",
    "select": "take the common part out, as in x + model.select(s, a, b) for model.select(s, x + a, x + b)",
    "stack": "stack each entry once, and let a matrix repeat it: X @ model.stack(x)",
    "mixture": "give every component its own mean and precision (or one precision for all)",
    "equal": "leave it out, or say with model.observe(a - b, 0.0) what it means",
}


def _twice(factor: Factor, name: str, ports: list[str]) -> str:
    """The sentence for a factor that touches a random quantity at two of its ports."""
    write = _WRITE.get(factor.name, "write a factor of one argument, def once(x): return f(x, x)")
    among = "" if set(ports) == {name} else f" (in {' and '.join(repr(p) for p in dict.fromkeys(ports))})"
    return f"factor {factor.name!r} meets variable {name!r} twice{among} and would take it for two independent ones; {write}"
