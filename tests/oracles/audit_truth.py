"""Beliefs by dense grids, for the audit of the oracles: written apart from them, and sharing no code with them.

One unknown: 8,000 even intervals over 16 deviations of the cavity to either side, halved where the integrand
changes, then twelve Gauss-Legendre nodes in each. Two unknown: a grid of 1,200 by 1,200 over the box that holds all mass.
Noise inside the function is integrated out by the factor itself, in closed form (`Given`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from heliograph.families import Bernoulli, Beta, Categorical, Family, Gamma, Gaussian

NODE, WEIGHT = np.polynomial.legendre.leggauss(12)
NEGLIGIBLE = 45.0  # nats


class Given(NamedTuple):
    """What is known at given inputs (k of them): the factor with the output's message, and the output under both."""

    log_likelihood: np.ndarray  # (k,)
    output: tuple[np.ndarray, ...]  # values (k,), or moments of the output's family
    highest: np.ndarray | None = None  # (k - 1,) the most that the likelihood may reach between neighbours


Look = Callable[[dict[str, np.ndarray]], Given]


def log_message(message: Any, x: np.ndarray) -> np.ndarray:
    """The log density of a message of one row up to a constant."""
    a, b = (float(p[0]) for p in message.naturals)
    if isinstance(message, Gaussian):
        return -0.5 * b * (x - a / b) ** 2 if b > 0 else a * x
    if isinstance(message, Gamma):
        return a * np.log(np.maximum(x, 1e-300)) - b * x
    x = np.clip(x, 1e-300, 1 - 2.0**-53)
    return a * np.log(x) + b * np.log1p(-x)


def deterministic(function: Callable[..., np.ndarray], message: Any) -> Look:
    """A function without noise."""
    a, b = (float(p[0]) for p in message.naturals)
    mode = {Gaussian: a / b if b > 0 else 0.0, Gamma: a / b if b > 0 else 0.0, Beta: a / max(a + b, 1e-300)}
    where = mode[type(message)]

    def look(inputs: dict[str, np.ndarray]) -> Given:
        value = np.asarray(function(**inputs), dtype=float)
        log_l = log_message(message, value)
        low, high = np.minimum(value[:-1], value[1:]), np.maximum(value[:-1], value[1:])
        inside = (low < where) & (where < high)
        at_mode = log_message(message, np.array([where]))[0] if inside.any() else 0.0
        return Given(log_l, (value,), np.where(inside, at_mode, np.maximum(log_l[:-1], log_l[1:])))

    return look


def one_unknown(port: str, message: Any, family: type[Family], look: Look, n: int = 8000) -> dict[str, Family]:
    """Beliefs of the input and of the output of one row, from `n` intervals."""
    chart, back = _CHARTS[type(message)]
    mean, variance = (float(a[0]) for a in message.chart_moments())

    def at(u: np.ndarray) -> tuple[Given, np.ndarray]:
        given = look({port: back(u)})
        return given, given.log_likelihood + chart(message, u)

    edges = mean + np.sqrt(variance) * np.linspace(-16.0, 16.0, n + 1)
    low, high = edges[:-1], edges[1:]
    leaves = []
    top = -np.inf
    for level in range(50):
        # neighbours side by side, so that what lies between them is judged for each interval alone
        pairs = np.stack([low, high], axis=1).ravel()
        given, log_w = at(pairs)
        ends = log_w.reshape(-1, 2)
        best = ends.max(axis=1)
        hidden = best if given.highest is None else best + np.maximum(
            given.highest[::2] - given.log_likelihood.reshape(-1, 2).max(axis=1), 0.0
        )
        top = max(top, float(best.max()))
        known = top - NEGLIGIBLE - np.log(np.maximum(high - low, 1e-300)) + np.log(edges[1] - edges[0]) if level else top - NEGLIGIBLE
        matters = hidden > known
        rough = matters & ((np.abs(ends[:, 0] - ends[:, 1]) > 1.0) | (hidden - best > 1.0))
        if level == 49:
            rough[:] = False
        keep = matters & ~rough
        leaves.append(np.stack([low[keep], high[keep]], axis=1))
        low, high = low[rough], high[rough]
        if not len(low):
            break
        middle = 0.5 * (low + high)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    low, high = np.concatenate(leaves).T
    u, given, w = _by_leaves(at, low, high)
    return {port: project(type(message), w, (back(u),)), "out": project(family, w, given.output)}


def _by_leaves(at: Any, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, Given, np.ndarray]:
    """Nodes and weights in leaves that are halved, at a kink or a jump, until the output's moments no longer change."""
    done: list[np.ndarray] = []
    u, given, w, log_w = _nodes(at, low, high)
    top = log_w.max()
    first = given.output[0] if given.output[0].ndim == 1 else given.output[0][:, 0]
    centre = np.average(first, weights=w)
    scale = np.sqrt(np.average((first - centre) ** 2, weights=w)) or 1.0
    total = np.exp(log_w - top).sum()

    def sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        _, g, _, log_v = _nodes(at, a, b)
        v = g.output[0] if g.output[0].ndim == 1 else g.output[0][:, 0]
        y = ((v - centre) / scale).reshape(len(a), -1)
        m = np.exp(log_v - top).reshape(len(a), -1) / total
        return np.stack([m.sum(1), (m * y).sum(1), (m * y * y).sum(1)])

    for _ in range(45):
        middle = 0.5 * (low + high)
        gap = np.abs(sums(low, high) - sums(low, middle) - sums(middle, high)).max(axis=0)
        rough = gap > 1e-13
        done.append(np.stack([low[~rough], high[~rough]], axis=1))
        low, high = np.concatenate([low[rough], middle[rough]]), np.concatenate([middle[rough], high[rough]])
        if not len(low):
            break
    done.append(np.stack([low, high], axis=1))
    return _nodes(at, *np.concatenate(done).T)[:3]


def _nodes(at: Any, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, Given, np.ndarray, np.ndarray]:
    half = 0.5 * (high - low)
    u = (0.5 * (low + high)[:, None] + half[:, None] * NODE).ravel()
    given, log_w = at(u)
    log_w = log_w + np.log(np.maximum(half, 1e-300)[:, None] * WEIGHT).ravel()
    w = np.exp(log_w - log_w.max())
    return u, given, w / w.sum(), log_w


def two_unknown(messages: dict[str, Any], family: type[Family], look: Look, n: int = 1200) -> dict[str, Family]:
    """Beliefs of two Gaussian inputs and of the output of one row, by the trapezoid rule."""
    (a, p), (b, q) = messages.items()
    box = []
    for m in (p, q):
        mean, sd = float(m.mean[0]), float(np.sqrt(m.variance[0]))
        box.append([mean - 10 * sd, mean + 10 * sd])
    for size in (400, 600, 800, n):
        x, y = (np.linspace(*edge, size) for edge in box)
        u, v = (g.ravel() for g in np.meshgrid(x, y, indexing="ij"))
        given = look({a: u, b: v})
        log_w = given.log_likelihood + log_message(p, u) + log_message(q, v)
        if size == n:
            w = np.exp(log_w - log_w.max())
            w /= w.sum()
            found = {a: project(Gaussian, w, (u,)), b: project(Gaussian, w, (v,)), "out": project(family, w, given.output)}
            return found
        table = log_w.reshape(size, size)
        for k, axis in enumerate((x, y)):
            highest = table.max(axis=1 - k)
            held = np.flatnonzero(highest > highest.max() - (NEGLIGIBLE + 40 * (size == 400)))
            margin = 2 * (axis[1] - axis[0])
            box[k] = [axis[held[0]] - margin, axis[held[-1]] + margin]
    raise AssertionError("unreachable")


def project(family: type[Family], w: np.ndarray, moments: tuple[np.ndarray, ...]) -> Family:
    """The EP projection of weighted values, or of weighted conditional moments."""
    if family is Gaussian:
        mean = w @ moments[0]
        within = w @ moments[1] if len(moments) > 1 else 0.0
        return Gaussian([mean], [w @ (moments[0] - mean) ** 2 + within])
    if family is Bernoulli:
        return Bernoulli([w @ moments[0]])
    if family is Categorical:
        return Categorical([w @ moments[0]])
    if family is Gamma:
        mean = w @ moments[0]
        if len(moments) > 1:
            return Gamma.from_statistics([mean], [w @ moments[1]])
        d = moments[0] / mean - 1
        return Gamma.from_mean_and_log_gap([mean], [w @ (d - np.log1p(np.maximum(d, -1 + 1e-300)))])
    x = np.clip(moments[0], 1e-300, 1 - 2.0**-53)
    u = np.log(x) - np.log1p(-x)
    mean = w @ u
    q, d = expit(mean), u - mean
    return Beta.from_mean_logit_and_gap([mean], [w @ (np.logaddexp(log_expit(-mean), log_expit(mean) + d) - q * d)])


def degenerate(belief: Family) -> bool:
    """Whether a belief is a point to rounding: no member of its family is the right answer."""
    if isinstance(belief, Gaussian):
        return bool(belief.variance[0] <= 1e-16 * (1 + belief.mean[0] ** 2))
    return bool(belief.is_point[0])


def _log_real(message: Any, u: np.ndarray) -> np.ndarray:
    return log_message(message, u)


def _log_positive(message: Any, u: np.ndarray) -> np.ndarray:
    return log_message(message, np.exp(u)) + u


def _log_share(message: Any, u: np.ndarray) -> np.ndarray:
    a, b = (float(p[0]) for p in message.naturals)
    return (a + 1) * log_expit(u) + (b + 1) * log_expit(-u)


_CHARTS = {
    Gaussian: (_log_real, lambda u: u),
    Gamma: (_log_positive, np.exp),
    Beta: (_log_share, expit),
}
