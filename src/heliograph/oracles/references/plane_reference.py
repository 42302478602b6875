"""The reference belief of a deterministic factor of two unknown numbers: moments on even nodes of the plane.

Nodes are spread over the cavity, finer ones where something is sharper than they see. Where the tilted density is a needle
beside the cavity, iterated linearisation says where to look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.references.linearisation import blocks_of, charts_of, joint_moments, linearise
from heliograph.oracles.references.output import Output, output_of
from heliograph.oracles.references.record import Question, Reference, values

__all__ = ["two_unknown"]

_NARROW = (0.45, 0.35)  # deviations of the cavity: a needle between two nodes seems as wide as 0.25
_THIN = (0.15, 0.12)  # the same between finer nodes, which see a needle as wide as 0.1
_WIDER = 1.3  # than linearisation says
_ROUGH = (-np.log(1e-3), -np.log(1e-2))  # nats between all nodes and every other: where finer ones begin to count
_BLIND = 0.03  # nats of doubt where nobody looked at the whole plane
_CLEAR = 1e-6  # nats of doubt that mean nothing
_LEAST = 0.01  # variance, in that of the nodes
_NOTHING = -1e12
_BLOCK = 256  # rows at once where nodes are fine


class _Grid(NamedTuple):
    nodes: np.ndarray  # (k, 2), in deviations
    half: np.ndarray  # (k,) bool: every other node along both axes
    log_area: float


def _grid(n: int, spacing: float) -> _Grid:
    line = spacing * (np.arange(n) - 0.5 * (n - 1))
    nodes = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    even = np.arange(n) % 2 == 0
    return _Grid(nodes, (even[:, None] & even).reshape(-1), 2 * float(np.log(spacing)))


_EVEN = _grid(17, 0.5)  # over the cavity
_FINE = _grid(43, 0.2)  # the same where something is sharper than that
_NEAR = _grid(13, 0.7)  # over a needle


class _Plane:
    """Two unknown numbers on their charts, and the factor with the output's message."""

    def __init__(self, question: Question, out: Output) -> None:
        self.question, self.out = question, out
        self.unknown = unknown = question.unknown
        self.blocks, self.charts = blocks_of(unknown)[0], charts_of(unknown)
        self.mean, self.covariance = joint_moments(unknown)
        self.n_evaluations = 0

    def some(self, rows: np.ndarray) -> _Plane:
        """The same for some of the rows."""
        return _Plane(self.question.some(rows), self.out.some(rows))

    def look(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The output's position and the log tilted density at positions ``(k, n, 2)``."""
        k, n, _ = u.shape
        inputs = {p: np.tile(a, (k, *[1] * (a.ndim - 1))) for p, a in self.question.constants.items()}
        flat = u.reshape(k * n, 2)
        log_tilted = np.zeros((k, n))
        for port, message in self.unknown.items():
            block = self.blocks[port]
            chart, at = self.charts[port], block.start if self.charts[port].scalar else block
            inputs[port] = chart.value(flat[:, at])
            log_tilted += chart.log_density(message, u[..., at])
        self.n_evaluations += k * n
        value, bad = values(self.question, inputs, k * n)
        y, log_message = self.out.look(value.reshape(k, n))
        log_tilted += log_message
        return y, log_tilted if bad is None else np.where(bad.reshape(k, n), _NOTHING, log_tilted)


class _Weighed(NamedTuple):
    """A tilted density seen at nodes."""

    mean: np.ndarray  # (n, 2)
    covariance: np.ndarray  # (n, 2, 2)
    moved: np.ndarray  # (n, 2), in deviations of the nodes
    inner: np.ndarray  # (n, 2, 2) covariance, in that of the nodes
    at: np.ndarray  # (k, n, 2)
    y: np.ndarray  # (k, n)
    w: np.ndarray  # (k, n) weights that add to 1
    log_total: np.ndarray  # (n,)


def _weigh(plane: _Plane, mean: np.ndarray, covariance: np.ndarray, grid: _Grid) -> _Weighed:
    root = np.linalg.cholesky(covariance)
    at = mean + np.einsum("kj,nij->kni", grid.nodes, root)
    y, log_w = plane.look(at)
    top = log_w.max(axis=0)
    w = np.exp(log_w - top)
    total = w.sum(axis=0)
    w /= total
    moved, inner = _moments(grid.nodes, w)
    covariance = root @ inner @ np.swapaxes(root, 1, 2)
    log_total = top + np.log(total) + np.log(root[:, 0, 0] * root[:, 1, 1]) + grid.log_area
    return _Weighed(mean + np.einsum("nij,nj->ni", root, moved), covariance, moved, inner, at, y, w, log_total)


def _moments(nodes: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    moved = w.T @ nodes
    squares = (nodes[:, :, None] * nodes[:, None, :]).reshape(-1, 4)
    inner = (w.T @ squares).reshape(-1, 2, 2) - moved[:, :, None] * moved[:, None, :]
    return moved, inner + _LEAST**2 * np.eye(2)


def _doubt(found: _Weighed, grid: _Grid) -> np.ndarray:
    """Nats between what all nodes say of each coordinate and what every other one says, the larger of the two."""
    w = found.w[grid.half]
    total = w.sum(axis=0)
    moved, inner = _moments(grid.nodes[grid.half], w / np.where(total > 0, total, 1.0))
    all_v, half_v = (np.diagonal(a, axis1=1, axis2=2) for a in (found.inner, inner))
    gap2 = (moved - found.moved) ** 2 / all_v
    kl = 0.5 * gap2 + 0.25 * np.log(half_v / all_v) ** 2
    return np.where(total > 1e-6, kl.max(axis=1), 1.0)  # every other node sees nothing: that is doubt enough


class _Seen(NamedTuple):
    """The moments in question of some rows."""

    moments: tuple[np.ndarray, np.ndarray]
    log_z: np.ndarray | None
    doubt: np.ndarray


def two_unknown(question: Question) -> Reference:
    """Reference beliefs of an unknown input or of the output."""
    plane, to = _Plane(question, output_of(question.out)), question.to
    found = _weigh(plane, plane.mean, plane.covariance, _EVEN)
    seen = _Seen(*_read(plane, found, to), _doubt(found, _EVEN))
    share = np.maximum(_share(_least_deviation(found), _NARROW), _share(-np.log(seen.doubt + 1e-300), _ROUGH))
    rough = np.flatnonzero(share > 0)
    for start in range(0, len(rough), _BLOCK):
        rows = rough[start : start + _BLOCK]
        some = plane.some(rows)
        _mix(seen, rows, share[rows], _look_closer(some, to))
        plane.n_evaluations += some.n_evaluations
    determinant = found.inner[:, 0, 0] * found.inner[:, 1, 1] - found.inner[:, 0, 1] ** 2
    summaries = np.stack([np.log(determinant), np.log(seen.doubt + _CLEAR)], axis=1)
    return Reference(seen.moments, summaries, seen.log_z, seen.doubt, plane.n_evaluations)


def _look_closer(plane: _Plane, to: str | None) -> _Seen:
    """By finer nodes over the cavity; where even they see only a needle, by nodes where linearisation says it is."""
    found = _weigh(plane, plane.mean, plane.covariance, _FINE)
    seen = _Seen(*_read(plane, found, to), _doubt(found, _FINE))
    share = _share(_least_deviation(found), _THIN)
    thin = np.flatnonzero(share > 0)
    if len(thin):
        few = plane.some(thin)
        line = linearise(few.question, few.out)
        near = _weigh(few, line.update.mean, _WIDER**2 * line.update.covariance, _NEAR)
        # linearisation goes to one bump and does not see another: nobody has looked at the whole plane
        doubt = np.maximum(_doubt(near, _NEAR), _BLIND)
        _mix(seen, thin, share[thin], _Seen(*_read(few, near, to), doubt))
        plane.n_evaluations += few.n_evaluations + line.n_evaluations
    return seen


def _mix(seen: _Seen, rows: np.ndarray, share: np.ndarray, other: _Seen) -> None:
    """Go over to what others saw of some rows, in place and without a jump: what is learned is a smooth function."""
    pairs = [*zip(seen.moments, other.moments, strict=True), (seen.doubt, other.doubt)]
    if seen.log_z is not None and other.log_z is not None:
        pairs.append((seen.log_z, other.log_z))
    for a, b in pairs:
        a[rows] += share.reshape(-1, *[1] * (a.ndim - 1)) * (b - a[rows])


def _share(ratio: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    """From 0 to 1 between two ends, so that what is learned is a smooth function."""
    return np.clip((ends[0] - ratio) / (ends[0] - ends[1]), 0.0, 1.0)


def _least_deviation(found: _Weighed) -> np.ndarray:
    """The smallest deviation in any direction, in those of the nodes."""
    a, b, c = found.inner[:, 0, 0], found.inner[:, 1, 1], found.inner[:, 0, 1]
    least = 0.5 * (a + b - np.sqrt((a - b) ** 2 + 4 * c * c))
    return np.sqrt(np.maximum(least, 0.0))


def _read(plane: _Plane, found: _Weighed, to: str | None) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
    """The moments of the port in question, or log Z."""
    if to in plane.blocks:
        chart, block = plane.charts[to], plane.blocks[to]
        at = block.start if chart.scalar else block
        if chart.gaussian:
            return (found.mean[:, at].copy(), found.covariance[:, at, at].copy()), None
        return _own(chart.project(found.at[..., at], found.w)), None
    moments = _own(plane.out.chart.project(found.y, found.w))
    if to is not None:
        return moments, None
    log_z = found.log_total - plane.out.log_constant()
    for port, message in plane.unknown.items():
        log_z = log_z + plane.charts[port].log_constant(message)
    return moments, log_z


def _own(moments: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(moments[0]), np.array(moments[1])
