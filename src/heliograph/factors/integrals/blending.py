"""The message of a mixture to one of its parameters, for every family: belief and cavity mixed, projected, divided by the cavity.

A parameter gets one of several messages, each with a probability, and none of them with the remaining probability. Where a family
allows it, the mixed belief is carried relative to the cavity, so that a message much weaker than the cavity keeps its digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from heliograph.factors.integrals.mixing import mix_branches
from heliograph.factors.select import alone, met
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.numerics.count_masses import digamma_rise
from heliograph.numerics.excess import exp_excess
from heliograph.numerics.gamma_function import digamma_gap
from heliograph.numerics.inverse_dirichlet import raised_centre

__all__ = ["blended"]


def blended(cavity: Any, sent: Sequence[Any], shares: Sequence[np.ndarray], rest: np.ndarray) -> Family:
    """The message whose belief is the projection of ``sum_k shares_k (cavity * message_k) + rest cavity``, each part normalised.

    Parameters
    ----------
    cavity
        What came in.
    sent
        The messages that are mixed, one per branch.
    shares
        The probability of each branch; with `rest` they sum to 1.
    rest
        The probability that none of them was sent.

    Uniform where the cavity is a point mass, and where a branch of positive probability has no belief.
    """
    known = cavity.is_point
    open_ = cavity.where(~known, cavity.as_uniform()) if np.any(known) else cavity
    fine = ~known & (cavity.proper | (rest <= 0)) & (np.sum(shares, axis=0) > 0)
    lost = np.zeros(cavity.shape, dtype=bool)
    for m, p in zip(sent, shares, strict=True):
        lost |= ~m.finite & (p > 0)
        fine = fine & ((m * open_).proper | (p <= 0))
    shares, rest = [np.where(fine, p, 0.0) for p in shares], np.where(fine, rest, 1.0)
    possible = [m.where(p > 0, m.as_uniform()) for m, p in zip(sent, shares, strict=True)]
    message = _BLENDS.get(type(cavity), _by_statistics)(cavity.where(fine, _somewhere(cavity)), possible, shares, rest)
    for m, p in zip(possible, shares, strict=True):
        message = m.where(p == 1.0, message)
    message = message.where(fine, message.as_uniform())
    return message.without(lost & ~known) if np.any(lost & ~known) else message


def _somewhere(m: Any) -> Any:
    """Any proper message of the same kind, a placeholder where the answer is not needed."""
    if isinstance(m, MultivariateGaussian):
        d = m.dimension
        return MultivariateGaussian(np.zeros((*m.shape, d)), np.eye(d))
    if isinstance(m, Gaussian):
        return Gaussian(np.zeros(m.shape), 1.0)
    if isinstance(m, Gamma):
        return Gamma(np.ones(m.shape), 1.0)
    return m.as_uniform()  # proper, for all others


def _gaussian(cavity: Gaussian, sent: Sequence[Gaussian], shares: Sequence[np.ndarray], rest: np.ndarray) -> Gaussian:
    parts = [*(met(cavity, m) for m in sent), alone(cavity)]
    stacked = [np.stack(part, axis=-1) for part in zip(*parts, strict=True)]
    probability = np.stack([*shares, rest], axis=-1)
    stacked = [np.where(probability > 0, part, 0.0) for part in stacked]
    return mix_branches(probability, cavity, *stacked).message(cavity, np.ones(cavity.shape, dtype=bool))


def _vector(
    cavity: MultivariateGaussian, sent: Sequence[MultivariateGaussian], shares: Sequence[np.ndarray], rest: np.ndarray
) -> MultivariateGaussian:
    sure = cavity.proper
    if sure.all():
        return _relative(cavity, sent, shares, rest)
    # the cavity is uniform, so nothing can cancel
    parts = [(cavity * m, p) for m, p in zip(sent, shares, strict=True)]
    parts = [(b.where(p > 0, _somewhere(b)), p[..., None]) for b, p in parts]
    mean = sum(p * b.mean for b, p in parts)
    apart = [(b.mean - mean, b.covariance, p[..., None]) for b, p in parts]
    spread = sum(p * (v + a[..., :, None] * a[..., None, :]) for a, v, p in apart)
    mixed = MultivariateGaussian(
        np.where(sure[..., None], 0.0, mean), np.where(sure[..., None, None], np.eye(cavity.dimension), spread)
    )
    forward = MultivariateGaussian.from_naturals(
        tuple(b - c for b, c in zip(mixed.naturals, cavity.naturals, strict=True))
    )
    return _relative(cavity.where(sure, _somewhere(cavity)), sent, shares, rest).where(sure, forward)


def _relative(
    cavity: MultivariateGaussian, sent: Sequence[MultivariateGaussian], shares: Sequence[np.ndarray], rest: np.ndarray
) -> MultivariateGaussian:
    """In coordinates in which the cavity is N(0, 1): what a branch takes from the covariance, and where it moves the mean."""
    d = cavity.dimension
    lower = np.linalg.cholesky(cavity.naturals[1])  # precision = lower lower'
    half = np.linalg.inv(lower)
    centre = cavity.mean
    eye = np.eye(d)
    gain, gap = np.zeros((*cavity.shape, d, d)), np.zeros((*cavity.shape, d))
    moves: list[tuple[np.ndarray, np.ndarray]] = []
    for m, p in zip(sent, shares, strict=True):
        at = m.is_point
        shift, precision = m.naturals
        slope = np.einsum("...ij,...j->...i", half, shift - np.einsum("...ij,...j->...i", precision, centre))
        white = half @ precision @ np.swapaxes(half, -1, -2)
        # the belief's covariance is (1 + white)^-1, what it takes from the cavity's (1 + white)^-1 white
        solved = np.linalg.solve(eye + white, np.concatenate([white, slope[..., None]], axis=-1))
        takes, move = solved[..., :d], solved[..., d]
        if m.point is not None:
            there = np.where(at[..., None], m.point, centre) - centre
            takes = np.where(at[..., None, None], eye, takes)
            move = np.where(at[..., None], np.einsum("...ji,...j->...i", lower, there), move)
        gain, gap = gain + p[..., None, None] * takes, gap + p[..., None] * move
        moves.append((p, move))
    for p, move in [*moves, (rest, np.zeros_like(gap))]:
        apart = move - gap
        gain = gain - (p[..., None] * apart)[..., :, None] * apart[..., None, :]
    gain = 0.5 * (gain + np.swapaxes(gain, -1, -2))
    solved = np.linalg.solve(eye - gain, np.concatenate([gain, gap[..., None]], axis=-1))
    white, slope = solved[..., :d], solved[..., d]  # precision and shift (about the cavity's mean) of the message
    precision = lower @ (0.5 * (white + np.swapaxes(white, -1, -2))) @ np.swapaxes(lower, -1, -2)
    precision = 0.5 * (precision + np.swapaxes(precision, -1, -2))
    shift = np.einsum("...ij,...j->...i", lower, slope) + np.einsum("...ij,...j->...i", precision, centre)
    return MultivariateGaussian.from_naturals((shift, precision))


def _gamma(cavity: Gamma, sent: Sequence[Gamma], shares: Sequence[np.ndarray], rest: np.ndarray) -> Gamma:
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # probability, E x, log E x - E log x
    for m, p in [*zip(sent, shares, strict=True), (cavity.as_uniform(), rest)]:
        a, b = cavity.naturals[0] + m.naturals[0] + 1.0, cavity.naturals[1] + m.naturals[1]
        at = m.is_point
        mean = np.where(at, m.mean, a / b) if np.any(at) else a / b
        parts.append((p, np.where(p > 0, mean, 1.0), np.where(at | (p <= 0), 0.0, digamma_gap(a))))
    total = sum(p * mean for p, mean, _ in parts)
    # all of its terms are positive, and those of branches of probability 0 vanish
    terms = [p * (gap + exp_excess(np.where(p > 0, np.log(mean / total), 0.0))) for p, mean, gap in parts]
    spread = sum(terms)
    belief = Gamma.from_mean_and_log_gap(total, spread, strict=False)
    naturals = tuple(b - c for b, c in zip(belief.naturals, cavity.naturals, strict=True))
    return Gamma.from_naturals(cast(Any, naturals), belief.point)


def _simplex(cavity: Any, sent: Sequence[Any], shares: Sequence[np.ndarray], rest: np.ndarray) -> Any:
    """By the rise of every ``E log p`` over the cavity's."""
    beta = isinstance(cavity, Beta)

    def read(m: Any) -> np.ndarray:
        return np.stack(m.naturals, axis=-1) if beta else m.naturals[0]

    a = read(cavity) + 1.0
    rise = np.zeros_like(a)
    for m, p in zip(sent, shares, strict=True):
        more = read(m)
        each = digamma_rise(a, more) - digamma_rise(a.sum(-1), more.sum(-1))[..., None]
        rise += np.where(p[..., None] > 0, p[..., None] * each, 0.0)
    log_centre, gap = raised_centre(a, rise)
    if beta:
        belief: Any = Beta.from_mean_logit_and_gap(log_centre[..., 0] - log_centre[..., 1], gap, strict=False)
    else:
        belief = Dirichlet.from_log_centre_and_gap(log_centre, gap, strict=False)
    return type(cavity).from_naturals(tuple(b - c for b, c in zip(belief.naturals, cavity.naturals, strict=True)))


def _discrete(cavity: Any, sent: Sequence[Any], shares: Sequence[np.ndarray], rest: np.ndarray) -> Any:
    """Weights ``rest + sum_k shares_k message_k(v) / (sum_v cavity(v) message_k(v))``, without dividing by the cavity."""
    weight = np.zeros((*cavity.shape, _log_p(cavity).shape[-1])) + rest[..., None]
    p_cavity = np.exp(_log_p(cavity))
    for m, p in zip(sent, shares, strict=True):
        likelihood = np.exp(_log_p(m))
        z = (p_cavity * likelihood).sum(axis=-1, keepdims=True)
        weight += np.where(p[..., None] > 0, p[..., None] * likelihood / z, 0.0)
    return cavity.from_log_weights(np.log(weight), strict=False)


def _log_p(m: Any) -> np.ndarray:
    return m.log_p


def _by_statistics(cavity: Any, sent: Sequence[Any], shares: Sequence[np.ndarray], rest: np.ndarray) -> Any:
    """For any other family: the expected statistics mixed, and the projection divided by the cavity."""
    parts = [(cavity * m, p) for m, p in zip(sent, shares, strict=True)]
    totals: list[Any] = []
    for place, rank in enumerate(cavity.ranks):
        terms = [(b.expected_statistics()[place], p) for b, p in [*parts, (cavity, rest)]]
        totals.append(sum(p.reshape(p.shape + (1,) * rank) * t for t, p in terms))
    return cavity.from_statistics(*totals) / cavity


_BLENDS: dict[type[Family], Any] = {
    Gaussian: _gaussian,
    MultivariateGaussian: _vector,
    Gamma: _gamma,
    Beta: _simplex,
    Dirichlet: _simplex,
    Bernoulli: _discrete,
    Categorical: _discrete,
}
