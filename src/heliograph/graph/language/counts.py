"""Counts, lifetimes and categories that are observed given a Gaussian score, or a rate or probability of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import (
    BinomialLogit,
    ExponentialInterval,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Softmax,
    TruncatedGaussian,
    Weibull,
)
from heliograph.families import Categorical, Dirichlet, Gamma, Gaussian
from heliograph.graph.check import check_bound, check_counts, check_positive
from heliograph.graph.draft import Draft
from heliograph.graph.language.arrays import components
from heliograph.graph.language.children import Entries, Kind, as_gaussian, attach_plate, child, fit, likelihood, want
from heliograph.graph.language.continuous import gamma
from heliograph.graph.language.discrete import binomial as binomial_beta
from heliograph.graph.language.discrete import seen_counts, trials_and_counts
from heliograph.graph.language.functions import multiply
from heliograph.graph.language.linear import scale, stacked, subtract
from heliograph.graph.language.noise import Censoring, bounds_of
from heliograph.graph.language.spread import Spread, read_spread
from heliograph.graph.quantity import Quantity

__all__ = ["binomial", "exponential", "multinomial", "negative_binomial", "softmax", "truncated_gaussian", "weibull"]


def binomial(draft: Draft, name: str, n: Any, p: Any, logit: Any, observed: Any) -> None:
    """Observed counts of successes; see `Builder.binomial`."""
    if (p is None) == (logit is None):
        raise ModelError(f"variable {name!r}: a binomial needs exactly one of p and logit=")
    if logit is None:
        return binomial_beta(draft, name, n, p, observed)
    z = want(name, "logit", logit, Gaussian)
    data = trials_and_counts(name, n, observed)
    likelihood(draft, name, BinomialLogit(), z, data, ~np.isnan(data["count"]))


def negative_binomial(draft: Draft, name: str, log_mean: Any, dispersion: Any, observed: Any) -> None:
    """Observed counts that vary more than Poisson's; see `Builder.negative_binomial`."""
    z = want(name, "log_mean", log_mean, Gaussian)
    counts = seen_counts(name, observed)
    data = {"dispersion": check_positive(name, "dispersion", dispersion), "count": counts}
    likelihood(draft, name, NegativeBinomial(), z, data, ~np.isnan(counts))


def multinomial(draft: Draft, name: str, p: Any, observed: Any) -> None:
    """Observed counts of categories; see `Builder.multinomial`."""
    x = want(name, "p", p, Dirichlet)
    counts = check_counts(name, "observed", observed)
    if counts.shape[-1:] != (x.node.dimension,):
        raise ModelError(
            f"variable {name!r}: observed= has shape {counts.shape}, but {x.name!r} has {x.node.dimension} categories, which its "
            "last axis must count"
        )
    likelihood(draft, name, Multinomial(), x, {"counts": counts}, np.asarray(~np.isnan(counts).any(axis=-1)))


# ---- lifetimes ---------------------------------------------------------------------------------------------------
def weibull(draft: Draft, name: str, shape: Any, log_scale: Any, observed: Any, censoring: Censoring) -> None:
    """Observed lifetimes; see `Builder.weibull`."""
    z = want(name, "log_scale", log_scale, Gaussian)
    low, high = _lifetimes(name, observed, censoring)
    data = {"shape": check_positive(name, "shape", shape), "lower": low, "upper": high}
    likelihood(draft, name, Weibull(), z, data, ~np.isnan(low))


def exponential(
    draft: Draft, name: str, rate: Any, log_rate: Any, observed: Any, censoring: Censoring, size: Any
) -> Quantity:
    """Lifetimes of a constant hazard; see `Builder.exponential`. What is returned is the rate, where they are observed."""
    if (rate is None) == (log_rate is None):
        raise ModelError(f"variable {name!r}: an exponential needs exactly one of rate and log_rate=")
    if log_rate is not None:
        z = want(name, "log_rate", log_rate, Gaussian)
        weibull(draft, name, 1.0, scale(draft, z, -1.0), observed, censoring)
        return z
    if observed is None or (censoring.censored is None and censoring.until is None):
        return gamma(draft, name, 1.0, rate, Entries(size, observed, None))
    g = want(name, "rate", rate, Gamma, " (a Gaussian goes to log_rate=)")
    low, high = _lifetimes(name, observed, censoring)
    draft.check_name(name)
    draft.take_name(name)
    full = fit(f"variable {name!r}", g.shape, low.shape)
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
            gamma(draft, label, 1.0, part, Entries(None, lower, None))
        elif kind == "censored":  # survival is a Poisson count of 0
            exposed = multiply(draft, part, lower)
            attach_plate(draft, label, Poisson(), {"rate": exposed}, {"count": np.zeros(lower.shape)})
        else:
            attach_plate(draft, label, ExponentialInterval(), {"rate": part}, {"lower": lower, "upper": upper})
    return g


# ---- values that were recorded only between bounds ---------------------------------------------------------------
def truncated_gaussian(
    draft: Draft, name: str, mean: Any, spread: Spread, bounds: tuple[Any, Any], observed: Any
) -> None:
    """Observed values of a Gaussian cut at bounds; see `Builder.truncated_gaussian`."""
    z = as_gaussian(draft, name, mean)
    width = read_spread(name, spread, mean)
    if width.variance is None:
        raise UnsupportedError(
            f"variable {name!r}: a truncated Gaussian takes sd= or variance=; an unknown one is model.half_normal(...), as sd="
        )
    low, high = (
        np.array(far) if b is None else check_bound(name, word, b)
        for far, b, word in ((-np.inf, bounds[0], "lower"), (np.inf, bounds[1], "upper"))
    )
    if not (low < high).all() or (np.isinf(low) & np.isinf(high)).any():
        raise ModelError(
            f"variable {name!r}: give lower= or upper= or both, lower below upper; without bounds it is model.gaussian"
        )
    x = bounds_of(name, np.nan if observed is None else observed, Censoring(), -np.inf)[0]
    if np.any((x <= low) | (x >= high)):
        raise ModelError(
            f"variable {name!r}: an observed value is not between the bounds, so it could not have been recorded; values beyond a "
            "bound of which only that is known are censored: model.gaussian(..., censored=)"
        )
    data = {"variance": width.variance, "lower": low, "upper": high, "x": x}
    likelihood(draft, name, TruncatedGaussian(), z, data, ~np.isnan(x))


def _lifetimes(name: str, observed: Any, censoring: Censoring) -> tuple[np.ndarray, np.ndarray]:
    low, high = bounds_of(name, np.nan if observed is None else observed, censoring, 0.0)
    exact = low == high
    if np.any((low < 0) | (high <= 0) | (exact & (low <= 0))):
        raise ModelError(f"variable {name!r}: lifetimes must be greater than 0")
    return low, high


# ---- categories --------------------------------------------------------------------------------------------------
def softmax(draft: Draft, name: str, logits: Any, entries: Entries) -> Quantity:
    """A category with softmax probabilities; see `Builder.categorical`."""
    scores = logits if isinstance(logits, Quantity) else None
    if scores is None:
        raise ModelError(
            f"variable {name!r}: logits= takes Gaussian variables, one score per category along the last axis"
        )
    scores = components(draft, scores)
    want(name, "logits", scores, Gaussian)
    if not scores.shape or scores.shape[-1] < 2:
        raise ModelError(
            f"variable {name!r}: logits= has shape {scores.shape}; it needs one score per category, two or more, along its last "
            "axis, for example X @ W with a plate of vectors W"
        )
    k, shape = scores.shape[-1], scores.shape[:-1]
    # only differences matter: to the last one, which leaves no direction of which nothing is known
    gaps = subtract(draft, scores.part((..., slice(0, k - 1))), scores.part((..., slice(k - 1, k))))
    at = gaps.entries()
    parts = tuple((gaps.node, np.asarray(at[..., j]).reshape(-1)) for j in range(k - 1))
    vector = stacked(draft, f"scores of {name}", parts, shape)
    return child(draft, name, Softmax(), {"z": vector}, {}, Kind(Categorical, k), entries)
