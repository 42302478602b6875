"""A proposal for a deterministic factor of one unknown number: pieces along its axis, each as likely as it matters.

A few hundred evaluations along the axis, halved where the integrand changes or where the output passes the mode of its
message, show every place that holds mass. Draws from the belief itself would leave out what is rare and far: beside a needle
of width 1e-4, a mode of a millionth is most of the variance. So a piece is drawn in proportion to its mass times the size of
what is averaged there (for a Gaussian the squared distance from the mean), of the input and of the output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.frames import Frame, frame_of_points
from heliograph.oracles.importance.proposal import Pieces, Proposal, log_density, take_proposal
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


class _Cells(NamedTuple):
    row: np.ndarray  # (c,)
    u: np.ndarray  # (c, 2) ends
    v: np.ndarray  # (c, 2) outputs there, on their axis
    log_p: np.ndarray  # (c, 2) integrand there
    slack: np.ndarray  # (c,) how far beyond its ends the output may turn


class _Weighed(NamedTuple):
    """Cells with the log of what each holds, and of the most that it may hold."""

    cells: _Cells
    log_mass: np.ndarray  # (c,)
    log_most: np.ndarray  # (c,)


class _Spread(NamedTuple):
    """The frame of each row, and the mean sizes (n, Q) of the statistics in it."""

    frame: Frame
    units: np.ndarray


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
    cells = _between(np.arange(n), at, v, log_p)
    mode = None if problem.output.axis.discrete else problem.output.axis.mode(problem.output.message)
    cells, n_more = _reach_out(rng, problem, cells, mean[:, 0], sd, mode)
    spent += n_more
    kept, aside, n_more = _refine(rng, problem, cells, mode)
    spent += n_more
    # what holds next to no mass may still be most of a variance: the rare side of a step, or the tail of a steep function
    everything = _join([kept, aside])
    spread = _spread_of(problem, everything.cells, everything.log_mass)
    log_total = _total(n, kept.cells.row, kept.log_mass)
    counted = aside.log_most + np.log(_distances(problem, spread, aside.cells))
    again = counted > log_total[aside.cells.row] - _NEGLIGIBLE
    if again.any():
        more, _, n_more = _refine(rng, problem, _take(aside.cells, again), mode, log_total, spread)
        kept = _join([kept, more])
        spent += n_more
    return _proposal(problem, base, kept, spread, spent)


def _refine(
    rng: np.random.Generator,
    problem: Problem,
    cells: _Cells,
    mode: np.ndarray | None,
    log_done: np.ndarray | None = None,
    spread: _Spread | None = None,
) -> tuple[_Weighed, _Weighed, int]:
    """Cells cut into smaller ones until the integrand changes little over each, those that do not matter, and the calls spent.

    `log_done` is the mass of other cells. What matters is judged by the mass of a cell, or with `spread` by the mass times the
    squared distance from the mean.
    """
    n, spent = problem.n, 0
    log_done = np.full(n, -np.inf) if log_done is None else log_done
    settled: list[_Weighed] = []
    aside: list[_Weighed] = []
    used = np.zeros(n)
    for k in range(_ROUNDS):
        log_mass, log_most = _masses(problem, cells, mode)
        total = np.logaddexp(log_done, _total(n, cells.row, log_mass))
        counted = log_most if spread is None else log_most + np.log(_distances(problem, spread, cells))
        matters = counted > total[cells.row] - _NEGLIGIBLE
        with np.errstate(invalid="ignore"):  # both ends may hold nothing: no number is no small step either
            steep = ~(np.abs(cells.log_p[:, 0] - cells.log_p[:, 1]) <= _STEP) | ~(log_most - log_mass <= 2.0)
        rough = matters & steep & (used[cells.row] < _MOST)
        if k == _ROUNDS - 1:
            rough[:] = False
        for side, which in ((settled, matters & ~rough), (aside, ~matters)):
            side.append(_Weighed(_take(cells, which), log_mass[which], log_most[which]))
        log_done = np.logaddexp(log_done, _total(n, settled[-1].cells.row, settled[-1].log_mass))
        cells = _take(cells, rough)
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
        cells = _between(cells.row, *ends)
    return _join(settled), _join(aside), spent


def _reach_out(
    rng: np.random.Generator, problem: Problem, cells: _Cells, mean: np.ndarray, sd: np.ndarray, mode: np.ndarray | None
) -> tuple[_Cells, int]:
    """The cells with more of them beyond either end, as long as what lies at that end may matter."""
    n, spent = problem.n, 0
    spread = _spread_of(problem, cells, _masses(problem, cells, mode)[0])
    for side in (-1.0, 1.0):
        need, reach, last = np.arange(n), _REACH, cells
        for _ in range(_DOUBLINGS):
            log_mass, _ = _masses(problem, cells, mode)
            total = _total(n, cells.row, log_mass)
            end = np.full(n, -np.inf)
            outermost = _outermost(n, last, side)
            known = outermost >= 0
            end[known] = _masses(problem, _take(last, outermost[known]), mode)[1]
            end[known] += np.log(_distances(problem, spread, _take(last, outermost[known])))
            need = need[(end[need] > total[need] - _NEGLIGIBLE) & np.isfinite(end[need])]
            if not len(need):
                break
            away = side * np.linspace(reach, 2 * reach, _BEYOND + 1)
            at = mean[need, None] + sd[need, None] * away
            v, log_p = _look(rng, take_rows(problem, need), at)
            spent += at.size
            order = slice(None) if side > 0 else slice(None, None, -1)
            last = _between(need, at[:, order], v[:, order], log_p[:, order])
            cells = _Cells(*(np.concatenate(a) for a in zip(cells, last, strict=True)))
            reach *= 2
    return cells, spent


def _between(row: np.ndarray, u: np.ndarray, v: np.ndarray, log_p: np.ndarray) -> _Cells:
    """The cells between neighbours of positions (r, k + 1), sorted along each row."""
    ends_u, ends_v, ends_p = (np.stack([a[:, :-1], a[:, 1:]], axis=-1).reshape(-1, 2) for a in (u, v, log_p))
    # between equal ends a parabola goes on by an eighth of what its second difference is at the nodes
    bend = np.abs(v[:, :-2] - 2 * v[:, 1:-1] + v[:, 2:])
    bend = np.concatenate([bend[:, :1], bend, bend[:, -1:]], axis=1)
    slack = np.maximum(0.5 * np.abs(v[:, 1:] - v[:, :-1]), 0.25 * np.maximum(bend[:, :-1], bend[:, 1:]))
    return _Cells(np.repeat(row, u.shape[1] - 1), ends_u, ends_v, ends_p, slack.ravel())


def _outermost(n: int, cells: _Cells, side: float) -> np.ndarray:
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


def _masses(problem: Problem, cells: _Cells, mode: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Log mass (c,) by the ends of each cell, and the most that it may be if the output passes its message's mode."""
    width = np.maximum(cells.u[:, 1] - cells.u[:, 0], 1e-300)
    log_mass = np.logaddexp(cells.log_p[:, 0], cells.log_p[:, 1]) - np.log(2.0) + np.log(width)
    most = cells.log_p.max(axis=1) + np.log(width)
    if mode is None:
        jump = cells.v[:, 0] != cells.v[:, 1]
        return log_mass, np.where(jump, most + 10.0, most)
    low, high = cells.v.min(axis=1), cells.v.max(axis=1)
    inside = np.clip(mode[cells.row], low - cells.slack, high + cells.slack)
    places = np.concatenate([cells.v, inside[:, None]], axis=1)[..., None]
    message = problem.output.message[cells.row]
    log_out = problem.output.axis.log_message(message, places)
    best = np.where(np.isnan(log_out[:, 2]), -np.inf, log_out[:, 2])
    seen = log_out[:, :2].max(axis=1)
    middle = cells.u.mean(axis=1)[:, None, None]
    log_in = log_inputs(take_rows(problem, cells.row), middle)[:, 0]
    return log_mass, np.where(best > seen, np.maximum(most, log_in + best + np.log(width)), most)


def _proposal(problem: Problem, base: Proposal, kept: _Weighed, spread: _Spread, spent: int) -> Scan:
    n = problem.n
    order = np.lexsort((kept.cells.u[:, 0], kept.cells.row))
    cells, log_mass = _take(kept.cells, order), kept.log_mass[order]
    total = _total(n, cells.row, log_mass)
    found = np.isfinite(total)
    mass = np.where(found[cells.row], np.exp(log_mass - np.where(found, total, 0.0)[cells.row]), 0.0)
    far = _distances(problem, spread, cells)
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
    middle = cells.u.mean(axis=1)[:, None, None]
    some = take_rows(problem, cells.row)
    log_first = log_density(some, take_proposal(base, cells.row), middle)[:, 0]
    width = np.maximum(cells.u[:, 1] - cells.u[:, 0], 1e-300)
    with np.errstate(over="ignore"):  # a place that the first proposal never visits
        first = np.bincount(cells.row, (mass * far) ** 2 / width * np.exp(-log_first), minlength=n)
    pieces = np.bincount(cells.row, mass * far, minlength=n) ** 2 / (1 - _KEPT)
    return Scan(proposal, found & ~(first <= _WORSE * pieces), found, spent)


def _spread_of(problem: Problem, cells: _Cells, log_mass: np.ndarray) -> _Spread:
    """The frame from the middles of the cells; a row may have none."""
    u, v = (a.mean(axis=1)[:, None, None] for a in (cells.u, cells.v))
    frame = frame_of_points(problem, cells.row, u, v, log_mass[:, None])
    total = _total(problem.n, cells.row, log_mass)[cells.row]
    held = np.isfinite(log_mass)
    mass = np.exp(np.where(held, log_mass - np.where(held, total, 0.0), -np.inf))
    sizes = _sizes(problem, frame, cells)
    units = np.stack([np.bincount(cells.row, mass * size, minlength=problem.n) for size in sizes.T], axis=1)
    return _Spread(frame, units)


def _distances(problem: Problem, spread: _Spread, cells: _Cells) -> np.ndarray:
    """How far (c,) cells lie from the bulk of the belief: 1, and the sizes of their statistics beside the mean sizes."""
    units = spread.units[cells.row]
    return 1 + np.where(units > 0, _sizes(problem, spread.frame, cells) / np.where(units > 0, units, 1.0), 0.0).sum(
        axis=1
    )


def _sizes(problem: Problem, frame: Frame, cells: _Cells) -> np.ndarray:
    """The statistics (c, Q) of input and output in the middle of each cell, without signs."""
    places = ((problem.inputs[0], cells.u), (problem.output, cells.v))
    found = [
        port.axis.statistics(
            a.mean(axis=1)[:, None, None], frame.centres[port.name][cells.row], frame.scales[port.name][cells.row]
        )
        for port, a in places
    ]
    return np.abs(np.concatenate(found, axis=-1)[:, 0])


def _join(parts: list[_Weighed]) -> _Weighed:
    cells = _Cells(*(np.concatenate(a) for a in zip(*(p.cells for p in parts), strict=True)))
    return _Weighed(cells, np.concatenate([p.log_mass for p in parts]), np.concatenate([p.log_most for p in parts]))


def _total(n: int, row: np.ndarray, log_mass: np.ndarray) -> np.ndarray:
    top = np.full(n, -np.inf)
    np.maximum.at(top, row, log_mass)
    safe = np.where(np.isfinite(top), top, 0.0)
    total = np.bincount(row, np.exp(log_mass - safe[row]), minlength=n)
    return np.where(total > 0, safe + np.log(np.where(total > 0, total, 1.0)), -np.inf)


def _take(cells: _Cells, which: np.ndarray) -> _Cells:
    return _Cells(*(a[which] for a in cells))
