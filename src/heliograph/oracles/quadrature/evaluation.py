"""The integrand at the nodes of cells, with a bound on what lies between them."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from heliograph.oracles.frames import Frame, statistics_of
from heliograph.oracles.problem import Problem, Walked, continuous_columns, log_inputs, log_unknown, take_rows, walk
from heliograph.oracles.quadrature.cells import Cells, Map

__all__ = ["evaluate_cells"]

_NODES = {1: 16, 2: 7}  # a cell and an axis


@cache
def _rule(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Nodes and then corners of a cell, their log weights, the way from nodes to corners, and the share of the border.

    The corners have no weight. What the nodes foretell there (the polynomial through them) shows what they have not seen.
    """
    if not d:
        return np.zeros((1, 0)), np.zeros(1), np.zeros((0, 1)), 0.0
    x, w = np.polynomial.legendre.leggauss(_NODES[d])
    corners = np.array(list(product((-1.0, 1.0), repeat=d)))
    grid = np.concatenate([np.array(list(product(x, repeat=d))), corners])
    log_rule = np.log(np.array(list(product(w, repeat=d)))).sum(axis=-1)
    ends = np.array(
        [[np.prod((e - np.delete(x, j)) / (x[j] - np.delete(x, j))) for j in range(len(x))] for e in (-1, 1)]
    )
    to_corners = ends
    for _ in range(d - 1):
        to_corners = np.kron(to_corners, ends)
    return grid, np.concatenate([log_rule, np.full(len(corners), -np.inf)]), to_corners, 2.0**d * 0.5 * (1 - x[-1])


def evaluate_cells(
    rng: np.random.Generator,
    problem: Problem,
    map_: Map,
    frame: Frame | None,
    row: np.ndarray,
    choice: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> Cells:
    """Integrand at the nodes of boxes, and its sums with the statistics in a frame.

    Parameters
    ----------
    map_ : from the whitened axes to coordinates
    frame : the unit of the statistics; None to leave them out
    row, choice : (c,), to which row each box belongs, and to which combination of the discrete inputs
    low, high : (c, C), its corners on the whitened axes
    """
    d = low.shape[1]
    some = take_rows(problem, row)
    grid, log_rule, to_corners, border = _rule(d)
    plain = len(grid) - len(to_corners)
    u = _places(problem, map_, row, choice, 0.5 * (low + high)[:, None] + 0.5 * (high - low)[:, None] * grid)
    log_root = np.log(np.diagonal(map_.root, axis1=-2, axis2=-1)).sum(axis=-1)[row]
    log_volume = np.log(0.5 * (high - low)).sum(axis=-1) + log_root
    walked = walk(rng, some, u)
    v, edge = walked.v, walked.edge
    log_in = log_inputs(some, u)
    log_out = some.output.axis.log_message(some.output.message, v)
    if walked.wrong is not None:
        log_out = np.where(walked.wrong > 0, -np.inf, log_out)
    log_unlooked, place = _unlooked(some, walked, u, log_in, log_rule + log_volume[:, None])
    log_w = log_in + log_out + log_rule + log_volume[:, None]
    log_w = np.where(np.isnan(log_w), -np.inf, log_w)
    # what was seen, one nat for what the inputs' messages may do between the nodes, and what the output's may do there
    log_most = _log_highest(some, v, log_in, log_out, d) + 1.0 + log_volume + d * np.log(2.0)
    log_most = np.logaddexp(log_most, log_unlooked.max(axis=1))
    offset = log_w.T.copy().max(axis=0)
    offset = np.where(np.isfinite(offset), offset, -1e300)
    w = np.exp(log_w - offset[:, None])
    # at the corners, the integrand less what its values at the nodes foretell: a cliff that no node has seen
    log_f = np.where(np.isnan(log_in + log_out), -np.inf, log_in + log_out) + (log_volume - offset)[:, None]
    f = np.exp(np.minimum(log_f, 300.0))
    missed = border * np.abs(f[:, plain:] - f[:, :plain] @ to_corners.T).max(axis=1, initial=0.0)
    sums = _sums(some, frame, row, u, walked, w)
    forced = np.zeros(len(row), dtype=bool)
    return Cells(
        row, choice, low, high, u, v, edge, log_w, log_most, log_unlooked, place, forced, offset, *sums, missed
    )


def _places(problem: Problem, map_: Map, row: np.ndarray, choice: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Coordinates (c, g, D) of places (c, g, C) on the whitened axes."""
    u = np.empty((*t.shape[:2], problem.n_coordinates))
    u[..., continuous_columns(problem)] = map_.mean[row][:, None] + t @ np.swapaxes(map_.root[row], 1, 2)
    for j, port in enumerate(problem.discrete):
        u[..., port.columns.start] = map_.choices[choice, j][:, None]
    return u


def _unlooked(
    problem: Problem, walked: Walked, u: np.ndarray, log_in: np.ndarray, rule: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (c, 2) on the log mass where the function gave no value or an infinite one, and a place (c, D) of the first kind."""
    log_unlooked = np.full((len(u), 2), -np.inf)
    place = np.full((len(u), u.shape[-1]), np.nan)
    if walked.wrong is None:
        return log_unlooked, place
    for k in (0, 1):
        alone = walked._replace(wrong=np.where(walked.wrong == k + 1, walked.wrong, 0))
        log_unlooked[:, k] = log_unknown(problem, alone, log_in, rule)
    node = np.where(walked.wrong == 1, log_in, -np.inf).argmax(axis=1)
    here = np.flatnonzero((walked.wrong == 1).any(axis=1))
    place[here] = u[here, node[here]]
    return log_unlooked, place


def _sums(
    problem: Problem, frame: Frame | None, row: np.ndarray, u: np.ndarray, walked: Walked, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each cell: sums of the weights and of weights times statistics, the latter without signs, and the largest statistics."""
    sums = w.sum(axis=1)[:, None]
    if frame is None:
        return sums, np.zeros((len(row), 0)), np.zeros((len(row), 0))
    t = statistics_of(problem, frame, row, u, walked.v, walked.edge)
    if walked.wrong is not None:
        t = np.where((walked.wrong > 0)[..., None], 0.0, t)
    sums = np.concatenate([sums, (w[:, None] @ t)[:, 0]], axis=1)
    np.abs(t, out=t)
    return sums, (w[:, None] @ t)[:, 0], t.max(axis=1)


def _steps(v: np.ndarray, d: int) -> np.ndarray:
    """The largest difference (c, g) of the output from a node or corner to its neighbours."""
    if not d:
        return np.zeros_like(v)
    k = _NODES[d]
    nodes = v[:, : k**d].reshape(len(v), *[k] * d)
    steps = np.zeros_like(nodes)
    for axis in range(1, d + 1):
        gap = np.abs(np.diff(nodes, axis=axis))
        none = [(0, 0)] * (d + 1)
        before, after = list(none), list(none)
        before[axis], after[axis] = (1, 0), (0, 1)
        steps = np.maximum(steps, np.maximum(np.pad(gap, before), np.pad(gap, after)))
    outermost = [nodes[(slice(None), *side)] for side in product((0, -1), repeat=d)]
    return np.concatenate([steps.reshape(len(v), -1), np.abs(v[:, k**d :] - np.stack(outermost, axis=1))], axis=1)


def _log_highest(problem: Problem, v: np.ndarray, log_in: np.ndarray, log_out: np.ndarray, d: int) -> np.ndarray:
    """The largest integrand that a cell may hold, judging by the range of outputs at its nodes."""
    axis, message = problem.output.axis, problem.output.message
    log_in, log_out = log_in.T.copy(), log_out.T.copy()  # few nodes: along the first axis NumPy is three times as fast
    at_nodes = (log_in + log_out).max(axis=0)
    seen, least = log_out.max(axis=0), log_out.min(axis=0)
    if axis.discrete:
        return at_nodes + np.where((v == v[:, :1]).all(axis=(1, 2)), 0.0, 10.0)  # a jump inside
    if axis.n_coordinates > 1:
        return at_nodes + np.where(np.isfinite(least), 0.5 * (seen - least), 0.0)
    slack, value = 0.5 * _steps(v[..., 0], d).T, v[..., 0].T.copy()  # between nodes it may go on by half the step
    low, high = (value - slack).min(axis=0), (value + slack).max(axis=0)
    places = np.stack([low, np.clip(axis.mode(message), low, high), high], axis=1)
    best = axis.log_message(message, places[..., None]).max(axis=1)
    best = np.where(np.isnan(best), -np.inf, best)
    # not by the difference of the two, of which nothing may be left when both are large
    return np.where(best > seen, log_in.max(axis=0) + best, at_nodes)
