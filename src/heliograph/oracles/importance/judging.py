"""The verdict on a run: its estimates, their errors, and the rows that cannot be trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.answer import Answer
from heliograph.oracles.answering import answer_of
from heliograph.oracles.frames import Frame
from heliograph.oracles.importance.diagnostics import pareto_k, tail_length
from heliograph.oracles.importance.sums import Sums, estimate
from heliograph.oracles.importance.unseen import Reached, with_unseen
from heliograph.oracles.problem import Problem

__all__ = ["Limits", "judge"]

_NEAR = 20.0  # times below the largest possible weight: no much larger weight can follow
_FEW = 5.0  # draws: a squared error that so few make up is raised twofold
_ENDLESS, _STRETCH = (
    1.5,
    100.0,
)  # Pareto k of a statistic from which few draws say nothing of its error, and the rise of that


class Limits(NamedTuple):
    """What a row must have to be an answer."""

    min_ess: float  # effective draws
    k_threshold: float  # Pareto k of the weights


def judge(
    problem: Problem,
    frame: Frame,
    sums: Sums,
    bad: np.ndarray,
    spent: int,
    log_largest: np.ndarray | float,
    limits: Limits,
    reached: Reached | None = None,
) -> Answer:
    """The sums as an answer, with the rows that cannot be trusted marked.

    Parameters
    ----------
    bad : (n,) bool, rows in which a weight was no number
    spent : calls of the user's function
    log_largest : (n,), the largest log weight that a draw can have; infinite where none is known
    reached : how near outputs came to the best one, where outcomes may not have been seen
    """
    e = estimate(sums)
    k = _tail_shape(sums)
    # the fit of a tail is fooled by ties and plateaus, but not to a largest value far above the mean; and that is the mean
    # of draws that could be: a rare outcome makes every weight large beside the mean of all
    log_mean = e.log_z + np.log(sums.count / np.maximum(sums.count - sums.impossible, 1.0))
    log_top = sums.tails[:, 0].max(axis=1)
    heavy = (k > limits.k_threshold) & (log_top > log_mean + np.log(20.0))
    # nor does a tail go on beyond the largest weight there can be
    failed = bad | (e.ess < limits.min_ess) | (heavy & (log_top <= log_largest - np.log(_NEAR)))
    stretch = _stretch(problem, sums)
    covariances = tuple(c * stretch[:, j, None, None] for j, c in enumerate(e.covariances[:-1]))
    if reached is not None:
        log_total = e.log_z + np.log(np.maximum(sums.count, 1.0))
        covariances = with_unseen(problem, frame, reached, e.mean, log_total, covariances, sums.blocks)
    return answer_of(problem, frame, e.mean, covariances, e.log_z, e.log_z_error, e.ess, k, failed, spent, sums.count)


def _tail_shape(sums: Sums) -> np.ndarray:
    """Pareto k (n,) of the weights.

    Draws without any weight are no part of the distribution whose tail is judged: with them, what is kept as a
    tail would be most of it.
    """
    tails = sums.tails[:, 0]
    n_kept = tails.shape[1]
    k = pareto_k(tails)
    for i in np.flatnonzero(sums.impossible):
        length = min(tail_length(max(1, int(sums.count[i] - sums.impossible[i]))) + 1, n_kept)
        k[i] = pareto_k(np.partition(tails[i : i + 1], n_kept - length, axis=1)[:, n_kept - length :])[0]
    return k


def _stretch(problem: Problem, sums: Sums) -> np.ndarray:
    """How many times the squared error of each port's statistics is raised, (n, number of ports).

    An expectation may rest on a few draws whose weights are harmless, and its spread is then known no better than by so few. If
    they come from a tail without a mean (``E exp(x)`` of N(0, 36) rests on draws six deviations out), more is to come.
    """
    tails = sums.tails[:, 1:]
    top = tails.max(axis=2, keepdims=True)
    x = np.exp(2 * (tails - np.where(np.isfinite(top), top, 0.0)))
    behind = np.maximum(
        x.sum(axis=2) ** 2 / np.maximum((x * x).sum(axis=2), 1e-300), 1.0
    )  # 1 where nothing has a weight
    stretch = np.maximum(0.9 + _FEW / behind, 1.0)  # from fifty draws on there is nothing to raise
    continuous = np.array([not p.axis.discrete for p in (*problem.inputs, problem.output)])
    few = (behind <= _FEW) & continuous
    if few.any():
        stretch[few] = np.where(pareto_k(tails[few]) > _ENDLESS, _STRETCH, stretch[few])
    return stretch
