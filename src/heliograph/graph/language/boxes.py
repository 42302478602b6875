"""Black-box factors called on variables: their outputs, and what was observed of these."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Factor
from heliograph.families import Categorical, Dirichlet, MultivariateGaussian
from heliograph.graph.check import check_number
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Kind, derived, want
from heliograph.graph.language.statements import observe
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Edge

__all__ = ["black_box", "further_output", "observed_outputs"]


def black_box(draft: Draft, factor: Factor, arguments: dict[str, Any], observed: Any = None) -> Quantity:
    """The output of a black-box factor called on variables; plain arrays are data."""
    ports: dict[str, Quantity | np.ndarray] = {}
    data: dict[str, np.ndarray] = {}
    for port, value in arguments.items():
        if isinstance(value, Quantity):
            ports[port] = want(factor.name, port, value, factor.families.get(port, ()))
        else:
            data[port] = check_number(factor.name, port, value)
    out = factor.families[factor.child][0]
    names = ", ".join(v.name for v in ports.values() if isinstance(v, Quantity))
    kind = Kind(out, _dimension(factor, factor.child))
    made = derived(draft, f"{factor.name}({names})", factor, ports, data, kind)
    if observed is not None:
        observe(draft, made, observed, None)
    return made


def further_output(draft: Draft, first: Quantity, port: str, observed: Any = None) -> Quantity:
    """Another output of the black-box factor that made a variable."""
    plate = first.node.maker
    assert plate is not None
    factor = plate.factor
    family = factor.families[port][0]
    node = draft.node(f"{first.name}, {port}", family, plate.shape, _dimension(factor, port), given=False)
    plate.edges[port] = Edge(node.position, None, True)
    node.maker = plate
    made = Quantity(node)
    if observed is not None:
        observe(draft, made, observed, None)
    return made


def observed_outputs(factor: Factor, observed: Any) -> tuple[Any, ...]:
    """What was observed of each output of a black-box factor; None of those of which nothing was."""
    n = len(factor.children)
    if observed is None:
        return (None,) * n
    if not isinstance(observed, tuple) or len(cast("tuple[Any, ...]", observed)) != n:
        raise ModelError(
            f"factor {factor.name!r} has {n} outputs: give observed= a tuple of {n}, None where nothing was seen"
        )
    return cast("tuple[Any, ...]", observed)


def _dimension(factor: Factor, port: str) -> int | None:
    """The length of a vector, or the number of categories, at an output of a black box."""
    given: Any = getattr(factor, "dimension", None)
    if isinstance(given, tuple):
        given = cast("tuple[int | None, ...]", given)[factor.children.index(port)]
    family = factor.families[port][0]
    if given is None and family in (Categorical, Dirichlet, MultivariateGaussian):
        what = "number of categories" if family is Categorical else "length of the vectors"
        raise ModelError(
            f"factor {factor.name!r}: output=hg.{family.__name__} needs the {what}, @hg.factor(..., dimension=3)"
        )
    return given
