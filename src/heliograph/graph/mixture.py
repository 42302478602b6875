"""Building mixtures: a Categorical or Bernoulli chooses which mean and precision generates a Gaussian variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Mixture
from heliograph.families import Bernoulli, Categorical, Gamma, Gaussian
from heliograph.graph.check import check_positive
from heliograph.graph.variable import Variable

if TYPE_CHECKING:
    from heliograph.graph.builder import Builder

__all__ = ["build_mixture"]


def build_mixture(
    model: Builder, name: str, selector: Any, means: Any, variance: Any, precision: Any, observed: Any, missing: Any
) -> Variable:
    """The variable and its plate; see `Builder.mixture`."""
    model._want(name, "selector", selector, (Categorical, Bernoulli))
    model._want(name, "means", means, Gaussian)
    k = 2 if selector.family is Bernoulli else selector.node.dimension
    if not means.shape or means.shape[-1] != k:
        raise ModelError(
            f"variable {name!r}: selector {selector.name!r} chooses among {k} components, so means must have {k} entries along "
            f"its last axis, not shape {means.shape}"
        )
    if (variance is None) == (precision is None):
        raise ModelError(f"variable {name!r}: a mixture needs exactly one of variance and precision=")
    if isinstance(precision, Variable):
        model._want(name, "precision", precision, Gamma)
        if precision.shape[-1:] not in ((k,), ()):
            raise ModelError(
                f"variable {name!r}: precision must be one variable for all components or have {k} entries along its last axis, "
                f"not shape {precision.shape}"
            )
        parts: list[Any] = [precision[..., j] if precision.shape else precision for j in range(k)]
    else:
        fixed = (
            1.0 / check_positive(name, "variance", variance)
            if precision is None
            else check_positive(name, "precision", precision)
        )
        try:
            fixed = np.broadcast_to(fixed, np.broadcast_shapes(fixed.shape, (k,)))
        except ValueError:
            raise ModelError(
                f"variable {name!r}: give one variance or precision, or {k} of them, not shape {fixed.shape}"
            ) from None
        parts = [fixed[..., j] for j in range(k)]
    ports: dict[str, Any] = {"s": selector, **{f"mean{j}": means[..., j] for j in range(k)}}
    # one random precision for all components stands at one port: at several it would count as several
    shared = isinstance(precision, Variable) and not precision.shape
    ports |= {"precision": precision} if shared else {f"precision{j}": parts[j] for j in range(k)}
    return model._child(name, Mixture(k, shared), ports, {}, Gaussian, None, observed, missing)
