"""Statements that cannot all be true, found when the second of them is made.

Every constraint and every observed expression bounds an affine expression of base variables. Expressions that are equal
up to a number share one interval; an interval that nothing is left of is a contradiction between the two statements that
bound it. Contradictions among several expressions show only when the model is swept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.factors import Between, ConditionalTable, Positive, Prior
from heliograph.families import Family
from heliograph.graph.affine import by_pattern, expand, take, whole
from heliograph.graph.intervals import Intervals, close, groups_of_rows, rounded
from heliograph.graph.records import Affine, Graph, Node, Plate, Term

__all__ = ["Limits", "Statement", "bounds_of_event", "check_plate", "check_possible"]

_MOST_ROWS = 100_000  # statements about more sums than this are not compared, as that would take longer than a sweep


Record = Callable[[Callable[[], object]], None]  # records how to undo a change


class Statement(NamedTuple):
    """``lower < form < upper``, or ``form = lower = upper``, row by row."""

    text: str
    form: Affine
    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,)


class Limits:
    """The intervals of possible values of every base entry, and of every other expression that was bounded."""

    def __init__(self) -> None:
        self._single: dict[
            int, tuple[Node, Intervals]
        ] = {}  # by id of a node, which is kept so that the id stays its own
        self._several: dict[tuple[int, ...], tuple[np.ndarray, Intervals]] = {}  # by nodes: entries and coefficients
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
        if 0 < rows.size <= _MOST_ROWS:
            some = form if rows.size == form.size else take(form, rows)
            for at, part in by_pattern(some):
                self._narrow_sums(part, lower[rows[at]], upper[rows[at]], statement.text, record)

    @staticmethod
    def _check_constants(statement: Statement, stated: Affine, form: Affine) -> None:
        """Refuse a statement in which no variable is left and that is not true."""
        value, lower, upper = form.constant, statement.lower, statement.upper
        false = np.where(lower == upper, ~close(value, lower), (value <= lower) | (value >= upper)) & form.constant_rows
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
        """Narrow the intervals of base entries."""
        before = self._single.get(id(node))
        intervals = Intervals.everything(node.size) if before is None else before[1]
        after = self._after(intervals, entries, lower, upper, text, lambda _: repr(node.name))
        self._single[id(node)] = node, after
        record(lambda: _put_back(self._single, id(node), before))

    def _narrow_sums(self, form: Affine, lower: np.ndarray, upper: np.ndarray, text: str, record: Record) -> None:
        """Narrow the intervals of expressions of several entries, those of the same nodes together."""
        terms = sorted(form.terms, key=lambda t: t.node.order)
        signature = tuple(t.node.order for t in terms)
        entries, c = np.array([t.entries for t in terms]).T, np.array([t.coefficients for t in terms]).T
        if len(set(signature)) < len(terms):  # entries of one node in their order
            place = np.lexsort((entries, np.broadcast_to(signature, entries.shape)), axis=1)
            entries, c = np.take_along_axis(entries, place, 1), np.take_along_axis(c, place, 1)
        lead = c[:, 0]
        ends = np.where(lead > 0, lower, upper) / lead, np.where(lead > 0, upper, lower) / lead
        before = self._several.get(signature)
        keys = np.concatenate([entries, rounded(c / lead[:, None])], axis=1)
        n_old = 0 if before is None else len(before[0])
        keys = keys if before is None else np.concatenate([before[0], keys])
        number, first = groups_of_rows(keys)
        intervals = Intervals.everything(len(first))
        if before is not None:
            intervals = before[1].spread(number[:n_old], len(first))

        def name(_: int) -> str:
            return "a sum of " + " and ".join(dict.fromkeys(repr(t.node.name) for t in form.terms))

        after = self._after(intervals, number[n_old:], *ends, text, name)
        self._several[signature] = keys[first], after
        record(lambda: _put_back(self._several, signature, before))

    def _after(
        self,
        intervals: Intervals,
        at: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        text: str,
        name: Callable[[int], str],
    ) -> Intervals:
        """The intervals after a statement; an error where nothing is left of one."""
        self._texts.append(text)
        after, conflict = intervals.narrowed(at, lower, upper, len(self._texts) - 1)
        if conflict is not None:
            raise _contradiction(name(conflict.quantity), self._texts[conflict.statement], text, *conflict.ends)
        return after


K = TypeVar("K")
V = TypeVar("V")


def _put_back(table: dict[K, V], key: K, before: V | None) -> None:
    """Give a key the value that it had, if any."""
    if before is None:
        del table[key]
    else:
        table[key] = before


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
        if value is None:
            table = table.max(axis=-1)
            continue
        open_ = np.isnan(value)
        at = np.where(open_, 0, value).astype(int).reshape(-1, *(1,) * (table.ndim - 1))
        found = np.take_along_axis(table, at, axis=-1)[..., 0]
        if open_.any():
            found = np.where(open_.reshape(-1, *(1,) * (found.ndim - 1)), table.max(axis=-1), found)
        table = found
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
