"""Hyper-parameters: a name, and a prior that is written on an unconstrained scale.

Whatever looks for good values, or integrates over them, works with real numbers u and the log density of the prior there, the
change of scale included. Of scales that may be zero and of numbers between bounds, u is a normal score, or as good as one: the
prior is a standard normal distribution in u, so that no tail is longer than Gaussian. Other positive numbers are ``exp(u)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Prior
from heliograph.families import Beta, Gamma, Gaussian
from heliograph.graph.records import Node
from heliograph.numerics.gamma_function import trigamma
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.special import betaln, expit, gammaln, log_ndtr, ndtr, psi

__all__ = [
    "Hyper",
    "HyperPrior",
    "beta_prior",
    "gamma_prior",
    "gaussian_prior",
    "half_cauchy_prior",
    "half_normal_prior",
    "hyper_of",
    "log_normal_prior",
    "uniform_prior",
]


_MEDIAN = 0.6744897501960817  # of a half-normal variable of scale 1
_RISE = 0.17  # of the logarithm of a half-normal variable, with which its quantiles up to 3 sds are nearly those of a normal u
_FARTHEST = 25.0  # of u: a scale of 1e-137 there
_INSIDE = 8.0  # of u, beyond which a bounded number would be rounded to its bound
_OFF = 0.13  # of a prior's width: a reference that is no round number, at which nothing cancels by chance

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class HyperPrior:
    """The prior of a hyper-parameter on an unconstrained scale of n numbers u.

    The last axis of u is n; further axes before it are many values at once.
    """

    words: str  # for a reader
    shape: tuple[int, ...]  # of its value
    centre: Array  # (n,) u where most of the prior is
    width: Array  # (n,) how far u reaches to both sides of it, as a standard deviation
    value: Callable[[Array], Array]  # u (..., n) -> values (..., *shape)
    log_density: Callable[[Array], Array]  # of u, (..., n) -> (...)

    positive: bool = False  # values are positive numbers, and rise with u

    @property
    def n(self) -> int:
        """The number of unconstrained numbers."""
        return len(self.centre)

    @property
    def signed(self) -> bool:
        """Whether its values are numbers that may have either sign, each with a u of its own: no scales, no matrices."""
        return not self.positive and self.n == int(np.prod(self.shape))

    @property
    def reference(self) -> Array:
        """The u at which a model is first written."""
        return self.centre + _OFF * self.width


@dataclass(frozen=True, eq=False)
class Hyper:
    """A hyper-parameter of a model."""

    name: str
    prior: HyperPrior
    variable: bool = False  # a variable of the same name stands for it


def _each(
    words: str,
    shape: tuple[int, ...],
    centre: float,
    width: float,
    value: Callable[[Array], Array],
    log_density: Callable[[Array], Array],
    positive: bool = False,
) -> HyperPrior:
    """The same prior for every entry of an array, each with a number u of its own."""
    n = int(np.prod(shape))
    return HyperPrior(
        words,
        shape,
        np.full(n, centre),
        np.full(n, width),
        lambda u: value(u).reshape((*np.shape(u)[:-1], *shape)),
        lambda u: log_density(u).sum(axis=-1),
        positive,
    )


def _exp(u: Array) -> Array:
    return np.exp(np.clip(u, -345.0, 345.0))  # its square and its inverse are numbers, too


# ---- positive numbers, whose prior is as good as normal in u ----------------------------------------------------------
def _normal_in_u(
    words: str, shape: tuple[int, ...], median: float, rise: float, log_density: Callable[[Array], Array]
) -> HyperPrior:
    """A scale ``s = c Phi(u) / Phi(-u)^rise``, of whose logarithm the log density is known.

    On the scale of log s, a scale that may be zero has a tail that falls by only one nat per unit of log s, so that it takes many
    evaluations to follow, and is the first thing to be lost in several dimensions. Here such tails end like Gaussian ones, and log
    s still grows without bounds, so that data which are at odds with the prior are reached in a few steps.
    """
    log_c = np.log(median) + (1.0 - rise) * np.log(2.0)

    def log_value(u: Array) -> tuple[Array, Array]:
        """``log s``, and its derivative."""
        u = np.clip(u, -_FARTHEST, _FARTHEST)
        low, high = log_ndtr(u), log_ndtr(-u)
        log_bell = -0.5 * u**2 - 0.5 * LOG_2PI
        return log_c + low - rise * high, np.exp(log_bell - low) + rise * np.exp(log_bell - high)

    def value(u: Array) -> Array:
        return _exp(log_value(u)[0])

    def log_density_of_u(u: Array) -> Array:
        log_s, slope = log_value(u)
        return log_density(log_s) + np.log(slope)

    return _each(words, shape, 0.0, 1.0, value, log_density_of_u, positive=True)


def half_normal_prior(scale: float, shape: tuple[int, ...]) -> HyperPrior:
    """The absolute value of a Gaussian.

    >>> prior = half_normal_prior(2.0, ())
    >>> float(prior.value(np.zeros(1)).round(6))  # its median
    1.34898
    """
    constant = np.log(2.0 / scale) - 0.5 * LOG_2PI

    def log_density(log_s: Array) -> Array:
        return constant + log_s - 0.5 * (_exp(log_s) / scale) ** 2

    return _normal_in_u(f"half_normal({scale:g})", shape, _MEDIAN * scale, _RISE, log_density)


def half_cauchy_prior(scale: float, shape: tuple[int, ...]) -> HyperPrior:
    """The absolute value of a Cauchy variable."""
    log_scale = np.log(scale)
    constant = np.log(2.0 / np.pi)

    def log_density(log_s: Array) -> Array:
        t = log_s - log_scale
        return constant + t - np.logaddexp(0.0, 2.0 * t)  # t - log(1 + exp(2 t)): no overflow at either end

    return _normal_in_u(f"half_cauchy({scale:g})", shape, scale, 1.0, log_density)


# ---- positive numbers, u = log s -----------------------------------------------------------------------------------
def log_normal_prior(mean: float, sd: float, shape: tuple[int, ...]) -> HyperPrior:
    """The exponential of a Gaussian with this mean and standard deviation."""

    def log_density(u: Array) -> Array:
        return -0.5 * ((u - mean) / sd) ** 2 - 0.5 * LOG_2PI - np.log(sd)

    return _each(f"log_normal({mean:g}, {sd:g})", shape, mean, sd, _exp, log_density, True)


def gamma_prior(gamma_shape: float, rate: float, shape: tuple[int, ...]) -> HyperPrior:
    """A Gamma variable."""
    constant = gamma_shape * np.log(rate) - gammaln(gamma_shape)

    def log_density(u: Array) -> Array:
        return constant + gamma_shape * u - rate * _exp(u)

    centre = float(psi(gamma_shape) - np.log(rate))
    width = min(float(np.sqrt(trigamma(np.asarray(gamma_shape)))), 5.0)  # a shape near 0 reaches over many decades
    return _each(f"gamma({gamma_shape:g}, {rate:g})", shape, centre, width, _exp, log_density, True)


# ---- bounded and real numbers --------------------------------------------------------------------------------------
def uniform_prior(lower: float, upper: float, shape: tuple[int, ...]) -> HyperPrior:
    """All values between two bounds alike; u is the normal score."""

    def value(u: Array) -> Array:
        return lower + (upper - lower) * ndtr(np.clip(u, -_FARTHEST, _INSIDE))

    def log_density(u: Array) -> Array:
        return -0.5 * u**2 - 0.5 * LOG_2PI

    return _each(f"flat({lower:g}, {upper:g})", shape, 0.0, 1.0, value, log_density)


def beta_prior(a: float, b: float, shape: tuple[int, ...]) -> HyperPrior:
    """A Beta variable."""

    def log_density(u: Array) -> Array:
        return -a * np.logaddexp(0.0, -u) - b * np.logaddexp(0.0, u) - betaln(a, b)

    centre = float(psi(a) - psi(b))
    width = min(float(np.sqrt(trigamma(np.asarray(a)) + trigamma(np.asarray(b)))), 5.0)
    return _each(f"beta({a:g}, {b:g})", shape, centre, width, expit, log_density)


def gaussian_prior(mean: float, variance: float, shape: tuple[int, ...]) -> HyperPrior:
    """A Gaussian variable; u is its standardised value."""
    sd = float(np.sqrt(variance))

    def log_density(u: Array) -> Array:
        return -0.5 * u**2 - 0.5 * LOG_2PI

    return _each(f"gaussian({mean:g}, {variance:g})", shape, 0.0, 1.0, lambda u: mean + sd * u, log_density)


# ---- variables with a fixed prior, as hyper-parameters ------------------------------------------------------------
def hyper_of(node: Node) -> Hyper:
    """A variable with a fixed prior as a hyper-parameter.

    Raises
    ------
    ModelError
        Where it has no such prior, or was observed.
    """
    factor = None if node.maker is None else node.maker.factor
    message = factor.fixed if isinstance(factor, Prior) else None
    if not isinstance(message, (Gaussian, Gamma, Beta)) or node.observed is not None:
        why = "it is observed" if node.observed is not None else "its prior is not a fixed Gaussian, Gamma or Beta"
        raise ModelError(
            f"variable {node.name!r} cannot be integrated over as a hyper-parameter: {why}; "
            "use model.half_normal, model.log_normal or another hyper-parameter in its place"
        )
    return Hyper(node.name, _prior_of(message, node.shape), variable=True)


def _prior_of(message: Gaussian | Gamma | Beta, shape: tuple[int, ...]) -> HyperPrior:
    """The prior on the unconstrained scale; all entries must share one, or there is a prior for each."""
    if isinstance(message, Gaussian):
        pairs, make = (message.mean, message.variance), gaussian_prior
    elif isinstance(message, Gamma):
        pairs, make = (message.shape_parameter, message.rate), gamma_prior
    else:
        pairs, make = (message.a, message.b), beta_prior
    each = [make(float(a), float(b), ()) for a, b in zip(*pairs, strict=True)]

    def value(u: np.ndarray) -> np.ndarray:
        values = [p.value(u[..., k : k + 1]) for k, p in enumerate(each)]
        return np.stack(values, axis=-1).reshape((*u.shape[:-1], *shape))

    def log_density(u: np.ndarray) -> np.ndarray:
        return sum((p.log_density(u[..., k : k + 1]) for k, p in enumerate(each)), np.zeros(u.shape[:-1]))

    centre, width = (np.concatenate([getattr(p, w) for p in each]) for w in ("centre", "width"))
    return HyperPrior(each[0].words, shape, centre, width, value, log_density, each[0].positive)
