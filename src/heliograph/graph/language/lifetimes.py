"""Lifetimes, and values that were only recorded between bounds."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import ExponentialInterval, Poisson, TruncatedGaussian, Weibull
from heliograph.families import Gamma, Gaussian
from heliograph.graph.check import check_bound, check_not_spread, check_positive, check_seen
from heliograph.graph.draft import Draft
from heliograph.graph.language.censoring import Censoring, bounds_of
from heliograph.graph.language.children import Entries, as_gaussian, attach_plate, fit, likelihood, want
from heliograph.graph.language.continuous import gamma
from heliograph.graph.language.functions import multiply
from heliograph.graph.language.keywords import EntryKeywords, SeenKeywords
from heliograph.graph.language.linear import scale
from heliograph.graph.language.spread import Spread, read_spread
from heliograph.graph.quantity import Argument, Quantity

__all__ = ["exponential", "truncated_gaussian", "weibull"]


def weibull(
    draft: Draft,
    name: str,
    shape: Any,
    *,
    log_scale: Quantity,
    censored: Any = None,
    until: Any = None,
    **keywords: Unpack[SeenKeywords],
) -> None:
    """Lifetimes with ``P(T > t) = exp(-(t / scale)^shape)``, a known shape and a Gaussian `log_scale`.

    Parameters
    ----------
    shape
        A number, an array or a hyper-parameter. Above 1 the hazard rises with age; 1 gives an exponential.
    log_scale
        The logarithm of the scale, a Gaussian variable: for example ``a + X @ w``.
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
    z = want(name, "log_scale", log_scale, Gaussian)
    low, high = _lifetimes(name, Entries(**keywords), censored, until)
    data = {"shape": check_positive(name, "shape", shape), "lower": low, "upper": high}
    likelihood(draft, name, Weibull(), z, data, ~np.isnan(low))


def exponential(
    draft: Draft,
    name: str,
    rate: Argument | None = None,
    *,
    log_rate: Quantity | None = None,
    censored: Any = None,
    until: Any = None,
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """Lifetimes with a constant hazard: `rate` is a number or a Gamma variable, or `log_rate` a Gaussian variable.

    Parameters
    ----------
    rate, log_rate
        Give one of the two.
    censored
        "right" or "left" for all, or an array: 1 (or True) where the lifetime is longer than observed, -1 where it
        is shorter, 0 where it is exact.
    until
        Upper ends of intervals whose lower ends are observed, NaN elsewhere.

    Returns
    -------
    Variable
        The lifetimes; with `log_rate`, or where some are censored, the rate or log rate.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> rate = model.gamma("rate", 1.0, 1.0)
    >>> _ = model.exponential("t", rate, observed=[2.0, 3.0], censored=[0, 1])
    >>> model.infer()[rate]  # one death in 5 units of time
    Gamma(shape 2., rate 6.)
    """
    if (rate is None) == (log_rate is None):
        raise ModelError(f"variable {name!r}: an exponential needs exactly one of rate and log_rate=")
    entries = Entries(**keywords)
    if entries.size is not None and not (log_rate is None and censored is None and until is None):
        raise ModelError(
            f"variable {name!r}: size= goes with a rate and without censoring; the data have a shape of their own"
        )
    if log_rate is not None:
        z = want(name, "log_rate", log_rate, Gaussian)
        seen = SeenKeywords(observed=entries.observed, missing=entries.missing)
        weibull(draft, name, 1.0, log_scale=scale(draft, z, -1.0), censored=censored, until=until, **seen)
        return z
    check_seen(name, entries.observed, missing=entries.missing, censored=censored, until=until)
    if censored is None and until is None:
        return gamma(draft, name, 1.0, rate, **keywords)
    g = want(name, "rate", rate, Gamma, " (a Gaussian goes to log_rate=)")
    low, high = _lifetimes(name, entries, censored, until)
    _write_censored(draft, name, g, low, high)
    return g


def _write_censored(draft: Draft, name: str, g: Quantity, low: np.ndarray, high: np.ndarray) -> None:
    """What exact lifetimes, and those that are only known to lie between two ends, say of their rate."""
    draft.check_name(name)
    draft.take_name(name)
    full = fit(f"variable {name!r}", g.shape, low.shape)
    check_not_spread(name, full, ~np.isnan(low))
    for kind, chosen in (
        ("exact", high == low),
        ("censored", np.isinf(high)),
        ("between", (low < high) & (high < np.inf)),
    ):
        rows = np.broadcast_to(chosen, full)
        if not rows.any():
            continue
        part = Quantity(g.node, np.broadcast_to(g.entries(), full)[rows])
        lower, upper, label = np.broadcast_to(low, full)[rows], np.broadcast_to(high, full)[rows], f"{name} ({kind})"
        if kind == "exact":
            gamma(draft, label, 1.0, part, observed=lower)
        elif kind == "censored":  # survival is a Poisson count of 0
            exposed = multiply(draft, part, lower)
            attach_plate(draft, label, Poisson(), {"rate": exposed}, {"count": np.zeros(lower.shape)})
        else:
            attach_plate(draft, label, ExponentialInterval(), {"rate": part}, {"lower": lower, "upper": upper})


def _lifetimes(name: str, entries: Entries, censored: Any, until: Any) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the intervals in which the lifetimes lie; the two are equal where one is exact."""
    censoring = Censoring(censored, until, entries.missing)
    check_seen(name, entries.observed, **censoring._asdict())
    low, high = bounds_of(name, _values(entries), censoring, 0.0)
    exact = low == high
    if np.any((low < 0) | (high <= 0) | (exact & (low <= 0))):
        raise ModelError(f"variable {name!r}: lifetimes must be greater than 0")
    return low, high


def _values(entries: Entries) -> Any:
    """The observed values, one that is missing where nothing was observed."""
    return np.nan if entries.observed is None else entries.observed


# ---- values that were recorded only between bounds ---------------------------------------------------------------
def truncated_gaussian(
    draft: Draft,
    name: str,
    mean: Argument = 0.0,
    variance: Argument | None = None,
    *,
    sd: Argument | None = None,
    lower: Any = None,
    upper: Any = None,
    **keywords: Unpack[SeenKeywords],
) -> None:
    """Gaussian values that were recorded only if they lay between bounds; the number of other values is unknown.

    If the values beyond a bound were counted, although not measured, they are censored instead:
    ``model.gaussian(..., censored=)``.

    Parameters
    ----------
    mean
        The mean of the Gaussian before truncation: a Gaussian variable.
    variance, sd
        Its width; one of the two, a number, an array or a hyper-parameter.
    lower, upper
        The bounds, numbers or arrays; one of them may be left out.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=3.0)
    >>> model.truncated_gaussian("y", z, sd=1.0, lower=0.0, observed=[0.1, 0.4, 1.2])
    >>> bool(model.infer()[z].mean < 0.4)  # below the mean of what was recorded
    True
    """
    z = as_gaussian(draft, name, mean)
    width = read_spread(name, Spread(variance, sd), mean)
    if width.variance is None:
        raise UnsupportedError(
            f"variable {name!r}: a truncated Gaussian takes sd= or variance=; an unknown one is model.half_normal(...), as sd="
        )
    low, high = (
        np.array(far) if b is None else check_bound(name, word, b)
        for far, b, word in ((-np.inf, lower, "lower"), (np.inf, upper, "upper"))
    )
    if not (low < high).all() or (np.isinf(low) & np.isinf(high)).any():
        raise ModelError(
            f"variable {name!r}: give lower= or upper= or both, lower below upper; without bounds it is model.gaussian"
        )
    entries = Entries(**keywords)
    check_seen(name, entries.observed, missing=entries.missing)
    x = bounds_of(name, _values(entries), Censoring(missing=entries.missing), -np.inf)[0]
    if np.any((x <= low) | (x >= high)):
        raise ModelError(
            f"variable {name!r}: an observed value is not between the bounds, so it could not have been recorded; values beyond a "
            "bound of which only that is known are censored: model.gaussian(..., censored=)"
        )
    data = {"variance": width.variance, "lower": low, "upper": high, "x": x}
    likelihood(draft, name, TruncatedGaussian(), z, data, ~np.isnan(x))
