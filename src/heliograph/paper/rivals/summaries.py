"""Incoming messages as plain rows of numbers, for the learners that want those: forests and networks.

Eslami et al. (2014) walk their trees by every common parameterisation of each message, by flags that say what kind of
message it is, and by the factor's value at the mode; Heess et al. (2013) feed their network the parameters. Every
number is finite, whatever comes in: what is infinite is cut off, and what does not exist is 0 with a flag saying so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Family
from heliograph.families.parameterisations import LARGE, parameterisations_of

__all__ = ["Summaries", "modes", "summarise"]


class Summaries(NamedTuple):
    """A plate of tuples of messages as rows."""

    values: np.ndarray  # (n, k), finite
    names: tuple[str, ...]  # "port: what" of each column
    essential: tuple[int, ...]  # columns that say it all once: location and log spread on the chart, and data


def summarise(incoming: Mapping[str, Any]) -> Summaries:
    """Rows, names and essential columns of a plate of tuples.

    >>> from heliograph.families import Gaussian
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
    return Summaries(np.stack(columns, axis=1), tuple(names), tuple(essential))


def modes(incoming: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Where each message is densest, or its mean if the density has no peak inside; some value of its support if it has neither.

    >>> from heliograph.families import Gamma
    >>> modes({"t": Gamma([3.0, 0.5], 2.0)})
    {'t': array([1.  , 0.25])}
    """
    return {port: _mode(m) if isinstance(m, Family) else np.asarray(m) for port, m in incoming.items()}


def _mode(m: Family) -> np.ndarray:
    mode = m.mode
    return np.where(np.isfinite(mode), mode, m.somewhere())


def _finite(a: np.ndarray) -> np.ndarray:
    a = np.where(np.isnan(a), 0.0, np.asarray(a, dtype=float))
    return np.clip(a, -LARGE, LARGE)


def _columns(m: Any) -> Iterator[tuple[str, np.ndarray, bool]]:
    """Name, numbers (n,) and whether essential, column by column."""
    if not isinstance(m, Family):
        data = np.asarray(m, dtype=float)
        for j, column in enumerate(data.reshape(len(data), -1).T):
            yield f"data {j}", column, True
        return
    for name, value, is_essential in parameterisations_of(m):
        flat = np.asarray(value).reshape(len(m), -1)
        for j, column in enumerate(flat.T):
            yield name if flat.shape[1] == 1 else f"{name} {j}", column, is_essential
    yield "proper", m.proper, False
    yield "uniform", m.is_uniform, False
    yield "point", m.is_point, False
