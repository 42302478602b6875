"""The window in which cells are laid, and how they are halved until they are resolved."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

from heliograph.oracles.frames import Frame
from heliograph.oracles.problem import Problem, continuous_columns
from heliograph.oracles.quadrature.cells import (
    Cells,
    Map,
    halves,
    join,
    log_below,
    log_sum,
    log_total,
    mean_sizes,
    take,
)
from heliograph.oracles.quadrature.evaluation import evaluate_cells

__all__ = ["Limits", "closer", "open_window", "refine"]

_NEGLIGIBLE = 40.0  # nats below the total: the square of a rounding error
_ORDINARY = 50.0  # a squared distance from the mean, in variances, that any belief shows
_HALF = 7.0  # of the first window, in root two deviations of the cavity


class Limits(NamedTuple):
    """How finely to look."""

    tolerance: float  # relative
    max_cells: int  # of a row
    max_levels: int


def open_window(
    rng: np.random.Generator, problem: Problem, map_: Map, frame: Frame | None = None
) -> tuple[Cells, np.ndarray, int]:
    """First cells of every row, in a window wide enough that nothing matters at its border."""
    d = map_.mean.shape[1]
    n_cells = {0: 1, 1: 40, 2: 16}[d]
    need, half, spent = np.arange(problem.n), _HALF, 0
    kept: list[Cells] = []
    closed = np.ones(problem.n, dtype=bool)
    for _ in range(16):
        edges = np.linspace(-half, half, n_cells + 1)
        corner = np.array(list(product(range(n_cells), repeat=d))).reshape(-1, d)
        lows, highs = edges[corner], edges[corner + 1]
        row, choice, box = (
            a.ravel() for a in np.meshgrid(need, np.arange(len(map_.choices)), np.arange(len(lows)), indexing="ij")
        )
        cells = evaluate_cells(rng, problem, map_, frame, row, choice, lows[box], highs[box])
        spent += cells.log_w.size
        total = log_total(problem.n, cells)
        outer = ((cells.low <= -half) | (cells.high >= half)).any(axis=1)
        open_ = np.zeros(problem.n, dtype=bool)
        open_[cells.row[outer & (cells.log_most > total[cells.row] - _NEGLIGIBLE)]] = True
        open_[need] |= np.isneginf(total[need])  # nothing seen at all: look further out
        if not d:
            open_[:] = False
        kept.append(take(cells, ~open_[cells.row]))
        closed[need] = ~open_[need]
        need = np.flatnonzero(open_)
        if not len(need):
            break
        half *= 2
    else:
        kept.append(take(cells, open_[cells.row]))
    return join(kept), closed, spent


def refine(
    rng: np.random.Generator,
    problem: Problem,
    map_: Map,
    cells: Cells,
    accept: Callable[[Cells, Cells], None],
    frame: Frame | None,
    limits: Limits,
) -> int:
    """Halve cells until they are resolved, and hand over each with its halves when it is; the number of calls.

    With a frame, mass counts as much as the statistics there are large in it: beside a needle, a thousandth of a
    millionth far away may be all of the variance.
    """
    spent = 0
    n, d = problem.n, map_.mean.shape[1]
    m = 2**d
    log_done, done_sizes = np.full(n, -np.inf), np.zeros((n, cells.sizes.shape[1]))
    used = np.zeros(n)
    for level in range(limits.max_levels):
        total = np.logaddexp(log_total(n, cells), log_done)
        # the mean size of each statistic so far: its unit, if the frame was badly chosen
        unit = np.maximum(1.0, done_sizes * np.exp(log_below(log_done, total))[:, None] + mean_sizes(n, cells, total))
        care = _log_care(cells, unit) if d < 2 else np.zeros(len(cells.row))
        kept = cells.log_most + care > total[cells.row] - _NEGLIGIBLE
        cells, care = take(cells, kept), care[kept]
        if not len(cells.row):
            break
        low, high = halves(cells.low, cells.high)
        row, choice = np.repeat(cells.row, m), np.repeat(cells.choice, m)
        parts = evaluate_cells(rng, problem, map_, frame, row, choice, low, high)
        spent += parts.log_w.size
        total = np.maximum(total, np.logaddexp(log_total(n, parts), log_done))
        resolved = _resolved(cells, parts, total, unit, care, limits.tolerance) | (d == 0)
        used += np.bincount(cells.row, minlength=n)
        good = resolved | (level == limits.max_levels - 1) | (used[cells.row] > limits.max_cells)
        done = take(parts, np.repeat(good, m))
        if good.any():
            accept(take(cells._replace(forced=~resolved), good), done)
        before, log_done = log_done, np.logaddexp(log_done, log_total(n, done))
        done_sizes = done_sizes * np.exp(log_below(before, log_done))[:, None] + mean_sizes(n, done, log_done)
        cells = take(parts, np.repeat(~good, m))
    return spent


def _resolved(
    cells: Cells, parts: Cells, total: np.ndarray, unit: np.ndarray, care: np.ndarray, tolerance: float
) -> np.ndarray:
    """Which cells (c,) bool have halves that add up to the whole, none of which could hold far more than its nodes show."""
    m = len(parts.row) // len(cells.row)
    live = np.isfinite(total)[cells.row]
    scale = np.where(live, total[cells.row], 0.0)
    shrink = np.exp(np.minimum(parts.offset - np.repeat(scale, m), 50.0))
    whole = cells.sums * np.exp(np.minimum(cells.offset - scale, 50.0))[:, None]
    gaps = np.abs(whole - (parts.sums * shrink[:, None]).reshape(len(whole), m, -1).sum(axis=1))
    # (the last two statistics, shares of outputs on an edge, need not be known so well)
    gap = np.maximum(gaps[:, 0], (gaps[:, 1:-2] / unit[cells.row][:, :-2]).max(axis=1, initial=0.0))
    gap = np.maximum(gap, (parts.missed * shrink).reshape(-1, m).sum(axis=1))
    log_halves = log_sum(parts).reshape(-1, m) - scale[:, None]
    most = parts.log_most.reshape(-1, m) - scale[:, None]
    hidden = (most > np.maximum(log_halves + 3.0, np.log(tolerance) - 5.0 - care[:, None])).any(axis=1)
    # where the function gives no value at any node there is nothing to resolve
    looked = np.isfinite(log_halves) | np.isneginf(parts.log_unlooked).all(axis=1).reshape(-1, m)
    return live & (gap <= tolerance) & ~(hidden & looked.any(axis=1))


def _log_care(cells: Cells, unit: np.ndarray) -> np.ndarray:
    """The log (c,) of the largest statistic at a cell's nodes, where that is far above what a belief itself shows."""
    largest = (cells.largest / unit[cells.row]).max(axis=1, initial=0.0)
    return np.log(np.clip(largest / _ORDINARY, 1.0, 1e12))


def closer(problem: Problem, found: Cells, first: Map, closed: np.ndarray) -> Map:
    """A map to the moments of the belief, if everything that was found to matter lies in a smaller window of it."""
    n, d = first.mean.shape
    if not d:
        return first
    usable, mean, second = _moments(problem, found, first, closed)
    usable &= np.linalg.eigvalsh(second)[:, 0] > 1e-10 * np.trace(second, axis1=1, axis2=2)
    root = np.linalg.cholesky(np.where(usable[:, None, None], second, np.eye(d)))
    # the corners of every cell that matters, as the new map has them
    held = take(found, found.log_most > log_total(n, found)[found.row] - _NEGLIGIBLE)
    sides = np.array(list(product((0, 1), repeat=d)), dtype=bool)
    corner = np.where(sides, held.high[:, None], held.low[:, None])
    x = first.mean[held.row][:, None] + corner @ np.swapaxes(first.root[held.row], 1, 2)
    t = (x - mean[held.row][:, None]) @ np.swapaxes(np.linalg.inv(root)[held.row], 1, 2)
    farthest = np.full(n, _HALF)
    np.maximum.at(farthest, held.row, np.abs(t).max(axis=(1, 2)))
    root = root * (farthest / _HALF)[:, None, None]
    smaller = np.abs(np.linalg.det(root)) < np.abs(np.linalg.det(first.root))
    usable &= smaller & np.isfinite(farthest)
    return Map(
        np.where(usable[:, None], mean, first.mean), np.where(usable[:, None, None], root, first.root), first.choices
    )


def _moments(
    problem: Problem, found: Cells, first: Map, closed: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in which anything was found, and mean and twice the covariance of the nodes there."""
    n = len(first.mean)
    columns = continuous_columns(problem)
    top = np.full(n, -np.inf)
    np.maximum.at(top, found.row, found.log_w.max(axis=1))
    w = np.exp(found.log_w - np.where(np.isfinite(top), top, 0.0)[found.row][:, None])
    total = np.maximum(np.bincount(found.row, w.sum(axis=1), minlength=n), 1e-300)[:, None]
    mean = np.zeros_like(first.mean)
    np.add.at(mean, found.row, (w[:, None] @ found.u[..., columns])[:, 0])
    mean = mean / total
    gap = found.u[..., columns] - mean[found.row][:, None]
    second = np.zeros_like(first.root)
    np.add.at(second, found.row, np.swapaxes(w[..., None] * gap, 1, 2) @ gap)
    return np.isfinite(top) & closed, mean, 2 * second / total[:, :, None]
