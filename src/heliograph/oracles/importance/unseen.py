"""What a run of a stochastic function may not have seen: outcomes too rare to be drawn, at inputs far from the belief.

``z * (1 + noise)`` seen near -1 is z near -1, or a positive z whose noise is four deviations below its mean. The second holds a
thousandth of the mass and a tenth of the variance, and of 16,384 draws two show it, or none: then no spread of draws and no tail of
weights tells of it. But every draw shows how near its output came. The inputs are sorted into shells by the size of what
is averaged there, and in each shell the draws that came nearest say how many would reach the best output there is, and by
that how much of an expectation may be missing (docs/decisions/0057-outcomes-too-rare-to-be-drawn.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.frames import Frame
from heliograph.oracles.importance.weighing import Draws
from heliograph.oracles.problem import Problem, log_inputs

__all__ = ["Reached", "note", "nothing_reached", "with_unseen"]

_EDGES = np.array(
    [16.0, 64.0, 256.0]
)  # of the shells, in mean sizes of a statistic: 4, 8, 16 deviations for a Gaussian
_NEAREST = 16  # draws of a shell by whose distances it is judged
_AT_MOST = (
    0.7  # of one draw: with none seen there were fewer than three in 95 % of cases, and twenty times this covers those
)
_HALF = 0.5  # of one draw, as for the value itself
_SEEN = 5.0  # a discrete output of that much less weight than the best has been seen
_HEAVY = 0.5  # tails are taken to fall off half as fast as they seem to
_NEVER = 50.0  # nats between a proposal and the messages, beyond which a place does not count


class Reached(NamedTuple):
    """Arrays that `note` changes in place: the shells of each input's port, or one that holds all if there is no input."""

    nearest: np.ndarray  # (n, ports, shells, K), the smallest distances from the best output, in its deviations
    count: np.ndarray  # (n, ports, shells)
    ratio: np.ndarray  # (n, ports, shells), summed density of the inputs' messages over that of the proposal
    size: np.ndarray  # (n, shells, Q), that times the sizes of the statistics, by the shells of their own port


def nothing_reached(problem: Problem, blocks: tuple[slice, ...]) -> Reached | None:
    """Nothing drawn yet; None for a function without noise, whose outcomes are where its inputs are."""
    if not problem.sampler.stochastic:
        return None
    places = problem.n, max(1, len(problem.inputs)), len(_EDGES) + 1
    nearest = np.full((*places, _NEAREST), np.inf)
    return Reached(nearest, np.zeros(places), np.zeros(places), np.zeros((problem.n, places[2], blocks[-1].stop)))


def note(
    reached: Reached,
    problem: Problem,
    rows: np.ndarray,
    drawn: Draws,
    statistics: np.ndarray,
    unit: np.ndarray,
    blocks: tuple[slice, ...],
) -> None:
    """Add draws of some rows, whose statistics have the mean sizes `unit` (n, Q); the messages are those of these rows."""
    log_ratio = log_inputs(problem, drawn.u) - drawn.log_q  # -inf where the function gave no value
    ratio = np.exp(np.minimum(log_ratio, _NEVER))
    with np.errstate(invalid="ignore"):
        missing = problem.output.axis.log_highest(problem.output.message)[:, None] - (drawn.log_weights - log_ratio)
    distance = np.sqrt(2 * np.maximum(np.where(np.isnan(missing), np.inf, missing), 0.0))
    if not problem.inputs:
        _add(reached, rows, 0, 0, distance, ratio, np.full(len(rows), distance.shape[1]))
    for j, block in enumerate(blocks[: len(problem.inputs)]):
        size = np.abs(statistics[:, :, block])
        relative = np.maximum.reduce([size[:, :, k] / u[:, None] for k, u in enumerate(unit[rows, block].T)])
        shell = (relative[..., None] > _EDGES).sum(axis=-1)
        for b in range(int(shell.min()), int(shell.max()) + 1):
            here = shell == b
            some = ratio * here
            _add(reached, rows, j, b, np.where(here, distance, np.inf), some, here.sum(axis=1))
            reached.size[rows, b, block] += (some[:, None, :] @ size)[:, 0]


def _add(
    reached: Reached,
    rows: np.ndarray,
    port: int,
    shell: int,
    distance: np.ndarray,
    ratio: np.ndarray,
    count: np.ndarray,
) -> None:
    both = np.concatenate([reached.nearest[rows, port, shell], distance], axis=1)
    reached.nearest[rows, port, shell] = np.partition(both, _NEAREST - 1, axis=1)[:, :_NEAREST]
    reached.count[rows, port, shell] += count
    reached.ratio[rows, port, shell] += ratio.sum(axis=1)


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
            squares = np.minimum(
                moved**2, 2 * moved
            )  # beyond two units a KL grows as a variance does, not as its square
            found[j] = found[j] + squares.sum(axis=1)[:, :, None] * np.eye(moved.shape[2])
    nearest = np.sort(reached.nearest[:, 0].reshape(problem.n, -1), axis=1)[:, :_NEAREST]  # of all draws
    share = best * _how_many(nearest, discrete) * reached.ratio[:, 0].sum(axis=1) / reached.count[:, 0].sum(axis=1)
    found[-1] = found[-1] + _of_output(problem, frame, mean[:, blocks[len(found) - 1]], share / (1 + share))
    return tuple(found)


def _how_many(nearest: np.ndarray, discrete: bool) -> np.ndarray:
    """How many draws of the best output there may have been without one being seen, by the `nearest` on the last axis.

    The number of draws within a distance is taken to fall as a power of it, which the nearest ones tell; and at least in
    proportion, for noise does not become more likely the farther it has to reach. Of a discrete output nothing can be said
    by what came near.
    """
    nearest = np.sort(nearest, axis=-1)
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
