"""Accepted cells added up to an answer, with the errors that halving each of them shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.answer import Answer
from heliograph.oracles.answering import answer_of
from heliograph.oracles.frames import Frame, blocks_of
from heliograph.oracles.problem import NOTICEABLE, Problem, take_rows, walk
from heliograph.oracles.quadrature.cells import Cells

__all__ = ["Totals", "integrate", "settle"]

_ROUNDING = 1e-13  # of a sum of thousands of terms


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


# what overflows is not finite, and a row that is not finite has no answer: `answer_of` says so
_QUIET = np.errstate(over="ignore", invalid="ignore", divide="ignore")


@_QUIET
def integrate(whole: Cells, parts: Cells) -> Totals:
    """The integrals over cells by their halves, and what halving them changed."""
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


@_QUIET
def settle(
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
    overflows = _unlooked(rng, problem, totals, np.where(live, top, 0.0) + np.log(z[:, 0]))
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
        n_draws=np.full(n, np.inf),
    )


def _unlooked(rng: np.random.Generator, problem: Problem, totals: list[Totals], log_z: np.ndarray) -> np.ndarray:
    """Rows of which too much may lie where the function overflows; raises if it gives no value where there is mass."""
    n = problem.n
    share = np.zeros((n, 2))
    for t in totals:
        np.add.at(share, t.row, np.exp(np.minimum(t.log_unlooked - log_z[t.row][:, None], 50.0)))
    for t in totals:
        # in a row without any other mass too: then the function is at fault, and not the row
        wrong = (share[t.row, 0] > NOTICEABLE) & ~np.isnan(t.place[:, 0])
        for c in np.flatnonzero(wrong):
            walked = walk(rng, take_rows(problem, t.row[c : c + 1]), t.place[c][None, None])
            if walked.wrong is not None and walked.wrong[0, 0] == 1:
                raise walked.complain(0)
    return share.max(axis=1) > NOTICEABLE
