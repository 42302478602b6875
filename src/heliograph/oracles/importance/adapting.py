"""Choosing a proposal: the first one, and its re-fitting where the pilot's weights go badly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import logsumexp

from heliograph.errors import ModelError
from heliograph.families import Family, concatenate
from heliograph.oracles.importance.diagnostics import effective_sample_size, pareto_k, tail_length
from heliograph.oracles.importance.fitting import fit, temper
from heliograph.oracles.importance.proposal import Proposal, log_density, n_uniforms, take_proposal
from heliograph.oracles.importance.uniforms import Streams, uniforms_for
from heliograph.oracles.importance.weighing import Match, look
from heliograph.oracles.problem import Port, Problem, stand_in, take_rows

__all__ = ["adapt", "first_proposal"]

_BROADEN = 2.25  # variance of the wide half of the defensive mixture; the same as 1.5 standard deviations
_CLEARLY = 1.5  # times the effective sample size of the first proposal's pilot,
_COUNTED = 10.0  # and that many draws more: a handful of draws may be twice as many by chance
_VAGUE = 100.0  # a standard deviation on the axis
_STAND_INS = (1.0, 10.0, 100.0)  # widths tried on the axis of an input about which nothing is known


def first_proposal(kind: str | Family | Mapping[str, Family], problem: Problem) -> Proposal:
    """Where to draw before anything was seen: "cavity", "defensive", or given families."""
    ports, n = problem.continuous, problem.n
    d = sum(p.axis.n_coordinates for p in ports)
    # half of the chance of a discrete input goes to all its values alike, so that none is never tried
    tables = tuple(_table(p) for p in problem.discrete)
    none = np.zeros((n, 0, d)), np.zeros((n, 0, d, d)), np.zeros((n, 0, d, d))
    if not isinstance(kind, str):
        product = tuple(_fixed(kind, p, n) for p in ports)
        return Proposal(np.ones((n, 1)), (product,), *none, tables)
    if kind not in ("defensive", "cavity"):
        raise ModelError(f"a proposal is 'defensive', 'cavity' or a Family, not {kind!r}")
    if all(p.message.proper.all() for p in ports):
        cavity = tuple(p.message for p in ports)
        if kind == "cavity" or not ports:
            return Proposal(np.ones((n, 1)), (cavity,), *none, tables)
        wide = tuple(p.axis.broaden(p.message, _BROADEN) for p in ports)
        vague = _vague(problem)
        if not vague.any():
            return Proposal(np.full((n, 2), 0.5), (cavity, wide), *none, tables)
        # a function often changes near 0 and nowhere else; a very broad message would never put a draw there
        near = np.where(vague[:, None], 0.05, 0.0) * np.ones(2)
        weights = np.concatenate([(1 - near.sum(axis=1, keepdims=True)) * np.full((n, 2), 0.5), near], axis=1)
        return Proposal(weights, (cavity, wide), *_stand_ins(problem, _STAND_INS[:2], vague), tables)
    k = len(_STAND_INS)
    everywhere = np.zeros(n, dtype=bool)
    return Proposal(np.full((n, k), 1 / k), (), *_stand_ins(problem, _STAND_INS, everywhere), tables)


def _stand_ins(
    problem: Problem, scales: tuple[float, ...], vague: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, roots and their inverses of Gaussians of some widths about 0 where a message is improper or vague."""
    moments = [stand_in(problem, scale, vague) for scale in scales]
    means = np.stack([m for m, _ in moments], axis=1)
    roots = np.linalg.cholesky(np.stack([v for _, v in moments], axis=1))
    return means, roots, np.linalg.inv(roots)


def _vague(problem: Problem) -> np.ndarray:
    """Rows with a message so broad on its axis that draws from it leave the neighbourhood of 0 empty."""
    vague = np.zeros(problem.n, dtype=bool)
    for port in problem.continuous:
        _, covariance = port.axis.moments(port.message)
        vague |= np.diagonal(covariance, axis1=1, axis2=2).max(axis=1) > _VAGUE**2
    return vague


def adapt(
    rng: np.random.Generator,
    problem: Problem,
    base: Proposal,
    start: Proposal,
    match: Match,
    size: int,
    max_rounds: int,
    k_threshold: float,
    key: int,
    purpose: int,
) -> tuple[Proposal, np.ndarray, int]:
    """Re-fit the proposals of rows whose pilot of `size` draws goes badly: proposals, which rows, and the cost.

    Where draws have no weight at all, the function's own noise decides which do. No proposal can change that, and
    one that is fitted to the successful draws has the fewest draws where an outcome is rare and counts most. There a fit is
    kept only if its own pilot has a clearly larger effective sample size than the first one's.
    """
    n = problem.n
    supply = uniforms_for(Streams(key, problem.identity), purpose, n_uniforms(problem), "random")
    least = min(30.0 * (problem.n_coordinates + 2), 0.25 * size)
    # where the function itself draws, rare outcomes may come from anywhere in the cavity: a fit that follows the bulk of
    # the belief has more effective draws and a larger error, and is wanted only where the cavity has hardly any
    first_enough = 0.02 if problem.sampler.stochastic else 0.1
    adapted, idle = np.zeros(n, dtype=bool), np.zeros(n)
    best, farthest = np.zeros(n), np.zeros(n)  # effective sample size, and power on the way to the target
    gappy, ours, which = np.zeros(n, dtype=bool), np.zeros(n), np.full(n, -1)  # and of which fit, -1 for the first
    need, proposal, spent = np.arange(n), start, 0
    fitted: list[tuple[np.ndarray, Proposal]] = []
    u, log_tilt, log_base = np.empty((n, 0, problem.n_coordinates)), np.empty((n, 0)), np.empty((n, 0))
    for rounds in range(max_rounds + 1):
        here = take_rows(problem, need)
        drawn = look(rng, here, proposal, supply.take(0, size, need), match)
        spent += size * len(need)
        ess = effective_sample_size(drawn.log_weights)
        k = pareto_k(_largest(drawn.log_weights, tail_length(size)))
        gappy[need] |= np.isneginf(drawn.log_weights).any(axis=1)
        better = need[ess > ours[need]]
        ours[better] = ess[ess > ours[need]] if rounds else _CLEARLY * ess[ess > ours[need]] + _COUNTED
        which[better] = len(fitted) - 1
        highest = drawn.log_weights.max(axis=1)
        log_mean = logsumexp(drawn.log_weights, axis=1) - np.log(size)
        heavy = (k > k_threshold) & (log_mean < highest - np.log(20.0))  # as the run will judge it
        enough = (first_enough if rounds == 0 else 0.25) * size
        poor = np.flatnonzero(((ess < enough) | heavy) & np.isfinite(highest))
        if not len(poor) or rounds == max_rounds:
            break
        # the draws of a few rounds together: a mode that one round lost is remembered by the others
        log_first = log_density(here, take_proposal(base, need), drawn.u)
        drawn_from = np.where(np.isposinf(drawn.log_q), 0.0, drawn.log_q)  # infinite where the function gave no value
        tilt = drawn.log_weights + drawn_from - log_first
        need, ess = need[poor], ess[poor]
        u = np.concatenate([u[poor][:, -3 * size :], drawn.u[poor]], axis=1)
        log_tilt = np.concatenate([log_tilt[poor][:, -3 * size :], tilt[poor]], axis=1)
        log_base = np.concatenate([log_base[poor][:, -3 * size :], (log_first - drawn.log_q)[poor]], axis=1)
        w, power = temper(log_tilt, log_base, least)
        moving = (power > 1.2 * farthest[need]) | (ess > 1.05 * best[need])
        best[need], farthest[need] = np.maximum(best[need], ess), np.maximum(farthest[need], power)
        idle[need] = np.where(moving, 0, idle[need] + 1)
        kept = np.flatnonzero(idle[need] < 3)
        if not len(kept):
            break
        need, u, w, power = need[kept], u[kept], w[kept], power[kept]
        log_tilt, log_base = log_tilt[kept], log_base[kept]
        own = take_proposal(base, need)
        proposal = fit(take_rows(problem, need), own, u, w, power, log_base, gappy[need], least)
        adapted[need] = True
        fitted.append((need, proposal))
    if not fitted:
        return start, adapted, spent
    adapted &= ~gappy | (which >= 0)
    return _latest(n, fitted, np.where(gappy, which, len(fitted))), adapted, spent


def _table(port: Port) -> np.ndarray:
    p = port.axis.probabilities(port.message)
    return 0.5 * p + 0.5 / p.shape[1]


def _fixed(proposal: Family | Mapping[str, Family], port: Port, n: int) -> Family:
    message = proposal if isinstance(proposal, Family) else proposal.get(port.name, port.message)
    if type(message) is not type(port.message):
        wanted, given = type(port.message).__name__, type(message).__name__
        raise ModelError(f"the proposal for port {port.name!r} must be a {wanted}, not a {given}")
    message = message.broadcast_to((n,))
    if not message.proper.all():
        raise ModelError(f"the proposal for port {port.name!r} must be proper")
    return message


def _largest(log_weights: np.ndarray, n_tail: int) -> np.ndarray:
    return np.partition(log_weights, log_weights.shape[1] - n_tail - 1, axis=1)[:, -n_tail - 1 :]


def _latest(n: int, fitted: list[tuple[np.ndarray, Proposal]], last: np.ndarray) -> Proposal:
    """The last proposal fitted to each row, of those up to number `last` (any, for a row that never had one)."""
    which, place = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
    for j, (rows, _) in enumerate(fitted):
        some = np.flatnonzero(last[rows] >= j)
        which[rows[some]], place[rows[some]] = j, some
    starts = np.cumsum([0, *(len(rows) for rows, _ in fitted)])
    return take_proposal(_stack([p for _, p in fitted]), starts[which] + place)


def _stack(proposals: list[Proposal]) -> Proposal:
    """Proposals of several rows one after the other."""
    first = proposals[0]
    products = tuple(
        tuple(concatenate([p.products[c][j] for p in proposals]) for j in range(len(first.products[c])))
        for c in range(len(first.products))
    )
    return Proposal(
        np.concatenate([p.weights for p in proposals]),
        products,
        np.concatenate([p.means for p in proposals]),
        np.concatenate([p.roots for p in proposals]),
        np.concatenate([p.inverses for p in proposals]),
        tuple(np.concatenate([p.tables[j] for p in proposals]) for j in range(len(first.tables))),
    )
