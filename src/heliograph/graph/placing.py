"""Affine expressions put into the graph as plates, when a factor first uses them.

An expression is a node outside the graph until then. Its plates are made from its merged form, in which every random
quantity counts once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.factors import Difference, Dot, Factor, Scale, Shift, Stack, Sum
from heliograph.graph.affine import by_pattern
from heliograph.graph.draft import Draft
from heliograph.graph.plating import Data, Ports, make_plate, plate_shape
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Affine, Edge, Inner, Node, Plate, Stacked
from heliograph.graph.support import makers_first

__all__ = ["place"]


class _Step(NamedTuple):
    """A factor, its ports and its data: a plate that is not yet made."""

    factor: Factor
    ports: Ports
    data: Data


def place(draft: Draft, node: Node) -> None:
    """Put an expression into the graph, and what it is made of before it."""
    for one in makers_first(node, lambda n: n.position >= 0):
        if isinstance(one.made, Inner):
            _place_product(draft, one, one.made)
        elif isinstance(one.made, Stacked):
            _place_stack(draft, one, one.made)
        elif one.made is not None:
            _place_sum(draft, one, one.made)


def _place_product(draft: Draft, node: Node, inner: Inner) -> None:
    draft.enter(node)
    entry = None if inner.node.size == 1 else np.array([inner.entry])
    edges = {"w": Edge(inner.node.position, entry, True, shared=True), "out": Edge(node.position, None, True)}
    draft.add_plate(Plate(len(draft.graph.plates), "dot", Dot(), node.shape, edges, {"x": inner.x}))


def _place_stack(draft: Draft, node: Node, stacked: Stacked) -> None:
    ports = {f"x{k}": Quantity(part, at.reshape(node.shape)) for k, (part, at) in enumerate(stacked.parts)}
    plate = _plate(draft, node.name, _Step(Stack(len(ports)), ports, {}), node.shape)
    draft.enter(node)
    plate.edges["out"] = Edge(node.position, None, True)


def _place_sum(draft: Draft, node: Node, form: Affine) -> None:
    """Rows with the same variables in them share a plate; rows with none are known."""
    last: list[tuple[np.ndarray | None, _Step, tuple[int, ...]]] = []
    for rows, part in by_pattern(form):
        last.append((None if isinstance(rows, slice) else rows, _last_step(draft, node.name, part), part.shape))
    draft.enter(node)
    for rows, step, shape in last:
        plate = _plate(draft, node.name, step, shape)
        plate.edges[step.factor.child] = Edge(node.position, rows, True)
    known = form.constant_rows
    if known.any():
        values = np.where(known[:, None] if form.constant.ndim == 2 else known, form.constant, np.nan)
        draft.set_observed(node, node.family.point_mass(values))


def _last_step(draft: Draft, name: str, form: Affine) -> _Step:
    """The factor that makes the rows of a form, and before it the plates that make its ports."""
    # a term that is there as it is goes first: the others are added to it or taken from it
    first, *rest = sorted(form.terms, key=lambda t: not (t.coefficients == 1).all())
    made = Quantity(first.node, first.entries.reshape(form.shape))
    step = None if (first.coefficients == 1).all() else _scaling(made, first.coefficients)
    for term in rest:
        made = made if step is None else _result(draft, name, step)
        x = Quantity(term.node, term.entries.reshape(form.shape))
        if (term.coefficients == -1).all():
            step = _Step(Difference(), {"a": made, "b": x}, {})
        else:
            if not (term.coefficients == 1).all():
                x = _result(draft, f"({x.name} * constant)", _scaling(x, term.coefficients))
            step = _Step(Sum(), {"a": made, "b": x}, {})
    if step is not None and not form.constant.any():
        return step
    made = made if step is None else _result(draft, name, step)
    shift = Shift()
    if form.constant.ndim == 2:
        vars(shift)["data_ranks"] = {"constant": 1}  # one vector per element; a scalar one has numbers
    return _Step(shift, {"x": made}, {"constant": form.constant.reshape((*form.shape, *form.constant.shape[1:]))})


def _scaling(x: Quantity, coefficients: np.ndarray) -> _Step:
    return _Step(Scale(), {"x": x}, {"constant": coefficients.reshape(x.shape)})


def _result(draft: Draft, name: str, step: _Step) -> Quantity:
    """The result of one step of a longer sum, as a node of its own."""
    x = step.ports["x"] if "x" in step.ports else step.ports["a"]
    assert isinstance(x, Quantity)
    plate = _plate(draft, name, step, None)
    node = draft.node(name, x.family, plate.shape, x.node.dimension, given=False)
    plate.edges[step.factor.child] = Edge(node.position, None, True)
    return Quantity(node)


def _plate(draft: Draft, name: str, step: _Step, shape: tuple[int, ...] | None) -> Plate:
    """A plate over nodes that are in the graph, and known to be of different quantities."""
    full = plate_shape(name, step.factor, step.ports, step.data, shape)
    return make_plate(draft, step.factor, step.ports, step.data, full)
