"""How the default operator sees a plate of tuples: rows of one kind together, and each row as numbers.

A message that is proper gives its centre and log spread on the chart, a point mass its place there, a uniform message
nothing; data gives its values. Rows where the ports do not hold the same of these are of different kinds, and what was
learned about one kind says nothing about another. To these come the reference's summaries, and how the reference of
the port in question differs from the cavity there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Bernoulli, Categorical, Dirichlet, Family
from heliograph.operators.chart import EvidenceChart, Moments, chart_of
from heliograph.operators.protocol import Incoming, rows_of, signature

__all__ = ["DATA", "POINT", "PROPER", "UNIFORM", "WILD", "Sight", "kind_key", "kinds_of", "look", "rows_at"]

_SURE = 1e-6  # nats: no reference is surer of itself
_FAR = 40.0  # on the log odds, of a point mass at 0 or 1

PROPER, POINT, UNIFORM, WILD, DATA = "proper", "point", "uniform", "wild", "data"
_NAMES = (PROPER, POINT, UNIFORM, WILD, DATA)


class Sight(NamedTuple):
    """A plate of one kind, as the regression of one direction sees it."""

    chart: Any  # of the port in question
    base: Moments  # what the target is relative to
    inputs: np.ndarray  # (n, k)
    scale: np.ndarray | None  # (n,) how large corrections to the base are by its own account; None: alike everywhere
    excess: np.ndarray | None  # (n,) log variance of the base over the cavity's, where both are plain numbers


def kinds_of(incoming: Incoming) -> Iterator[tuple[dict[str, str], np.ndarray | None]]:
    """Cut a plate into rows of one kind each: port -> what it holds, and the rows (None: all of them)."""
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
    proper = message.proper
    if isinstance(message, Categorical):
        proper = np.isfinite(message.naturals[0]).all(axis=-1)  # an impossible category has no log probability
    if message.point is None and proper.all():
        return PROPER
    code = np.where(message.is_point, 1, np.where(proper, 0, np.where(message.is_uniform, 2, 3)))
    for a, rank in zip(message.naturals, message.ranks, strict=True):
        fine = np.isfinite(a)
        fine = fine.all(axis=tuple(range(a.ndim - rank, a.ndim))) if rank else fine
        code = np.where(fine, code, 3)
    first = int(code[0]) if len(code) else 0
    return _NAMES[first] if (code == first).all() else code


def kind_key(kind: dict[str, str], incoming: Incoming, referred: bool) -> str:
    """A name for what is learned together."""
    held = ", ".join(f"{port} {what}" for port, what in kind.items() if what != DATA)
    return f"{signature(incoming)} | {held}" + (" | referred" if referred else "")


def look(kind: dict[str, str], incoming: Incoming, to: str | None, reference: Any) -> Sight:
    """See a plate of one kind, for the direction `to` (None: for log Z)."""
    columns: list[np.ndarray] = []
    for port, message in incoming.items():
        what = kind[port]
        if what == DATA:
            columns.append(np.asarray(message, dtype=float).reshape(len(message), -1))
        elif what == PROPER:
            columns.append(chart_of(message).features(message))
        elif what == POINT:
            columns.append(_place(message))
    if reference is not None:
        columns.append(reference.summaries)
    n = len(next(iter(incoming.values())))
    if to is None:
        base = (np.zeros(n) if reference is None else reference.log_z,)
        return Sight(EvidenceChart(), base, _beside(columns, n), _scale(reference), None)
    chart = chart_of(incoming[to])
    cavity = chart.moments(incoming[to]) if kind[to] == PROPER else None
    if reference is None:
        base = chart.plain(n) if cavity is None else cavity
        excess = np.zeros(n) if cavity is not None and chart.scalar else None
        return Sight(chart, base, _beside(columns, n), None, excess)
    base = reference.moments
    if cavity is None:
        return Sight(chart, base, _beside(columns, n), _scale(reference), None)
    gap = chart.gap(base, cavity)
    columns.append(gap)
    excess = gap[:, 1] if chart.scalar else None
    return Sight(chart, base, _beside(columns, n), _scale(reference), excess)


def _scale(reference: Any) -> np.ndarray | None:
    """The root of the reference's doubt of itself: where it saw enough, hardly anything is left to correct."""
    doubt = None if reference is None else getattr(reference, "doubt", None)
    return None if doubt is None else np.sqrt(doubt + _SURE)


def _beside(columns: list[np.ndarray], n: int) -> np.ndarray:
    return np.concatenate(columns, axis=1) if columns else np.zeros((n, 0))


def _place(message: Any) -> np.ndarray:
    """Point masses as numbers."""
    if isinstance(message, (Bernoulli, Categorical)):
        return message.p.reshape(len(message), -1)
    if isinstance(message, Dirichlet):
        return np.log(np.maximum(message.point, np.exp(-_FAR)))  # type: ignore[call-overload]
    mean = message.chart_moments()[0]
    return np.clip(mean, -_FAR, _FAR)[:, None] if message.chart == "logit" else mean.reshape(len(message), -1)


def rows_at(incoming: Incoming, rows: np.ndarray | None) -> Incoming:
    """Some rows, or all of them as they are."""
    return incoming if rows is None else rows_of(incoming, rows)
