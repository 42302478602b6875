"""Quadrature as an oracle: the exact reference for deterministic factors of one or two random inputs.

The inputs' axes are cut into cells; each is integrated by a product of Gauss-Legendre rules and halved along every axis
until its parts agree with the whole. A cell is dropped only if nothing in it could matter: the bound takes the best
value that the output's message can have over the range of outputs seen in the cell, so that a narrow message between
two nodes is not missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from heliograph.errors import UnsupportedError
from heliograph.families import Beta, Family, Gamma, Gaussian
from heliograph.oracles.answer import Answer, gather
from heliograph.oracles.assembly import Frame, answer_of, blocks_of, frame_of_points, statistics_of
from heliograph.oracles.certain import answer_if_certain
from heliograph.oracles.problem import Problem, groups_of, log_inputs, take_rows, walk
from heliograph.oracles.proposal import stand_in
from heliograph.oracles.sampler import Sampler
from heliograph.oracles.weighing import refuse_observed

__all__ = ["QuadratureOracle"]

_NEGLIGIBLE = 40.0  # nats below the total: the square of a rounding error
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
    forced: np.ndarray  # (c,), accepted without being resolved


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
        rough = replace(self, tolerance=1e-3, max_cells=500)
        map_ = Map(mean, np.linalg.cholesky(covariance), choices)
        cells, closed, spent = rough._window(rng, problem, map_)
        seen: list[Cells] = []
        spent += rough._refine(rng, problem, map_, cells, lambda whole, parts: seen.append(parts))
        found = _join(seen or [cells])
        frame = frame_of_points(problem, found.row, found.u, found.v, found.log_w)
        mean, covariance = _moments(problem, found, mean, covariance, closed)
        map_ = Map(mean, np.linalg.cholesky(covariance), choices)
        cells, closed, n_more = self._window(rng, problem, map_)
        totals: list[Totals] = []
        spent += n_more + self._refine(
            rng, problem, map_, cells, lambda whole, parts: totals.append(_integrate(problem, frame, whole, parts))
        )
        return _settle(problem, frame, totals, closed, spent)

    def _window(self, rng: np.random.Generator, problem: Problem, map_: Map) -> tuple[Cells, np.ndarray, int]:
        """First cells of every row, in a window wide enough that nothing matters at its border."""
        d = map_.mean.shape[1]
        n_cells = {0: 1, 1: 40, 2: 16}[d]
        need, half, spent = np.arange(problem.n), 7.0, 0
        kept: list[Cells] = []
        closed = np.ones(problem.n, dtype=bool)
        for _ in range(16):
            edges = np.linspace(-half, half, n_cells + 1)
            corner = np.array(list(product(range(n_cells), repeat=d))).reshape(-1, d)
            lows, highs = edges[corner], edges[corner + 1]
            row, choice, box = (
                a.ravel() for a in np.meshgrid(need, np.arange(len(map_.choices)), np.arange(len(lows)), indexing="ij")
            )
            cells = _evaluate(rng, problem, map_, row, choice, lows[box], highs[box])
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
    ) -> int:
        """Halve cells until they are resolved, and hand over each with its halves when it is; the number of calls."""
        spent = 0
        n, d = problem.n, map_.mean.shape[1]
        m = 2**d
        log_done = np.full(n, -np.inf)
        used = np.zeros(n)
        for level in range(self.max_levels):
            total = np.logaddexp(_log_total(n, cells), log_done)
            cells = _take(cells, cells.log_most > total[cells.row] - _NEGLIGIBLE)
            if not len(cells.row):
                break
            low, high = _halves(cells.low, cells.high)
            parts = _evaluate(rng, problem, map_, np.repeat(cells.row, m), np.repeat(cells.choice, m), low, high)
            spent += parts.log_w.size
            total = np.maximum(total, np.logaddexp(_log_total(n, parts), log_done))
            live = np.isfinite(total)[cells.row]
            scale = np.where(live, total[cells.row], 0.0)
            whole = np.exp(np.minimum(_log_sum(cells.log_w) - scale, 50.0))
            log_halves = _log_sum(parts.log_w).reshape(-1, m) - scale[:, None]
            gap = np.abs(whole - np.exp(np.minimum(log_halves, 50.0)).sum(axis=1))
            # resolved if the halves add up to the whole, and no half could hold far more than its nodes show
            most = parts.log_most.reshape(-1, m) - scale[:, None]
            hidden = (most > np.maximum(log_halves + 3.0, np.log(self.tolerance) - 5.0)).any(axis=1)
            used += np.bincount(cells.row, minlength=n)
            resolved = (live & (gap <= self.tolerance) & ~hidden) | (d == 0)
            last = (level == self.max_levels - 1) | (used[cells.row] > self.max_cells)
            good = resolved | last
            done = _take(parts, np.repeat(good, m))
            accept(_take(cells._replace(forced=~resolved), good), done)
            log_done = np.logaddexp(log_done, _log_total(n, done))
            cells = _take(parts, np.repeat(~good, m))
        return spent


class Totals(NamedTuple):
    """Integrals over accepted cells, relative to a log offset for each."""

    row: np.ndarray  # (c,)
    offset: np.ndarray  # (c,)
    fine: np.ndarray  # (c, 1 + Q): of 1 and of the statistics, by the halves
    change: np.ndarray  # (c, 1 + Q): by which that differs from the whole
    unseen: np.ndarray  # (c,): what an unresolved cell may hold
    forced: np.ndarray  # (c,)


def _integrate(problem: Problem, frame: Frame, whole: Cells, parts: Cells) -> Totals:
    n, m = len(whole.row), max(1, len(parts.row) // max(1, len(whole.row)))
    offset = np.maximum(whole.log_w.max(axis=1), parts.log_w.max(axis=1).reshape(n, m).max(axis=1))
    offset = np.where(np.isfinite(offset), offset, -1e300)
    each = []
    for cells, base in ((parts, np.repeat(offset, m)), (whole, offset)):
        t = statistics_of(take_rows(problem, cells.row), frame, cells.row, cells.u, cells.v, cells.edge)
        w = np.exp(cells.log_w - base[:, None])
        each.append(np.concatenate([w.sum(axis=1)[:, None], (w[:, None] @ t)[:, 0]], axis=1))
    fine = each[0].reshape(n, m, -1).sum(axis=1) if n else each[1]
    most = parts.log_most.reshape(n, m).max(axis=1) + np.log(m)
    unseen = np.where(whole.forced, np.exp(np.minimum(most - offset, 300.0)), 0.0)
    return Totals(whole.row, offset, fine, fine - each[1], unseen, whole.forced)


def _settle(problem: Problem, frame: Frame, totals: list[Totals], closed: np.ndarray, spent: int) -> Answer:
    """Sum the cells; the errors are what halving the cells changed, without signs where a cell was not resolved."""
    n = problem.n
    width = blocks_of(problem)[-1].stop + 1
    row = np.concatenate([np.zeros(0, dtype=int), *(t.row for t in totals)])
    offset = np.concatenate([np.zeros(0), *(t.offset for t in totals)])
    fine, change = (np.concatenate([np.zeros((0, width)), *(t[k] for t in totals)]) for k in (2, 3))
    unseen = np.concatenate([np.zeros(0), *(t.unseen for t in totals)])
    forced = np.concatenate([np.zeros(0, dtype=bool), *(t.forced for t in totals)])[:, None]
    top = np.full(n, -np.inf)
    np.maximum.at(top, row, offset)
    live = top > -1e299
    w = np.exp(np.minimum(offset - np.where(live, top, 0.0)[row], 0.0))[:, None]
    total, signed, plain = np.zeros((n, width)), np.zeros((n, width)), np.zeros((n, width))
    np.add.at(total, row, w * fine)
    np.add.at(signed, row, np.where(forced, 0.0, w * change))
    np.add.at(plain, row, np.where(forced, w * np.abs(change), 0.0))
    lost = np.bincount(row, w[:, 0] * unseen, minlength=n)
    z = np.where(live[:, None], total[:, :1], 1.0)
    expected = total[:, 1:] / z
    gap = (np.abs(signed) + plain) / z
    doubt = gap[:, 0] + np.where(live, lost / z[:, 0], 0.0)
    spread = gap[:, 1:] + np.abs(expected) * doubt[:, None]
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
        failed=~live | ~closed | (doubt > 0.01),
        n_evaluations=spent,
    )


def _moments(
    problem: Problem, cells: Cells, mean: np.ndarray, covariance: np.ndarray, closed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and (widened) covariance of the belief over the inputs, where it was found."""
    n = problem.n
    columns = [c for p in problem.continuous for c in range(p.columns.start, p.columns.stop)]
    top = np.full(n, -np.inf)
    np.maximum.at(top, cells.row, cells.log_w.max(axis=1))
    usable = np.isfinite(top) & closed
    w = np.exp(cells.log_w - np.where(np.isfinite(top), top, 0.0)[cells.row][:, None])
    total = np.maximum(np.bincount(cells.row, w.sum(axis=1), minlength=n), 1e-300)[:, None]
    first = np.zeros_like(mean)
    np.add.at(first, cells.row, (w[:, None] @ cells.u[..., columns])[:, 0])
    first = first / total
    gap = cells.u[..., columns] - first[cells.row][:, None]
    second = np.zeros_like(covariance)
    np.add.at(second, cells.row, np.swapaxes(w[..., None] * gap, 1, 2) @ gap)
    second = second / total[:, :, None]
    usable &= np.linalg.eigvalsh(second)[:, 0] > 1e-10 * np.trace(second, axis1=1, axis2=2)
    return np.where(usable[:, None], first, mean), np.where(usable[:, None, None], 2 * second, covariance)


def _evaluate(
    rng: np.random.Generator,
    problem: Problem,
    map_: Map,
    row: np.ndarray,
    choice: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> Cells:
    """Integrand at the nodes of boxes."""
    d = low.shape[1]
    some = take_rows(problem, row)
    if d:
        x, w = np.polynomial.legendre.leggauss(_NODES[d])
        corners = np.array(list(product((-1.0, 1.0), repeat=d)))  # of no weight, but they show a jump beyond the nodes
        grid = np.concatenate([np.array(list(product(x, repeat=d))), corners])
        log_rule = np.log(np.array(list(product(w, repeat=d)))).sum(axis=-1)
        log_rule = np.concatenate([log_rule, np.full(len(corners), -np.inf)])
    else:
        grid, log_rule = np.zeros((1, 0)), np.zeros(1)
    t = 0.5 * (low + high)[:, None] + 0.5 * (high - low)[:, None] * grid
    u = np.empty((len(row), len(grid), problem.n_coordinates))
    columns = [c for p in problem.continuous for c in range(p.columns.start, p.columns.stop)]
    u[..., columns] = map_.mean[row][:, None] + t @ np.swapaxes(map_.root[row], 1, 2)
    for j, port in enumerate(problem.discrete):
        u[..., port.columns.start] = map_.choices[choice, j][:, None]
    log_root = np.log(np.diagonal(map_.root, axis1=-2, axis2=-1)).sum(axis=-1)[row]
    log_volume = np.log(0.5 * (high - low)).sum(axis=-1) + log_root
    v, edge = walk(rng, some, u)
    log_in = log_inputs(some, u)
    log_out = some.output.axis.log_message(some.output.message, v)
    log_w = log_in + log_out + log_rule + log_volume[:, None]
    log_w = np.where(np.isnan(log_w), -np.inf, log_w)
    # what was seen, one nat for what the inputs' messages may do between the nodes, and what the output's may do there
    log_most = (log_in + log_out).max(axis=1) + 1.0 + _hidden(some, v, log_out) + log_volume + d * np.log(2.0)
    return Cells(row, choice, low, high, u, v, edge, log_w, log_most, np.zeros(len(row), dtype=bool))


def _hidden(problem: Problem, v: np.ndarray, log_out: np.ndarray) -> np.ndarray:
    """How much larger the output's message may be within a cell than at its nodes, judging by the range of outputs."""
    axis, message = problem.output.axis, problem.output.message
    if axis.discrete:
        return np.where((v == v[:, :1]).all(axis=(1, 2)), 0.0, 10.0)  # a jump inside
    seen, least = log_out.max(axis=1), log_out.min(axis=1)
    if axis.n_coordinates > 1:
        return 0.5 * (seen - least)
    low, high = v[..., 0].min(axis=1), v[..., 0].max(axis=1)
    slack = 0.1 * (high - low)  # the nodes stop a few hundredths short of a cell's border
    low, high = low - slack, high + slack
    places = np.stack([low, np.clip(_mode(message), low, high), high], axis=1)
    return np.maximum(axis.log_message(message, places[..., None]).max(axis=1) - seen, 0.0)


def _mode(message: Family) -> np.ndarray:
    """Where on its axis a message is largest (in the measure of the variable); an end of the axis if at an end."""
    far = 700.0
    a, b = message.naturals
    if isinstance(message, Gaussian):
        safe = np.where(b > 0, b, 1.0)
        return np.where(b > 0, a / safe, np.where(a < 0, -1e300, 1e300))
    if isinstance(message, Gamma):
        inner = (a > 0) & (b > 0)
        return np.where(inner, np.log(np.where(inner, a / np.where(inner, b, 1.0), 1.0)), np.where(a > 0, far, -far))
    if isinstance(message, Beta):
        inner = (a > 0) & (b > 0)
        return np.where(inner, np.log(np.where(inner, a / np.where(inner, b, 1.0), 1.0)), np.where(a > b, far, -far))
    return np.zeros(message.shape)


def _halves(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every box cut in two along every axis, the parts of a box one after the other."""
    d = low.shape[1]
    middle = 0.5 * (low + high)
    sides = np.array(list(product((0, 1), repeat=d)), dtype=bool).reshape(2**d, d)
    lows = np.where(sides, middle[:, None], low[:, None]).reshape(-1, d)
    return lows, np.where(sides, high[:, None], middle[:, None]).reshape(-1, d)


def _log_sum(log_w: np.ndarray) -> np.ndarray:
    top = log_w.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    total = np.exp(log_w - safe[:, None]).sum(axis=1)
    return np.where(total > 0, safe + np.log(np.where(total > 0, total, 1.0)), -np.inf)


def _log_total(n: int, cells: Cells) -> np.ndarray:
    each = _log_sum(cells.log_w)
    top = np.full(n, -np.inf)
    np.maximum.at(top, cells.row, each)
    safe = np.where(np.isfinite(top), top, 0.0)
    total = np.bincount(cells.row, np.exp(each - safe[cells.row]), minlength=n)
    return np.where(total > 0, safe + np.log(np.where(total > 0, total, 1.0)), -np.inf)


def _take(cells: Cells, which: np.ndarray) -> Cells:
    return Cells(*(a[which] for a in cells))


def _join(parts: list[Cells]) -> Cells:
    return parts[0] if len(parts) == 1 else Cells(*(np.concatenate(a) for a in zip(*parts, strict=True)))
