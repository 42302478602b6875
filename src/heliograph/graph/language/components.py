"""Mixtures of anything that has a likelihood: a category chooses which of several factors makes a variable, or what was counted.

A component is written as a variable of its own would be, by a builder called with the mixture's name. What the builder would
have put into the graph, a factor with its ports and data, becomes a component of one factor, `OneOf`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import Factor, OneOf
from heliograph.families import Bernoulli, Categorical, Family
from heliograph.graph.draft import Draft, Mixing
from heliograph.graph.language.children import Entries, Kind, attach_seen, child, want
from heliograph.graph.language.unfolding import kind_text
from heliograph.graph.plating import plate_shape
from heliograph.graph.quantity import Quantity

__all__ = ["mixture_of"]


class _Part(NamedTuple):
    """A component as its builder wrote it."""

    factor: Factor
    ports: dict[str, Quantity | Family | np.ndarray]
    data: dict[str, np.ndarray]
    kind: Kind | None  # None for counts, which are data


def mixture_of(
    draft: Draft, name: str, selector: object, component: Callable[[int], Any], entries: Entries
) -> Quantity:
    """A variable, or observed counts, of one of several components; see `Builder.mixture`."""
    chooser = want(name, "selector", selector, (Categorical, Bernoulli))
    draft.check_name(name)
    parts = _written(draft, name, chooser.node.dimension or 2, component, entries)
    factor, ports, data = _joined(chooser, parts)
    kind = parts[0].kind
    if kind is not None:
        return child(draft, name, factor, ports, data, kind, entries)
    x, rank = data["x"], factor.data_ranks.get("x", 0)
    seen = ~np.isnan(x).any(axis=tuple(range(x.ndim - rank, x.ndim)))
    attach_seen(draft, name, factor, ports, data, np.broadcast_to(seen, plate_shape(name, factor, ports, data)))
    return chooser


def _written(draft: Draft, name: str, n: int, component: Callable[[int], Any], entries: Entries) -> list[_Part]:
    """What the components' builders write, one after the other."""
    mixing = draft.mixtures[name] = Mixing(entries, [])
    try:
        for k in range(n):
            component(k)
            if len(mixing.found) != k + 1:
                raise ModelError(
                    f"mixture {name!r}: its function must call one builder with the name {name!r} for component {k}, and it called "
                    f"{len(mixing.found) - k}; write for example lambda k: model.poisson({name!r}, rate[k])"
                )
    finally:
        del draft.mixtures[name]
    parts = [_Part(*c.made[1:]) for c in mixing.found]
    kinds = dict.fromkeys("observed counts or lifetimes" if p.kind is None else kind_text(*p.kind) for p in parts)
    if len(kinds) > 1:
        raise UnsupportedError(f"mixture {name!r}: its components are of different kinds: {' and '.join(kinds)}")
    return parts


def _joined(
    chooser: Quantity, parts: list[_Part]
) -> tuple[OneOf, dict[str, Quantity | Family | np.ndarray], dict[str, np.ndarray]]:
    """One factor for all components: a quantity that several of them have stands at one port, for it is one quantity."""
    ports: dict[str, Quantity | Family | np.ndarray] = {"s": chooser}
    data: dict[str, np.ndarray] = {}
    wires: list[dict[str, str]] = []
    for k, part in enumerate(parts):
        wire: dict[str, str] = {}
        for inner, value in part.ports.items():
            wire[inner] = _same_port(ports, value) or f"{inner}_{k}"
            ports.setdefault(wire[inner], value)
        for inner, value in part.data.items():
            wire[inner] = "x" if inner == part.factor.child else f"{inner}_{k}"
            data.setdefault(wire[inner], value)
        wire[part.factor.child] = "x"
        wires.append(wire)
    return OneOf([p.factor for p in parts], wires), ports, data


def _same_port(ports: dict[str, Any], value: Any) -> str | None:
    """The port at which these entries of a node stand already."""
    if not isinstance(value, Quantity):
        return None
    for port, other in ports.items():
        alike = isinstance(other, Quantity) and other.node is value.node and other.shape == value.shape
        if alike and np.array_equal(other.entries(), value.entries()):
            return port
    return None
