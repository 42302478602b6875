"""Cells along the axis of one unknown number: what each holds, the most that it may hold, and how far out it lies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.frames import Frame, frame_of_points, log_totals
from heliograph.oracles.problem import Problem, log_inputs, take_rows

__all__ = [
    "Segments",
    "Spread",
    "Weighed",
    "between",
    "distances",
    "join_weighed",
    "masses",
    "middles",
    "spread_of",
    "take_segments",
]


class Segments(NamedTuple):
    """Intervals of the axis."""

    row: np.ndarray  # (c,)
    u: np.ndarray  # (c, 2) ends
    v: np.ndarray  # (c, 2) outputs there, on their axis
    log_p: np.ndarray  # (c, 2) integrand there
    slack: np.ndarray  # (c,) how far beyond its ends the output may turn


class Weighed(NamedTuple):
    """Cells with the log of what each holds, and of the most that it may hold."""

    cells: Segments
    log_mass: np.ndarray  # (c,)
    log_most: np.ndarray  # (c,)


class Spread(NamedTuple):
    """The frame of each row, and the mean sizes (n, Q) of the statistics in it."""

    frame: Frame
    units: np.ndarray


def between(row: np.ndarray, u: np.ndarray, v: np.ndarray, log_p: np.ndarray) -> Segments:
    """The cells between neighbours of positions (r, k + 1), sorted along each row."""
    ends_u, ends_v, ends_p = (np.stack([a[:, :-1], a[:, 1:]], axis=-1).reshape(-1, 2) for a in (u, v, log_p))
    # between equal ends a parabola goes on by an eighth of what its second difference is at the nodes
    bend = np.abs(v[:, :-2] - 2 * v[:, 1:-1] + v[:, 2:])
    bend = np.concatenate([bend[:, :1], bend, bend[:, -1:]], axis=1)
    slack = np.maximum(0.5 * np.abs(v[:, 1:] - v[:, :-1]), 0.25 * np.maximum(bend[:, :-1], bend[:, 1:]))
    return Segments(np.repeat(row, u.shape[1] - 1), ends_u, ends_v, ends_p, slack.ravel())


def masses(problem: Problem, cells: Segments, mode: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Log mass (c,) by the ends of each cell, and the most that it may be if the output passes its message's mode."""
    width = np.maximum(cells.u[:, 1] - cells.u[:, 0], 1e-300)
    log_mass = np.logaddexp(cells.log_p[:, 0], cells.log_p[:, 1]) - np.log(2.0) + np.log(width)
    most = np.maximum(cells.log_p[:, 0], cells.log_p[:, 1]) + np.log(width)
    if mode is None:
        jump = cells.v[:, 0] != cells.v[:, 1]
        return log_mass, np.where(jump, most + 10.0, most)
    low, high = np.minimum(cells.v[:, 0], cells.v[:, 1]), np.maximum(cells.v[:, 0], cells.v[:, 1])
    inside = np.clip(mode[cells.row], low - cells.slack, high + cells.slack)
    places = np.concatenate([cells.v, inside[:, None]], axis=1)[..., None]
    message = problem.output.message[cells.row]
    log_out = problem.output.axis.log_message(message, places)
    best = np.where(np.isnan(log_out[:, 2]), -np.inf, log_out[:, 2])
    seen = np.maximum(log_out[:, 0], log_out[:, 1])
    middle = middles(cells.u)
    log_in = log_inputs(take_rows(problem, cells.row), middle)[:, 0]
    return log_mass, np.where(best > seen, np.maximum(most, log_in + best + np.log(width)), most)


def spread_of(problem: Problem, cells: Segments, log_mass: np.ndarray) -> Spread:
    """The frame from the middles of the cells; a row may have none."""
    u, v = middles(cells.u), middles(cells.v)
    frame = frame_of_points(problem, cells.row, u, v, log_mass[:, None])
    total = log_totals(problem.n, cells.row, log_mass)[cells.row]
    held = np.isfinite(log_mass)
    mass = np.exp(np.where(held, log_mass - np.where(held, total, 0.0), -np.inf))
    sizes = _sizes(problem, frame, cells)
    units = np.stack([np.bincount(cells.row, mass * size, minlength=problem.n) for size in sizes.T], axis=1)
    return Spread(frame, units)


def distances(problem: Problem, spread: Spread, cells: Segments) -> np.ndarray:
    """How far (c,) cells lie from the bulk of the belief: 1, and the sizes of their statistics beside the mean sizes."""
    units = spread.units[cells.row]
    return 1 + np.where(units > 0, _sizes(problem, spread.frame, cells) / np.where(units > 0, units, 1.0), 0.0).sum(
        axis=1
    )


def _sizes(problem: Problem, frame: Frame, cells: Segments) -> np.ndarray:
    """The statistics (c, Q) of input and output in the middle of each cell, without signs."""
    places = ((problem.inputs[0], cells.u), (problem.output, cells.v))
    found = [
        port.axis.statistics(middles(a), frame.centres[port.name][cells.row], frame.scales[port.name][cells.row])
        for port, a in places
    ]
    return np.abs(np.concatenate(found, axis=-1)[:, 0])


def middles(ends: np.ndarray) -> np.ndarray:
    """Of cells ``(c, 2)``, as points ``(c, 1, 1)``; a reduction over two numbers takes ten times as long as their sum."""
    return (0.5 * (ends[:, 0] + ends[:, 1]))[:, None, None]


def join_weighed(parts: list[Weighed]) -> Weighed:
    """Weighed cells one after the other."""
    cells = Segments(*(np.concatenate(a) for a in zip(*(p.cells for p in parts), strict=True)))
    return Weighed(cells, np.concatenate([p.log_mass for p in parts]), np.concatenate([p.log_most for p in parts]))


def take_segments(cells: Segments, which: np.ndarray) -> Segments:
    """Some of the cells."""
    return Segments(*(a[which] for a in cells))
