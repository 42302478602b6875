"""Nodes with the plate that makes them: children of variables, variables with a fixed prior, and observed counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import Equal, Factor, Prior
from heliograph.families import Family, Gaussian
from heliograph.graph.check import check_not_spread, check_number, check_observed, check_seen, observed_shape
from heliograph.graph.contradictions import check_plate
from heliograph.graph.draft import Draft
from heliograph.graph.language.unfolding import next_entries
from heliograph.graph.placing import place
from heliograph.graph.plating import Data, Ports, check_distinct, make_plate, plate_shape, unattached
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Edge, Plate
from heliograph.numerics.checks import in_words

__all__ = [
    "Entries",
    "Kind",
    "as_gaussian",
    "as_shape",
    "attach_plate",
    "attach_seen",
    "child",
    "derived",
    "fit",
    "fitted_size",
    "from_message",
    "from_parameters",
    "likelihood",
    "want",
    "with_prior",
]

Shape = tuple[int, ...]


class Entries(NamedTuple):
    """The size of a new variable, and its observed values."""

    size: Any = None  # a whole number or a tuple of them; None: as many as the parameters have
    observed: Any = None  # values, NaN where missing; None: nothing was observed
    missing: Any = None  # True where a value is missing


class Kind(NamedTuple):
    """The family of a new node, and the length of one value for vectors and categories."""

    family: type[Family]
    dimension: int | None = None


# ---- children of variables ---------------------------------------------------------------------------------------
def attach_plate(
    draft: Draft, name: str, factor: Factor, ports: Ports, data: Data, shape: Shape | None = None
) -> Plate:
    """One plate over the broadcast shape of its ports; expressions among them are put into the graph first."""
    full = plate_shape(name, factor, ports, data, shape)
    check_distinct(factor, ports, full)
    for value in ports.values():
        if isinstance(value, Quantity):
            place(draft, value.node)
    return make_plate(draft, factor, ports, data, full)


def derived(draft: Draft, label: str, factor: Factor, ports: Ports, data: Data, kind: Kind) -> Quantity:
    """A node that is the result of an expression, and the plate that makes it."""
    plate = attach_plate(draft, label, factor, ports, data)
    return _made_by(draft, label, plate, kind, given=False)


def child(draft: Draft, name: str, factor: Factor, ports: Ports, data: Data, kind: Kind, entries: Entries) -> Quantity:
    """A named node whose parents are variables.

    Parameters
    ----------
    draft
        Where it is written.
    name
        Its name, which must be new.
    factor
        The factor that makes it; its child port is the node's.
    ports, data
        Its parents (variables, or constants at a family's port), and plain arrays, by port.
    kind
        The family of the node.
    entries
        Its size, and what was observed.
    """
    check_seen(name, entries.observed, missing=entries.missing)
    if draft.mixes(name):
        return draft.component(name, factor, ports, data, kind)
    shape = None if entries.size is None else as_shape(f"variable {name!r}", entries.size)
    if draft.unfolds(name):
        return _unfolded(draft, name, factor, ports, data, kind, entries)
    if entries.observed is not None and shape is None:
        event = 1 if kind.family.point_rank else 0
        seen = observed_shape(name, entries.observed)
        shape = seen[: len(seen) - event]
    draft.check_name(name)
    plate = attach_plate(draft, name, factor, ports, data, shape)
    x = _made_by(draft, name, plate, kind, given=True)
    if entries.observed is not None:
        draft.set_observed(
            x.node, check_observed(name, kind.family, x.shape, kind.dimension, entries.observed, entries.missing)
        )
        check_plate(draft.graph, plate)
    return x


def _unfolded(
    draft: Draft, name: str, factor: Factor, ports: Ports, data: Data, kind: Kind, entries: Entries
) -> Quantity:
    """The next entries of a chain that is being written, made by a plate."""
    if entries.observed is not None or entries.size is not None:
        raise ModelError(f"variable {name!r}: give observed= to model.chain, and no size=; its step makes all entries")
    following = draft.chains[name].following
    plate = attach_plate(draft, name, factor, ports, data, None if following is None else following.shape)
    x = next_entries(draft, name, kind.family, kind.dimension, plate.shape)
    plate.edges[factor.child] = Edge(x.node.position, x.flat_entries(x.shape), True)
    return x


def _made_by(draft: Draft, name: str, plate: Plate, kind: Kind, given: bool) -> Quantity:
    """A new node at the child port of a plate."""
    node = draft.node(name, kind.family, plate.shape, kind.dimension, given)
    plate.edges[plate.factor.child] = Edge(node.position, None, True)
    node.maker = plate
    return Quantity(node)


def likelihood(
    draft: Draft, name: str, factor: Factor, x: Quantity, data: dict[str, np.ndarray], seen: np.ndarray
) -> None:
    """Attach what was observed of a variable, which is at the factor's first port."""
    port = factor.ports[0]
    if draft.mixes(name):
        return draft.component(name, factor, {port: x}, data, None)
    draft.check_name(name)
    shapes = [a.shape[: a.ndim - factor.data_ranks.get(p, 0)] for p, a in data.items()]
    try:
        full = np.broadcast_shapes(x.shape, *shapes)
    except ValueError:
        raise ModelError(
            f"variable {name!r}: observed has shape {seen.shape}, but {x.name!r} has shape {x.shape}"
        ) from None
    check_not_spread(name, full, seen)
    attach_seen(draft, name, factor, {port: x}, data, np.broadcast_to(seen, full))


def attach_seen(draft: Draft, name: str, factor: Factor, ports: Ports, data: Data, seen: np.ndarray) -> None:
    """Attach observed data; elements of which nothing was seen are left out, and remembered so that they can be predicted."""
    draft.take_name(name)
    for value in ports.values():
        if isinstance(value, Quantity):
            place(draft, value.node)
    draft.note_counts(name, unattached(draft, factor, ports, data, seen.shape))
    if not seen.any():
        return
    if not seen.all():
        ports = {p: _rows(v, seen, 0) for p, v in ports.items()}
        data = {p: _rows(v, seen, factor.data_ranks.get(p, 0)) for p, v in data.items()}
    attach_plate(draft, name, factor, ports, data)


def _rows(value: Any, seen: np.ndarray, rank: int) -> Any:
    """The entries of a plate where something was seen."""
    if isinstance(value, Quantity):
        return Quantity(value.node, np.broadcast_to(value.entries(), seen.shape)[seen])
    if isinstance(value, Family):
        return value.broadcast_to(seen.shape)[cast(Any, seen)]
    return np.broadcast_to(value, (*seen.shape, *value.shape[value.ndim - rank :]))[seen]


# ---- variables with a fixed prior --------------------------------------------------------------------------------
def from_parameters(
    draft: Draft, name: str, family: type[Family], parameters: tuple[np.ndarray, ...], entries: Entries
) -> Quantity:
    """A variable whose prior has fixed parameters."""
    try:
        plate = np.broadcast_shapes(*(p.shape for p in parameters))
    except ValueError:
        raise ModelError(
            f"variable {name!r}: parameters of shapes {[p.shape for p in parameters]} do not fit together"
        ) from None
    if entries.observed is not None and entries.size is None:
        plate = observed_shape(name, entries.observed) if plate == () else plate
    shape = fitted_size(name, plate, entries.size)
    message = family(*(np.broadcast_to(p, shape) for p in parameters))
    return with_prior(draft, name, message, None, entries)


def from_message(
    draft: Draft, name: str, message: Family, families: tuple[type[Family], ...], entries: Entries
) -> Quantity:
    """A variable whose prior is a message, for example a posterior of an earlier batch."""
    if not isinstance(message, families):
        wanted = " or ".join(f.__name__ for f in families)
        raise UnsupportedError(
            f"variable {name!r}: a {type(message).__name__} message cannot be its prior; give a {wanted}"
        )
    if not np.all(message.proper):
        raise ModelError(f"variable {name!r}: its prior message is improper; multiply it with a proper one first")
    shape = fitted_size(name, message.shape, entries.size)
    event = message.naturals[0].shape[len(message.shape) :]
    return with_prior(draft, name, message.broadcast_to(shape), event[0] if event else None, entries)


def with_prior(draft: Draft, name: str, message: Family, dimension: int | None, entries: Entries) -> Quantity:
    """A variable of the message's shape, with the message as its prior."""
    family, shape = type(message), message.shape
    check_seen(name, entries.observed, missing=entries.missing)
    if draft.mixes(name):
        return draft.component(name, Equal(), {"a": message}, {}, Kind(family, dimension))
    if draft.unfolds(name):
        following = draft.chains[name].following
        message = message if following is None else message.broadcast_to(following.shape)
        x = next_entries(draft, name, family, dimension, message.shape)
        attach_plate(draft, name, Prior(message.reshape((x.size,))), {"x": x}, {})
        return x
    seen = None
    if entries.observed is not None:
        seen = check_observed(name, family, shape, dimension, entries.observed, entries.missing)
    node = draft.node(name, family, shape, dimension, given=True)
    draft.set_observed(node, seen)
    x = Quantity(node)
    node.maker = attach_plate(draft, name, Prior(message.reshape((node.size,))), {"x": x}, {})
    check_plate(draft.graph, node.maker)
    return x


# ---- shapes and families -----------------------------------------------------------------------------------------
def fit(label: str, a: Shape, b: Shape) -> Shape:
    """The broadcast shape of two."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ModelError(f"{label}: shapes do not fit together: {a} and {b}") from None


def fitted_size(name: str, plate: Shape, size: Any) -> Shape:
    """The shape of a variable whose parameters have shape `plate`, if the user gave a `size`."""
    if size is None:
        return plate
    shape = as_shape(f"variable {name!r}", size)
    try:
        fits = np.broadcast_shapes(plate, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ModelError(f"variable {name!r}: its parameters have shape {plate}, which does not fit size={size}")
    return shape


def as_shape(label: str, size: Any) -> Shape:
    """A `size` as a shape; `label` begins the sentence that refuses another."""
    shape = tuple(cast("Sequence[Any]", size)) if isinstance(size, (tuple, list)) else (size,)
    if not all(isinstance(n, (int, np.integer)) and n > 0 for n in shape):
        raise ModelError(f"{label}: size must be a positive whole number or a tuple of them, not {in_words(size)}")
    return tuple(int(n) for n in shape)


def want(
    name: str, what: str, x: object, families: type[Family] | tuple[type[Family], ...], hint: str = ""
) -> Quantity:
    """`x`, which must be a variable of one of these families."""
    families = families if isinstance(families, tuple) else (families,)
    wanted = " or ".join(f.__name__ for f in families)
    if not isinstance(x, Quantity):
        raise ModelError(f"{name!r}: its {what} must be a {wanted} variable, not {type(x).__name__}")
    if x.family not in families:
        raise UnsupportedError(
            f"{name!r}: its {what} must be a {wanted} variable, but {x.name!r} is {x.family.__name__}{hint}; "
            "heliograph.supported() lists every combination"
        )
    return x


def as_gaussian(draft: Draft, name: str, x: Any) -> Quantity:
    """A Gaussian variable; a plain number becomes an observed one."""
    if isinstance(x, Quantity):
        return want(name, "argument", x, Gaussian)
    value = check_number(name, "argument", x)
    label = f"constant {value}" if value.ndim == 0 else "constant"
    node = draft.node(label, Gaussian, value.shape, None, given=False)
    draft.set_observed(node, Gaussian.point_mass(value.reshape(-1)))
    return Quantity(node)
