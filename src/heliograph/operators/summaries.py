"""Incoming messages as plain rows of numbers, for the learners that want those: forests and networks.

Eslami et al. (2014) walk their trees by every common parameterisation of each message, by flags that say what kind of
message it is, and by the factor's value at the mode; Heess et al. (2013) feed their network the parameters. Every
number is finite, whatever comes in: what is infinite is cut off, and what does not exist is 0 with a flag saying so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian

__all__ = ["Summaries", "modes", "summaries", "summarise"]

_LARGE = 1e100  # stands for infinity: its square, and the sum of a million of those, are still numbers
_BORDER = 740.0  # and on a log or logit axis: log of about the least positive number
_LOG_LARGE = float(np.log(_LARGE))


class Summaries(NamedTuple):
    """A plate of tuples of messages as rows."""

    values: np.ndarray  # (n, k), finite
    names: tuple[str, ...]  # "port: what" of each column
    essential: tuple[int, ...]  # columns that say it all once: location and log spread on the chart, and data


def summaries(incoming: Mapping[str, Any], factor_value: np.ndarray | None = None) -> np.ndarray:
    """Every common parameterisation of each message, (n, k); see `summarise`."""
    return summarise(incoming, factor_value).values


def summarise(incoming: Mapping[str, Any], factor_value: np.ndarray | None = None) -> Summaries:
    """Rows, names and essential columns of a plate of tuples; `factor_value` (n,) or (n, j) joins as columns.

    >>> s = summarise({"z": Gaussian([1.0], 4.0)})
    >>> dict(zip(s.names, s.values[0].tolist()))["z: mean x precision"]
    0.25
    >>> [s.names[k] for k in s.essential]
    ['z: mean', 'z: log variance']
    """
    names: list[str] = []
    columns: list[np.ndarray] = []
    essential: list[int] = []
    for port, message in incoming.items():
        for name, column, is_essential in _columns(message):
            if is_essential:
                essential.append(len(names))
            names.append(f"{port}: {name}")
            columns.append(_finite(column))
    if factor_value is not None:
        value = np.asarray(factor_value, dtype=float)
        for j, column in enumerate(value.reshape(len(value), -1).T):
            names.append(f"factor at the mode {j}")
            columns.append(_finite(column))
    return Summaries(np.stack(columns, axis=1), tuple(names), tuple(essential))


def modes(incoming: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Where each message is densest, or its mean if the density has no peak inside; 0, 1 or 1/2 if it has neither.

    >>> modes({"t": Gamma([3.0, 0.5], 2.0)})
    {'t': array([1.  , 0.25])}
    """
    return {port: _mode(m) if isinstance(m, Family) else np.asarray(m) for port, m in incoming.items()}


def _mode(m: Family) -> np.ndarray:
    mean = m.mean
    if isinstance(m, Beta):
        peaked = (m.a > 1) & (m.b > 1) & np.isfinite(m.a + m.b)
        mode = (m.a - 1) / np.where(peaked, m.a + m.b - 2, 1.0) if peaked.any() else mean
        neither = 0.5
    elif isinstance(m, Gamma):
        peaked = (m.shape_parameter > 1) & (m.rate > 0) & np.isfinite(m.shape_parameter)
        mode = (m.shape_parameter - 1) / np.where(peaked, m.rate, 1.0) if peaked.any() else mean
        neither = 1.0
    else:
        return np.where(np.isfinite(mean), mean, 0.0)
    mode = np.where(peaked, mode, mean)
    return np.where(np.isfinite(mode), mode, neither)


def _finite(a: np.ndarray) -> np.ndarray:
    a = np.where(np.isnan(a), 0.0, np.asarray(a, dtype=float))
    return np.clip(a, -_LARGE, _LARGE)


def _log(v: np.ndarray) -> np.ndarray:
    """Logarithm of a variance or a rate, cut off at both ends; 0 where there is none."""
    there = np.asarray(v) > 0
    return np.where(
        there, np.log(np.clip(np.where(there, v, 1.0), 1 / _LARGE, _LARGE)), np.where(v == 0, -_LOG_LARGE, 0.0)
    )


def _columns(m: Any) -> Iterator[tuple[str, np.ndarray, bool]]:
    """Name, numbers (n,) and whether essential, column by column."""
    if not isinstance(m, Family):
        data = np.asarray(m, dtype=float)
        for j, column in enumerate(data.reshape(len(data), -1).T):
            yield f"data {j}", column, True
        return
    for name, value, is_essential in _parameters(m):
        flat = np.asarray(value).reshape(len(m), -1)
        for j, column in enumerate(flat.T):
            yield name if flat.shape[1] == 1 else f"{name} {j}", column, is_essential
    yield "proper", m.proper, False
    yield "uniform", m.is_uniform, False
    yield "point", m.is_point, False


def _parameters(m: Family) -> Iterator[tuple[str, np.ndarray, bool]]:
    mean, variance = m.mean, m.variance
    if isinstance(m, Gaussian | MultivariateGaussian):
        yield "mean", mean, True
        yield "variance", variance, False
        yield "log variance", _log(variance), True
        yield "mean x precision", m.shift, False
        if isinstance(m, Gaussian):
            yield "precision", m.precision, False
            return
        i, j = np.triu_indices(m.dimension, 1)
        yield "precision", m.precision[:, *np.triu_indices(m.dimension)], False
        if len(i):
            spread = np.where((variance > 0) & np.isfinite(variance), variance, 1.0)
            yield "correlation", m.covariance[:, i, j] / np.sqrt(spread[:, i] * spread[:, j]), True
    elif isinstance(m, Beta | Gamma):
        chart_mean, chart_variance = m.chart_moments()
        if isinstance(m, Beta):
            yield "a", m.a, False
            yield "b", m.b, False
        else:
            yield "shape", m.shape_parameter, False
            yield "rate", m.rate, False
            yield "scale", np.divide(1.0, m.rate, out=np.zeros(m.shape), where=m.rate != 0), False
        yield "mean", mean, False
        yield "variance", variance, False
        yield f"mean of {m.chart}", np.clip(chart_mean, -_BORDER, _BORDER), True
        yield f"log variance of {m.chart}", _log(chart_variance), True
    elif isinstance(m, Bernoulli):
        yield "p", m.p, False
        yield "log odds", np.clip(m.log_odds, -_BORDER, _BORDER), True
    elif isinstance(m, Categorical):
        yield "p", m.p, True
    elif isinstance(m, Dirichlet):
        yield "mean", mean, True
        yield "variance", variance, False
        total = m.concentration.sum(axis=-1)
        yield "concentration", m.concentration, False
        yield "log of all concentration", _log(total), True
    else:  # a family that came later: its own two moments
        yield "mean", mean, True
        yield "log variance", _log(variance), True
