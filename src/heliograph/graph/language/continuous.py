"""Gaussian, Gamma and Beta variables."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import BetaMean, GammaRate, GaussianFactor, GaussianPrecision, MultivariateGaussianFactor
from heliograph.families import Beta, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.graph.check import (
    check_covariance,
    check_number,
    check_observed,
    check_positive,
    check_probability,
    check_seen,
    observed_shape,
)
from heliograph.graph.draft import Draft
from heliograph.graph.language.arrays import holds_columns
from heliograph.graph.language.censoring import Censoring, bounds_of
from heliograph.graph.language.children import (
    Entries,
    Kind,
    child,
    fitted_size,
    from_message,
    from_parameters,
    want,
    with_prior,
)
from heliograph.graph.language.functions import between
from heliograph.graph.language.keywords import EntryKeywords, SeenKeywords
from heliograph.graph.language.linear import stack
from heliograph.graph.language.spread import Spread, read_spread
from heliograph.graph.language.statements import constrain
from heliograph.graph.quantity import Argument, Quantity

__all__ = ["beta", "gamma", "gaussian", "variable"]


def gaussian(
    draft: Draft,
    name: str,
    mean: Argument = 0.0,
    variance: Argument | None = None,
    *,
    sd: Argument | None = None,
    precision: Argument | None = None,
    covariance: Any = None,
    censored: Any = None,
    until: Any = None,
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """A Gaussian variable: scalars with `variance`, `sd` or `precision`, or a vector with `covariance`.

    Parameters
    ----------
    mean
        A number, an array, a variable, or a Gaussian message (for example a posterior) that becomes the prior.
    variance, sd
        The width of scalars: a number, an array, a hyper-parameter, or a Gamma variable, which is then integrated
        over.
    precision
        The inverse of the variance: a number, an array or a Gamma variable. For a vector, a matrix of numbers or a
        `wishart`.
    covariance
        A matrix, which makes the last axis of `mean` a vector.
    censored, until
        Which observed values are only bounds, as for `exponential`.
    """
    spread, entries = Spread(variance, sd, precision, covariance), Entries(**keywords)
    if censored is not None or until is not None:
        return _censored(draft, name, mean, spread, entries, Censoring(censored, until))
    return _gaussian(draft, name, mean, spread, entries)


def _gaussian(draft: Draft, name: str, mean: Any, spread: Spread, entries: Entries) -> Quantity:
    if isinstance(mean, Family):
        return from_message(draft, name, mean, (Gaussian, MultivariateGaussian), entries)
    width = read_spread(name, spread, mean)
    if width.covariance is not None:
        return _vector_gaussian(draft, name, mean, width.covariance, entries)
    if width.precision is not None:
        parent = want(name, "mean", mean, Gaussian) if isinstance(mean, Quantity) else check_number(name, "mean", mean)
        ports = {"mean": parent, "precision": width.precision}
        return child(draft, name, GaussianPrecision(), ports, {}, Kind(Gaussian), entries)
    assert width.variance is not None
    if isinstance(mean, Quantity):
        want(name, "mean", mean, Gaussian)
        data = {"variance": width.variance}
        return child(draft, name, GaussianFactor(), {"mean": mean}, data, Kind(Gaussian), entries)
    return from_parameters(draft, name, Gaussian, (check_number(name, "mean", mean), width.variance), entries)


def _vector_gaussian(draft: Draft, name: str, mean: Any, covariance: Any, entries: Entries) -> Quantity:
    if isinstance(mean, Quantity):
        if holds_columns(mean):
            raise ModelError(
                f"variable {name!r}: the columns of {mean.name} are vectors, and each row of a mean is one; write vectors @ X.T "
                "in the place of X @ vectors"
            )
        vector = stack(draft, mean) if mean.family is Gaussian else want(name, "mean", mean, MultivariateGaussian)
        d = vector.node.dimension or 0
        data = {"covariance": check_covariance(name, "covariance", covariance, d)}
        kind = Kind(MultivariateGaussian, d)
        return child(draft, name, MultivariateGaussianFactor(), {"mean": vector}, data, kind, entries)
    mean = check_number(name, "mean", mean)
    if mean.ndim == 0:
        raise ModelError(f"variable {name!r}: with covariance= the mean must be a vector; use variance= for scalars")
    d = mean.shape[-1]
    covariance = check_number(name, "covariance", covariance)
    if covariance.shape[-2:] != (d, d):
        check_covariance(name, "covariance", covariance, d)
    plate = np.broadcast_shapes(mean.shape[:-1], covariance.shape[:-2])
    if entries.observed is not None and entries.size is None and plate == ():
        plate = observed_shape(name, entries.observed)[:-1]
    shape = fitted_size(name, plate, entries.size)
    try:
        message = MultivariateGaussian(np.broadcast_to(mean, (*shape, d)), np.broadcast_to(covariance, (*shape, d, d)))
    except ModelError:
        check_covariance(name, "covariance", covariance, d)  # the same, in a sentence that names the variable
        raise
    return with_prior(draft, name, message, d, entries)


def _censored(draft: Draft, name: str, mean: Any, spread: Spread, entries: Entries, censoring: Censoring) -> Quantity:
    """A Gaussian variable of which some values are only known to lie beyond a bound or in an interval."""
    check_seen(name, entries.observed, **censoring._asdict())
    shape = fitted_size(name, observed_shape(name, entries.observed), entries.size)
    seen = check_observed(name, Gaussian, shape, None, entries.observed, entries.missing)
    values = np.full(shape, np.nan) if seen.point is None else np.asarray(seen.point).reshape(shape)
    low, high = bounds_of(name, values, censoring, -np.inf)
    exact = np.where(low == high, low, np.nan)
    x = _gaussian(draft, name, mean, spread, Entries(low.shape, exact, None))
    beyond = ~np.isnan(low) & (low != high)
    if beyond.any():
        constrain(draft, between(draft, x.part(beyond), low[beyond], high[beyond]))
    return x


def gamma(
    draft: Draft,
    name: str,
    shape: Argument,
    rate: Argument | None = None,
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """A Gamma variable with a shape and a rate; its mean is ``shape / rate``.

    `rate` is a number or a Gamma variable (a compound gamma). Instead of `shape`, a Gamma message may be given as
    the prior.

    Parameters
    ----------
    shape
        A number or an array; or a Gamma message in place of both parameters, which becomes the prior.
    rate
        A number, an array, a hyper-parameter, or a Gamma variable.
    """
    entries = Entries(**keywords)
    if isinstance(shape, Family):
        return from_message(draft, name, shape, (Gamma,), entries)
    if isinstance(shape, Quantity):
        raise UnsupportedError(f"variable {name!r}: a random shape ({shape.name!r}) has no factor; fix the shape")
    if rate is None:
        raise ModelError(f"variable {name!r}: a Gamma needs a shape and a rate")
    shape = check_positive(name, "shape", shape)
    if isinstance(rate, Quantity):
        want(name, "rate", rate, Gamma)
        return child(draft, name, GammaRate(), {"rate": rate}, {"shape": shape}, Kind(Gamma), entries)
    return from_parameters(draft, name, Gamma, (shape, check_positive(name, "rate", rate)), entries)


def beta(
    draft: Draft,
    name: str,
    a: Argument | None = None,
    b: Argument | None = None,
    *,
    mean: Argument | None = None,
    concentration: Any = None,
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """A Beta variable with fixed `a` and `b`, or with a `mean` and a `concentration`.

    With a mean m and a concentration k, ``a = m k`` and ``b = (1 - m) k``. The mean is a number or a Beta variable,
    the concentration a number or a hyper-parameter.

    Parameters
    ----------
    a, b
        Numbers or arrays; or a Beta message as `a` alone, which becomes the prior.
    mean, concentration
        In place of `a` and `b`.
    """
    entries = Entries(**keywords)
    if isinstance(a, Family):
        return from_message(draft, name, a, (Beta,), entries)
    if (mean is None) != (concentration is None) or (a is not None and mean is not None):
        raise ModelError(f"variable {name!r}: a Beta needs a and b, or mean= and concentration=")
    if mean is not None:
        return _beta_around(draft, name, mean, check_positive(name, "concentration", concentration), entries)
    for what, value in (("a", a), ("b", b)):
        if isinstance(value, Quantity):
            raise UnsupportedError(
                f"variable {name!r}: a random {what} of a Beta has no factor; a Beta variable as mean= with a known "
                "concentration= has"
            )
    if a is None or b is None:
        raise ModelError(f"variable {name!r}: a Beta needs a and b, or mean= and concentration=")
    return from_parameters(draft, name, Beta, (check_positive(name, "a", a), check_positive(name, "b", b)), entries)


def _beta_around(draft: Draft, name: str, mean: Any, concentration: np.ndarray, entries: Entries) -> Quantity:
    if isinstance(mean, Quantity):
        m = want(name, "mean", mean, Beta, " (of a Gaussian z take model.sigmoid(z))")
        data = {"concentration": concentration}
        return child(draft, name, BetaMean(), {"mean": m}, data, Kind(Beta), entries)
    m = check_probability(name, "mean", mean)
    if np.any((m <= 0) | (m >= 1)):
        raise ModelError(f"variable {name!r}: its mean must lie between 0 and 1, and not at either")
    return from_parameters(draft, name, Beta, (m * concentration, (1.0 - m) * concentration), entries)


def variable(draft: Draft, name: str, prior: Family, **keywords: Unpack[SeenKeywords]) -> Quantity:
    """A variable of any family with a message as its prior, for example a posterior of an earlier batch.

    Parameters
    ----------
    prior
        A proper message, of the shape of the variable.
    """
    return from_message(draft, name, prior, (Family,), Entries(**keywords))
