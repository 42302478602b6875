"""Statements that cannot all be true, found when the second of them is made.

Every constraint and every observed expression bounds an affine expression of base variables. Expressions that are equal
up to a number share one interval; an interval that nothing is left of is a contradiction between the two statements that
bound it. Contradictions among several expressions show only when the model is swept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.factors import Between, ConditionalTable, Positive, Prior
from heliograph.families import Family
from heliograph.graph.affine import expand, whole
from heliograph.graph.records import Affine, Graph, Node, Plate, Term

__all__ = ["Limits", "Statement", "bounds_of_event", "check_plate", "check_possible"]

_SAME = 1e-9  # relative difference below which two values of one quantity are taken for roundings of each other
_MOST_ROWS = 10_000  # sums are compared one by one; statements with more rows than this are left to the sweeps


Record = Callable[[Callable[[], object]], None]  # takes note of how to take back a change


class Statement(NamedTuple):
    """``lower < form < upper``, or ``form = lower = upper``, row by row."""

    text: str
    form: Affine
    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,)


class _Interval(NamedTuple):
    """The values that statements leave to one quantity, and the statements that bound it."""

    lower: float
    upper: float
    below: str
    above: str


class Limits:
    """The intervals that are left to every base entry, and to every other expression that was bounded."""

    def __init__(self) -> None:
        self._single: dict[int, tuple[Node, list[np.ndarray]]] = {}  # id of a node -> lower, upper, texts of both
        self._several: dict[Hashable, _Interval] = {}
        self._texts: list[str] = [""]

    def add(self, statement: Statement, record: Record) -> None:
        """Narrow the intervals by one more statement, or raise if nothing would be left."""
        stated = expand(statement.form)
        form = _without_observed(stated)
        lower, upper = statement.lower - form.constant, statement.upper - form.constant
        self._check_constants(statement, stated, form)
        count = np.sum([t.coefficients != 0 for t in form.terms], axis=0) if form.terms else np.zeros(form.size)
        for term in form.terms:
            rows = np.flatnonzero((term.coefficients != 0) & (count == 1))
            if rows.size:
                c = term.coefficients[rows]
                ends = lower[rows] / c, upper[rows] / c
                ends = np.where(c > 0, ends[0], ends[1]), np.where(c > 0, ends[1], ends[0])
                self._narrow(term.node, term.entries[rows], *ends, statement.text, record)
        rows = np.flatnonzero(count > 1)
        if rows.size <= _MOST_ROWS:
            for row in rows:
                self._narrow_sum(form, int(row), lower[row], upper[row], statement.text, record)

    @staticmethod
    def _check_constants(statement: Statement, stated: Affine, form: Affine) -> None:
        """Refuse a statement in which no variable is left and that is not true."""
        value, lower, upper = form.constant, statement.lower, statement.upper
        false = (
            np.where(lower == upper, ~_close(value, lower), (value <= lower) | (value >= upper)) & form.constant_rows
        )
        if not false.any():
            return
        row = int(np.argmax(false))
        names = [repr(t.node.name) for t in stated.terms if t.coefficients[row] != 0]
        if names:
            seen = " and ".join(dict.fromkeys(names))
            raise ContradictionError(f"{statement.text!r} and the observed value of {seen} cannot both be")
        raise ContradictionError(f"{statement.text!r} is never true: it is the same whatever the variables are")

    def _narrow(
        self, node: Node, entries: np.ndarray, lower: np.ndarray, upper: np.ndarray, text: str, record: Record
    ) -> None:
        n = node.size
        before = self._single.get(id(node))
        if before is None:
            low, high, below, above = np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n, int), np.zeros(n, int)
        else:
            low, high, below, above = (a.copy() for a in before[1])
        self._texts.append(text)
        while entries.size:  # an entry may be bounded several times by one statement
            at, first = np.unique(entries, return_index=True)
            new_low, new_high, empty = _meet(low[at], high[at], lower[first], upper[first])
            below[at] = np.where(new_low > low[at], len(self._texts) - 1, below[at])
            above[at] = np.where(new_high < high[at], len(self._texts) - 1, above[at])
            if empty.any():
                k, f = at[np.argmax(empty)], first[np.argmax(empty)]
                other = below[k] if below[k] != len(self._texts) - 1 else above[k]
                ends = (float(v) for v in (low[k], high[k], lower[f], upper[f]))
                raise _contradiction(repr(node.name), self._texts[other], text, *ends)
            low[at], high[at] = new_low, new_high
            rest = np.ones(entries.size, dtype=bool)
            rest[first] = False
            entries, lower, upper = entries[rest], lower[rest], upper[rest]
        self._single[id(node)] = node, [low, high, below, above]

        def widen() -> None:
            if before is None:
                del self._single[id(node)]
            else:
                self._single[id(node)] = before

        record(widen)

    def _narrow_sum(self, form: Affine, row: int, lower: float, upper: float, text: str, record: Record) -> None:
        parts = sorted(
            (t.node.order, int(t.entries[row]), float(t.coefficients[row]), t.node.name)
            for t in form.terms
            if t.coefficients[row] != 0
        )
        lead = parts[0][2]
        key = tuple((order, entry, float(f"{c / lead:.12g}")) for order, entry, c, _ in parts)
        ends = (lower / lead, upper / lead) if lead > 0 else (upper / lead, lower / lead)
        before = self._several.get(key, _Interval(-np.inf, np.inf, "", ""))
        low, high, empty = _meet(*(np.array(v) for v in (before.lower, before.upper, *ends)))
        if empty:
            names = "a sum of " + " and ".join(dict.fromkeys(repr(name) for *_, name in parts))
            other = before.below if ends[0] <= before.lower or not before.above else before.above
            raise _contradiction(names, other, text, before.lower, before.upper, *ends)
        below = text if low > before.lower else before.below
        above = text if high < before.upper else before.above
        self._several[key] = _Interval(float(low), float(high), below, above)
        record(lambda: self._several.update({key: before}))


def _close(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A mask of the values that are equal up to rounding."""
    with np.errstate(invalid="ignore"):
        return (a == b) | (np.abs(a - b) <= _SAME * np.maximum(np.abs(a), np.abs(b)))


def _meet(
    low: np.ndarray, high: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intersect intervals, and mark those of which nothing is left; an interval of equal ends is a value, else it is open."""
    fixed, stated = low == high, lower == upper
    value = np.where(fixed, low, lower)
    inside = np.where(fixed, (lower < value) & (value < upper), (low < value) & (value < high))
    same = _close(low, lower)
    new_low, new_high = np.maximum(low, lower), np.minimum(high, upper)
    empty = np.where(fixed & stated, ~same, np.where(fixed | stated, ~inside, new_low >= new_high))
    one = fixed | stated
    return np.where(one, value, new_low), np.where(one, value, new_high), empty


def _contradiction(name: str, first: str, second: str, *ends: float) -> ContradictionError:
    both = f"{first!r} and {second!r} cannot both be" if first != second else f"{first!r} contradicts itself"
    left = " and ".join(_words(*pair) for pair in (ends[:2], ends[2:]))
    return ContradictionError(f"{both}: {name} would have to be {left}")


def _words(lower: float, upper: float) -> str:
    lower, upper = lower + 0.0, upper + 0.0  # -0 is written 0
    if lower == upper:
        return f"{lower:g}"
    if np.isneginf(lower):
        return f"below {upper:g}"
    return f"above {lower:g}" if np.isposinf(upper) else f"between {lower:g} and {upper:g}"


def _without_observed(form: Affine) -> Affine:
    """Put in the values of entries that were observed."""
    constant = form.constant
    terms: list[Term] = []
    for term in form.terms:
        seen = term.node.observed
        if seen is None or seen.point is None:
            terms.append(term)
            continue
        value = seen.point[term.entries]
        known = ~np.isnan(value)
        constant = constant + np.where(known, term.coefficients * np.where(known, value, 0.0), 0.0)
        terms.append(term._replace(coefficients=np.where(known, 0.0, term.coefficients)))
    return form._replace(constant=constant, terms=tuple(terms))


def bounds_of_event(graph: Graph, event: Node, entries: np.ndarray, happened: bool) -> list[Statement]:
    """The bounds on other variables that follow from some entries of an event having happened, or not."""
    plate = event.maker
    if plate is None or not isinstance(plate.factor, (Positive, Between)):
        return []
    edge = plate.edges["x"]
    form = whole(graph.nodes[edge.node], entries if edge.index is None else edge.index[entries])
    open_end = np.full(entries.size, np.inf)
    if isinstance(plate.factor, Positive):
        lower, upper = (0.0 * entries, open_end) if happened else (-open_end, 0.0 * entries)
    elif happened:
        lower, upper = plate.data["lower"][entries], plate.data["upper"][entries]
    else:
        return []  # outside an interval there are two sides
    return [Statement(event.name if happened else f"not {event.name}", form, lower, upper)]


def check_possible(graph: Graph, node: Node) -> None:
    """Refuse observed values to which a prior or a table of probabilities gives no probability at all."""
    for plate in graph.plates:
        if any(edge.node == node.position for edge in plate.edges.values()):
            check_plate(graph, plate)


def check_plate(graph: Graph, plate: Plate | None) -> None:
    """Refuse observed values to which one plate's prior or table gives no probability at all."""
    if plate is None or not isinstance(plate.factor, (Prior, ConditionalTable)):
        return
    seen = {p: _seen(graph, plate, p) for p in plate.edges}
    values = seen[plate.factor.child]
    if isinstance(plate.factor, Prior):
        bad = _impossible(plate.factor.fixed, values)
    else:
        known = ~np.isnan(values)
        p = _largest(plate.data["table"], [*(seen.get(port) for port in plate.factor.parents), values])
        bad = known & (p == 0)
    if bad.any():
        name = graph.nodes[plate.edges[plate.factor.child].node].name
        raise ContradictionError(
            f"variable {name!r}: the value {values[np.argmax(bad)]} was observed, but its {plate.factor.name} gives that "
            "probability 0"
        )


def _largest(table: np.ndarray, values: list[np.ndarray | None]) -> np.ndarray:
    """The largest entry of each table where its axes have these values, NaN leaving an axis open."""
    for value in reversed(values):  # the last axis first
        best = table.max(axis=-1)
        if value is None:
            table = best
            continue
        at = np.where(np.isnan(value), 0, value).astype(int).reshape(-1, *(1,) * (table.ndim - 1))
        found = np.take_along_axis(table, at, axis=-1)[..., 0]
        table = np.where(np.isnan(value).reshape(-1, *(1,) * (found.ndim - 1)), best, found)
    return table


def _seen(graph: Graph, plate: Plate, port: str) -> np.ndarray:
    edge = plate.edges[port]
    node = graph.nodes[edge.node]
    event = (node.dimension or 0,) if node.family.point_rank else ()
    point = None if node.observed is None else node.observed.point
    values = np.full((node.size, *event), np.nan) if point is None else point
    return values if edge.index is None else values[edge.index]


def _impossible(prior: Family | None, values: np.ndarray) -> np.ndarray:
    if prior is None or np.isnan(values).all():
        return np.zeros(len(values), dtype=bool)
    known = ~np.isnan(values[..., 0] if prior.point_rank else values)
    if prior.discrete:
        density = prior.log_density(np.where(known, values, 0.0))
        return known & np.isneginf(density)
    if prior.point is None:
        return np.zeros(len(values), dtype=bool)
    at = prior.is_point
    differs = values != prior.point
    return known & at & (differs.any(axis=-1) if prior.point_rank else differs)
