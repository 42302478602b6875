"""A proposal for a deterministic factor of one unknown number: pieces along its axis, each as likely as it matters.

A few hundred evaluations along the axis, halved where the integrand changes or where the output passes the mode of its
message, show every place that holds mass. Draws from the belief itself would leave out what is rare and far: beside a needle
of width 1e-4, a mode of a millionth is most of the variance. So a piece is drawn in proportion to its mass times the size of
what is averaged there (for a Gaussian the squared distance from the mean), of the input and of the output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.frames import log_totals
from heliograph.oracles.importance.proposal import Pieces, Proposal, log_density, take_proposal
from heliograph.oracles.importance.segments import (
    Segments,
    Spread,
    Weighed,
    between,
    distances,
    join_weighed,
    masses,
    middles,
    spread_of,
    take_segments,
)
from heliograph.oracles.problem import Problem, log_inputs, take_rows, walk

__all__ = ["Scan", "can_scan", "scan"]

_REACH, _CELLS = 9.0, 192  # deviations of the cavity to either side, and first cells
_AROUND = np.concatenate(
    [-np.geomspace(30.0, 0.3, 24), [0.0], np.geomspace(0.3, 30.0, 24)]
)  # near 0, for a vague cavity
_BEYOND, _DOUBLINGS = 48, 5  # cells more on a side where mass may lie beyond, which doubles the reach there
_VAGUE = 30.0  # deviation from which they are wanted
_ROUNDS, _PARTS = 14, 4
_MOST = 1500  # cells of a row
_NEGLIGIBLE = 30.0  # nats
_STEP = 0.7  # nats over one piece
_KEPT = 0.15  # share of the first proposal
_WORSE = 3.0  # times the variance with pieces: from there the first proposal is given up


class Scan(NamedTuple):
    """What was found along the axis."""

    proposal: Proposal  # of all rows, with pieces
    better: np.ndarray  # (n,) bool: where that beats the first proposal
    found: np.ndarray  # (n,) bool: where any mass was found at all
    spent: int


def can_scan(problem: Problem) -> bool:
    """Whether there is one unknown real number, known to lie somewhere, and no noise."""
    ports = problem.inputs
    one = len(ports) == 1 and not ports[0].axis.discrete and ports[0].axis.n_coordinates == 1
    scalar = problem.output.axis.n_coordinates == 1
    return one and scalar and not problem.sampler.stochastic and bool(ports[0].message.proper.all())


def scan(rng: np.random.Generator, problem: Problem, base: Proposal) -> Scan:
    """Look along the axis, and make pieces of what is found."""
    n = problem.n
    mean, covariance = problem.inputs[0].axis.moments(problem.inputs[0].message)
    sd = np.sqrt(covariance[:, 0, 0])
    at = mean + sd[:, None] * np.linspace(-_REACH, _REACH, _CELLS + 1)
    if (sd > _VAGUE).any():
        # (the other rows have empty cells in their place: what a row is given does not depend on its company)
        around = np.where((sd > _VAGUE)[:, None], _AROUND, at[:, -1:])
        at = np.sort(np.concatenate([at, around], axis=1), axis=1)
    v, log_p = _look(rng, problem, at)
    spent = at.size
    cells = between(np.arange(n), at, v, log_p)
    mode = None if problem.output.axis.discrete else problem.output.axis.mode(problem.output.message)
    cells, n_more = _reach_out(rng, problem, cells, mean[:, 0], sd, mode)
    spent += n_more
    kept, aside, n_more = _refine(rng, problem, cells, mode)
    spent += n_more
    # what holds next to no mass may still be most of a variance: the rare side of a step, or the tail of a steep function
    everything = join_weighed([kept, aside])
    spread = spread_of(problem, everything.cells, everything.log_mass)
    log_total = log_totals(n, kept.cells.row, kept.log_mass)
    counted = aside.log_most + np.log(distances(problem, spread, aside.cells))
    again = counted > log_total[aside.cells.row] - _NEGLIGIBLE
    if again.any():
        more, _, n_more = _refine(rng, problem, take_segments(aside.cells, again), mode, log_total, spread)
        kept = join_weighed([kept, more])
        spent += n_more
    return _proposal(problem, base, kept, spread, spent)


def _refine(
    rng: np.random.Generator,
    problem: Problem,
    cells: Segments,
    mode: np.ndarray | None,
    log_done: np.ndarray | None = None,
    spread: Spread | None = None,
) -> tuple[Weighed, Weighed, int]:
    """Cells cut into smaller ones until the integrand changes little over each, those that do not matter, and the calls spent.

    `log_done` is the mass of other cells. What matters is judged by the mass of a cell, or with `spread` by the mass times the
    squared distance from the mean.
    """
    n, spent = problem.n, 0
    log_done = np.full(n, -np.inf) if log_done is None else log_done
    settled: list[Weighed] = []
    aside: list[Weighed] = []
    used = np.zeros(n)
    for k in range(_ROUNDS):
        log_mass, log_most = masses(problem, cells, mode)
        total = np.logaddexp(log_done, log_totals(n, cells.row, log_mass))
        counted = log_most if spread is None else log_most + np.log(distances(problem, spread, cells))
        matters = counted > total[cells.row] - _NEGLIGIBLE
        with np.errstate(invalid="ignore"):  # both ends may hold nothing: no number is no small step either
            steep = ~(np.abs(cells.log_p[:, 0] - cells.log_p[:, 1]) <= _STEP) | ~(log_most - log_mass <= 2.0)
        rough = matters & steep & (used[cells.row] < _MOST)
        if k == _ROUNDS - 1:
            rough[:] = False
        for side, which in ((settled, matters & ~rough), (aside, ~matters)):
            side.append(Weighed(take_segments(cells, which), log_mass[which], log_most[which]))
        log_done = np.logaddexp(log_done, log_totals(n, settled[-1].cells.row, settled[-1].log_mass))
        cells = take_segments(cells, rough)
        if not len(cells.row):
            break
        used += np.bincount(cells.row, minlength=n)
        inner = cells.u[:, :1] + (cells.u[:, 1:] - cells.u[:, :1]) * (np.arange(1, _PARTS) / _PARTS)
        new_v, new_p = _look(rng, take_rows(problem, cells.row), inner)
        spent += inner.size
        ends = [
            np.concatenate([old[:, :1], new, old[:, 1:]], axis=1)
            for old, new in ((cells.u, inner), (cells.v, new_v), (cells.log_p, new_p))
        ]
        cells = between(cells.row, *ends)
    return join_weighed(settled), join_weighed(aside), spent


def _reach_out(
    rng: np.random.Generator,
    problem: Problem,
    cells: Segments,
    mean: np.ndarray,
    sd: np.ndarray,
    mode: np.ndarray | None,
) -> tuple[Segments, int]:
    """The cells with more of them beyond either end, as long as what lies at that end may matter."""
    n, spent = problem.n, 0
    spread = spread_of(problem, cells, masses(problem, cells, mode)[0])
    for side in (-1.0, 1.0):
        need, reach, last = np.arange(n), _REACH, cells
        for _ in range(_DOUBLINGS):
            log_mass, _ = masses(problem, cells, mode)
            total = log_totals(n, cells.row, log_mass)
            end = np.full(n, -np.inf)
            outermost = _outermost(n, last, side)
            known = outermost >= 0
            end[known] = masses(problem, take_segments(last, outermost[known]), mode)[1]
            end[known] += np.log(distances(problem, spread, take_segments(last, outermost[known])))
            need = need[(end[need] > total[need] - _NEGLIGIBLE) & np.isfinite(end[need])]
            if not len(need):
                break
            away = side * np.linspace(reach, 2 * reach, _BEYOND + 1)
            at = mean[need, None] + sd[need, None] * away
            v, log_p = _look(rng, take_rows(problem, need), at)
            spent += at.size
            order = slice(None) if side > 0 else slice(None, None, -1)
            last = between(need, at[:, order], v[:, order], log_p[:, order])
            cells = Segments(*(np.concatenate(a) for a in zip(cells, last, strict=True)))
            reach *= 2
    return cells, spent


def _outermost(n: int, cells: Segments, side: float) -> np.ndarray:
    """The number (n,) of each row's cell farthest out on a side; -1 where it has none."""
    order = np.argsort(side * cells.u.mean(axis=1), kind="stable")
    found = np.full(n, -1)
    found[cells.row[order]] = order  # the last one stays
    return found


def _look(rng: np.random.Generator, problem: Problem, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs on their axis and log integrand at positions (n, s)."""
    u = at[..., None]
    walked = walk(rng, problem, u)
    log_p = log_inputs(problem, u) + problem.output.axis.log_message(problem.output.message, walked.v)
    nothing = np.isnan(log_p) if walked.wrong is None else np.isnan(log_p) | (walked.wrong > 0)
    return walked.v[..., 0], np.where(nothing, -np.inf, log_p)


def _proposal(problem: Problem, base: Proposal, kept: Weighed, spread: Spread, spent: int) -> Scan:
    n = problem.n
    order = np.lexsort((kept.cells.u[:, 0], kept.cells.row))
    cells, log_mass = take_segments(kept.cells, order), kept.log_mass[order]
    total = log_totals(n, cells.row, log_mass)
    found = np.isfinite(total)
    mass = np.where(found[cells.row], np.exp(log_mass - np.where(found, total, 0.0)[cells.row]), 0.0)
    far = distances(problem, spread, cells)
    share = mass * far
    share /= np.maximum(np.bincount(cells.row, share, minlength=n), 1e-300)[cells.row]
    counts = np.bincount(cells.row, minlength=n)
    place = np.arange(len(mass)) - np.repeat(np.cumsum(counts) - counts, counts)
    k = max(1, int(counts.max(initial=0)))
    low, high, p = np.zeros((n, k)), np.zeros((n, k)), np.zeros((n, k))
    # after its last piece a row has empty ones at the end of that
    last = np.zeros(n)
    np.maximum.at(last, cells.row, np.where(cells.u[:, 1] > last[cells.row], cells.u[:, 1], last[cells.row]))
    last[counts > 0] = cells.u[np.cumsum(counts)[counts > 0] - 1, 1]
    low[:], high[:] = last[:, None], last[:, None]
    low[cells.row, place], high[cells.row, place], p[cells.row, place] = cells.u[:, 0], cells.u[:, 1], share
    weights = np.concatenate([_KEPT * base.weights, np.full((n, 1), 1 - _KEPT)], axis=1)
    weights = np.where(found[:, None], weights, np.concatenate([base.weights, np.zeros((n, 1))], axis=1))
    proposal = base._replace(weights=weights, pieces=Pieces(low, high, p))
    # the variance of an estimate that needs those distances, with either proposal
    middle = middles(cells.u)
    some = take_rows(problem, cells.row)
    log_first = log_density(some, take_proposal(base, cells.row), middle)[:, 0]
    width = np.maximum(cells.u[:, 1] - cells.u[:, 0], 1e-300)
    with np.errstate(over="ignore"):  # a place that the first proposal never visits
        first = np.bincount(cells.row, (mass * far) ** 2 / width * np.exp(-log_first), minlength=n)
    pieces = np.bincount(cells.row, mass * far, minlength=n) ** 2 / (1 - _KEPT)
    return Scan(proposal, found & ~(first <= _WORSE * pieces), found, spent)
