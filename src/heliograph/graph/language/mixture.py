"""Mixtures: a Categorical or Bernoulli chooses which mean and precision generates a Gaussian variable."""

from __future__ import annotations

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Mixture
from heliograph.families import Bernoulli, Categorical, Gaussian
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Entries, Kind, child, want
from heliograph.graph.language.spread import Spread, read_spread
from heliograph.graph.quantity import Quantity

__all__ = ["mixture"]


def mixture(draft: Draft, name: str, selector: object, means: object, spread: Spread, entries: Entries) -> Quantity:
    """A Gaussian variable of one of several components; see `Builder.mixture`."""
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
