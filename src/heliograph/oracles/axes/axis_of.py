"""Which axis belongs to which family."""

from __future__ import annotations

from collections.abc import Callable

from heliograph.errors import UnsupportedError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.oracles.axes.axis import Axis
from heliograph.oracles.axes.discrete_axes import CoinAxis, LabelAxis
from heliograph.oracles.axes.log_axes import LogAxis, LogitAxis
from heliograph.oracles.axes.real_axis import RealAxis
from heliograph.oracles.axes.simplex_axis import SimplexAxis
from heliograph.oracles.axes.vector_axis import VectorAxis

__all__ = ["axis_of"]

_OF_NUMBERS: dict[type[Family], Callable[[], Axis]] = {
    Gaussian: RealAxis,
    Gamma: LogAxis,
    Beta: LogitAxis,
    Bernoulli: CoinAxis,
}
_WITH_A_SIZE: dict[type[Family], Callable[[int], Axis]] = {
    MultivariateGaussian: VectorAxis,
    Categorical: LabelAxis,
    Dirichlet: SimplexAxis,
}


def axis_of(family: type[Family], example: Family | None = None) -> Axis:
    """The axis of a family; `example` gives the dimension where the family has one."""
    if family in _OF_NUMBERS:
        return _OF_NUMBERS[family]()
    if example is not None and family in _WITH_A_SIZE:
        return _WITH_A_SIZE[family](example.naturals[0].shape[-1])
    raise UnsupportedError(f"no oracle knows how to sample a {family.__name__}")
