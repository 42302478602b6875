"""Parts of the rules for first messages (`Factor.mean_field`): expected precisions, and messages to them from squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.factors.line import add_noise
from heliograph.families import Gamma, Gaussian
from heliograph.numerics.gamma_function import digamma_gap

__all__ = [
    "Component",
    "Expected",
    "chosen",
    "component",
    "drawn_to",
    "expected",
    "precision_from_squares",
    "with_expected_noise",
]


class Expected(NamedTuple):
    """The expectation of a positive quantity under its belief."""

    value: np.ndarray  # 1 where there is none
    known: np.ndarray  # bool


def expected(belief: Gamma) -> Expected:
    """The mean of a belief, where it is a distribution."""
    known = belief.proper
    value = np.where(known, belief.mean, 1.0)
    known = known & (value > 0) & np.isfinite(value)
    return Expected(np.where(known, value, 1.0), known)


def with_expected_noise(other: Gaussian, tau: Expected) -> Gaussian:
    """The message across noise of the expected precision; uniform where there is none."""
    message = add_noise(other, 1.0 / tau.value)
    return message if tau.known.all() else message.where(tau.known, message.as_uniform())


def precision_from_squares(x: Gaussian, mean: Gaussian, tau: Expected) -> Gamma:
    """The message to the precision from the expected square of ``x - mean``; uniform beside a uniform end.

    Under the expected precision t and messages that make the difference N(d, s), its mean is ``d / (1 + s t)`` and its variance
    ``s / (1 + s t)``.
    """
    tame = x.proper & mean.proper & tau.known
    s = np.where(tame, x.variance + mean.variance, 0.0)
    d = np.where(tame, x.mean - mean.mean, 0.0)
    grow = 1.0 + s * tau.value
    rate = 0.5 * ((d / grow) ** 2 + s / grow)
    return Gamma.from_naturals((np.where(tame, 0.5, 0.0), np.where(tame, rate, 0.0)))


class Component(NamedTuple):
    """A component of a mixture: the messages' expectations that every direction needs."""

    mean: Gaussian
    tau: Expected
    log_tau: np.ndarray  # E log precision
    square: np.ndarray  # E (x - mean)^2
    known: np.ndarray  # bool: whether all of them exist


def component(x: Gaussian, mean: Gaussian, precision: Gamma) -> Component:
    """The expectations of one component, under beliefs that are taken for independent."""
    tau = expected(precision)
    shape = np.where(tau.known & ~precision.is_point, precision.naturals[0] + 1.0, 1.0)
    log_tau = np.log(tau.value) - np.where(precision.is_point, 0.0, digamma_gap(shape))
    known = x.proper & mean.proper & tau.known
    d, v = np.where(known, x.mean - mean.mean, 0.0), np.where(known, x.variance + mean.variance, 0.0)
    return Component(mean, tau, log_tau, d**2 + v, known)


def chosen(components: list[Component]) -> np.ndarray:
    """``E log N(x; mean, 1 / precision)`` of every component, ``(..., K)``; 0 where one of them has none."""
    known = np.stack([c.known for c in components], axis=-1).all(axis=-1, keepdims=True)
    score = np.stack([0.5 * c.log_tau - 0.5 * c.tau.value * c.square for c in components], axis=-1)
    return np.where(known, score, 0.0)


def drawn_to(ends: list[Gaussian], taus: list[Expected], shares: list[np.ndarray]) -> Gaussian:
    """The product of Gaussians around the means of some `ends`, of the expected precisions, each with its share."""
    shift, precision = np.zeros(ends[0].shape), np.zeros(ends[0].shape)
    for end, tau, share in zip(ends, taus, shares, strict=True):
        fine = end.proper & tau.known
        weight = np.where(fine, share * tau.value, 0.0)
        shift, precision = shift + weight * np.where(fine, end.mean, 0.0), precision + weight
    return Gaussian.from_naturals((shift, precision))
