"""Predictions kept on a lattice: what a process says of a plate, once it asks no more, without asking the process.

A plate whose only moving part is one message of two numbers (the port it answers to, while what the other ports hold takes a
few values only: labels, counts) sees the same small plane of messages again and again. There the predicted correction is
a smooth function of two numbers; its values on evenly spaced nodes, cubic between them, give it to any precision at a tenth of the
price. Every cell is checked when it is first used: at its centre, where cubic interpolation is worst, the process is asked
itself, and a cell where the two differ is never used. It knows the process only by what it says: a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from heliograph.families import Family
from heliograph.families.charts import Chart
from heliograph.operators.learned.cells import (
    BLOCK,
    CUBIC,
    HALF,
    Cells,
    around,
    arrays_of,
    class_columns,
    cubic,
    joined,
    with_neighbours,
)
from heliograph.operators.protocol import Incoming

__all__ = ["MOST_CLASSES", "MOST_NODES", "Found", "Lattice", "LatticeChart", "Sample", "Sampled"]

MOST_CLASSES = 64  # values of what the other ports hold
MOST_NODES = 400  # on one axis
_MOST_CELLS = 400_000  # of all classes: some 80 MB
_LAID = 4000  # cells filled when a lattice is laid, at most: with 2,000 every third problem of experiment 3 still fills some; and
_LAID_PER_ROW = 2  # for each row served so far: a small plate must not pay for more than it will use
_MEAN = 0.53  # of the squared error at the centre of a cell, where it is largest, over the cell: of `((1 + x) x (1 - x) (2 - x))^2`
_MARGIN = 3  # nodes beyond a cell: those that it needs, and the edge
_OUTLIERS = 1 / 16  # of a plate: if no more rows than that are in unknown cells, these are filled only after
_VISITS = 6  # of rows to a block of cells, as one row makes in a run (chosen on logistic regressions, decision 0021)
_FARTHEST = 1e6  # spacings: beyond, nothing is worth filling


class LatticeChart(Chart, Protocol):
    """A chart on which a message is two numbers, and two numbers are a message."""

    def from_features(self, features: np.ndarray) -> Family:
        """The reverse of `features`."""
        ...


class Sample(NamedTuple):
    """What a process says of some messages, taken at the nodes of a lattice."""

    gap: np.ndarray  # (n, 2) the predicted belief relative to the cavity, on the chart
    weights: np.ndarray  # (n, 2) what errors in that cost, in nats
    kl: np.ndarray  # (n,) expected, before calibration
    log_variance: np.ndarray  # (n, 2)
    good: np.ndarray  # (n,) bool: seen before, and proper


class Found(NamedTuple):
    """What a lattice says of a plate."""

    gap: np.ndarray  # (n, 2)
    kl: np.ndarray  # (n,) expected of the process, before calibration; infinite where the lattice is of no use
    off: np.ndarray  # (n,) nats that interpolation adds
    log_variance: np.ndarray  # (n, 2)


Sampled = Callable[[Incoming], Sample]


class Lattice:
    """Nodes over centre and log spread of the messages that come in from one port, for each class of the rest."""

    def __init__(
        self, to: str, chart: LatticeChart, process: object, allowed: float, spacing: np.ndarray, incoming: Incoming
    ) -> None:
        self.to, self.chart, self.process, self.allowed = to, chart, process, allowed
        self.spacing = spacing[:, None]
        self.order = list(incoming)
        self.others = [p for p in incoming if p != to]
        self.kept = {p: incoming[p][:0] for p in self.others}  # port -> its message (or data) in each class
        self.columns = np.zeros((0, len(class_columns(incoming, self.others))))  # the same as numbers
        self.low = np.zeros((2, 1), dtype=int)  # number of the first node of each axis
        self.size = (0, 0)  # nodes of each axis; cells at the edge are never filled
        # numbers, then class, node and node; NaN where not known yet
        self.gaps = np.zeros((2, 0, 0, 0))
        self.corners = np.zeros(
            (3, 0, 0, 0)
        )  # at nodes: expected KL, infinite where it is of no use, and log variances
        # class, cell and cell, then numbers: a row of a plate reads all those of one cell, which lie side by side in memory
        self.cells = np.zeros((0, 0, 0, 4))  # the worst of that in a cell, and what interpolation adds there
        self.curves = np.zeros((0, 0, 0, 32), np.float32)  # coefficients of powers of both coordinates, of both gaps
        self._visits: dict[tuple[float, ...], int] = {}  # of single rows to blocks of unknown cells
        self._lay(self.low, self.size)

    def _lay(self, low: np.ndarray, size: tuple[int, int]) -> None:
        """Make room for all classes on nodes from `low` on, and keep what is known."""
        i, j = (self.low - low)[:, 0]

        def laid(old: np.ndarray, new: np.ndarray) -> None:
            new[: len(old), i : i + old.shape[1], j : j + old.shape[2]] = old

        shape = (len(self.columns), *size)
        nodes = [np.full((len(a), *shape), np.nan) for a in (self.gaps, self.corners)]
        cells = [np.full((*shape, a.shape[3]), np.nan, a.dtype) for a in (self.cells, self.curves)]
        for old, new in zip((self.gaps, self.corners), nodes, strict=True):
            laid(np.moveaxis(old, 0, 3), np.moveaxis(new, 0, 3))
        for old, new in zip((self.cells, self.curves), cells, strict=True):
            laid(old, new)
        (self.gaps, self.corners), (self.cells, self.curves) = nodes, cells
        self.low, self.size = low, size
        self._edge = np.array([[size[0] - 1.0], [size[1] - 1.0]])
        self._strange = False  # whether some of the latest rows are of no class
        self._latest: tuple[list[Any], np.ndarray, np.ndarray] | None = None

    # ---- reading ------------------------------------------------------------------------------------------------
    def read(self, incoming: Incoming, sampled: Sampled) -> Found:
        """The correction of every row of a plate; cells that are used for the first time are filled by `sampled`."""
        which, base = self._classes(incoming)
        where = np.empty((2, len(which)))
        np.divide(self.chart.features(incoming[self.to]).T, self.spacing, out=where)
        cell = np.floor(where)
        where -= cell
        known = None
        if self.size[0]:
            flat = self._flat(base, cell)
            known = self._of(self.cells, flat)
        if known is None or np.isnan(known[0]).any():
            some, enough = (slice(None), None) if known is None else self._due(which, cell, np.isnan(known[0]))
            self._fill(which[some], cell[:, some], sampled, enough)
            which, base = self._classes(incoming)
            if not self.size[0]:
                nothing = np.zeros((3, len(which)))
                return Found(nothing[:2].T, np.full(len(which), np.inf), nothing[2], nothing[:2].T)
            flat = self._flat(base, cell)
            known = self._of(self.cells, flat)
            unknown = np.isnan(known[0])
            known[0, unknown], known[3, unknown] = np.inf, 0.0  # out of reach
        if self._strange:
            known[0, which < 0] = np.inf  # of no class
        x, y = where.astype(np.float32)
        c = self._of(self.curves, flat).reshape(4, 8, -1)
        gap = cubic(cubic(c, x).reshape(4, 2, -1), y).T.astype(float)
        if known[0].max(initial=0.0) == np.inf:
            # a cell that was never filled says NaN, which must not reach the other rows
            gap[~np.isfinite(known[0])] = 0.0
        return Found(gap, known[0], known[3], known[1:3].T)

    @staticmethod
    def _of(table: np.ndarray, flat: np.ndarray) -> np.ndarray:
        """What a table holds of the cells with these numbers, one column for each."""
        return np.ascontiguousarray(table.reshape(-1, table.shape[3]).take(flat, axis=0).T)

    def _due(self, which: np.ndarray, cell: np.ndarray, unknown: np.ndarray) -> tuple[np.ndarray, int | None]:
        """Which rows of unknown cells are worth filling those, and how many cells: see `_fill`.

        Of a few rows only those that come where others were before, and no cells but their blocks: the others go the long way,
        which is a reference each, where a block of cells is sixty-five, of the most expensive.
        """
        rows = np.flatnonzero(unknown)
        if len(rows) > _OUTLIERS * len(unknown):
            return rows, None
        due = np.zeros(len(rows), dtype=bool)
        for k, at in enumerate(zip(which[rows], *(np.floor(cell[:, rows] / BLOCK)), strict=True)):
            self._visits[at] = self._visits.get(at, 0) + 1
            due[k] = self._visits[at] >= _VISITS
        return rows[due], 1

    def _flat(self, base: np.ndarray, cell: np.ndarray) -> np.ndarray:
        """The number of each row's cell; one at the edge, which is never filled, for those out of reach."""
        at = cell - self.low
        np.maximum(at, 0.0, out=at)
        np.minimum(at, self._edge, out=at)
        flat = at[0]
        flat *= self.size[1]
        flat += at[1]
        flat += base
        return flat.astype(np.intp)

    def _classes(self, incoming: Incoming) -> tuple[np.ndarray, np.ndarray]:
        """The class of each row, -1 for those of none, and the number of its first cell."""
        arrays = [a for p in self.others for a in arrays_of(incoming[p])]
        if self._latest is not None:
            old, which, base = self._latest
            if len(old) == len(arrays) and all(a is b for a, b in zip(old, arrays, strict=True)):
                return which, base
        columns = class_columns(incoming, self.others)
        which = self._find(columns)
        new = np.flatnonzero(which < 0)
        room = min(MOST_CLASSES, _MOST_CELLS // max(1, self.size[0] * self.size[1])) - len(self.columns)
        if len(new) and room > 0:
            _, first = np.unique(columns[:, new], axis=1, return_index=True)
            rows = new[first[:room]]
            self.columns = np.concatenate([self.columns, columns[:, rows].T])
            for port in self.others:
                self.kept[port] = joined(self.kept[port], incoming[port][rows])
            self._lay(self.low, self.size)
            which = self._find(columns)
        base = np.maximum(which, 0) * float(self.size[0] * self.size[1])
        self._latest, self._strange = (arrays, which, base), bool(which.min(initial=0) < 0)
        return which, base

    def _find(self, columns: np.ndarray) -> np.ndarray:
        which = np.full(columns.shape[1], -1)
        for k, known in enumerate(self.columns):
            alike = np.ones(columns.shape[1], dtype=bool)
            for mine, its in zip(columns, known, strict=True):
                alike &= mine == its
            which[alike] = k
        return which

    # ---- filling ------------------------------------------------------------------------------------------------
    def renew(self, process: object, above: float) -> None:
        """Go on with a process that has learned a little more.

        What it was sure of stays; cells that cost more than `above` are to be filled again.
        """
        self.process = process
        self.cells[~(self.cells[..., 0] <= above)] = np.nan
        self.corners[:, ~(self.corners[0] <= above)] = np.nan

    def _reach(self, cells: np.ndarray) -> None:
        """Have nodes around these cells ``(2, n)``, as far as there may be so many."""
        if not self.size[0]:
            self.low = cells[:, :1] - _MARGIN
        for axis in range(2):
            low, size = int(self.low[axis, 0]), self.size[axis]
            new_low = min(low, int(cells[axis].min()) - _MARGIN)
            new_high = max(low + size, int(cells[axis].max()) + _MARGIN + 1)
            if (new_low, new_high) == (low, low + size):
                continue
            new_low, new_high = new_low - 2 * BLOCK, new_high + 2 * BLOCK
            wide, high = (new_high - new_low, self.size[1]) if axis == 0 else (self.size[0], new_high - new_low)
            if new_high - new_low > MOST_NODES or len(self.columns) * wide * high > _MOST_CELLS:
                continue  # what is out of reach is asked of the process
            at = self.low.copy()
            at[axis] = new_low
            self._lay(at, (wide, high))

    def fill(self, incoming: Incoming, sampled: Sampled, n_rows: int) -> None:
        """Learn the cells of these rows, and far around them, so that plates after the first `n_rows` rows find what they need."""
        which, _ = self._classes(incoming)
        cell = np.floor(self.chart.features(incoming[self.to]).T / self.spacing)
        self._fill(which, cell, sampled, min(_LAID, _LAID_PER_ROW * n_rows))

    def _fill(self, which: np.ndarray, cell: np.ndarray, sampled: Sampled, enough: int | None = None) -> None:
        """Learn the cells of these rows and unknown ones near them."""
        some = (which >= 0) & (np.abs(cell) < _FARTHEST).all(axis=0)
        if not some.any():
            return
        which, at = which[some], cell[:, some].astype(int)
        self._reach(at)
        rows, columns = self.size
        i, j = at - self.low
        some = (i >= 1) & (i <= rows - 3) & (j >= 1) & (j <= columns - 3)
        unknown = np.isnan(self.cells[..., 0])
        wanted = np.zeros(unknown.shape, dtype=bool)
        wanted[which[some], i[some], j[some]] = True
        wanted &= unknown
        if wanted.any():
            self._sample_cells(np.nonzero(with_neighbours(wanted, unknown, enough)), sampled)

    def _sample_cells(self, cells: Cells, sampled: Sampled) -> None:
        """Learn cells from the nodes around them, and their centres as a check."""
        nodes = np.zeros((len(self.columns), *self.size), dtype=bool)
        nodes[around(cells)] = True
        nodes &= np.isnan(self.corners[0])
        at = np.stack(np.nonzero(nodes))
        n = at.shape[1]
        both = np.concatenate([at, cells], axis=1)
        place = both[1:] + self.low + np.where(np.arange(both.shape[1]) < n, 0.0, 0.5)
        said = sampled(self._messages(both[0], (place * self.spacing).T))
        costs = np.stack([np.where(said.good, said.kl, np.inf), *said.log_variance.T])
        self.gaps[:, *at] = said.gap[:n].T
        self.corners[:, *at] = costs[:, :n]
        curves = np.einsum("ai,bj,qnab->ijqn", CUBIC, CUBIC, self.gaps[:, *around(cells)], optimize=True)
        self.curves[cells] = curves.reshape(32, -1).T
        middle = np.einsum("i,j,ijqn->nq", HALF, HALF, curves)
        with np.errstate(invalid="ignore"):  # a node where nothing is known makes its cells useless
            off = (said.weights[n:] * (middle - said.gap[n:]) ** 2).sum(axis=1)
        known = self.corners[:, *around(cells)][:, :, 1:3, 1:3]
        worst = np.maximum(known.max(axis=(2, 3)), costs[:, n:])
        worst[0] = np.where(off <= self.allowed, worst[0], np.inf)  # NaN is not allowed either
        self.cells[cells] = np.concatenate([worst, [np.where(off <= self.allowed, _MEAN * off, 0.0)]]).T

    def _messages(self, which: np.ndarray, features: np.ndarray) -> Incoming:
        axis = self.chart.from_features(features)
        return {p: axis if p == self.to else self.kept[p][which] for p in self.order}
