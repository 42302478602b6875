"""Which axis belongs to which family."""

from __future__ import annotations

from heliograph.errors import UnsupportedError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.oracles.axis import Axis
from heliograph.oracles.discrete_axes import CoinAxis, LabelAxis
from heliograph.oracles.scalar_axes import LogAxis, LogitAxis, RealAxis
from heliograph.oracles.vector_axes import SimplexAxis, VectorAxis

__all__ = ["axis_of"]


def axis_of(family: type[Family], example: Family | None = None) -> Axis:
    """The axis of a family; `example` gives the dimension where the family has one."""
    if family is Gaussian:
        return RealAxis()
    if family is Gamma:
        return LogAxis()
    if family is Beta:
        return LogitAxis()
    if family is Bernoulli:
        return CoinAxis()
    if example is not None and family in (MultivariateGaussian, Categorical, Dirichlet):
        size = example.naturals[0].shape[-1]
        return {MultivariateGaussian: VectorAxis, Categorical: LabelAxis, Dirichlet: SimplexAxis}[family](size)
    raise UnsupportedError(f"no oracle knows how to sample a {family.__name__}")
