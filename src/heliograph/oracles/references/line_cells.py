"""One unknown number on its chart, cut into cells: the tilted density at their middles, what may hide between these, and sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.families.charts import DensityChart, density_chart_of
from heliograph.oracles.references.jumps import doubt_of_edges, edges_of
from heliograph.oracles.references.output import Output
from heliograph.oracles.references.record import Question, values_at

__all__ = ["ROUGH", "Line", "Seen", "Sums", "aliased", "cut", "look_wide", "sum_up"]

ROUGH = (1e-9, 1e-8)  # nats of doubt where smaller cells begin to count, and alone count
_CELLS = 96  # over the window: a bump as wide as one of them is summed to 1e-9
_WINDOW = 16.0  # deviations of the cavity: e^-32 is left outside
_WIDER = 5.0  # times the window, where mass lies at its border
_WIDEST = 4  # windows tried: a thousand deviations
_BORDER = 25.0  # nats below the largest weight: more at the border of a window is mass outside
_SHARP = 16.0  # nats below the largest mass: an edge with less is not looked at
_DEEP = 30.0  # nats below the largest mass: a cell with less is not cut for its mass
_HIDDEN = 3.0  # nats by which a cell may hold more than its node shows, where something may be hidden in it
_BENT = 2.0  # second difference of log masses: a bump narrower than 0.7 of a cell, or a cliff
_LEAST = 1e-26  # variance, in that of the cavity: one node alone has none
_NOTHING = -1e12  # the log density where the function gives no number: finite, so that differences of it are numbers
_JUMP = 4.0  # times the larger of the neighbouring steps: a step, or a pole
_POLE = 100.0  # of its own steps, by which the output may go on over a pole
_TURN = 0.25  # of the neighbouring steps, by which it may go on and turn between two nodes
_TURNS = 0.25  # of the mass at nodes where the output turns: it swings as fast as nodes follow one another
_FLAT = 1e-6  # of the largest step: a turn by less is rounding
_LOOKED = np.array([-6, -3, 0, 4])  # cells from the heaviest one, between whose node and the next one is looked
_BETWEEN = 0.382  # of the way
_OFF = 0.3  # of the spread of four nodes: a kink between them is off by less
_CUBIC = [  # the weights of four nodes in the cubic through them, at that place
    float(np.prod([(_BETWEEN - m) / (k - m) for m in (-1, 0, 1, 2) if m != k])) for k in (-1, 0, 1, 2)
]


class Line:
    """One unknown on its chart: the cavity's log density there, and the factor with the output's message."""

    def __init__(self, question: Question, out: Output) -> None:
        self.question, self.out = question, out
        ((self.port, message),) = question.unknown.items()
        self.message = message
        chart = density_chart_of(message)
        assert chart is not None
        self.chart: DensityChart = chart
        self.mean, self.variance = chart.moments(message)
        self.sd = np.sqrt(self.variance)
        self.half = -0.5 / self.variance
        self.n_evaluations = 0

    def some(self, rows: np.ndarray) -> Line:
        """The same for some of the rows."""
        return Line(self.question.some(rows), self.out.some(rows))

    def log_cavity(self, u: np.ndarray) -> np.ndarray:
        """The log density of the cavity at positions ``(k, n)``, without its constant."""
        if not self.chart.gaussian:
            return self.chart.log_density(self.message, u)
        gap = u - self.mean
        gap *= gap
        gap *= self.half
        return gap

    def look(self, u: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The output's value, the log message there and the log density of the cavity at positions ``(k, n)``.

        `width` are those of the cells around them, in deviations.
        """
        step = (self.sd * width.min(axis=0))[:, None]
        value, bad, n_calls = values_at(
            self.question, u[..., None], step, lambda at: {self.port: self.chart.value(at[:, 0])}
        )
        self.n_evaluations += n_calls
        log_out = self.out.log_message(value)
        return value, log_out if bad is None else np.where(bad, _NOTHING, log_out), self.log_cavity(u)


class Seen(NamedTuple):
    """A tilted density at the middles of cells: k of them for each of n rows, in deviations of the cavity from its mean."""

    nodes: np.ndarray  # (k, n)
    width: np.ndarray  # (k, n)
    value: np.ndarray  # (k, n) the output there
    log_mass: np.ndarray  # (k, n), -inf where a cell was cut into others, or a row has fewer
    most: np.ndarray  # (k, n) the largest log mass that a cell may have, for all that is known
    edge: (
        np.ndarray
    )  # (k, n) log mass that belongs to a cell or not, where the output jumps beside its middle; else -inf


class Sums(NamedTuple):
    """What weighed nodes say."""

    w: np.ndarray  # (k, n) weights, of which the largest is 1
    log_total: np.ndarray  # (n,)
    moved: np.ndarray  # (n,) mean, in deviations of the cavity from its mean
    variance: np.ndarray  # (n,) in the same unit
    doubt: np.ndarray  # (n,)
    hidden: np.ndarray  # (n,) the share of the mass that may lie between nodes
    edges: np.ndarray  # (n,) the part of the doubt that is where jumps are

    def take(self, rows: np.ndarray) -> Sums:
        """The same of some rows."""
        return Sums(*(a[..., rows] for a in self))


def look_wide(line: Line) -> Seen:
    """Cells over the cavity; over a wider window in rows that have mass at its border."""
    seen = _look_over(line, _WINDOW)
    window, rows = _WINDOW, np.arange(len(line.mean))
    for _ in range(_WIDEST - 1):
        mass = seen.log_mass[:, rows]
        rows = rows[np.maximum(mass[0], mass[-1]) > mass.max(axis=0) - _BORDER]
        if not len(rows):
            break
        window *= _WIDER
        some = line.some(rows)
        for whole, part in zip(seen, _look_over(some, window), strict=True):
            whole[:, rows] = part
        line.n_evaluations += some.n_evaluations
    return seen


def _look_over(line: Line, window: float) -> Seen:
    shape = _CELLS, len(line.mean)
    nodes = (window / _CELLS * (np.arange(_CELLS) - 0.5 * (_CELLS - 1)))[:, None]
    return _look(line, np.tile(nodes, (1, shape[1])), np.full(shape, window / _CELLS))


def _look(line: Line, nodes: np.ndarray, width: np.ndarray) -> Seen:
    """The mass of cells ``(k, n)`` by the tilted density at their middles."""
    at = line.sd * nodes
    at += line.mean
    value, log_out, log_cavity = line.look(at, width)
    log_cavity += np.log(width)
    log_mass = log_out + log_cavity
    most, jump = _most(line.out, nodes, width, value, log_cavity, log_mass)
    return Seen(nodes, width, value, log_mass, most, edges_of(log_mass, jump))


def _most(
    out: Output, nodes: np.ndarray, width: np.ndarray, value: np.ndarray, log_cavity: np.ndarray, log_mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The largest log mass ``(k, n)`` that each cell may have: what its node says, or the output may reach on the way to the next.

    Where the density bends within a cell, as on a needle or at a cliff, the cell and its neighbours are in doubt too.
    And which pairs of neighbours ``(k - 1, n)`` the output jumps between.
    """
    beside = np.abs(np.diff(nodes, axis=0)) < 1.5 * width[1:]  # the next cell, and not one after a gap
    k, r, low, high, jump = _reached(out, value, beside)
    most = log_mass.copy()
    if len(k):
        some, mode = out.some(r), out.peak()[0][r]
        places = np.stack([low, high, np.where(np.isfinite(mode), np.clip(mode, low, high), low)])
        best = some.log_message(places).max(axis=0) + np.maximum(log_cavity[k, r], log_cavity[k + 1, r])
        np.maximum.at(most, (k, r), best)
        np.maximum.at(most, (k + 1, r), best)
    both = beside[1:] & beside[:-1] & ~(jump[1:] | jump[:-1])  # an edge hides no more than half a cell
    bent = both & (np.abs(log_mass[2:] - 2 * log_mass[1:-1] + log_mass[:-2]) > _BENT)
    if bent.any():
        peak = np.maximum(np.maximum(log_mass[2:], log_mass[:-2]), log_mass[1:-1]) + 2 * _HIDDEN
        peak = np.where(bent, peak, -np.inf)
        for part in (most[2:], most[1:-1], most[:-2]):
            np.maximum(part, peak, out=part)
    return most, jump


def _reached(
    out: Output, value: np.ndarray, beside: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of neighbours (number, row) between which the output may come nearer to its message's mode, how far, and all jumps."""
    with np.errstate(over="ignore", invalid="ignore"):  # a step of 1e308 is a step all the same
        step = np.diff(value, axis=0)
        size = np.abs(step)
        sign = np.where(size > _FLAT * size.max(axis=0), np.sign(step), 0.0)
        near = np.zeros_like(size)
        near[1:] = size[:-1]
        near[:-1] = np.maximum(near[:-1], size[1:])
        turns = np.zeros(size.shape, dtype=bool)
        opposed = sign[1:] * sign[:-1] < 0
        turns[1:] = opposed
        turns[:-1] |= opposed
        # a pole close to a node is passed by two large steps, of which one goes back
        back = np.zeros(size.shape, dtype=bool)
        back[1:-1] = opposed[1:] & opposed[:-1] & (size[1:-1] > _JUMP * np.minimum(size[2:], size[:-2]))
        # by a part of the steps beside where it turns, and over a pole by far more than its own
        jump = (size > _JUMP * near) | back
        reach = np.where(jump, _POLE * size, np.where(turns, _TURN * near, 0.0))
        low, high = np.minimum(value[1:], value[:-1]) - reach, np.maximum(value[1:], value[:-1]) + reach
        mode = out.peak()[0]  # NaN where there is none
        k, r = np.nonzero(beside & (turns | jump | ((low <= mode) & (high >= mode))))
    return k, r, low[k, r], high[k, r], jump & beside & (size > _FLAT * size.max(axis=0))


def cut(line: Line, seen: Seen, sums: Sums, size: int) -> tuple[Seen, np.ndarray]:
    """With cells in doubt cut into equal parts, `size` new ones at most; and the rows ``(n,)`` that have none to cut.

    In doubt is all that has mass where leaving out every other node changes the moments, else what may hide something.
    """
    top = seen.log_mass.max(axis=0)
    hiding = seen.most > np.maximum(seen.log_mass + _HIDDEN, top - _DEEP)
    hiding |= seen.edge > top - _SHARP
    massive = (seen.log_mass > top - _DEEP) | hiding
    every = (sums.doubt > ROUGH[0] + 2 * sums.edges) & (2 * massive.sum(axis=0) <= size)
    chosen = np.where(every, massive, hiding)
    score = np.where(chosen, seen.most, -np.inf)
    best = np.argsort(-score, axis=0, kind="stable")[: size // 2]
    n_cut = np.minimum(chosen.sum(axis=0), size // 2)
    place = np.sort(np.where(np.arange(len(best))[:, None] < n_cut, best, len(score)), axis=0)  # neighbours stay so
    parts = size // np.maximum(n_cut, 1)
    k = np.arange(size)[:, None]
    cell = np.take_along_axis(place, np.minimum(k // parts, np.maximum(n_cut - 1, 0)), axis=0)
    used, cell = (k < parts * n_cut), np.minimum(cell, len(score) - 1)
    old = np.take_along_axis(seen.width, cell, axis=0)
    width = old / parts
    nodes = np.take_along_axis(seen.nodes, cell, axis=0) - 0.5 * old + width * (k % parts + 0.5)
    new = _look(line, nodes, width)
    gone = np.zeros_like(chosen)
    np.put_along_axis(gone, np.where(used, cell, 0), True, axis=0)
    gone[0] = (used & (cell == 0)).any(axis=0)
    blank = [np.where(gone, -np.inf, a) for a in seen[3:]]
    fresh = [np.where(used, a, -np.inf) for a in new[3:]]
    pairs = zip((*seen[:3], *blank), (*new[:3], *fresh), strict=True)
    return Seen(*(np.concatenate(pair) for pair in pairs)), n_cut == 0


def sum_up(line: Line, seen: Seen, to: str | None) -> Sums:
    """Moments by the midpoint rule, which for a smooth bump is as good as any."""
    top = seen.log_mass.max(axis=0)
    w = np.exp(seen.log_mass - top)
    total = w.sum(axis=0)
    moved, variance, doubt = _moments(seen.nodes, w, total)
    edges = np.zeros(len(top))
    if np.isfinite(seen.edge).any():
        edges = doubt_of_edges(np.exp(seen.edge - top) / total, (seen.nodes - moved) ** 2 / variance)
        doubt += edges
    if to != line.port:
        y = line.out.look(seen.value)[0]
        doubt = np.maximum(doubt, _moments(y - y[np.argmax(w, axis=0), np.arange(len(top))], w, total)[2])
    doubt = np.where(_turning(seen.value, w) > _TURNS * total, 1.0, doubt)
    more = seen.most > seen.log_mass + _HIDDEN
    hidden = np.zeros(len(top))
    if more.any():
        log_most = np.where(more, seen.most - top, -np.inf)
        hidden = np.minimum(np.exp(np.minimum(log_most, 50.0)).sum(axis=0) / total, 1.0)
    return Sums(w, top + np.log(total), moved, variance, doubt, hidden, edges)


def aliased(line: Line, seen: Seen) -> tuple[np.ndarray, Seen]:
    """Rows ``(n,)`` bool whose output, at a few places between the nodes, is not what a cubic through these foretells.

    A wave faster than the nodes can look slow and smooth at every one of them. Any cell of such a row may hold what the
    output says anywhere: this is what `Seen` then says of it.
    """
    n = len(line.mean)
    first = np.clip(np.argmax(seen.log_mass, axis=0) + _LOOKED[:, None], 1, len(seen.nodes) - 3)
    around = [np.take_along_axis(seen.value, first + k, axis=0) for k in (-1, 0, 1, 2)]
    at = np.take_along_axis(seen.nodes, first, axis=0) + _BETWEEN * np.take_along_axis(seen.width, first, axis=0)
    value = line.look(line.mean + line.sd * at, seen.width)[0]
    with np.errstate(over="ignore", invalid="ignore"):
        foretold = sum(c * a for c, a in zip(_CUBIC, around, strict=True))
        spread = np.maximum.reduce(around) - np.minimum.reduce(around)
        off = ~(np.abs(value - foretold) <= _OFF * spread + _FLAT * np.abs(foretold))
    rows = np.flatnonzero(off.any(axis=0)) if n else np.zeros(0, dtype=int)
    if len(rows):
        some, out, mode = line.some(rows), line.out.some(rows), line.out.peak()[0][rows]
        low, high = seen.value[:, rows].min(axis=0), seen.value[:, rows].max(axis=0)
        places = np.stack([low, high, np.where(np.isfinite(mode), np.clip(mode, low, high), low)])
        held = some.log_cavity(some.mean + some.sd * seen.nodes[:, rows]) + np.log(seen.width[:, rows])
        seen.most[:, rows] = np.maximum(seen.most[:, rows], held + out.log_message(places).max(axis=0))
    return np.isin(np.arange(n), rows), seen


def _turning(value: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The weight ``(n,)`` of nodes at which the output turns."""
    with np.errstate(over="ignore"):
        step = np.diff(value, axis=0)
    step[np.abs(step) < _FLAT * np.abs(step).max(axis=0)] = 0.0
    return np.where(np.sign(step[1:]) * np.sign(step[:-1]) < 0, w[1:-1], 0.0).sum(axis=0)


def _moments(at: np.ndarray, w: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance, and the nats between these and what every other node says."""
    mean, variance = _mean_and_variance(at, w, total)
    half = w[::2]
    other_mean, other = _mean_and_variance(at[::2], half, half.sum(axis=0) + 1e-300)
    doubt = 0.5 * (mean - other_mean) ** 2 / variance + 0.25 * np.log(other / variance) ** 2
    return mean, variance, np.where(variance > _LEAST, doubt, 1.0)


def _mean_and_variance(at: np.ndarray, w: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = np.einsum("kn,kn->n", w, at) / total
    gap = at - mean
    gap *= gap
    return mean, np.maximum(np.einsum("kn,kn->n", w, gap) / total, _LEAST)
