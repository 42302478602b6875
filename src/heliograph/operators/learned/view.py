"""The views of the default operator: rows of one kind together, and each row as numbers.

A message that is proper gives its centre and log spread on the chart, a point mass its place there, a uniform message
nothing; data gives its values. Rows where the ports do not hold the same of these are of different kinds, and what was
learned about one kind says nothing about another. To these come the reference's summaries, and how the reference of
the port in question differs from the cavity there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from heliograph.families import Family
from heliograph.families.charts import chart_of
from heliograph.operators.learned.decide import LEAST_DOUBT
from heliograph.operators.learned.records import Kind, View
from heliograph.operators.protocol import Incoming, ReferenceLike, rows_of, signature

__all__ = ["DATA", "POINT", "PROPER", "UNIFORM", "WILD", "EvidenceChart", "kind_key", "kinds_of", "rows_at", "view_of"]


PROPER, POINT, UNIFORM, WILD, DATA = "proper", "point", "uniform", "wild", "data"
_NAMES = (PROPER, POINT, UNIFORM, WILD, DATA)


class EvidenceChart:
    """Not a family: the log normaliser of a tuple, learned like one more direction. Errors count by their square.

    The methods are those of `families.charts.Chart`.
    """

    n_outputs, scalar = 1, False

    def moments(self, log_z):  # noqa: D102
        return (log_z,)

    def gap(self, moments, reference):  # noqa: D102
        return (moments[0] - reference[0])[:, None]

    def belief(self, target, reference):  # noqa: D102
        return reference[0] + target[:, 0]

    def weights(self, target, reference):  # noqa: D102
        return np.ones(target.shape)

    def noise(self, log_z, variance, reference):  # noqa: D102
        return variance[:, None]


def kinds_of(incoming: Incoming) -> Iterator[tuple[Kind, np.ndarray | None]]:
    """Cut a plate into rows of one kind each: a mapping from port to its content, and the rows (None: all of them)."""
    codes = {port: _codes(m) for port, m in incoming.items()}
    if all(isinstance(c, str) for c in codes.values()):
        yield codes, None  # type: ignore[misc]
        return
    n = len(next(iter(incoming.values())))
    total = np.zeros(n, dtype=int)
    columns = {p: np.full(n, _NAMES.index(c)) if isinstance(c, str) else c for p, c in codes.items()}
    for c in columns.values():
        total = total * len(_NAMES) + c
    for value in np.unique(total):
        rows = np.flatnonzero(total == value)
        yield {p: _NAMES[int(c[rows[0]])] for p, c in columns.items()}, rows


def _codes(message: Any) -> str | np.ndarray:
    """What each row of a port holds; one word if all hold the same."""
    if not isinstance(message, Family):
        return DATA
    proper = chart_of(message).charted(message)
    if message.point is None and proper.all():
        return PROPER
    code = np.where(message.is_point, 1, np.where(proper, 0, np.where(message.is_uniform, 2, 3)))
    for a, rank in zip(message.naturals, message.ranks, strict=True):
        fine = np.isfinite(a)
        fine = fine.all(axis=tuple(range(a.ndim - rank, a.ndim))) if rank else fine
        code = np.where(fine, code, 3)
    first = int(code[0]) if len(code) else 0
    return _NAMES[first] if (code == first).all() else code


def kind_key(kind: Kind, incoming: Incoming, referred: bool) -> str:
    """The key under which rows of one kind are learned together."""
    held = ", ".join(f"{port} {what}" for port, what in kind.items() if what != DATA)
    return f"{signature(incoming)} | {held}" + (" | referred by cells" if referred else "")


def view_of(kind: Kind, incoming: Incoming, to: str | None, reference: ReferenceLike | None) -> View:
    """View rows of one kind as numbers, for one direction.

    Parameters
    ----------
    kind : what each port holds
    incoming : the messages
    to : the port in question; None: log Z
    reference : a cheap belief of that port, or None, and the cavity takes its place
    """
    columns = _columns(kind, incoming)
    if reference is not None:
        columns.append(reference.summaries)
    n = len(next(iter(incoming.values())))
    scale, sure = _scale(reference), getattr(reference, "sure", None)
    if to is None:
        log_z = np.zeros(n) if reference is None else reference.log_z
        return View(EvidenceChart(), (log_z,), _beside(columns, n), scale, None, None, None, sure)  # type: ignore[arg-type]
    chart = chart_of(incoming[to])
    cavity = incoming[to] if kind[to] == PROPER else None
    moments = None if cavity is None else chart.moments(cavity)
    if reference is None:
        base = chart.plain(n) if moments is None else moments
        excess = np.zeros(n) if moments is not None and chart.scalar else None
        return View(chart, base, _beside(columns, n), None, excess, to, cavity)
    if moments is None:
        return View(chart, reference.moments, _beside(columns, n), scale, None, to, None, sure)
    gap = chart.gap(reference.moments, moments)
    columns.append(gap)
    excess = gap[:, 1] if chart.scalar else None
    return View(chart, reference.moments, _beside(columns, n), scale, excess, to, cavity, sure)


def _columns(kind: Kind, incoming: Incoming) -> list[np.ndarray]:
    """Each port as columns of numbers; a uniform message has none."""
    columns: list[np.ndarray] = []
    for port, message in incoming.items():
        what = kind[port]
        if what == DATA:
            columns.append(np.asarray(message, dtype=float).reshape(len(message), -1))
        elif what == PROPER:
            columns.append(chart_of(message).features(message))
        elif what == POINT:
            columns.append(chart_of(message).point_features(message))
    return columns


def _scale(reference: ReferenceLike | None) -> np.ndarray | None:
    """The root of the reference's doubt of itself: where it saw enough, hardly anything is left to correct."""
    doubt = None if reference is None else getattr(reference, "doubt", None)
    return None if doubt is None else np.sqrt(doubt + LEAST_DOUBT)


def _beside(columns: list[np.ndarray], n: int) -> np.ndarray:
    return np.concatenate(columns, axis=1) if columns else np.zeros((n, 0))


def rows_at(incoming: Incoming, rows: np.ndarray | None) -> Incoming:
    """Some rows, or all of them as they are."""
    return incoming if rows is None else rows_of(incoming, rows)
