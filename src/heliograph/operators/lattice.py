"""Predictions kept on a lattice: what a process says of a plate, once it asks no more, without asking the process.

A plate whose only moving part is one message of two numbers (the port it answers to, while what the other ports hold takes a
few values only: labels, counts) sees the same small plane of messages again and again. There the predicted correction is
a smooth function of two numbers; its values on evenly spaced nodes, cubic between them, give it to any precision at a tenth of the
price. Every cell is checked when it is first used: at its centre, where cubic interpolation is worst, the process is asked
itself, and a cell where the two differ is never used. A lattice belongs to one process: with the next label a new one begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Family, concatenate
from heliograph.operators.protocol import Incoming

__all__ = ["Found", "Lattice", "Taught", "Teach", "class_columns", "lattice_for"]

_MOST_CLASSES = 64  # values of what the other ports hold
_ROWS_A_CLASS = 8  # rows of a plate for each, at least: else it does not see the same again and again
_MOST_NODES = 400  # on one axis
_MOST_CELLS = 400_000  # of all classes: some 80 MB
_BLOCK = 4  # cells that are filled together along an axis
_WORTHWHILE = 400  # cells that are filled together, if there are so many near by
_ROUNDS = 4  # of neighbours, at most
_TESTED = 24  # cells by which the spacing is chosen
_HALVINGS = 8
_LEAST = 0.25  # spread of the log spreads of a plate
_COARSE = 0.5  # the first spacing, in deviations of a plate on that axis
_MARGIN = 3  # nodes beyond a cell: those that it needs, and the edge
_FARTHEST = 1e6  # spacings: beyond, nothing is worth filling

# the four cubic polynomials that are 1 at one of the nodes -1, 0, 1, 2 and 0 at the others: rows by node, columns by power
_CUBIC = np.array([[0, -2, 3, -1], [6, -3, -6, 3], [0, 6, 3, -3], [0, -1, 0, 1]]) / 6.0
_STENCIL = np.arange(-1, 3)
_HALF = 0.5 ** np.arange(4)  # the powers at the centre of a cell


class Taught(NamedTuple):
    """What a process says of some messages."""

    gap: np.ndarray  # (n, 2) the predicted belief relative to the cavity, on the chart
    weights: np.ndarray  # (n, 2) what errors in that cost, in nats
    kl: np.ndarray  # (n,) expected, before calibration
    log_variance: np.ndarray  # (n, 2)
    good: np.ndarray  # (n,) bool: seen before, and proper


class Found(NamedTuple):
    """What a lattice says of a plate."""

    gap: np.ndarray  # (n, 2)
    kl: np.ndarray  # (n,) expected, before calibration; infinite where the lattice is of no use
    log_variance: np.ndarray  # (n, 2)


Teach = Callable[[Incoming], Taught]


class Lattice:
    """Nodes over centre and log spread of the messages that come in from one port, for each class of the rest."""

    def __init__(
        self, to: str, chart: Any, process: Any, allowed: float, spacing: np.ndarray, incoming: Incoming
    ) -> None:
        self.to, self.chart, self.process, self.allowed = to, chart, process, allowed
        self.spacing = spacing[:, None]
        self.order = list(incoming)
        self.others = [p for p in incoming if p != to]
        self.kept = {p: incoming[p][:0] for p in self.others}  # port -> its message (or data) in each class
        self.columns = np.zeros((0, len(class_columns(incoming, self.others))))  # the same as numbers
        self.low = np.zeros((2, 1), dtype=int)  # number of the first node of each axis
        self.size = (0, 0)  # nodes of each axis; cells at the edge are never filled
        # numbers, then class, node and node (or cell and cell); NaN where not known yet
        self.gaps = np.zeros((2, 0, 0, 0))
        self.corners = np.zeros(
            (3, 0, 0, 0)
        )  # at nodes: expected KL, which is infinite where it is of no use, and log variances
        self.cells = np.zeros((3, 0, 0, 0))  # the worst of that in a cell
        self.curves = np.zeros(
            (32, 0, 0, 0), np.float32
        )  # coefficients of the powers of both coordinates, of both gaps
        self._lay(self.low, self.size)

    def _lay(self, low: np.ndarray, size: tuple[int, int]) -> None:
        """Make room for all classes on nodes from `low` on, and keep what is known."""
        i, j = (self.low - low)[:, 0]

        def laid(old: np.ndarray) -> np.ndarray:
            new = np.full((len(old), len(self.columns), *size), np.nan, old.dtype)
            new[:, : old.shape[1], i : i + old.shape[2], j : j + old.shape[3]] = old
            return new

        self.gaps, self.corners, self.cells, self.curves = map(laid, (self.gaps, self.corners, self.cells, self.curves))
        self.low, self.size = low, size
        self._edge = np.array([[size[0] - 1.0], [size[1] - 1.0]])
        self._strange = False  # whether some of the latest rows are of no class
        self._latest: tuple[list[Any], np.ndarray, np.ndarray] | None = None

    # ---- reading ------------------------------------------------------------------------------------------------
    def read(self, incoming: Incoming, teach: Teach) -> Found:
        """The correction of every row of a plate; cells that are used for the first time are filled by `teach`."""
        which, base = self._classes(incoming)
        where = np.empty((2, len(which)))
        np.divide(self.chart.features(incoming[self.to]).T, self.spacing, out=where)
        cell = np.floor(where)
        where -= cell
        known = None
        if self.size[0]:
            flat = self._flat(base, cell)
            known = self.cells.reshape(3, -1).take(flat, axis=1)
        if known is None or np.isnan(known[0]).any():
            self._fill(which, cell, teach)
            which, base = self._classes(incoming)
            if not self.size[0]:
                return Found(np.zeros((len(which), 2)), np.full(len(which), np.inf), np.zeros((len(which), 2)))
            flat = self._flat(base, cell)
            known = self.cells.reshape(3, -1).take(flat, axis=1)
            known[0, np.isnan(known[0])] = np.inf  # out of reach
        if self._strange:
            known[0, which < 0] = np.inf  # of no class
        x, y = where.astype(np.float32)
        c = self.curves.reshape(32, -1).take(flat, axis=1).reshape(4, 8, -1)
        c = _cubic(_cubic(c, x).reshape(4, 2, -1), y)
        return Found(c.T.astype(float), known[0], known[1:].T)

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
        arrays = [a for p in self.others for a in _arrays(incoming[p])]
        if self._latest is not None:
            old, which, base = self._latest
            if len(old) == len(arrays) and all(a is b for a, b in zip(old, arrays, strict=True)):
                return which, base
        columns = class_columns(incoming, self.others)
        which = self._find(columns)
        new = np.flatnonzero(which < 0)
        room = min(_MOST_CLASSES, _MOST_CELLS // max(1, self.size[0] * self.size[1])) - len(self.columns)
        if len(new) and room > 0:
            _, first = np.unique(columns[:, new], axis=1, return_index=True)
            rows = new[first[:room]]
            self.columns = np.concatenate([self.columns, columns[:, rows].T])
            for port in self.others:
                self.kept[port] = _joined(self.kept[port], incoming[port][rows])
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
    def renew(self, process: Any, above: float) -> None:
        """Go on with a process that has learned a little more.

        What it was sure of stays; cells that cost more than `above` are to be filled again.
        """
        self.process = process
        for known in (self.cells, self.corners):
            known[:, ~(known[0] <= above)] = np.nan

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
            new_low, new_high = new_low - 2 * _BLOCK, new_high + 2 * _BLOCK
            wide, high = (new_high - new_low, self.size[1]) if axis == 0 else (self.size[0], new_high - new_low)
            if new_high - new_low > _MOST_NODES or len(self.columns) * wide * high > _MOST_CELLS:
                continue  # what is out of reach is asked of the process
            at = self.low.copy()
            at[axis] = new_low
            self._lay(at, (wide, high))

    def _fill(self, which: np.ndarray, cell: np.ndarray, teach: Teach) -> None:
        """Learn the cells of these rows and their neighbours: the nodes around them, and their centres as a check."""
        some = (which >= 0) & (np.abs(cell) < _FARTHEST).all(axis=0)
        if not some.any():
            return
        which, at = which[some], cell[:, some].astype(int)
        self._reach(at)
        rows, columns = self.size
        i, j = at - self.low
        some = (i >= 1) & (i <= rows - 3) & (j >= 1) & (j <= columns - 3)
        wanted = np.zeros((len(self.columns), rows, columns), dtype=bool)
        wanted[which[some], i[some], j[some]] = True
        wanted &= np.isnan(self.cells[0])
        classes, i, j = np.nonzero(wanted)
        if not len(classes):
            return
        unknown = np.isnan(self.cells[0])
        unknown[:, [0, -1, -2]] = unknown[:, :, [0, -1, -2]] = False
        blocks = np.zeros((len(self.columns), -(-rows // _BLOCK), -(-columns // _BLOCK)), dtype=bool)
        blocks[classes, i // _BLOCK, j // _BLOCK] = True
        for _ in range(
            _ROUNDS
        ):  # a call for a few rows costs as much as one for some hundred, so take the neighbours too
            wanted = blocks.repeat(_BLOCK, axis=1)[:, :rows].repeat(_BLOCK, axis=2)[:, :, :columns] & unknown
            if np.count_nonzero(wanted) >= _WORTHWHILE:
                break
            blocks[:, 1:] |= blocks[:, :-1].copy()
            blocks[:, :-1] |= blocks[:, 1:].copy()
            blocks[:, :, 1:] |= blocks[:, :, :-1].copy()
            blocks[:, :, :-1] |= blocks[:, :, 1:].copy()
        classes, i, j = np.nonzero(wanted)
        around = classes[:, None, None], i[:, None, None] + _STENCIL[:, None], j[:, None, None] + _STENCIL
        nodes = np.zeros(wanted.shape, dtype=bool)
        nodes[around] = True
        nodes &= np.isnan(self.corners[0])
        at = np.stack(np.nonzero(nodes))
        n = at.shape[1]
        both = np.concatenate([at, [classes, i, j]], axis=1)
        place = both[1:] + self.low + np.where(np.arange(both.shape[1]) < n, 0.0, 0.5)
        taught = teach(self._messages(both[0], (place * self.spacing).T))
        told = np.stack([np.where(taught.good, taught.kl, np.inf), *taught.log_variance.T])
        self.gaps[:, *at] = taught.gap[:n].T
        self.corners[:, *at] = told[:, :n]
        curves = np.einsum("ai,bj,qnab->ijqn", _CUBIC, _CUBIC, self.gaps[:, *around], optimize=True)
        self.curves[:, classes, i, j] = curves.reshape(32, -1)
        middle = np.einsum("i,j,ijqn->nq", _HALF, _HALF, curves)
        with np.errstate(invalid="ignore"):  # a node where nothing is known makes its cells useless
            off = (taught.weights[n:] * (middle - taught.gap[n:]) ** 2).sum(axis=1)
        known = self.corners[:, *around][:, :, 1:3, 1:3]
        cells = np.maximum(known.max(axis=(2, 3)), told[:, n:])
        cells[0] = np.where(off <= self.allowed, cells[0] + off, np.inf)  # NaN is not allowed either
        self.cells[:, classes, i, j] = cells

    def _messages(self, which: np.ndarray, features: np.ndarray) -> Incoming:
        axis = self.chart.from_features(features)
        return {p: axis if p == self.to else self.kept[p][which] for p in self.order}


def lattice_for(to: str, chart: Any, process: Any, allowed: float, incoming: Incoming, teach: Teach) -> Lattice | None:
    """A lattice for plates like this one, as coarse as `allowed` nats an interpolated message permit; None if none will do."""
    if not hasattr(chart, "from_features") or any(not _plain(m) for m in incoming.values()):
        return None
    columns = class_columns(incoming, [p for p in incoming if p != to])
    n_distinct = np.unique(columns, axis=1).shape[1]
    if n_distinct > _MOST_CLASSES or n_distinct * _ROWS_A_CLASS > columns.shape[1]:
        return None
    features = chart.features(incoming[to])
    # the first sweep of a run may have all centres alike: no less than the messages' own width, then
    least = np.array([np.sqrt(np.median(chart.moments(incoming[to])[1])), _LEAST])
    spread = np.maximum(features.std(axis=0), least)
    spacing = 2.0 ** np.floor(np.log2(_COARSE * spread))
    rows = np.unique(np.linspace(0, len(features) - 1, _TESTED).astype(int))
    some = {p: m[rows] for p, m in incoming.items()}
    for _ in range(_HALVINGS):
        worst = [_roughness(axis, to, chart, some, features[rows], spacing, teach) for axis in range(2)]
        fine = np.array([w <= 0.25 * allowed for w in worst])
        if fine.all():
            reach = (features.max(axis=0) - features.min(axis=0)) / spacing
            return Lattice(to, chart, process, allowed, spacing, incoming) if (reach < _MOST_NODES / 2).all() else None
        spacing = np.where(fine, spacing, 0.5 * spacing)
    return None


def _roughness(
    axis: int, to: str, chart: Any, incoming: Incoming, features: np.ndarray, spacing: np.ndarray, teach: Teach
) -> float:
    """What cubic interpolation along one axis is wrong by at most rows, half-way between nodes."""
    steps = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
    at = np.repeat(features[None], len(steps), axis=0)
    at[:, :, axis] += steps[:, None] * spacing[axis]
    n = len(features)
    tiled = {p: m[np.tile(np.arange(n), len(steps))] for p, m in incoming.items()}
    tiled[to] = chart.from_features(at.reshape(-1, 2))
    taught = teach(tiled)
    gap = taught.gap.reshape(len(steps), n, 2)
    middle = np.einsum("a,anq->nq", _CUBIC @ _HALF, gap[[0, 1, 3, 4]])
    off = (taught.weights.reshape(len(steps), n, 2)[2] * (middle - gap[2]) ** 2).sum(axis=1)
    return float(np.quantile(np.where(np.isfinite(off), off, np.inf), 0.9))


def _cubic(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A polynomial with coefficients along the first axis."""
    out = c[3] * x
    out += c[2]
    out *= x
    out += c[1]
    out *= x
    out += c[0]
    return out


def class_columns(incoming: Incoming, ports: Sequence[str]) -> np.ndarray:
    """What some ports hold as numbers, ``(k, n)``: rows with the same numbers hold the same."""
    n = len(next(iter(incoming.values())))
    columns = [np.asarray(a, dtype=float).reshape(n, -1).T for p in ports for a in _arrays(incoming[p])]
    return np.concatenate(columns) if columns else np.zeros((0, n))


def _arrays(message: Any) -> list[Any]:
    if not isinstance(message, Family):
        return [message]
    return [*message.naturals] if message.point is None else [*message.naturals, message.point]


def _plain(message: Any) -> bool:
    """Whether all its numbers are finite: no mixture of point masses and others."""
    return all(np.isfinite(np.asarray(a, dtype=float)).all() for a in _arrays(message))


def _joined(old: Any, new: Any) -> Any:
    return concatenate([old, new]) if isinstance(new, Family) else np.concatenate([old, new])
