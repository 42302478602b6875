# pyright: basic
"""Bounds on one expression are one interval.

``x > 0``, ``x > 1`` and ``x < 3`` are three factors as they are written, and EP would replace each by a Gaussian of its own: bounds
that follow from others would count as evidence, and a statement that is made seven times would be believed seven times. What bounds
the same expression, up to a factor, is one factor here: the tightest bound, or the interval between the two tightest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.records import Block, components
from heliograph.engine.blocks.rows import Rows, joined, minus, over, scale, shifted, take
from heliograph.engine.blocks.some import some_elements
from heliograph.factors import Between, Positive
from heliograph.families import Bernoulli, Gaussian
from heliograph.graph.intervals import groups_of_rows
from heliograph.graph.records import Edge, Graph, Plate

__all__ = ["with_merged_bounds"]

_DIGITS = 10  # of a direction, to which two rows may be of one expression; coefficients are then compared one by one
_SAME = 1e-9  # relative difference of two coefficients that are the same


class _Bounds(NamedTuple):
    """Bounds on numbers ``scale * u + constant``: those of one number u are of one group. n elements."""

    plate: np.ndarray  # (n,) position of its plate
    row: np.ndarray  # (n,) its number there
    lower: np.ndarray  # (n,) of the number at its port
    upper: np.ndarray  # (n,)
    group: np.ndarray  # (n,)
    scale: np.ndarray  # (n,)
    constant: np.ndarray  # (n,)

    def of(self, chosen: np.ndarray) -> _Bounds:
        """Some of them."""
        return _Bounds(*(a[chosen] for a in self))

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The bounds on u."""
        low, high = (self.lower - self.constant) / self.scale, (self.upper - self.constant) / self.scale
        return np.where(self.scale > 0, low, high), np.where(self.scale > 0, high, low)


def with_merged_bounds(graph: Graph, blocks: Sequence[Block]) -> Graph:
    """The graph with one factor for all bounds on one expression of Gaussian variables."""
    inside = {k for b in blocks for k in b.rows}
    parts = [_of_block(graph, b) for b in blocks]
    parts += [_of_node(graph, n.position) for n in graph.nodes if n.family is Gaussian and n.position not in inside]
    found = [p for p in parts if p is not None]
    if not found:
        return graph
    gone: list[np.ndarray] = []
    made: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    for bounds in found:
        dropped, between = _tightest(bounds)
        gone.append(dropped)
        made.append(between)
    dropped = np.concatenate(gone)
    return _rewritten(graph, dropped, made) if len(dropped) else graph


# ---- what is bounded ----------------------------------------------------------------------------------------------------
def _of_block(graph: Graph, block: Block) -> _Bounds | None:
    """The bounds on expressions of one block that share theirs with others."""
    parts: list[_Bounds] = []
    rows: list[Rows] = []
    for plate in graph.plates:
        if plate.position in block.plates or "x" not in plate.edges or plate.edges["x"].node not in block.rows:
            continue
        bounds = _bounds_of(graph, plate)
        if bounds is not None:
            edge = plate.edges["x"]
            entries = edge.entries(plate.size)[bounds.row]
            rows.append(take(block.rows[edge.node], components(entries, graph.nodes[edge.node].dimension or 1)))
            parts.append(bounds)
    if not parts or sum(len(p.row) for p in parts) < 2:
        return None
    every = joined(rows, block.n_columns)
    some = _without_own_scalar(every)
    if len(some) < 2:
        return None
    bounds = _Bounds(*(np.concatenate(a) for a in zip(*parts, strict=True)))
    return _grouped(bounds.of(some), take(every, some))


def _without_own_scalar(rows: Rows) -> np.ndarray:
    """The rows in which every scalar is in another row as well: any other row has an expression of its own."""
    s = rows.sparse
    count = np.bincount(s.indices, minlength=rows.n_columns)
    for _, columns in rows.dense:
        count[columns] += len(rows)
    own = (count[s.indices] == 1) & (s.data != 0)
    alone = np.bincount(np.repeat(np.arange(len(rows)), np.diff(s.indptr))[own], minlength=len(rows)) > 0
    return np.flatnonzero(~alone)


def _of_node(graph: Graph, position: int) -> _Bounds | None:
    """The bounds on the entries of a node that is in no block."""
    parts: list[_Bounds] = []
    for plate in graph.plates:
        if "x" in plate.edges and plate.edges["x"].node == position:
            bounds = _bounds_of(graph, plate)
            if bounds is not None:
                parts.append(bounds._replace(group=plate.edges["x"].entries(plate.size)[bounds.row]))
    if not parts:
        return None
    return _shared(_Bounds(*(np.concatenate(a) for a in zip(*parts, strict=True))))


def _bounds_of(graph: Graph, plate: Plate) -> _Bounds | None:
    """The elements of a plate that are bounds, in their own units; None where it has none."""
    if not isinstance(plate.factor, (Positive, Between)):
        return None
    y = _outcome(graph, plate)
    n, open_end = plate.size, np.full(plate.size, np.inf)
    if isinstance(plate.factor, Positive):
        lower, upper = np.where(y == 1, 0.0, -open_end), np.where(y == 1, open_end, 0.0)
        known = ~np.isnan(y)
    else:
        low, high = (np.broadcast_to(plate.data[p], (n,)) for p in ("lower", "upper"))
        outside = y == 0  # of an interval that is open on one side, what is left is one, too
        lower = np.where(outside, np.where(np.isneginf(low), high, -open_end), low)
        upper = np.where(outside, np.where(np.isneginf(low), open_end, low), high)
        known = ~np.isnan(y) & ~(outside & np.isfinite(low) & np.isfinite(high))
    row = np.flatnonzero(known)
    if not len(row):
        return None
    one, nothing = np.ones(len(row)), np.zeros(len(row))
    return _Bounds(np.full(len(row), plate.position), row, lower[row], upper[row], nothing.astype(int), one, nothing)


def _outcome(graph: Graph, plate: Plate) -> np.ndarray:
    """1 or 0 where an event is known to have happened or not, else NaN."""
    if "y" in plate.edges:
        seen = graph.nodes[plate.edges["y"].node].observed
        point = None if seen is None else seen.point
        return np.full(plate.size, np.nan) if point is None else point[plate.edges["y"].entries(plate.size)]
    point = plate.data["y"].point
    return np.broadcast_to(np.nan if point is None else point, (plate.size,))


def _grouped(bounds: _Bounds, rows: Rows) -> _Bounds | None:
    """Bounds on expressions that are the same up to a factor, each with its factor and constant."""
    image = over(rows, np.random.default_rng(0).standard_normal((rows.n_columns, 3)))
    length = np.sqrt((image**2).sum(axis=1))
    largest = np.take_along_axis(image, np.abs(image).argmax(axis=1)[:, None], 1)[:, 0]
    size: np.ndarray = np.where(largest < 0, -length, length)
    safe = np.where(size == 0, 1.0, size)  # a constant has no direction, and is compared with nothing below
    group, first = groups_of_rows(np.round(image / safe[:, None], _DIGITS) + 0.0)
    shared = np.flatnonzero((np.bincount(group)[group] > 1) & (size != 0))
    if not len(shared):
        return None
    mine, other = (scale(take(rows, k), 1.0 / safe[k]) for k in (shared, first[group[shared]]))
    same = shared[~_differ(mine, other)]
    whole = bounds._replace(group=group, scale=safe, constant=rows.constant)
    return _shared(whole.of(same))


def _differ(a: Rows, b: Rows) -> np.ndarray:
    """The rows in which a coefficient differs."""
    gap = minus(a, shifted(b, -b.constant))
    sparse = abs(gap.sparse) - _SAME * abs(b.sparse)
    sparse.data = np.maximum(sparse.data, 0.0)
    found = np.asarray(sparse.sum(axis=1)).reshape(-1) > 0
    for (x, columns), (y, _) in zip(gap.dense, b.dense, strict=False):
        assert len(columns) == y.shape[1]
        found |= (np.abs(x) > _SAME * np.abs(y)).any(axis=1)
    return found


def _shared(bounds: _Bounds) -> _Bounds | None:
    """Those that are not alone in their group."""
    chosen = np.bincount(bounds.group)[bounds.group] > 1 if len(bounds.group) else np.zeros(0, dtype=bool)
    return bounds.of(chosen) if chosen.any() else None


# ---- one interval -------------------------------------------------------------------------------------------------------
def _tightest(bounds: _Bounds) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """``(m, 2)``: plate and row of every element that others replace, and the intervals of two elements.

    These as plate and row of one of the elements, at whose port the interval is, and its ends there.
    """
    low, high = bounds.ends
    places = np.arange(len(low))
    below = places[np.lexsort((places, -low, bounds.group))]  # of every group the highest lower end comes first
    above = places[np.lexsort((places, high, bounds.group))]
    starts = np.flatnonzero(np.diff(bounds.group[below], prepend=-1))
    first, last = below[starts], above[starts]
    bounded = np.isfinite(low[first])
    holder = np.where(bounded, first, last)
    # one element says it all where it gives both ends, or where one end is open
    alone = (low[holder] == low[first]) & (high[holder] == high[last])
    empty = low[first] >= high[last]  # left as it is: the run says that it is impossible
    kept = np.zeros(len(low), dtype=bool)
    kept[holder[alone]] = True
    kept |= np.isin(bounds.group, bounds.group[first[empty]])
    two = np.flatnonzero(~alone & ~empty)
    at = holder[two]
    ends = [bounds.scale[at] * e[k[two]] + bounds.constant[at] for e, k in ((low, first), (high, last))]
    between = bounds.plate[at], bounds.row[at], np.minimum(*ends), np.maximum(*ends)
    return np.stack([bounds.plate, bounds.row], axis=1)[~kept], between


def _rewritten(graph: Graph, gone: np.ndarray, made: Sequence[tuple[np.ndarray, ...]]) -> Graph:
    """The graph without some elements, and with intervals."""
    plates: list[Plate] = []
    for plate in graph.plates:
        rows = gone[gone[:, 0] == plate.position, 1]
        rest = np.setdiff1d(np.arange(plate.size), rows) if len(rows) else None
        if rest is None or len(rest):
            plates.append(plate if rest is None else some_elements(plate, rest))
    plates += _intervals(graph, made)
    return replace(graph, plates=[replace(p, position=k) for k, p in enumerate(plates)])


def _intervals(graph: Graph, made: Sequence[tuple[np.ndarray, ...]]) -> Iterator[Plate]:
    """A plate of intervals for every plate at whose ports they are."""
    for positions, rows, lower, upper in made:
        for position in np.unique(positions):
            plate, here = graph.plates[int(position)], positions == position
            entries = plate.edges["x"].entries(plate.size)[rows[here]]
            edge = Edge(plate.edges["x"].node, entries, len(np.unique(entries)) == len(entries))
            n = len(entries)
            data = {"lower": lower[here], "upper": upper[here], "y": Bernoulli.point_mass(np.ones(n))}
            yield Plate(-1, plate.name, Between(), (n,), {"x": edge}, data)
