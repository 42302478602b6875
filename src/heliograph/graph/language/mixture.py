"""Mixtures: a Categorical or Bernoulli chooses which mean and precision, or which of several factors, makes a variable.

Components that are given by a function are written as variables of their own would be, by a builder called with the mixture's
name. What the builder would have put into the graph, a factor with its ports and data, becomes a component of one factor, `OneOf`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import Factor, Mixture, OneOf
from heliograph.families import Bernoulli, Categorical, Family, Gaussian
from heliograph.graph.check import check_not_spread
from heliograph.graph.draft import Draft, Mixing
from heliograph.graph.language.children import Entries, Kind, attach_seen, child, want
from heliograph.graph.language.keywords import SeenKeywords
from heliograph.graph.language.spread import Spread, read_spread
from heliograph.graph.language.unfolding import kind_text
from heliograph.graph.plating import plate_shape
from heliograph.graph.quantity import Argument, Quantity

__all__ = ["mixture"]


def mixture(
    draft: Draft,
    name: str,
    selector: Quantity,
    means: Quantity | Callable[[int], Any],
    variance: Argument | None = None,
    *,
    sd: Argument | None = None,
    precision: Argument | None = None,
    **keywords: Unpack[SeenKeywords],
) -> Quantity:
    """A variable whose component is chosen by a Categorical, or by a Bernoulli (component 1 where it is true).

    There are two forms:

    - Gaussian components: `means` is an array of K scalar Gaussian variables along its last axis, with a
      `variance`, `sd` or `precision`, one or K of them. `precision` may be a Gamma variable.
    - Any other components: `means` is a function of k that calls a builder with the mixture's name. Every builder
      that makes one factor can be a component, and different k may call different builders: vectors, counts,
      lifetimes, labels, regressions (``model.gaussian("y", a[k] + b[k] * x, sd=1.0)``) and fixed distributions.

    Parameters
    ----------
    selector
        A Categorical or Bernoulli variable.
    means, variance, sd, precision
        The components, in one of the two forms.

    Examples
    --------
    >>> from heliograph.engine import Model
    >>> model = Model()
    >>> rate = model.gamma("rate", 1.0, [1.0, 0.05])
    >>> which = model.categorical("which", [0.5, 0.5], size=4)
    >>> y = model.mixture("y", which, lambda k: model.poisson("y", rate[k]), observed=[1, 30, 0, 25])
    >>> model.infer()[which].p.argmax(axis=1)
    array([0, 1, 0, 1])
    """
    entries = Entries(**keywords)
    if isinstance(means, Quantity) or not callable(means):
        return _of_gaussians(draft, name, selector, means, Spread(variance, sd, precision), entries)
    if any(x is not None for x in (variance, sd, precision)):
        raise ModelError(f"variable {name!r}: its components are given by a function, which says how wide they are")
    return _of_anything(draft, name, selector, means, entries)


def _of_gaussians(
    draft: Draft, name: str, selector: object, means: object, spread: Spread, entries: Entries
) -> Quantity:
    """A Gaussian variable of one of several components."""
    chooser = want(name, "selector", selector, (Categorical, Bernoulli))
    centres = want(name, "means", means, Gaussian)
    k = chooser.node.dimension or 2  # a Bernoulli has no dimension
    if not centres.shape or centres.shape[-1] != k:
        raise ModelError(
            f"variable {name!r}: selector {chooser.name!r} chooses among {k} components, so means must have {k} entries along "
            f"its last axis, not shape {centres.shape}"
        )
    width = read_spread(name, spread)
    ports: dict[str, Quantity | np.ndarray] = {"s": chooser}
    ports |= {f"mean{j}": centres.part((..., j)) for j in range(k)}
    # one random precision for all components stands at one port: at several it would count as several
    shared = width.precision is not None and not width.precision.shape
    if width.precision is not None:
        ports |= _random_precisions(name, width.precision, k)
    else:
        assert width.variance is not None
        ports |= _fixed_precisions(name, 1.0 / width.variance, k)
    return child(draft, name, Mixture(k, shared), ports, {}, Kind(Gaussian), entries)


def _random_precisions(name: str, precision: Quantity, k: int) -> dict[str, Quantity]:
    if precision.shape[-1:] not in ((k,), ()):
        raise ModelError(
            f"variable {name!r}: precision must be one variable for all components or have {k} entries along its last axis, "
            f"not shape {precision.shape}"
        )
    if not precision.shape:
        return {"precision": precision}
    return {f"precision{j}": precision.part((..., j)) for j in range(k)}


def _fixed_precisions(name: str, fixed: np.ndarray, k: int) -> dict[str, np.ndarray]:
    try:
        fixed = np.broadcast_to(fixed, np.broadcast_shapes(fixed.shape, (k,)))
    except ValueError:
        raise ModelError(
            f"variable {name!r}: give one variance, sd or precision, or {k} of them, not shape {fixed.shape}"
        ) from None
    return {f"precision{j}": np.asarray(fixed[..., j]) for j in range(k)}


class _Part(NamedTuple):
    """A component as its builder wrote it."""

    factor: Factor
    ports: dict[str, Quantity | Family | np.ndarray]
    data: dict[str, np.ndarray]
    kind: Kind | None  # None for counts, which are data


def _of_anything(
    draft: Draft, name: str, selector: object, component: Callable[[int], Any], entries: Entries
) -> Quantity:
    """A variable, or observed counts, of one of several components."""
    chooser = want(name, "selector", selector, (Categorical, Bernoulli))
    draft.check_name(name)
    parts = _written(draft, name, chooser.node.dimension or 2, component, entries)
    factor, ports, data = _joined(chooser, parts)
    kind = parts[0].kind
    if kind is not None:
        return child(draft, name, factor, ports, data, kind, entries)
    x, rank = data["x"], factor.data_ranks.get("x", 0)
    seen = np.asarray(~np.isnan(x).any(axis=tuple(range(x.ndim - rank, x.ndim))))
    full = plate_shape(name, factor, ports, data)
    check_not_spread(name, full, seen)
    attach_seen(draft, name, factor, ports, data, np.broadcast_to(seen, full))
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
