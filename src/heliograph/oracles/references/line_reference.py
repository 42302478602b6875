"""The reference belief of a deterministic factor of one unknown number: moments on even nodes of its chart.

Eleven nodes over the cavity, or Newton steps to the mode where these see too little, say where to look; fifteen nodes there
give the moments; fifty-seven where leaving out every other node changes them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.families.charts import DensityChart, density_chart_of
from heliograph.oracles.references.output import Output, output_of
from heliograph.oracles.references.record import Question, Reference, values

__all__ = ["one_unknown"]

_GRID = np.array([[-5.0], [-3.0], [-1.4], [0.0], [1.4], [3.0], [5.0]])  # deviations of the cavity
_EDGES = np.array([-60.0, *_GRID[:, 0], 60.0])  # beyond the last node the steps are free to go far
_NEWTON = 5
_STEP = 0.5  # of a difference, in current deviations: curvature over the bulk and not at a point
_STEPS = np.array([[-1.0], [0.0], [1.0]])
_ROUGH = (2e-3, 2e-2)  # nats between all nodes and every other, where finer ones begin to count, and alone count
_CLEAR = 1e-6  # nats of doubt that mean nothing
_LEAST = 0.01  # variance, in that of the nodes: one node alone has none
_WIDER = 1.2  # nodes than the curvature at the mode says
_FAR = (2.0, 2.5)  # deviations of the cavity by which the mean moves where the mode begins to count, and alone counts
_NARROW = (0.55, 0.45)  # the same for its deviation; a needle between two nodes seems as wide as 0.4
_NOTHING = -1e12  # the log density where the function gives no number: finite, so that differences of it are numbers


class _Rule(NamedTuple):
    """Evenly spaced nodes, in deviations."""

    nodes: np.ndarray  # (k, 1)
    flat: np.ndarray  # (k,), like the weights in single precision
    squares: np.ndarray  # (k,)
    log_spacing: float


def _rule(n: int, spacing: float) -> _Rule:
    nodes = spacing * (np.arange(n) - 0.5 * (n - 1))
    flat = nodes.astype(np.float32)
    return _Rule(nodes[:, None], flat, flat**2, float(np.log(spacing)))


_WIDE = _rule(11, 0.8)  # over the cavity
_FINE = _rule(57, 0.1625)  # over the same, where that is too coarse
_CLOSE = _rule(15, 0.65)  # over what is known of the tilted density


class _Line:
    """One unknown on its chart: the cavity's log density there, and the factor with the output's message."""

    def __init__(self, question: Question, out: Output) -> None:
        self.question, self.out = question, out
        ((self.port, message),) = question.unknown.items()
        self.message = message
        chart = density_chart_of(message)
        assert chart is not None
        self.chart: DensityChart = chart
        self.mean, self.variance = chart.moments(message)
        self.half = -0.5 / self.variance
        self.n_evaluations = 0

    def some(self, rows: np.ndarray) -> _Line:
        """The same for some of the rows."""
        return _Line(self.question.some(rows), self.out.some(rows))

    def log_cavity(self, u: np.ndarray) -> np.ndarray:
        """The log density of the cavity at positions ``(k, n)``, without its constant."""
        if not self.chart.gaussian:
            return self.chart.log_density(self.message, u)
        gap = u - self.mean
        gap *= gap
        gap *= self.half
        return gap

    def look(self, u: np.ndarray, brief: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The output's position and the log tilted density at positions ``(k, n)``; no position if it is to be brief."""
        k = len(u)
        inputs = {name: np.tile(a, (k, *[1] * (a.ndim - 1))) for name, a in self.question.constants.items()}
        inputs[self.port] = self.chart.value(u).reshape(-1)
        self.n_evaluations += u.size
        value, bad = values(self.question, inputs, u.size)
        value = value.reshape(u.shape)
        y, log_tilted = (value, self.out.log_message(value)) if brief else self.out.look(value)
        log_tilted += self.log_cavity(u)
        return y, log_tilted if bad is None else np.where(bad.reshape(u.shape), _NOTHING, log_tilted)


class _Weighed(NamedTuple):
    """A tilted density seen at nodes."""

    mean: np.ndarray  # (n,)
    sd: np.ndarray  # (n,)
    at: np.ndarray  # (k, n) where the nodes are
    y: np.ndarray  # (k, n) the output's position there
    w: np.ndarray  # (k, n) weights, of which the largest is 1
    top: np.ndarray  # (n,) the logarithm of what they were divided by
    total: np.ndarray  # (n,) their sum
    moved: np.ndarray  # (n,) of the mean, in deviations of the nodes
    ratio: np.ndarray  # (n,) of the deviation to that of the nodes


def _weigh(line: _Line, mean: np.ndarray, sd: np.ndarray, rule: _Rule, brief: bool = False) -> _Weighed:
    """Moments by the trapezoid rule on evenly spaced nodes, which for a smooth bump is as good as any."""
    at = sd * rule.nodes
    at += mean
    y, log_w = line.look(at, brief)
    top = log_w.max(axis=0)
    log_w -= top
    np.maximum(log_w, -100.0, out=log_w)  # single precision holds no less
    w = np.exp(log_w.astype(np.float32))  # seven digits of a weight are enough, and four times as fast
    total = w.sum(axis=0)
    moved = (rule.flat @ w) / total
    variance = (rule.squares @ w) / total
    variance -= moved * moved
    ratio = np.sqrt(np.maximum(variance, _LEAST))
    return _Weighed(mean + sd * moved, sd * ratio, at, y, w, top, total, moved, ratio)


def one_unknown(question: Question) -> Reference:
    """Reference beliefs of the unknown input or of the output."""
    line, to = _Line(question, output_of(question.out)), question.to
    port = line.port
    if to == port:
        mean, sd = _over_cavity(line)
    else:
        mean, sd = _mode(line)
        sd = _WIDER * sd
    brief = to == port and line.chart.gaussian
    found = _weigh(line, mean, sd, _CLOSE, brief)
    moments, log_z = _read(line, found, sd, _CLOSE, to)
    doubt = _doubt(found, _CLOSE)
    coarse = np.flatnonzero(doubt > _ROUGH[0])
    if len(coarse):  # something sharper than the nodes are apart: look closer there
        some = line.some(coarse)
        finer = _weigh(some, mean[coarse], sd[coarse], _FINE, brief)
        share = np.clip(np.log(doubt[coarse] / _ROUGH[0]) / np.log(_ROUGH[1] / _ROUGH[0]), 0.0, 1.0)
        other, other_log_z = _read(some, finer, sd[coarse], _FINE, to)
        moments = np.array(moments[0]), np.array(moments[1])
        moments[0][coarse] += share * (other[0] - moments[0][coarse])
        moments[1][coarse] *= (other[1] / moments[1][coarse]) ** share
        if log_z is not None and other_log_z is not None:
            log_z[coarse] += share * (other_log_z - log_z[coarse])
        doubt[coarse] += share * (_doubt(finer, _FINE) - doubt[coarse])
        line.n_evaluations += some.n_evaluations
    summaries = np.stack([found.moved, np.log(found.ratio), np.log(doubt + _CLEAR)], axis=1)
    return Reference(moments, summaries, log_z, doubt, line.n_evaluations)


def _read(
    line: _Line, found: _Weighed, sd: np.ndarray, rule: _Rule, to: str | None
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
    """The moments of the port in question, or log Z, from weighed nodes."""
    if to == line.port and line.chart.gaussian:
        return (found.mean, found.sd**2), None
    w = found.w.astype(float) / found.total
    if to == line.port:
        return line.chart.project(found.at, w), None
    moments = line.out.chart.project(found.y, w)
    if to is not None:
        return moments, None
    log_z = found.top + np.log(found.total * sd) + rule.log_spacing
    return moments, log_z + line.chart.log_constant(line.message) - line.out.log_constant()


def _doubt(found: _Weighed, rule: _Rule) -> np.ndarray:
    """KL between what all nodes say and what every other one says: large where something is sharper than they see."""
    w = found.w[::2]
    total = w.sum(axis=0)
    moved = (rule.flat[::2] @ w) / total
    ratio2 = (rule.squares[::2] @ w) / total - moved * moved
    gap = (found.moved - moved) / found.ratio
    log_ratio = np.log(np.maximum(ratio2, _LEAST) / found.ratio**2)
    return 0.5 * gap * gap + 0.25 * log_ratio * log_ratio


def _over_cavity(line: _Line) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of the tilted density by nodes over the cavity; the mode is sought where they see too little.

    This is the way of every message to the unknown in every sweep, and twice as fast as to seek the mode everywhere.
    """
    deviation = np.sqrt(line.variance)
    first = _weigh(line, line.mean, deviation, _WIDE, brief=True)
    mean, sd = first.mean, first.sd
    far = np.abs(first.moved) > _FAR[0]
    far |= first.ratio < _NARROW[0]
    if far.any():
        rows = np.flatnonzero(far)
        some = line.some(rows)
        mode, mode_sd = _mode(some)
        # from the one to the other without a jump: what is learned is a smooth function or none
        away = (np.abs(first.moved[rows]) - _FAR[0]) / (_FAR[1] - _FAR[0])
        thin = (_NARROW[0] - first.ratio[rows]) / (_NARROW[0] - _NARROW[1])
        share = np.clip(np.maximum(away, thin), 0.0, 1.0)
        mean[rows] += share * (mode - mean[rows])
        sd[rows] *= (_WIDER * mode_sd / sd[rows]) ** share
        line.n_evaluations += some.n_evaluations
    return mean, sd


def _mode(line: _Line) -> tuple[np.ndarray, np.ndarray]:
    """The mode of the tilted density on the chart, and the deviation that its curvature there gives.

    Newton steps between the neighbours of the best node of a grid, and between the points where the density was seen to
    rise and to fall: a step that would leave them goes to their middle.
    """
    mean, deviation = line.mean, np.sqrt(line.variance)
    _, log_tilted = line.look(mean + deviation * _GRID)
    best = np.argmax(log_tilted, axis=0)
    low, high = mean + deviation * _EDGES[best], mean + deviation * _EDGES[best + 2]
    mode = mean + deviation * _EDGES[best + 1]
    sd = 0.25 * np.minimum(high - low, 8.0 * deviation)
    least = 0.25 / line.variance  # a tilted density flatter than this is not one bump
    for _ in range(_NEWTON):
        h = _STEP * sd
        _, (before, at, after) = line.look(mode + h * _STEPS)
        slope = (after - before) / (2 * h)
        precision = np.maximum((2 * at - before - after) / (h * h), least)
        rising = slope > 0
        low, high = np.where(rising, mode, low), np.where(rising, high, mode)
        new = mode + slope / precision
        mode = np.where((new > low) & (new < high), new, 0.5 * (low + high))
        sd = 1 / np.sqrt(precision)
    return mode, sd
