"""The words of the modelling language for counts and ordered categories; they are methods of `Builder`."""

from __future__ import annotations

from typing import Any

from heliograph.graph.language import counts, discrete, ordered
from heliograph.graph.language.children import Entries
from heliograph.graph.other_words import as_known
from heliograph.graph.quantity import Argument
from heliograph.graph.variable import ModelLike, Variable, build, state

__all__ = ["binomial", "multinomial", "negative_binomial", "ordinal", "poisson"]


def poisson(
    self: ModelLike, name: str, rate: Variable | None = None, *, log_rate: Variable | None = None, observed: Any = None
) -> None:
    """Counts with a Gamma variable as `rate` or a Gaussian one as `log_rate`; NaN entries are missing."""
    state(self, discrete.poisson, name, rate, log_rate, observed)


def binomial(
    self: ModelLike,
    name: str,
    n: Any,
    p: Variable | None = None,
    *,
    logit: Variable | None = None,
    observed: Any = None,
) -> None:
    """Counts of successes in `n` trials with a Beta variable `p` or a Gaussian `logit`; NaN entries are missing.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=1.5)
    >>> model.binomial("successes", 10, logit=z, observed=[8.0, 7.0])
    >>> bool(model.infer()[z].mean > 0.8)
    True
    """
    state(self, counts.binomial, name, n, p, logit, observed)


def negative_binomial(self: ModelLike, name: str, *, log_mean: Variable, dispersion: Any, observed: Any = None) -> None:
    """Counts of mean ``exp(log_mean)`` and variance ``mean + mean^2 / dispersion``; NaN entries are missing.

    Parameters
    ----------
    name
        A name for them.
    log_mean
        The logarithm of the mean, a Gaussian variable.
    dispersion
        A known positive number (or a hyper-parameter); a large one is a Poisson.
    observed
        The counts.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=2.0)
    >>> model.negative_binomial("y", log_mean=z, dispersion=2.0, observed=[0.0, 3.0, 9.0])
    >>> bool(model.infer()[z].mean > 0.8)
    True
    """
    state(self, counts.negative_binomial, name, log_mean, as_known(self, dispersion), observed)


def multinomial(self: ModelLike, name: str, p: Variable, *, observed: Any) -> None:
    """Observed counts of categories along the last axis, with a Dirichlet variable `p`; rows with NaN are missing.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> p = model.dirichlet("p", [1.0, 1.0, 1.0])
    >>> model.multinomial("y", p, observed=[[3.0, 0.0, 1.0], [2.0, 2.0, 0.0]])
    >>> model.infer()[p]
    Dirichlet(concentration [6., 3., 2.])
    """
    state(self, counts.multinomial, name, p, observed)


def ordinal(
    self: ModelLike,
    name: str,
    score: Variable,
    cuts: Argument,
    *,
    link: str = "probit",
    size: Any = None,
    observed: Any = None,
    missing: Any = None,
) -> Variable:
    """An ordered category: the number of cut points that the score and its noise exceed.

    Parameters
    ----------
    name
        Its name.
    score
        A Gaussian variable.
    cuts
        K - 1 rising numbers, or K - 1 Gaussian variables. Give random cut points priors that keep them in order, or say so with
        ``model.constrain(cuts[1:] > cuts[:-1])``.
    link
        "probit" for Gaussian noise of variance 1, "logit" for logistic noise.
    size, observed, missing
        As everywhere; labels are 0, 1, ..., K - 1.

    Returns
    -------
    Variable
        The category; with random cut points, the score (with its noise, where that is Gaussian).

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=1.0)
    >>> y = model.ordinal("y", z, [-1.0, 1.0], observed=[2.0, 1.0, 2.0])
    >>> bool(model.infer()[z].mean > 0.8)
    True
    """
    return build(self, ordered.ordinal, name, score, cuts, link, Entries(size, observed, missing))
