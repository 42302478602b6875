"""Two unknown numbers on their charts, the factor with the output's message, and sums over even nodes of the plane."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heliograph.oracles.references.linearisation import blocks_of, charts_of, joint_moments
from heliograph.oracles.references.output import Output
from heliograph.oracles.references.record import Question, values_at

__all__ = [
    "LEAST",
    "NOTHING",
    "Grid",
    "Plane",
    "Seen",
    "Weighed",
    "even_grid",
    "moments_of",
    "read",
    "weigh",
    "weighed",
]

NOTHING = -1e12  # the log density where the function gives no number
LEAST = 0.01  # variance, in that of the nodes


class Grid(NamedTuple):
    """Even nodes of a square, in deviations."""

    nodes: np.ndarray  # (k, 2)
    half: np.ndarray  # (k,) bool: every other node along both axes
    log_area: float
    shape: tuple[int, int]  # nodes along each side
    spacing: np.ndarray  # (2,) between nodes along each side


def even_grid(n: int, spacing: float, finer: tuple[int, int] = (1, 1)) -> Grid:
    """The nodes of a square, n along each side, or so many times as close along each."""
    shape = (finer[0] * (n - 1) + 1, finer[1] * (n - 1) + 1)
    between = spacing / np.array(finer)
    lines = [h * (np.arange(k) - 0.5 * (k - 1)) for k, h in zip(shape, between, strict=True)]
    nodes = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
    first, second = (np.arange(k) % 2 == 0 for k in shape)
    return Grid(nodes, (first[:, None] & second).reshape(-1), float(np.log(between).sum()), shape, between)


class Plane:
    """Two unknown numbers on their charts, and the factor with the output's message."""

    def __init__(self, question: Question, out: Output) -> None:
        self.question, self.out = question, out
        self.unknown = unknown = question.unknown
        self.blocks, self.charts = blocks_of(unknown)[0], charts_of(unknown)
        self.mean, self.covariance = joint_moments(unknown)
        self.n_evaluations = 0

    def some(self, rows: np.ndarray) -> Plane:
        """The same for some of the rows."""
        return Plane(self.question.some(rows), self.out.some(rows))

    def look(self, u: np.ndarray, root: np.ndarray, grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The output's position, its log message and the log density of the cavity at positions ``(k, n, 2)``.

        They are those of a grid, or lie between them, laid by roots of covariances ``(n, 2, 2)``.
        """
        cell = root * grid.spacing
        other = np.sqrt((cell @ np.swapaxes(cell, 1, 2))[:, [1, 0], [1, 0]])
        volume = np.abs(cell[:, 0, 0] * cell[:, 1, 1] - cell[:, 0, 1] * cell[:, 1, 0])
        step = volume[:, None] / other  # along each axis, with the other one held
        value, bad, n_calls = values_at(self.question, u, step, self._inputs_at)
        self.n_evaluations += n_calls
        log_cavity = np.zeros(u.shape[:2])
        for port, message in self.unknown.items():
            log_cavity += self.charts[port].log_density(message, u[..., self._at(port)])
        y, log_message = self.out.look(value)
        return y, log_message if bad is None else np.where(bad, NOTHING, log_message), log_cavity

    def _at(self, port: str) -> Any:
        block = self.blocks[port]
        return block.start if self.charts[port].scalar else block

    def _inputs_at(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        return {port: self.charts[port].value(flat[:, self._at(port)]) for port in self.unknown}


class Weighed(NamedTuple):
    """A tilted density seen at nodes."""

    mean: np.ndarray  # (n, 2)
    covariance: np.ndarray  # (n, 2, 2)
    moved: np.ndarray  # (n, 2), in deviations of the nodes
    inner: np.ndarray  # (n, 2, 2) covariance, in that of the nodes
    at: np.ndarray  # (k, n, 2)
    y: np.ndarray  # (k, n)
    w: np.ndarray  # (k, n) weights that add to 1
    log_total: np.ndarray  # (n,)


class Seen(NamedTuple):
    """The moments in question of some rows."""

    moments: tuple[np.ndarray, np.ndarray]
    log_z: np.ndarray | None
    doubt: np.ndarray


def weigh(plane: Plane, mean: np.ndarray, covariance: np.ndarray, grid: Grid) -> Weighed:
    """The tilted density at nodes laid by a mean and a covariance."""
    root = np.linalg.cholesky(covariance)
    at = mean + np.einsum("kj,nij->kni", grid.nodes, root)
    y, log_message, log_cavity = plane.look(at, root, grid)
    return weighed(mean, root, grid, at, y, log_message + log_cavity)


def weighed(
    mean: np.ndarray,
    root: np.ndarray,
    grid: Grid,
    at: np.ndarray,
    y: np.ndarray,
    log_w: np.ndarray,
    least: float = LEAST,
) -> Weighed:
    """The sums over nodes at which the log tilted density is known; `least` keeps covariances away from singular ones."""
    top = log_w.max(axis=0)
    w = np.exp(log_w - top)
    total = w.sum(axis=0)
    w /= total
    moved, inner = moments_of(grid.nodes, w, least)
    covariance = root @ inner @ np.swapaxes(root, 1, 2)
    log_total = top + np.log(total) + np.log(root[:, 0, 0] * root[:, 1, 1]) + grid.log_area
    return Weighed(mean + np.einsum("nij,nj->ni", root, moved), covariance, moved, inner, at, y, w, log_total)


def moments_of(nodes: np.ndarray, w: np.ndarray, least: float = LEAST) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of weighed nodes, in their own unit."""
    moved = w.T @ nodes
    squares = (nodes[:, :, None] * nodes[:, None, :]).reshape(-1, 4)
    inner = (w.T @ squares).reshape(-1, 2, 2) - moved[:, :, None] * moved[:, None, :]
    return moved, inner + least**2 * np.eye(2)


def read(plane: Plane, found: Weighed, to: str | None) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray | None]:
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
