"""The frame of a row: a centre and a scale for each port, in which the statistics of points are summed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from heliograph.oracles.problem import Port, Problem

__all__ = [
    "Frame",
    "blocks_of",
    "frame_of",
    "frame_of_points",
    "join_frames",
    "log_totals",
    "ports_of",
    "statistics_of",
]


class Frame(NamedTuple):
    """The centre and scale, port by port, in which statistics are summed."""

    centres: dict[str, np.ndarray]  # port -> (n, D)
    scales: dict[str, np.ndarray]  # port -> (n, D)


def ports_of(problem: Problem) -> tuple[Port, ...]:
    """The ports that get a projected belief: random inputs, and the output unless it is all observed."""
    return (*problem.inputs, problem.output)


def frame_of(problem: Problem, u: np.ndarray, v: np.ndarray, log_weights: np.ndarray) -> Frame:
    """A frame from the first weighted draws; it need not be good, only near."""
    return frame_of_points(problem, np.arange(len(u)), u, v, log_weights)


def join_frames(frames: list[Frame]) -> Frame:
    """Frames of consecutive rows as one."""
    first = frames[0]
    return Frame(
        {k: np.concatenate([f.centres[k] for f in frames]) for k in first.centres},
        {k: np.concatenate([f.scales[k] for f in frames]) for k in first.scales},
    )


def frame_of_points(problem: Problem, row: np.ndarray, u: np.ndarray, v: np.ndarray, log_weights: np.ndarray) -> Frame:
    """The same from weighted points (c, g, D), c of them of row ``row[c]``."""
    n = problem.n
    top = _highest(n, row, log_weights)
    alike = np.isneginf(top)[row][:, None]  # where nothing has a weight
    log_w = np.where(alike, 0.0, log_weights - np.where(np.isfinite(top), top, 0.0)[row][:, None])
    w = np.exp(log_w)
    total = np.maximum(_summed(n, row, w.sum(axis=1)[:, None]), 1e-300)  # a row may have no points
    centres, scales = {}, {}
    for port in ports_of(problem):
        c = v if port is problem.output else u[..., port.columns]
        mean = _summed(n, row, _weighed(w, c)) / total
        centres[port.name] = mean
        points = _Points(row, c, w, log_w, total)
        scales[port.name] = (_log_gap if port.axis.scale_is_log_gap else _deviation)(n, points, mean)
    return Frame(centres, scales)


class _Points(NamedTuple):
    """Weighted points of one port."""

    row: np.ndarray  # (c,)
    at: np.ndarray  # (c, g, D)
    w: np.ndarray  # (c, g), the largest of a row is 1
    log_w: np.ndarray  # (c, g)
    total: np.ndarray  # (n, 1)


def _log_gap(n: int, points: _Points, mean: np.ndarray) -> np.ndarray:
    """``log E x - E log x`` (n, 1) of points on the logarithm: E x may be hundreds of nats above the mean logarithm."""
    row, log_x = points.row, points.at[..., 0]
    higher = _highest(n, row, points.log_w + log_x)
    mass = _summed(n, row, np.exp(points.log_w + log_x - higher[row][:, None]).sum(axis=1)[:, None])
    found = mass > 0
    log_mean = np.where(found, higher[:, None], 0.0) + np.log(np.where(found, mass, 1.0)) - np.log(points.total)
    return np.where(found, log_mean - mean, 0.0)


def _deviation(n: int, points: _Points, mean: np.ndarray) -> np.ndarray:
    """The standard deviation (n, D), or something small where that is no unit.

    A variance of 0 (one draw has all the weight) or a rounding error must not become the unit; nor what is far below the
    spread of the points that count at all, whose weights may not be known yet.
    """
    row, at = points.row, points.at
    variance = _summed(n, row, _weighed(points.w, (at - mean[row][:, None]) ** 2)) / points.total
    counts = (points.log_w > -40.0)[..., None]
    low, high = np.full(mean.shape, np.inf), np.full(mean.shape, -np.inf)
    np.minimum.at(low, row, _only(np.where(counts, at, np.inf), np.min))
    np.maximum.at(high, row, _only(np.where(counts, at, -np.inf), np.max))
    spread = np.where(high > low, high - low, 0.0)
    return np.maximum(np.sqrt(variance), np.abs(mean) * 1e-12 + 1e-6 * spread + 1e-60)


def _highest(n: int, row: np.ndarray, values: np.ndarray) -> np.ndarray:
    top = np.full(n, -np.inf)
    np.maximum.at(top, row, _only(values, np.max))
    return top


def _only(values: np.ndarray, reduce: Callable[..., np.ndarray]) -> np.ndarray:
    """Reduced over the second axis, which may have one place only: no call is made for thousands of those."""
    return values[:, 0] if values.shape[1] == 1 else reduce(values, axis=1)


def _weighed(w: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The sums ``(c, D)`` of weights ``(c, g)`` times places ``(c, g, D)``."""
    return w * at[:, 0] if w.shape[1] == 1 else (w[:, None] @ at)[:, 0]


def _summed(n: int, row: np.ndarray, values: np.ndarray) -> np.ndarray:
    total = np.zeros((n, *values.shape[1:]))
    np.add.at(total, row, values)
    return total


def log_totals(n: int, row: np.ndarray, log_mass: np.ndarray) -> np.ndarray:
    """The log mass (n,) of the cells (c,) of each row."""
    top = np.full(n, -np.inf)
    np.maximum.at(top, row, log_mass)
    safe = np.where(np.isfinite(top), top, 0.0)
    total = np.bincount(row, np.exp(log_mass - safe[row]), minlength=n)
    return np.where(total > 0, safe + np.log(np.where(total > 0, total, 1.0)), -np.inf)


def blocks_of(problem: Problem) -> tuple[slice, ...]:
    """Where the statistics of each port stand, and last the shares of outputs that rounded onto a lower or upper edge."""
    blocks, at = [], 0
    for q in (*(p.axis.n_statistics for p in ports_of(problem)), 2):
        blocks.append(slice(at, at + q))
        at += q
    return tuple(blocks)


def statistics_of(
    problem: Problem, frame: Frame, rows: Any, u: np.ndarray, v: np.ndarray, edge: np.ndarray
) -> np.ndarray:
    """All statistics (n, s, Q) of draws, relative to the frame of their rows."""
    parts = []
    for port in ports_of(problem):
        c = v if port is problem.output else u[..., port.columns]
        parts.append(port.axis.statistics(c, frame.centres[port.name][rows], frame.scales[port.name][rows]))
    edges = np.zeros((*edge.shape, 2))
    if edge.any():
        edges[..., 0], edges[..., 1] = edge < 0, edge > 0
    return np.concatenate([*parts, edges], axis=-1)
