"""The words of the modelling language for noise other than Gaussian and for lifetimes; they are methods of `Builder`."""

from __future__ import annotations

from typing import Any

from heliograph.graph.language import counts, noise
from heliograph.graph.language.children import Entries
from heliograph.graph.language.noise import Censoring
from heliograph.graph.language.spread import Spread
from heliograph.graph.other_words import as_known
from heliograph.graph.quantity import Argument
from heliograph.graph.variable import ModelLike, Variable, build, state

__all__ = ["exponential", "laplace", "student_t", "truncated_gaussian", "uniform", "weibull"]


def student_t(
    self: ModelLike,
    name: str,
    mean: Argument = 0.0,
    scale: Any = 1.0,
    dof: Any = 4.0,
    *,
    size: Any = None,
    observed: Any = None,
    missing: Any = None,
) -> Variable:
    """A variable with Student's t noise around `mean`: outliers pull less and less the farther they are.

    Parameters
    ----------
    name
        Its name.
    mean
        Its centre: a number, an array or a Gaussian variable.
    scale, dof
        The scale and the degrees of freedom: numbers, or hyper-parameters (a Gamma variable is taken for one).
    size, observed, missing
        As everywhere: the shape, observed values, and where they are missing.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> mean = model.gaussian("mean", 0.0, sd=10.0)
    >>> y = model.student_t("y", mean, scale=1.0, dof=4.0, observed=[0.1, -0.2, 0.3, 25.0])
    >>> bool(model.infer()[mean].mean < 1.0)
    True
    """
    known = as_known(self, scale), as_known(self, dof)
    return build(self, noise.student_t, name, mean, *known, Entries(size, observed, missing))


def laplace(
    self: ModelLike,
    name: str,
    mean: Argument = 0.0,
    scale: Any = 1.0,
    *,
    size: Any = None,
    observed: Any = None,
    missing: Any = None,
) -> Variable:
    """A variable with Laplace noise ``exp(-|x - mean| / scale) / (2 scale)``; its variance is ``2 scale^2``.

    Parameters
    ----------
    name
        Its name.
    mean
        Its centre: a number, an array or a Gaussian variable.
    scale
        The scale, a known number.
    size, observed, missing
        As everywhere.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> x = model.laplace("x", 1.0, scale=2.0)
    >>> float(model.infer()[x].variance.round(9))
    8.0
    """
    return build(self, noise.laplace, name, mean, as_known(self, scale), Entries(size, observed, missing))


def uniform(
    self: ModelLike, name: str, lower: Any, upper: Any, *, size: Any = None, observed: Any = None, missing: Any = None
) -> Variable:
    """A variable between two known bounds, all values alike, with Gaussian messages (`flat` is a hyper-parameter).

    Parameters
    ----------
    name
        Its name.
    lower, upper
        The bounds, numbers or arrays.
    size, observed, missing
        As everywhere.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> x = model.uniform("x", 0.0, 6.0)
    >>> round(float(model.infer()[x].variance), 9)
    3.0
    """
    return build(self, noise.uniform, name, lower, upper, Entries(size, observed, missing))


def truncated_gaussian(
    self: ModelLike,
    name: str,
    mean: Argument = 0.0,
    variance: Argument | None = None,
    *,
    sd: Argument | None = None,
    lower: Any = None,
    upper: Any = None,
    observed: Any = None,
) -> None:
    """Gaussian values that were recorded only where they lie between bounds; nobody knows how many others there were.

    Values beyond a bound that were counted, and not measured, are censored: ``model.gaussian(..., censored=)``.

    Parameters
    ----------
    name
        A name for them.
    mean
        Of the Gaussian before the cut: a Gaussian variable.
    variance, sd
        Of the same; one of the two, a number, an array or a hyper-parameter.
    lower, upper
        The bounds, numbers or arrays; one of them may be left out.
    observed
        The values; NaN where missing.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=3.0)
    >>> model.truncated_gaussian("y", z, sd=1.0, lower=0.0, observed=[0.1, 0.4, 1.2])
    >>> bool(model.infer()[z].mean < 0.4)  # below the mean of what was recorded
    True
    """
    known = Spread(as_known(self, variance), as_known(self, sd))
    state(self, counts.truncated_gaussian, name, mean, known, (lower, upper), observed)


def exponential(
    self: ModelLike,
    name: str,
    rate: Argument | None = None,
    *,
    log_rate: Variable | None = None,
    size: Any = None,
    observed: Any = None,
    censored: Any = None,
    until: Any = None,
) -> Variable:
    """Lifetimes of a constant hazard: `rate` a number or a Gamma variable, or `log_rate` a Gaussian variable.

    Parameters
    ----------
    name
        Its name.
    rate, log_rate
        One of the two.
    size, observed
        As everywhere.
    censored
        "right" or "left" for all, or an array: 1 (or True) where the lifetime is longer than observed, -1 where shorter.
    until
        Upper ends of intervals whose lower ends are observed, NaN elsewhere.

    Returns
    -------
    Variable
        The lifetimes, or, with `log_rate` or where they are censored, the rate or log rate that they tell of.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> rate = model.gamma("rate", 1.0, 1.0)
    >>> _ = model.exponential("t", rate, observed=[2.0, 3.0], censored=[0, 1])
    >>> model.infer()[rate]  # one death in 5 units of time
    Gamma(shape 2., rate 6.)
    """
    return build(self, counts.exponential, name, rate, log_rate, observed, Censoring(censored, until), size)


def weibull(
    self: ModelLike,
    name: str,
    shape: Any,
    *,
    log_scale: Variable,
    observed: Any = None,
    censored: Any = None,
    until: Any = None,
) -> None:
    """Lifetimes, ``P(T > t) = exp(-(t / scale)^shape)``, with a known shape and a Gaussian `log_scale`.

    Parameters
    ----------
    name
        A name for them.
    shape
        Above 1 the hazard rises with age; 1 is an exponential. A number, an array or a hyper-parameter.
    log_scale
        The logarithm of the scale, a Gaussian variable: for example ``a + X @ w``.
    observed
        The lifetimes; NaN where missing.
    censored, until
        As for `exponential`.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=3.0)
    >>> model.weibull("t", 1.5, log_scale=z, observed=[2.0, 3.0, 4.0], censored=[0, 1, 0])
    >>> bool(model.infer()[z].mean > 1.0)
    True
    """
    state(self, counts.weibull, name, as_known(self, shape), log_scale, observed, Censoring(censored, until))
