"""Made-up messages like those that came in: between two rows of a plate, or a little beyond one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.families.charts import chart_of
from heliograph.operators.learned.cells import class_columns, joined
from heliograph.operators.learned.records import Kind
from heliograph.operators.learned.view import DATA, PROPER
from heliograph.operators.protocol import Incoming, rows_of

__all__ = ["like", "pooled"]

_KEPT = 512  # rows of the latest plates
_BEYOND = 1.0  # of the way from one row to another, how far beyond the first one a made row may lie
_FEW = 8  # values of a port, up to which they are classes: nothing is made between labels


def pooled(pool: Incoming | None, incoming: Incoming) -> Incoming:
    """The latest rows of some plates, of one kind all."""
    if pool is not None:
        incoming = {p: joined(pool[p], m) for p, m in incoming.items()}
    return rows_of(incoming, slice(-_KEPT, None))


def like(rng: np.random.Generator, kind: Kind, pool: Incoming, n: int) -> Incoming:
    """Make n rows like those of a pool, all ports of a row by the same step from one of its rows towards another.

    A message moves on its chart, so that it stays proper. Data that are no integers move, but never beyond what was seen, where a
    function may be undefined. What takes a few values only, and point masses, stay as they are in the first row.
    """
    size = len(next(iter(pool.values())))
    first, second = rng.integers(size, size=(2, n))
    step = rng.uniform(-_BEYOND, 1.0, n)
    return {p: _between(m, kind[p], first, second, step) for p, m in pool.items()}


def _between(message: Any, what: str, first: np.ndarray, second: np.ndarray, step: np.ndarray) -> Any:
    start = message[first]
    if what not in (PROPER, DATA) or _takes_few_values(message):
        return start
    if isinstance(message, Family):
        chart = chart_of(message)
        base = chart.moments(start)
        return chart.belief(step[:, None] * chart.gap(chart.moments(message[second]), base), base)
    if (message == np.round(message)).all():
        return start
    inside = np.maximum(step, 0.0).reshape(-1, *[1] * (message.ndim - 1))
    return start + inside * (message[second] - start)


def _takes_few_values(message: Any) -> bool:
    columns = class_columns({"": message}, [""])
    return np.unique(columns, axis=1).shape[1] <= _FEW
