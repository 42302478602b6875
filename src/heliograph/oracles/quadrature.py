"""Quadrature as an oracle: the exact reference for deterministic factors of one or two random inputs.

The inputs' axes are cut into cells; each is integrated by a product of Gauss-Legendre rules and halved along every axis
until its parts agree with the whole. A cell is dropped only if nothing in it could matter: the bound takes the best
value that the output's message can have over the range of outputs seen in the cell, so that a narrow message between
two nodes is not missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import UnsupportedError
from heliograph.oracles.answer import Answer, gather
from heliograph.oracles.assembly import Frame, answer_of, blocks_of, frame_of_points, statistics_of
from heliograph.oracles.bounds import log_unknown, mode_of
from heliograph.oracles.certain import answer_if_certain
from heliograph.oracles.problem import Problem, groups_of, log_inputs, take_rows, walk
from heliograph.oracles.proposal import stand_in
from heliograph.oracles.sampler import Sampler
from heliograph.oracles.weighing import NOTICEABLE, refuse_observed

__all__ = ["QuadratureOracle"]

_NEGLIGIBLE = 40.0  # nats below the total: the square of a rounding error
_ORDINARY = 50.0  # a squared distance from the mean, in variances, that any belief shows
_HALF = 7.0  # of the first window, in root two deviations of the cavity
_ROUNDING = 1e-13  # of a sum of thousands of terms
_NODES = {1: 16, 2: 7}  # a cell and an axis


class Cells(NamedTuple):
    """Boxes on the whitened axes, and what was found at their nodes."""

    row: np.ndarray  # (c,)
    choice: np.ndarray  # (c,), which combination of the discrete inputs
    low: np.ndarray  # (c, C)
    high: np.ndarray  # (c, C)
    u: np.ndarray  # (c, g, D)
    v: np.ndarray  # (c, g, Dout)
    edge: np.ndarray  # (c, g)
    log_w: np.ndarray  # (c, g), integrand times quadrature weight
    log_most: np.ndarray  # (c,), bound on the log integral over the cell
    log_unlooked: np.ndarray  # (c, 2), bound on the log mass where the function gave no value, or an infinite one
    place: np.ndarray  # (c, D), one node at which it gave no value; NaN if there is none
    forced: np.ndarray  # (c,), accepted without being resolved
    offset: np.ndarray  # (c,), the largest log_w, or -1e300
    sums: np.ndarray  # (c, 1 + Q), of the weights and of weights times statistics, over exp(offset)
    sizes: np.ndarray  # (c, Q), the same without signs
    largest: np.ndarray  # (c, Q), the largest size of each statistic at a node
    missed: np.ndarray  # (c,), what may lie between the outermost nodes and the border, over exp(offset)


class Map(NamedTuple):
    """From whitened axes to coordinates, and the combinations of the discrete inputs."""

    mean: np.ndarray  # (n, C)
    root: np.ndarray  # (n, C, C)
    choices: np.ndarray  # (number of combinations, number of discrete inputs)


@dataclass(frozen=True)
class QuadratureOracle:
    """Adaptive quadrature to relative accuracy `tolerance`, with at most `max_cells` cells a row.

    Standard errors are the difference between the two finest resolutions. A row fails if its integrand does not
    fall off inside the largest window tried (an improper belief), or if the function is not resolved at all.
    """

    tolerance: float = 1e-10
    max_cells: int = 20_000
    max_levels: int = 40

    def ask(self, rng: np.random.Generator, sampler: Sampler, incoming: Mapping[str, Any]) -> Answer:
        """The beliefs of every direction, one row for each incoming tuple."""
        if sampler.stochastic:
            raise UnsupportedError(
                f"factor {sampler.name!r} is stochastic (it takes an rng), and quadrature needs a function of its "
                "inputs alone: use oracle='importance'"
            )
        parts, n = [], 0
        for rows, problem in groups_of(sampler, incoming):
            n += len(rows)
            if not problem.inputs:
                parts.append((rows, answer_if_certain(rng, problem)))
                continue
            refuse_observed(problem)
            d = sum(p.axis.n_coordinates for p in problem.continuous)
            if d > 2:
                raise UnsupportedError(
                    f"factor {sampler.name!r} has {d} unknown real numbers, and quadrature is for one or two: "
                    "use oracle='importance'"
                )
            block = 256 if d < 2 else 4  # so that the nodes of a block fit in memory
            for start in range(0, problem.n, block):
                here = np.arange(start, min(start + block, problem.n))
                parts.append((rows[here], self._ask_block(rng, take_rows(problem, here))))
        return gather(parts, n)

    def _ask_block(self, rng: np.random.Generator, problem: Problem) -> Answer:
        mean, covariance = stand_in(problem, 10.0)
        choices = np.array(list(product(*(range(p.axis.n_values) for p in problem.discrete))))
        # a first, rough pass finds where the belief lies, so that the cells of the second lie along it
        rough = replace(self, tolerance=1e-6 if mean.shape[1] < 2 else 1e-3, max_cells=500)
        map_ = Map(mean, np.linalg.cholesky(covariance), choices)
        cells, closed, spent = rough._window(rng, problem, map_)
        seen: list[Cells] = []
        spent += rough._refine(rng, problem, map_, cells, lambda whole, parts: seen.append(parts))
        found = _join(seen or [cells])
        frame = frame_of_points(problem, found.row, found.u, found.v, found.log_w)
        map_ = _closer(problem, found, map_, closed)
        cells, closed, n_more = self._window(rng, problem, map_, frame)
        totals: list[Totals] = []
        spent += n_more + self._refine(
            rng, problem, map_, cells, lambda whole, parts: totals.append(_integrate(whole, parts)), frame
        )
        return _settle(rng, problem, frame, totals, closed, spent)

    def _window(
        self, rng: np.random.Generator, problem: Problem, map_: Map, frame: Frame | None = None
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
            cells = _evaluate(rng, problem, map_, frame, row, choice, lows[box], highs[box])
            spent += cells.log_w.size
            total = _log_total(problem.n, cells)
            outer = ((cells.low <= -half) | (cells.high >= half)).any(axis=1)
            open_ = np.zeros(problem.n, dtype=bool)
            open_[cells.row[outer & (cells.log_most > total[cells.row] - _NEGLIGIBLE)]] = True
            open_[need] |= np.isneginf(total[need])  # nothing seen at all: look further out
            if not d:
                open_[:] = False
            kept.append(_take(cells, ~open_[cells.row]))
            closed[need] = ~open_[need]
            need = np.flatnonzero(open_)
            if not len(need):
                break
            half *= 2
        else:
            kept.append(_take(cells, open_[cells.row]))
        return _join(kept), closed, spent

    def _refine(
        self,
        rng: np.random.Generator,
        problem: Problem,
        map_: Map,
        cells: Cells,
        accept: Callable[[Cells, Cells], None],
        frame: Frame | None = None,
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
        for level in range(self.max_levels):
            total = np.logaddexp(_log_total(n, cells), log_done)
            # the mean size of each statistic so far: its unit, if the frame was badly chosen
            unit = np.maximum(1.0, done_sizes * np.exp(_below(log_done, total))[:, None] + _mean_sizes(n, cells, total))
            care = _log_care(cells, unit) if d < 2 else np.zeros(len(cells.row))
            kept = cells.log_most + care > total[cells.row] - _NEGLIGIBLE
            cells, care = _take(cells, kept), care[kept]
            if not len(cells.row):
                break
            low, high = _halves(cells.low, cells.high)
            row, choice = np.repeat(cells.row, m), np.repeat(cells.choice, m)
            parts = _evaluate(rng, problem, map_, frame, row, choice, low, high)
            spent += parts.log_w.size
            total = np.maximum(total, np.logaddexp(_log_total(n, parts), log_done))
            live = np.isfinite(total)[cells.row]
            scale = np.where(live, total[cells.row], 0.0)
            whole = cells.sums * np.exp(np.minimum(cells.offset - scale, 50.0))[:, None]
            halves = parts.sums * np.exp(np.minimum(parts.offset - np.repeat(scale, m), 50.0))[:, None]
            gaps = np.abs(whole - halves.reshape(len(whole), m, -1).sum(axis=1))
            # (the last two statistics, shares of outputs on an edge, need not be known so well)
            gap = np.maximum(gaps[:, 0], (gaps[:, 1:-2] / unit[cells.row][:, :-2]).max(axis=1, initial=0.0))
            missed = parts.missed * np.exp(np.minimum(parts.offset - np.repeat(scale, m), 50.0))
            gap = np.maximum(gap, missed.reshape(-1, m).sum(axis=1))
            # resolved if the halves add up to the whole, and no half could hold far more than its nodes show
            log_halves = _log_sum(parts).reshape(-1, m) - scale[:, None]
            most = parts.log_most.reshape(-1, m) - scale[:, None]
            hidden = (most > np.maximum(log_halves + 3.0, np.log(self.tolerance) - 5.0 - care[:, None])).any(axis=1)
            # where the function gives no value at any node there is nothing to resolve
            looked = np.isfinite(log_halves) | np.isneginf(parts.log_unlooked).all(axis=1).reshape(-1, m)
            hidden &= looked.any(axis=1)
            used += np.bincount(cells.row, minlength=n)
            resolved = (live & (gap <= self.tolerance) & ~hidden) | (d == 0)
            last = (level == self.max_levels - 1) | (used[cells.row] > self.max_cells)
            good = resolved | last
            done = _take(parts, np.repeat(good, m))
            if good.any():
                accept(_take(cells._replace(forced=~resolved), good), done)
            before, log_done = log_done, np.logaddexp(log_done, _log_total(n, done))
            done_sizes = done_sizes * np.exp(_below(before, log_done))[:, None] + _mean_sizes(n, done, log_done)
            cells = _take(parts, np.repeat(~good, m))
        return spent


class Totals(NamedTuple):
    """Integrals over accepted cells, relative to a log offset for each."""

    row: np.ndarray  # (c,)
    offset: np.ndarray  # (c,)
    fine: np.ndarray  # (c, 1 + Q): of 1 and of the statistics, by the halves
    size: np.ndarray  # (c, 1 + Q): the same without signs
    change: np.ndarray  # (c, 1 + Q): by how much that differs from the whole, and what both may have missed
    unseen: np.ndarray  # (c,): what an unresolved cell may hold
    forced: np.ndarray  # (c,)
    log_unlooked: np.ndarray  # (c, 2)
    place: np.ndarray  # (c, D)


def _below(log_part: np.ndarray, log_total: np.ndarray) -> np.ndarray:
    """``log_part - log_total``, and -inf where there is nothing."""
    some = np.isfinite(log_part) & np.isfinite(log_total)
    return np.where(some, np.where(some, log_part, 0.0) - np.where(some, log_total, 0.0), -np.inf)


def _mean_sizes(n: int, cells: Cells, log_total: np.ndarray) -> np.ndarray:
    """What cells add to the mean size (n, Q) of each statistic under a belief of that total."""
    sizes = np.zeros((n, cells.sizes.shape[1]))
    safe = np.where(np.isfinite(log_total), log_total, 0.0)
    np.add.at(sizes, cells.row, cells.sizes * np.exp(np.minimum(cells.offset - safe[cells.row], 50.0))[:, None])
    return sizes


def _log_care(cells: Cells, unit: np.ndarray) -> np.ndarray:
    """The log (c,) of the largest statistic at a cell's nodes, where that is far above what a belief itself shows."""
    largest = (cells.largest / unit[cells.row]).max(axis=1, initial=0.0)
    return np.log(np.clip(largest / _ORDINARY, 1.0, 1e12))


def _integrate(whole: Cells, parts: Cells) -> Totals:
    n, m = len(whole.row), len(parts.row) // len(whole.row)
    offset = np.maximum(whole.offset, parts.offset.reshape(n, m).max(axis=1))
    halves = parts.sums * np.exp(parts.offset - np.repeat(offset, m))[:, None]
    fine = halves.reshape(n, m, -1).sum(axis=1)
    coarse = whole.sums * np.exp(whole.offset - offset)[:, None]
    most = parts.log_most.reshape(n, m).max(axis=1) + np.log(m)
    unseen = np.where(whole.forced, np.exp(np.minimum(most - offset, 300.0)), 0.0)
    unlooked = np.logaddexp.reduce(parts.log_unlooked.reshape(n, m, 2), axis=1)
    place = parts.place.reshape(n, m, -1)
    place = np.take_along_axis(place, np.isnan(place[..., :1]).argmin(axis=1)[:, None], axis=1)[:, 0]
    sizes = (
        np.concatenate([parts.sums[:, :1], parts.sizes], axis=1) * np.exp(parts.offset - np.repeat(offset, m))[:, None]
    )
    size = sizes.reshape(n, m, -1).sum(axis=1)
    missed = (parts.missed * np.exp(parts.offset - np.repeat(offset, m))).reshape(n, m).sum(axis=1)
    change = np.abs(fine - coarse)
    change[:, 0] += missed
    return Totals(whole.row, offset, fine, size, change, unseen, whole.forced, unlooked, place)


def _settle(
    rng: np.random.Generator, problem: Problem, frame: Frame, totals: list[Totals], closed: np.ndarray, spent: int
) -> Answer:
    """Sum the cells; the errors are what halving each cell changed, added without signs."""
    n = problem.n
    width = blocks_of(problem)[-1].stop + 1
    row = np.concatenate([np.zeros(0, dtype=int), *(t.row for t in totals)])
    offset = np.concatenate([np.zeros(0), *(t.offset for t in totals)])
    fine, size, change = (np.concatenate([np.zeros((0, width)), *(t[k] for t in totals)]) for k in (2, 3, 4))
    unseen = np.concatenate([np.zeros(0), *(t.unseen for t in totals)])
    top = np.full(n, -np.inf)
    np.maximum.at(top, row, offset)
    live = top > -1e299
    w = np.exp(np.minimum(offset - np.where(live, top, 0.0)[row], 0.0))[:, None]
    total, changed = np.zeros((n, width)), np.zeros((n, width))
    np.add.at(total, row, w * fine)
    np.add.at(changed, row, w * (change + _ROUNDING * size))
    lost = np.bincount(row, w[:, 0] * unseen, minlength=n)
    z = np.where(live[:, None], total[:, :1], 1.0)
    expected = total[:, 1:] / z
    gap = changed / z
    doubt = gap[:, 0] + np.where(live, lost / z[:, 0], 0.0)
    spread = gap[:, 1:] + np.abs(expected) * doubt[:, None]
    overflows = _unlooked(rng, problem, totals, live, np.where(live, top, 0.0) + np.log(z[:, 0]))
    return answer_of(
        problem,
        frame,
        expected,
        tuple(spread[:, b, None] * spread[:, None, b] for b in blocks_of(problem)),
        log_z=np.where(live, np.where(live, top, 0.0) + np.log(z[:, 0]), -np.inf),
        log_z_error=np.where(live, doubt, np.inf),
        ess=np.full(n, np.inf),
        pareto_k=np.full(n, -1.0),
        # a row in which a hundredth may be missing is not an exact reference
        failed=~live | ~closed | (doubt > 0.01) | overflows,
        n_evaluations=spent,
    )


def _unlooked(
    rng: np.random.Generator, problem: Problem, totals: list[Totals], live: np.ndarray, log_z: np.ndarray
) -> np.ndarray:
    """Rows of which too much may lie where the function overflows; raises if it gives no value where there is mass."""
    n = problem.n
    share = np.zeros((n, 2))
    for t in totals:
        np.add.at(share, t.row, np.exp(np.minimum(t.log_unlooked - log_z[t.row][:, None], 50.0)))
    for t in totals:
        wrong = live[t.row] & (share[t.row, 0] > NOTICEABLE) & ~np.isnan(t.place[:, 0])
        for c in np.flatnonzero(wrong):
            walked = walk(rng, take_rows(problem, t.row[c : c + 1]), t.place[c][None, None])
            if walked.wrong is not None and walked.wrong[0, 0] == 1:
                raise walked.complain(0)
    return share.max(axis=1) > NOTICEABLE


def _closer(problem: Problem, found: Cells, first: Map, closed: np.ndarray) -> Map:
    """A map to the moments of the belief, if everything that was found to matter lies in a smaller window of it."""
    n, d = first.mean.shape
    if not d:
        return first
    columns = [c for p in problem.continuous for c in range(p.columns.start, p.columns.stop)]
    top = np.full(n, -np.inf)
    np.maximum.at(top, found.row, found.log_w.max(axis=1))
    usable = np.isfinite(top) & closed
    w = np.exp(found.log_w - np.where(np.isfinite(top), top, 0.0)[found.row][:, None])
    total = np.maximum(np.bincount(found.row, w.sum(axis=1), minlength=n), 1e-300)[:, None]
    mean = np.zeros_like(first.mean)
    np.add.at(mean, found.row, (w[:, None] @ found.u[..., columns])[:, 0])
    mean = mean / total
    gap = found.u[..., columns] - mean[found.row][:, None]
    second = np.zeros_like(first.root)
    np.add.at(second, found.row, np.swapaxes(w[..., None] * gap, 1, 2) @ gap)
    second = 2 * second / total[:, :, None]
    usable &= np.linalg.eigvalsh(second)[:, 0] > 1e-10 * np.trace(second, axis1=1, axis2=2)
    root = np.linalg.cholesky(np.where(usable[:, None, None], second, np.eye(d)))
    # the corners of every cell that matters, as the new map has them
    held = _take(found, found.log_most > _log_total(n, found)[found.row] - _NEGLIGIBLE)
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


def _evaluate(
    rng: np.random.Generator,
    problem: Problem,
    map_: Map,
    frame: Frame | None,
    row: np.ndarray,
    choice: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> Cells:
    """Integrand at the nodes of boxes, and its sums with the statistics in a frame."""
    d = low.shape[1]
    some = take_rows(problem, row)
    grid, log_rule, to_corners, border = _rule(d)
    plain = len(grid) - len(to_corners)
    t = 0.5 * (low + high)[:, None] + 0.5 * (high - low)[:, None] * grid
    u = np.empty((len(row), len(grid), problem.n_coordinates))
    columns = [c for p in problem.continuous for c in range(p.columns.start, p.columns.stop)]
    u[..., columns] = map_.mean[row][:, None] + t @ np.swapaxes(map_.root[row], 1, 2)
    for j, port in enumerate(problem.discrete):
        u[..., port.columns.start] = map_.choices[choice, j][:, None]
    log_root = np.log(np.diagonal(map_.root, axis1=-2, axis2=-1)).sum(axis=-1)[row]
    log_volume = np.log(0.5 * (high - low)).sum(axis=-1) + log_root
    walked = walk(rng, some, u)
    v, edge = walked.v, walked.edge
    log_in = log_inputs(some, u)
    log_out = some.output.axis.log_message(some.output.message, v)
    log_unlooked = np.full((len(row), 2), -np.inf)
    if walked.wrong is not None:
        log_out = np.where(walked.wrong > 0, -np.inf, log_out)
        for k in (0, 1):
            alone = walked._replace(wrong=np.where(walked.wrong == k + 1, walked.wrong, 0))
            log_unlooked[:, k] = log_unknown(some, alone, log_in, log_rule + log_volume[:, None])
    log_w = log_in + log_out + log_rule + log_volume[:, None]
    log_w = np.where(np.isnan(log_w), -np.inf, log_w)
    place = np.full((len(row), problem.n_coordinates), np.nan)
    if walked.wrong is not None:
        node = np.where(walked.wrong == 1, log_in, -np.inf).argmax(axis=1)
        here = np.flatnonzero((walked.wrong == 1).any(axis=1))
        place[here] = u[here, node[here]]
    # what was seen, one nat for what the inputs' messages may do between the nodes, and what the output's may do there
    log_most = _log_highest(some, v, log_in, log_out, d) + 1.0 + log_volume + d * np.log(2.0)
    log_most = np.logaddexp(log_most, log_unlooked.max(axis=1))
    offset = log_w.max(axis=1)
    offset = np.where(np.isfinite(offset), offset, -1e300)
    w = np.exp(log_w - offset[:, None])
    # at the corners, the integrand less what its values at the nodes foretell: a cliff that no node has seen
    log_f = np.where(np.isnan(log_in + log_out), -np.inf, log_in + log_out) + (log_volume - offset)[:, None]
    f = np.exp(np.minimum(log_f, 300.0))
    missed = border * np.abs(f[:, plain:] - f[:, :plain] @ to_corners.T).max(axis=1, initial=0.0)
    sums, sizes, largest = w.sum(axis=1)[:, None], np.zeros((len(row), 0)), np.zeros((len(row), 0))
    if frame is not None:
        t = statistics_of(some, frame, row, u, v, edge)
        if walked.wrong is not None:
            t = np.where((walked.wrong > 0)[..., None], 0.0, t)
        sums = np.concatenate([sums, (w[:, None] @ t)[:, 0]], axis=1)
        np.abs(t, out=t)
        sizes, largest = (w[:, None] @ t)[:, 0], t.max(axis=1)
    forced = np.zeros(len(row), dtype=bool)
    found = (u, v, edge, log_w, log_most, log_unlooked, place, forced, offset, sums, sizes, largest, missed)
    return Cells(row, choice, low, high, *found)


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
    at_nodes = (log_in + log_out).max(axis=1)
    seen, least = log_out.max(axis=1), log_out.min(axis=1)
    if axis.discrete:
        return at_nodes + np.where((v == v[:, :1]).all(axis=(1, 2)), 0.0, 10.0)  # a jump inside
    if axis.n_coordinates > 1:
        return at_nodes + np.where(np.isfinite(least), 0.5 * (seen - least), 0.0)
    slack = 0.5 * _steps(v[..., 0], d)  # between two nodes it may turn, and go on by half the step
    low, high = (v[..., 0] - slack).min(axis=1), (v[..., 0] + slack).max(axis=1)
    places = np.stack([low, np.clip(mode_of(message), low, high), high], axis=1)
    best = axis.log_message(message, places[..., None]).max(axis=1)
    best = np.where(np.isnan(best), -np.inf, best)
    # not by the difference of the two, of which nothing may be left when both are large
    return np.where(best > seen, log_in.max(axis=1) + best, at_nodes)


def _halves(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every box cut in two along every axis, the parts of a box one after the other."""
    d = low.shape[1]
    middle = 0.5 * (low + high)
    sides = np.array(list(product((0, 1), repeat=d)), dtype=bool).reshape(2**d, d)
    lows = np.where(sides, middle[:, None], low[:, None]).reshape(-1, d)
    return lows, np.where(sides, high[:, None], middle[:, None]).reshape(-1, d)


def _log_sum(cells: Cells) -> np.ndarray:
    """The log integral (c,) over each cell."""
    total = cells.sums[:, 0]
    return np.where(total > 0, cells.offset + np.log(np.where(total > 0, total, 1.0)), -np.inf)


def _log_total(n: int, cells: Cells) -> np.ndarray:
    """The log integral (n,) over the cells of each row."""
    each = _log_sum(cells)
    top = np.full(n, -np.inf)
    np.maximum.at(top, cells.row, each)
    safe = np.where(np.isfinite(top), top, 0.0)
    total = np.bincount(cells.row, np.exp(each - safe[cells.row]), minlength=n)
    return np.where(total > 0, safe + np.log(np.where(total > 0, total, 1.0)), -np.inf)


def _take(cells: Cells, which: np.ndarray) -> Cells:
    return Cells(*(a[which] for a in cells))


def _join(parts: list[Cells]) -> Cells:
    return parts[0] if len(parts) == 1 else Cells(*(np.concatenate(a) for a in zip(*parts, strict=True)))
