"""Outcomes of a stochastic function that are too rare to be drawn, at inputs far from the belief.

``z * (1 + noise)`` seen near -1 is z near -1, or a positive z whose noise is four deviations below its mean. The second holds a
thousandth of the mass and a tenth of the variance, and of 16,384 draws two show it, or none: then neither the spread of draws
nor the tail of weights reveals it. But every draw shows how near its output came. Draws are sorted into classes by what each
would add if its output were the best there is, and in each class those that came nearest say how many would reach it, and by
that how much of an expectation may be missing (docs/decisions/0057-outcomes-too-rare-to-be-drawn.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from heliograph.oracles.frames import Frame
from heliograph.oracles.importance.sums import FIRST
from heliograph.oracles.importance.weighing import Draws
from heliograph.oracles.problem import Problem, log_inputs

__all__ = ["Reached", "note", "nothing_reached", "with_unseen"]

_EDGES = 0.003 * 4.0 ** np.arange(10)  # of the classes: what a draw would add to a statistic, in its mean size
_NEAREST = 16  # draws of a class by whose distances it is judged
# of one draw: with none seen there were fewer than three in 95 % of cases, and twenty times this covers those
_AT_MOST = 0.7
_HALF = 0.5  # of one draw, as for the value itself
_SEEN = 5.0  # a discrete output of that much less weight than the best has been seen
_HEAVY = 0.2  # tails are taken to fall off at a fifth of the power that they seem to
_NEVER = 50.0  # nats between a proposal and the messages, beyond which a place does not count


class Reached(NamedTuple):
    """Arrays that `note` changes in place: the classes of each input's port, and last those of the output."""

    nearest: np.ndarray  # (n, ports, classes, K), the smallest distances from the best output, in its deviations
    count: np.ndarray  # (n, ports, classes)
    ratio: np.ndarray  # (n, ports, classes), summed density of the inputs' messages over that of the proposal
    size: np.ndarray  # (n, classes, Q), that times the sizes of the statistics, by the classes of their own port
    log_unit: np.ndarray  # (n,), about the log of the sum of all weights that there will be; NaN before the first draws


def nothing_reached(problem: Problem, blocks: tuple[slice, ...]) -> Reached | None:
    """Nothing drawn yet; None for a function without noise, whose outcomes are where its inputs are."""
    if not problem.sampler.stochastic:
        return None
    n = problem.n
    places = n, len(problem.inputs) + 1, len(_EDGES)
    nearest = np.full((*places, _NEAREST), np.inf)
    size = np.zeros((n, len(_EDGES), blocks[-1].stop))
    return Reached(nearest, np.zeros(places), np.zeros(places), size, np.full(n, np.nan))


def note(
    reached: Reached,
    problem: Problem,
    rows: np.ndarray,
    drawn: Draws,
    statistics: np.ndarray,
    unit: np.ndarray,
    blocks: tuple[slice, ...],
    n_draws: int,
) -> None:
    """Add draws of some rows, whose statistics have the mean sizes `unit` (n, Q); the messages are those of these rows.

    `n_draws` are those that each row will have.
    """
    log_highest = problem.output.axis.log_highest(problem.output.message)
    new = np.isnan(reached.log_unit[rows])
    if new.any():
        first = drawn.log_weights[new, :FIRST]
        with np.errstate(divide="ignore"):  # a row may have no weight yet
            reached.log_unit[rows[new]] = logsumexp(first, axis=1) + np.log(n_draws / first.shape[1])
    log_ratio = log_inputs(problem, drawn.u) - drawn.log_q  # -inf where the function gave no value
    ratio = np.exp(np.minimum(log_ratio, _NEVER))
    with np.errstate(invalid="ignore"):  # the best may be unknown, or nothing have a weight
        share = np.exp(np.minimum(log_ratio + (log_highest - reached.log_unit[rows])[:, None], _NEVER))
        missing = log_highest[:, None] - (drawn.log_weights - log_ratio)
    share = np.where(np.isfinite(log_highest)[:, None], share, 0.0)
    for j, block in enumerate(blocks[: len(problem.inputs) + 1]):
        size = np.abs(statistics[:, :, block])
        adds = share
        if j < len(problem.inputs):
            adds = share * np.maximum.reduce([size[:, :, k] / u[:, None] for k, u in enumerate(unit[rows, block].T)])
        i, s = np.nonzero(adds > _EDGES[0])
        if len(i):
            which = np.searchsorted(_EDGES, adds[i, s]) - 1
            distance = np.sqrt(2 * np.maximum(np.where(np.isnan(missing[i, s]), np.inf, missing[i, s]), 0.0))
            _add(reached, rows, j, i * len(_EDGES) + which, distance, ratio[i, s], size[i, s], block)


def _add(
    reached: Reached,
    rows: np.ndarray,
    port: int,
    group: np.ndarray,
    distance: np.ndarray,
    ratio: np.ndarray,
    size: np.ndarray,
    block: slice,
) -> None:
    """Add draws (m,) with sizes (m, q), sorted into groups by row and class."""
    n, k = len(rows), len(_EDGES)
    count = np.bincount(group, minlength=n * k)
    order = np.lexsort((distance, group))
    rank = np.arange(len(group)) - (np.cumsum(count) - count)[group[order]]
    best = order[rank < _NEAREST]
    new = np.full((n * k, _NEAREST), np.inf)
    new[group[best], rank[rank < _NEAREST]] = distance[best]
    both = np.concatenate([reached.nearest[rows, port], new.reshape(n, k, _NEAREST)], axis=2)
    reached.nearest[rows, port] = np.sort(both, axis=2)[:, :, :_NEAREST]
    reached.count[rows, port] += count.reshape(n, k)
    reached.ratio[rows, port] += np.bincount(group, ratio, minlength=n * k).reshape(n, k)
    sums = [np.bincount(group, ratio * column, minlength=n * k) for column in size.T]
    reached.size[rows, :, block] += np.stack(sums, axis=-1).reshape(n, k, -1)


def with_unseen(
    problem: Problem,
    frame: Frame,
    reached: Reached,
    mean: np.ndarray,
    log_total: np.ndarray,
    covariances: tuple[np.ndarray, ...],
    blocks: tuple[slice, ...],
) -> tuple[np.ndarray, ...]:
    """The covariances with the squares of what outcomes would add that are too rare to have been seen.

    `log_total` (n,) is the log of the sum of all weights. An outcome that was not seen has at most the largest weight that its
    inputs allow; its output is where the output's message is.
    """
    log_best = problem.output.axis.log_highest(problem.output.message) - log_total
    best = np.where(np.isfinite(log_best), np.exp(np.minimum(log_best, _NEVER)), 0.0)
    discrete = problem.output.axis.discrete
    found = list(covariances)
    unseen = best[:, None, None] * _how_many(reached.nearest, discrete) / np.maximum(reached.count, 1.0)
    for j, port in enumerate(problem.inputs):
        if not port.axis.discrete:
            share = unseen[:, j, :, None] * reached.ratio[:, j, :, None]
            moved = unseen[:, j, :, None] * reached.size[:, :, blocks[j]] / (1 + share)
            # beyond two units a KL grows as a variance does, not as its square
            squares = np.minimum(moved**2, 2 * moved)
            found[j] = found[j] + squares.sum(axis=1)[:, :, None] * np.eye(moved.shape[2])
    share = (unseen[:, -1] * reached.ratio[:, -1]).max(axis=1)
    found[-1] = found[-1] + _of_output(problem, frame, mean[:, blocks[len(found) - 1]], share / (1 + share))
    return tuple(found)


def _how_many(nearest: np.ndarray, discrete: bool) -> np.ndarray:
    """How many draws of the best output there may have been without one being seen, by the `nearest` on the last axis.

    The number of draws within a distance is taken to fall as a power of it, a part of which the nearest ones tell; and at least
    in proportion, for noise does not become more likely the farther it has to reach. Of a discrete output nothing can be said
    by what came near.
    """
    if discrete:
        return np.where(nearest[..., 0] ** 2 > 2 * np.log(_SEEN), _HALF, 0.0)
    known = np.isfinite(nearest)
    n_known = known.sum(axis=-1)
    log_d = np.log(np.maximum(np.where(known, nearest, 1.0), 1.0))  # one deviation off is as good as there
    last = log_d.max(axis=-1)
    gap = np.where(known, last[..., None] - log_d, 0.0).sum(axis=-1) / np.maximum(n_known - 1, 1)
    power = np.maximum(_HEAVY / np.maximum(gap, 1e-6), 1.0)
    found = n_known * np.exp(-np.minimum(power * last, 700.0))
    return np.where(n_known < _NEAREST / 4, _AT_MOST, np.minimum(found, _AT_MOST))


def _of_output(problem: Problem, frame: Frame, mean: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Squares (n, q, q) of what a `share` of outputs adds that lie where the output's message is."""
    port, q = problem.output, mean.shape[1]
    found = np.zeros((len(mean), q, q))
    rows = np.flatnonzero((share > 0) & port.message.proper & ~port.message.is_point)
    if port.axis.discrete or not len(rows):
        return found
    centre, covariance = port.axis.moments(port.message[rows])
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    places = np.stack([centre - sd, centre + sd], axis=1)
    t = port.axis.statistics(places, frame.centres[port.name][rows], frame.scales[port.name][rows]).mean(axis=1)
    moved = np.clip(share[rows, None] * (t - mean[rows]), -4.0, 4.0)
    found[rows] = moved[:, :, None] * moved[:, None, :]
    return found
