"""Every common parameterisation of a message, as named columns of numbers: what a tree or a network may look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian

__all__ = ["LARGE", "Parameter", "parameterisations_of"]

LARGE = 1e100  # stands for infinity: its square, and the sum of a million of those, are still numbers
_BORDER = 740.0  # and on a log or logit axis: log of about the least positive number
_LOG_LARGE = float(np.log(LARGE))


class Parameter(NamedTuple):
    """One parameter of all messages of a plate."""

    name: str
    values: np.ndarray  # (n,), or (n, k) for k numbers per message
    essential: bool  # the essential ones say it all once: location and log spread on the chart


def parameterisations_of(message: Family) -> Iterator[Parameter]:
    """The parameters of the messages of a plate, in all common parameterisations of their family.

    >>> [p.name for p in parameterisations_of(Bernoulli([0.5]))]
    ['p', 'log odds']
    """
    return _OF_FAMILY.get(type(message), _of_any)(message)


def _of_gaussian(m: Gaussian) -> Iterator[Parameter]:
    yield from _of_moments(m)
    yield Parameter("mean x precision", m.shift, False)
    yield Parameter("precision", m.precision, False)


def _of_vector(m: MultivariateGaussian) -> Iterator[Parameter]:
    yield from _of_moments(m)
    yield Parameter("mean x precision", m.shift, False)
    i, j = np.triu_indices(m.dimension, 1)
    yield Parameter("precision", m.precision[:, *np.triu_indices(m.dimension)], False)
    if len(i):
        variance = m.variance
        spread = np.where((variance > 0) & np.isfinite(variance), variance, 1.0)
        yield Parameter("correlation", m.covariance[:, i, j] / np.sqrt(spread[:, i] * spread[:, j]), True)


def _of_moments(m: Gaussian | MultivariateGaussian) -> Iterator[Parameter]:
    variance = m.variance
    yield Parameter("mean", m.mean, True)
    yield Parameter("variance", variance, False)
    yield Parameter("log variance", _log(variance), True)


def _of_gamma(m: Gamma) -> Iterator[Parameter]:
    yield Parameter("shape", m.shape_parameter, False)
    yield Parameter("rate", m.rate, False)
    yield Parameter("scale", np.divide(1.0, m.rate, out=np.zeros(m.shape), where=m.rate != 0), False)
    yield from _on_chart(m)


def _of_beta(m: Beta) -> Iterator[Parameter]:
    yield Parameter("a", m.a, False)
    yield Parameter("b", m.b, False)
    yield from _on_chart(m)


def _on_chart(m: Beta | Gamma) -> Iterator[Parameter]:
    chart_mean, chart_variance = m.chart_moments()
    yield Parameter("mean", m.mean, False)
    yield Parameter("variance", m.variance, False)
    yield Parameter(f"mean of {m.chart}", np.clip(chart_mean, -_BORDER, _BORDER), True)
    yield Parameter(f"log variance of {m.chart}", _log(chart_variance), True)


def _of_bernoulli(m: Bernoulli) -> Iterator[Parameter]:
    yield Parameter("p", m.p, False)
    yield Parameter("log odds", np.clip(m.log_odds, -_BORDER, _BORDER), True)


def _of_categorical(m: Categorical) -> Iterator[Parameter]:
    yield Parameter("p", m.p, True)


def _of_dirichlet(m: Dirichlet) -> Iterator[Parameter]:
    yield Parameter("mean", m.mean, True)
    yield Parameter("variance", m.variance, False)
    yield Parameter("concentration", m.concentration, False)
    yield Parameter("log of all concentration", _log(m.concentration.sum(axis=-1)), True)


def _of_any(m: Family) -> Iterator[Parameter]:
    """A family that came later: its own two moments."""
    yield Parameter("mean", m.mean, True)
    yield Parameter("log variance", _log(m.variance), True)


_OF_FAMILY: dict[type[Family], Callable[[Any], Iterator[Parameter]]] = {
    Gaussian: _of_gaussian,
    MultivariateGaussian: _of_vector,
    Gamma: _of_gamma,
    Beta: _of_beta,
    Bernoulli: _of_bernoulli,
    Categorical: _of_categorical,
    Dirichlet: _of_dirichlet,
}


def _log(v: np.ndarray) -> np.ndarray:
    """Logarithm of a variance or a rate, cut off at both ends; 0 where there is none."""
    there = np.asarray(v) > 0
    return np.where(
        there, np.log(np.clip(np.where(there, v, 1.0), 1 / LARGE, LARGE)), np.where(v == 0, -_LOG_LARGE, 0.0)
    )
