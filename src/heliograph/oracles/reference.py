"""A cheap reference belief for every port of a deterministic factor, from a few evaluations at each message.

It is not an answer: nobody vouches for it. It is where the default operator starts from, since the correction that is
left is small and smooth and so quickly learned. One unknown number: the mode on its chart by Newton steps with wide
differences, then moments re-weighted on Gauss-Hermite nodes. Several: iterated posterior linearisation (in
`linearisation.py`). A stochastic, discrete or expensive factor has none, and the cavity takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from heliograph.families import Beta, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.oracles.sampler import Sampler, _call, _call_each, evaluate

__all__ = ["Output", "Reference", "reference_of", "values"]

_GRID = np.array(
    [-6.0, -4.0, -2.5, -1.2, 0.0, 1.2, 2.5, 4.0, 6.0]
)  # deviations of the cavity at which the mode is sought
_EDGES = np.concatenate([[-8.0], _GRID, [8.0]])
_NEWTON = 4
_STEP = 0.5  # of a difference, in current deviations: curvature over the bulk and not at a point
_NODES = np.polynomial.hermite_e.hermegauss(5)
_TINY = float(np.finfo(float).tiny)
_BELOW_ONE = float(np.nextafter(1.0, 0.0))
_LOG_2PI = float(np.log(2 * np.pi))
_NOTHING = -1e12  # the log density where the function gives no number: finite, so that differences of it are numbers


class Reference(NamedTuple):
    """Reference beliefs of a plate, as moments on the charts of their families."""

    moments: dict[str, tuple[np.ndarray, np.ndarray]]  # port -> mean and variance (covariance for vectors)
    summaries: np.ndarray  # (n, s) numbers without a unit that say how hard each row is
    log_z: np.ndarray  # (n,)
    n_evaluations: int


Refer = Callable[[np.random.Generator, Mapping[str, Any]], Reference | None]


def reference_of(sampler: Sampler) -> Refer | None:
    """The way to refer messages of this factor; None if it can have no reference.

    What it gives takes rows that are alike: at each port all point masses, all uniform or all proper.
    """
    if sampler.stochastic or sampler.expensive or sampler.output not in (Gaussian, Gamma, Beta):
        return None

    def refer(rng: np.random.Generator, incoming: Mapping[str, Any]) -> Reference | None:
        return _refer(rng, sampler, incoming)

    return refer


class Output:
    """The output's message on the output's chart, as a function of the value that the factor gives."""

    def __init__(self, message: Any) -> None:
        self.family = type(message)
        first, second = (a[:, None] for a in message.naturals)
        if self.family is Gaussian:  # the completed square keeps its digits far from 0
            known = second > 0
            first = np.where(known, first / np.where(known, second, 1.0), first)
            self.known = known
        self.first, self.second = first, second
        self.log_constant = message.log_normaliser()
        if self.family is Gaussian:
            self.log_constant = np.where(
                known[:, 0], 0.5 * (_LOG_2PI - np.log(np.where(known, second, 1.0)[:, 0])), 0.0
            )

    def look(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position on the chart and log message, without its constant, of values ``(n, k)``."""
        if self.family is Gaussian:
            value = np.clip(value, -1e150, 1e150)  # its square is still a number
            if self.known.all():
                gap = value - self.first
                return value, -0.5 * self.second * gap * gap
            return value, np.where(self.known, -0.5 * self.second * (value - self.first) ** 2, self.first * value)
        if self.family is Gamma:
            value = np.clip(value, _TINY, 1e300)
            y = np.log(value)
            return y, self.first * y - self.second * value
        value = np.clip(value, _TINY, _BELOW_ONE)
        up, down = np.log(value), np.log1p(-value)
        return up - down, self.first * up + self.second * down


def _refer(rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Reference | None:
    constants, unknown = {}, {}
    for port in sampler.inputs:
        message = incoming[port]
        if not isinstance(message, Family):
            constants[port] = np.asarray(message)
        elif message.point is not None:
            constants[port] = message.point
        elif isinstance(message, (Gaussian, Gamma, Beta, MultivariateGaussian)):
            unknown[port] = message
        else:
            return None
    out = incoming[sampler.child]
    if not unknown or type(out) is not sampler.output or out.point is not None:
        return None
    if not all(m.proper.all() for m in unknown.values()):
        return None
    if len(unknown) == 1 and not isinstance(next(iter(unknown.values())), MultivariateGaussian):
        return _one_unknown(rng, sampler, unknown, constants, Output(out))
    from heliograph.oracles.linearisation import several_unknown

    return several_unknown(rng, sampler, unknown, constants, Output(out))


def values(
    rng: np.random.Generator, sampler: Sampler, inputs: dict[str, np.ndarray], n: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """The function at n samples, and where it gave no number (None: nowhere).

    Unlike an oracle, which draws where the mass is, a reference looks far out, where a function may well overflow.
    """
    with np.errstate(all="ignore"):
        out = _call(rng, sampler, inputs, n) if sampler.vectorized else _call_each(rng, sampler, inputs, n)
    out = np.asarray(out)
    if out.shape != (n,) or out.dtype.kind not in "fiub":
        out = evaluate(rng, sampler, inputs)  # says what is wrong with it
    out = out.astype(float, copy=False)
    bad = ~np.isfinite(out)
    return (np.where(bad, 1.0, out), bad) if bad.any() else (out, None)


class _Line:
    """One unknown on its chart: the cavity's log density there, and the factor with the output's message."""

    def __init__(
        self,
        rng: np.random.Generator,
        sampler: Sampler,
        port: str,
        message: Any,
        constants: Mapping[str, Any],
        out: Output,
    ) -> None:
        self.rng, self.sampler, self.port, self.message, self.out = rng, sampler, port, message, out
        self.constants = constants
        self.mean, self.variance = message.chart_moments()
        self.n_evaluations = 0

    def log_cavity(self, u: np.ndarray) -> np.ndarray:
        if isinstance(self.message, Gaussian):
            gap = u - self.mean[:, None]
            return -0.5 * gap * gap / self.variance[:, None]
        first, second = (a[:, None] for a in self.message.naturals)
        if isinstance(self.message, Gamma):
            return (first + 1.0) * u - second * np.exp(np.minimum(u, 700.0))
        return (first + 1.0) * log_expit(u) + (second + 1.0) * log_expit(-u)

    def value(self, u: np.ndarray) -> np.ndarray:
        if isinstance(self.message, Gaussian):
            return u
        return (
            np.exp(np.clip(u, -700.0, 700.0))
            if isinstance(self.message, Gamma)
            else np.clip(expit(u), _TINY, _BELOW_ONE)
        )

    def look(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The output's position and the log tilted density at positions ``(n, k)``."""
        n, k = u.shape
        inputs = {name: np.repeat(a, k, axis=0) for name, a in self.constants.items()}
        inputs[self.port] = self.value(u).reshape(-1)
        self.n_evaluations += n * k
        value, bad = values(self.rng, self.sampler, inputs, n * k)
        y, log_message = self.out.look(value.reshape(n, k))
        log_tilted = self.log_cavity(u) + log_message
        return y, log_tilted if bad is None else np.where(bad.reshape(n, k), _NOTHING, log_tilted)


def _one_unknown(
    rng: np.random.Generator, sampler: Sampler, unknown: Mapping[str, Any], constants: Mapping[str, Any], out: Output
) -> Reference:
    ((port, message),) = unknown.items()
    line = _Line(rng, sampler, port, message, constants, out)
    mode, variance = _mode(line)
    mean, spread = mode, variance
    nodes, log_rule = _NODES[0], np.log(_NODES[1])
    for inflation in (1.1, 1.0):
        sd = inflation * np.sqrt(spread)
        u = mean[:, None] + sd[:, None] * nodes
        y, log_tilted = line.look(u)
        log_w = log_tilted + 0.5 * nodes**2 + log_rule
        top = log_w.max(axis=1)
        w = np.exp(log_w - top[:, None])
        total = w.sum(axis=1)
        w /= total[:, None]
        d1 = w @ nodes
        d2 = np.maximum((w @ nodes**2) - d1**2, 0.0)
        # kept near where the nodes are: beyond that five of them have nothing to say
        mean = mean + sd * 1.5 * np.tanh(d1 / 1.5)
        spread = sd**2 * np.clip(d2, 1 / 3, 3.0)
    y_mean = (w * y).sum(axis=1)
    y_variance = np.maximum((w * (y - y_mean[:, None]) ** 2).sum(axis=1), 1e-12 * (1 + y_mean**2))
    log_z = top + np.log(total * sd) - out.log_constant + _log_constant(message)
    summaries = np.stack([(mean - mode) / np.sqrt(variance), np.log(spread / variance)], axis=1)
    moments = {port: (mean, spread), sampler.child: (y_mean, y_variance)}
    return Reference(moments, summaries, log_z, line.n_evaluations)


def _log_constant(message: Any) -> np.ndarray:
    if isinstance(message, Gaussian):
        return -0.5 * (_LOG_2PI + np.log(message.variance))
    return -message.log_normaliser()


def _mode(line: _Line) -> tuple[np.ndarray, np.ndarray]:
    """The mode of the tilted density on the chart, and the variance that its curvature there gives."""
    mean, variance = line.mean, line.variance
    deviation = np.sqrt(variance)
    _, log_tilted = line.look(mean[:, None] + deviation[:, None] * _GRID)
    best = np.argmax(log_tilted, axis=1)
    low, high = mean + deviation * _EDGES[best], mean + deviation * _EDGES[best + 2]
    mode = mean + deviation * _GRID[best]
    sd = 0.25 * (high - low)
    steps = _STEP * np.array([-1.0, 0.0, 1.0])
    least = 0.25 / variance  # a tilted density flatter than this is not one bump
    for _ in range(_NEWTON):
        _, l = line.look(mode[:, None] + sd[:, None] * steps)
        h = _STEP * sd
        slope = (l[:, 2] - l[:, 0]) / (2 * h)
        precision = np.maximum((2 * l[:, 1] - l[:, 0] - l[:, 2]) / h**2, least)
        mode = np.clip(mode + slope / precision, low, high)
        sd = 1 / np.sqrt(precision)
    return mode, sd**2
