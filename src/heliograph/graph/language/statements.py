"""Statements about variables: events that happened, equalities, soft evidence, observed values."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ContradictionError, ModelError, UnsupportedError
from heliograph.factors import Equal, Prior
from heliograph.families import Bernoulli, Family, Gaussian
from heliograph.graph.affine import take
from heliograph.graph.check import check_observed
from heliograph.graph.contradictions import Statement, bounds_of_event, check_plate, check_possible
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import attach_plate, fit
from heliograph.graph.language.linear import known_rows, subtract
from heliograph.graph.placing import place
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Affine, Node
from heliograph.graph.support import shared_nodes

__all__ = ["attach", "constrain", "equal", "observe"]


def constrain(draft: Draft, event: Quantity) -> None:
    """State that an event such as ``a > b`` is true."""
    if not isinstance(event, Quantity) or event.family is not Bernoulli:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError("constrain takes an event such as a > b, abs(d) < 1 or model.between(x, lower, upper)")
    entries = np.flatnonzero(np.bincount(event.entries().ravel()))  # sorting takes ten times as long
    values = np.full(event.node.size, np.nan)
    if event.node.observed is not None:
        seen = event.node.observed
        values = values if seen.point is None else seen.point.copy()
        if (~np.isnan(values[entries])).any():
            raise ModelError(f"the event {event.name!r} is observed already")
    values[entries] = 1.0
    draft.set_observed(event.node, Bernoulli.point_mass(values))
    for statement in bounds_of_event(draft.graph, event.node, entries, True):
        draft.limit(event.node, statement)
    check_plate(draft.graph, event.node.maker)


def equal(draft: Draft, a: Quantity, b: Quantity) -> None:
    """State that two variables of one family are equal."""
    a, b = _variable_of(a), _variable_of(b)
    label = f"{a.name} = {b.name}"
    if a.family is not b.family or a.node.dimension != b.node.dimension:
        raise UnsupportedError(
            f"{a.name!r} ({a.family.__name__}) cannot equal {b.name!r} ({b.family.__name__}): both must have one family"
        )
    shape = fit(label, a.shape, b.shape)
    if a.family is Gaussian and shared_nodes([(x.node, x.flat_entries(shape)) for x in (a, b)]):
        _equal_to_itself(draft, label, subtract(draft, a, b))
    else:
        attach_plate(draft, label, Equal(), {"a": a, "b": b}, {})


def _variable_of(x: object) -> Quantity:
    if not isinstance(x, Quantity):
        raise ModelError(f"equal takes two variables, not {type(x).__name__}; observe a value with model.observe")
    return x


def _equal_to_itself(draft: Draft, label: str, gap: Quantity) -> None:
    """State that two expressions of the same quantities are equal: what is left of their difference is 0."""
    known = known_rows(gap)
    known = np.full(gap.size, np.nan) if known is None else known
    if np.any(~np.isnan(known) & (known != 0)):
        raise ContradictionError(
            f"{label}: the two sides differ by {known[known != 0][0]:g}, whatever the variables are"
        )
    if not np.isnan(known).any():
        raise ModelError(f"{label}: both sides are the same random quantity, so this says nothing; leave it out")
    _observe(draft, gap, np.zeros(gap.shape), None)


def attach(draft: Draft, x: Quantity, message: Family) -> None:
    """Multiply a message of the variable's own family into it: soft evidence."""
    if not isinstance(x, Quantity):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"attach takes a variable and a message, not {type(x).__name__}")
    if type(message) is not x.family:
        raise UnsupportedError(
            f"variable {x.name!r} takes {x.family.__name__} messages; a {type(message).__name__} was attached"
        )
    try:
        message = message.broadcast_to(x.shape)
    except ValueError:
        raise ModelError(
            f"variable {x.name!r} of shape {x.shape} cannot take a message of shape {message.shape}"
        ) from None
    if any(np.isnan(a).any() for a in message.naturals):
        raise ModelError(f"variable {x.name!r}: the message that was attached holds NaN")
    plate = attach_plate(draft, f"evidence on {x.name}", Prior(message.reshape((x.size,))), {"x": x}, {})
    check_plate(draft.graph, plate)


def observe(draft: Draft, x: object, values: Any, missing: Any) -> None:
    """Set the observed values of a whole variable after it was made."""
    if not isinstance(x, Quantity):
        raise ModelError(f"observe takes a variable and its values, not {type(x).__name__}")
    if x.index is not None:
        raise ModelError(f"variable {x.name!r}: observe the whole variable, with NaN where it is missing")
    _observe(draft, x, values, missing)


def _observe(draft: Draft, x: Quantity, values: Any, missing: Any) -> None:
    """Observe a variable, and check that this can be true together with all other statements."""
    node = x.node
    seen = check_observed(x.name, x.family, x.shape, node.dimension, values, missing)
    place(draft, node)
    constant = known_rows(x)
    if constant is not None and not np.isnan(constant).all():
        seen = seen.point_mass(_with_constants(x.name, seen, constant))
    again = node.observed is not None
    draft.set_observed(node, seen)
    check_possible(draft.graph, node)
    if again or node.made is None:
        _reconsider(draft, node)
    _limit_by_value(draft, node)


def _with_constants(name: str, seen: Family, constant: np.ndarray) -> np.ndarray:
    """Observed values of an expression together with the entries that are constants; these cannot be anything else."""
    values = np.full(constant.shape, np.nan) if seen.point is None else seen.point
    clash = ~np.isnan(values) & ~np.isnan(constant) & (values != constant)
    if clash.any():
        raise ContradictionError(
            f"variable {name!r}: the value {values[clash][0]:g} was observed, but it is always {constant[clash][0]:g}"
        )
    return np.where(np.isnan(constant), values, constant)


# ---- limits ------------------------------------------------------------------------------------------------------
def _limit_by_value(draft: Draft, node: Node) -> None:
    """Limit the variables that an expression or an event is made of by its observed values."""
    seen = node.observed
    if seen is None or seen.point is None:
        return
    if node.family is Bernoulli:
        for happened in (True, False):
            entries = np.flatnonzero(seen.point == happened)
            for statement in bounds_of_event(draft.graph, node, entries, happened) if entries.size else ():
                draft.limit(node, statement)
    elif node.family is Gaussian and isinstance(node.made, Affine):
        rows = np.flatnonzero(~np.isnan(seen.point) & ~node.made.constant_rows)
        value = seen.point[rows]
        text = f"{node.name} = {value[0]:g}" if rows.size == 1 else f"{node.name} = its observed values"
        draft.limit(node, Statement(text, take(node.made, rows), value, value))


def _reconsider(draft: Draft, node: Node) -> None:
    """Draw all conclusions anew: the values of a node have changed, and with them the meaning of other statements."""
    for source, statement in draft.forget_limits():
        if source is not node:
            draft.limit(source, statement)
