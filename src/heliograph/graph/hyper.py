"""Hyper-parameters: a name, and a prior that is written on an unconstrained scale.

A scale s is ``exp(u)``, a bounded number a logistic function of u, and so on: whatever looks for good values, or integrates over
them, works with the real numbers u and the log density of the prior there, the change of scale included.
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
from heliograph.numerics.special import betaln, expit, gammaln, psi

__all__ = [
    "Hyper",
    "HyperPrior",
    "beta_prior",
    "gamma_prior",
    "gaussian_prior",
    "half_cauchy_prior",
    "half_normal_prior",
    "hyper_of",
    "lkj_prior",
    "log_normal_prior",
    "uniform_prior",
    "wishart_prior",
]


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

    positive: bool = False  # values are ``exp(u)``

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
        value is _exp,
    )


# ---- positive numbers, u = log s -----------------------------------------------------------------------------------
def half_normal_prior(scale: float, shape: tuple[int, ...]) -> HyperPrior:
    """The absolute value of a Gaussian.

    >>> prior = half_normal_prior(2.0, ())
    >>> float(prior.value(np.zeros(1))), round(float(np.exp(prior.log_density(np.zeros(1)))), 6)
    (1.0, 0.352065)
    """
    constant = np.log(2.0 / scale) - 0.5 * LOG_2PI

    def log_density(u: Array) -> Array:
        return constant + u - 0.5 * (_exp(u) / scale) ** 2

    return _each(f"half_normal({scale:g})", shape, np.log(scale) - 0.635, 1.11, _exp, log_density)


def half_cauchy_prior(scale: float, shape: tuple[int, ...]) -> HyperPrior:
    """The absolute value of a Cauchy variable."""
    log_scale = np.log(scale)
    constant = np.log(2.0 / np.pi)

    def log_density(u: Array) -> Array:
        t = u - log_scale
        return constant + t - np.logaddexp(0.0, 2.0 * t)  # t - log(1 + exp(2 t)): no overflow at either end

    return _each(f"half_cauchy({scale:g})", shape, log_scale, 1.57, _exp, log_density)


def log_normal_prior(mean: float, sd: float, shape: tuple[int, ...]) -> HyperPrior:
    """The exponential of a Gaussian with this mean and standard deviation."""

    def log_density(u: Array) -> Array:
        return -0.5 * ((u - mean) / sd) ** 2 - 0.5 * LOG_2PI - np.log(sd)

    return _each(f"log_normal({mean:g}, {sd:g})", shape, mean, sd, _exp, log_density)


def gamma_prior(gamma_shape: float, rate: float, shape: tuple[int, ...]) -> HyperPrior:
    """A Gamma variable."""
    constant = gamma_shape * np.log(rate) - gammaln(gamma_shape)

    def log_density(u: Array) -> Array:
        return constant + gamma_shape * u - rate * _exp(u)

    centre = float(psi(gamma_shape) - np.log(rate))
    width = min(float(np.sqrt(trigamma(np.asarray(gamma_shape)))), 5.0)  # a shape near 0 reaches over many decades
    return _each(f"gamma({gamma_shape:g}, {rate:g})", shape, centre, width, _exp, log_density)


# ---- bounded and real numbers --------------------------------------------------------------------------------------
def uniform_prior(lower: float, upper: float, shape: tuple[int, ...]) -> HyperPrior:
    """All values between two bounds alike."""

    def value(u: Array) -> Array:
        return lower + (upper - lower) * expit(u)

    def log_density(u: Array) -> Array:
        return -np.logaddexp(0.0, u) - np.logaddexp(0.0, -u)

    return _each(f"flat({lower:g}, {upper:g})", shape, 0.0, 1.8, value, log_density)


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


# ---- matrices ------------------------------------------------------------------------------------------------------
def lkj_prior(dimension: int, concentration: float) -> HyperPrior:
    """Correlation matrices R with a density in proportion to ``det(R) ** (concentration - 1)``.

    The numbers are ``tanh(u)`` of the partial correlations given all earlier components, which are independent Beta variables on
    (-1, 1) under this prior (Lewandowski, Kurowicka and Joe 2009).
    """
    row, column = np.tril_indices(dimension, -1)
    b = concentration + 0.5 * (dimension - 2 - column)
    constant = -(2 * b - 1) * np.log(2.0) - betaln(b, b)

    def value(u: Array) -> Array:
        partial = np.zeros((*u.shape[:-1], dimension, dimension))
        partial[..., row, column] = np.tanh(u)
        lower = np.zeros_like(partial)
        left = np.ones(partial.shape[:-1])  # what is left of each row's unit length
        for k in range(dimension):
            lower[..., k] = partial[..., k] * np.sqrt(left)
            lower[..., k, k] = np.sqrt(left[..., k])
            left = np.maximum(left - lower[..., k] ** 2, 0.0)  # rounding may pass 0
        return lower @ np.swapaxes(lower, -1, -2)

    def log_density(u: Array) -> Array:
        log_rest = 2.0 * (np.log(2.0) - np.logaddexp(u, -u))  # log(1 - tanh(u)^2)
        return (b * log_rest + constant).sum(axis=-1)

    n = len(row)
    width = np.full(n, 1.0 / np.sqrt(max(2.0 * concentration - 1.0, 1.0)))
    return HyperPrior(
        f"lkj({dimension}, {concentration:g})", (dimension, dimension), np.zeros(n), width, value, log_density
    )


def _exp(u: Array) -> Array:
    return np.exp(np.clip(u, -345.0, 345.0))  # its square and its inverse are numbers, too


def wishart_prior(dof: float, scale: np.ndarray) -> HyperPrior:
    """Precision matrices ``W ~ Wishart(dof, scale)`` of mean ``dof scale``, by Bartlett's decomposition.

    With ``scale = A A'`` it is ``W = A T T' A'`` for a lower triangle T of independent entries: Gaussian ones below the diagonal,
    and on it the roots of chi-squared numbers of dof, dof - 1, ... degrees of freedom, of which u holds the logarithms.

    >>> prior = wishart_prior(5.0, np.eye(1))  # one number: a Gamma(5 / 2, rate 1 / 2)
    >>> from heliograph.families import Gamma
    >>> u = np.array([0.3])
    >>> w = prior.value(u)[0, 0]
    >>> bool(np.isclose(prior.log_density(u), Gamma(2.5, 0.5).log_density(w) + np.log(2 * w)))
    True
    """
    d = len(scale)
    root = np.linalg.cholesky(scale)
    row, column = np.tril_indices(d)
    diagonal = row == column
    k = dof - np.arange(d)  # degrees of freedom of each diagonal entry
    constant = np.log(2.0) * (1.0 - 0.5 * k) - gammaln(0.5 * k)

    def value(u: np.ndarray) -> np.ndarray:
        lower = np.zeros((*u.shape[:-1], d, d))
        lower[..., row, column] = np.where(diagonal, np.exp(np.where(diagonal, np.clip(u, -150.0, 150.0), 0.0)), u)
        half = root @ lower
        return half @ np.swapaxes(half, -1, -2)

    def log_density(u: np.ndarray) -> np.ndarray:
        logs, others = u[..., diagonal], u[..., ~diagonal]
        on = constant + k * logs - 0.5 * np.exp(2.0 * np.minimum(logs, 150.0))
        return on.sum(axis=-1) - 0.5 * (others**2 + np.log(2 * np.pi)).sum(axis=-1)

    centre, width = np.zeros(len(row)), np.ones(len(row))
    centre[diagonal] = 0.5 * (psi(0.5 * k) + np.log(2.0))  # of log T, half the log of a chi-squared number
    width[diagonal] = np.minimum(0.5 * np.sqrt(trigamma(0.5 * k)), 5.0)
    return HyperPrior(f"wishart({dof:g}, {d} x {d})", (d, d), centre, width, value, log_density)


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
