"""Counts that are observed given a Gaussian score, or a rate or probability of their own."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import Binomial, BinomialLogit, Multinomial, NegativeBinomial, Poisson, PoissonLog
from heliograph.families import Beta, Dirichlet, Gamma, Gaussian
from heliograph.graph.check import check_counts, check_number, check_positive, check_probability, check_seen
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Entries, fit, likelihood, want
from heliograph.graph.language.keywords import SeenKeywords
from heliograph.graph.quantity import Quantity

__all__ = ["binomial", "multinomial", "negative_binomial", "poisson"]

_NEVER = 1e-300  # the rate of counts that are always 0, as in a zero-inflated Poisson


def poisson(
    draft: Draft,
    name: str,
    rate: Quantity | None = None,
    *,
    log_rate: Quantity | None = None,
    **keywords: Unpack[SeenKeywords],
) -> None:
    """Poisson counts, with a Gamma variable as `rate` or a Gaussian variable as `log_rate`; NaN entries are missing.

    Parameters
    ----------
    rate, log_rate
        One of the two.
    """
    if (rate is None) == (log_rate is None):
        raise ModelError(f"variable {name!r}: a Poisson needs exactly one of rate and log_rate=")
    entries = Entries(**keywords)
    what, z = ("rate", rate) if log_rate is None else ("log_rate", log_rate)
    if draft.mixes(name) and what == "rate" and not isinstance(z, Quantity):
        fixed = check_number(name, "rate", z)
        fixed = check_positive(name, "rate", np.where(fixed == 0, _NEVER, fixed))
        return draft.component(name, Poisson(), {"rate": fixed}, {"count": _seen_counts(name, entries)}, None)
    if not isinstance(z, Quantity):
        raise ModelError(f"variable {name!r}: {what} must be a variable; a fixed rate leaves nothing to infer")
    want(name, what, z, Gamma if what == "rate" else Gaussian, " (a Gaussian goes to log_rate=, a Gamma to rate=)")
    counts = _seen_counts(name, entries)
    likelihood(draft, name, Poisson() if what == "rate" else PoissonLog(), z, {"count": counts}, ~np.isnan(counts))


def binomial(
    draft: Draft,
    name: str,
    n: Any,
    p: Quantity | None = None,
    *,
    logit: Quantity | None = None,
    **keywords: Unpack[SeenKeywords],
) -> None:
    """Numbers of successes in `n` trials, with a Beta variable `p` or a Gaussian `logit`; NaN entries are missing.

    Parameters
    ----------
    n
        The numbers of trials.
    p, logit
        One of the two.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=1.5)
    >>> model.binomial("successes", 10, logit=z, observed=[8.0, 7.0])
    >>> bool(model.infer()[z].mean > 0.8)
    True
    """
    if (p is None) == (logit is None):
        raise ModelError(f"variable {name!r}: a binomial needs exactly one of p and logit=")
    x: Any
    if logit is not None:
        x, factor = want(name, "logit", logit, Gaussian), BinomialLogit()
    elif isinstance(p, Quantity):
        x, factor = want(name, "p", p, Beta, " (a Gaussian goes to logit=)"), Binomial()
    elif draft.mixes(name):  # which leaves to infer which component it is
        x, factor = check_probability(name, "p", p), Binomial()
    else:
        raise ModelError(f"variable {name!r}: p must be a variable; a fixed p leaves nothing to infer")
    data = _trials_and_counts(name, n, Entries(**keywords))
    likelihood(draft, name, factor, x, data, ~np.isnan(data["count"]))


def negative_binomial(
    draft: Draft, name: str, *, log_mean: Quantity, dispersion: Any, **keywords: Unpack[SeenKeywords]
) -> None:
    """Counts with mean ``exp(log_mean)`` and variance ``mean + mean^2 / dispersion``; NaN entries are missing.

    Parameters
    ----------
    log_mean
        The logarithm of the mean, a Gaussian variable.
    dispersion
        A known positive number, or a hyper-parameter. The larger it is, the closer the counts are to Poisson.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> z = model.gaussian("z", 0.0, sd=2.0)
    >>> model.negative_binomial("y", log_mean=z, dispersion=2.0, observed=[0.0, 3.0, 9.0])
    >>> bool(model.infer()[z].mean > 0.8)
    True
    """
    z = want(name, "log_mean", log_mean, Gaussian)
    counts = _seen_counts(name, Entries(**keywords))
    data = {"dispersion": check_positive(name, "dispersion", dispersion), "count": counts}
    likelihood(draft, name, NegativeBinomial(), z, data, ~np.isnan(counts))


def multinomial(draft: Draft, name: str, p: Quantity, *, observed: Any, missing: Any = None) -> None:
    """Observed counts of categories along the last axis, with a Dirichlet variable `p`; rows with NaN are missing.

    Parameters
    ----------
    p
        The probabilities.

    Examples
    --------
    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> p = model.dirichlet("p", [1.0, 1.0, 1.0])
    >>> model.multinomial("y", p, observed=[[3.0, 0.0, 1.0], [2.0, 2.0, 0.0]])
    >>> model.infer()[p]
    Dirichlet(concentration [6., 3., 2.])
    """
    x = want(name, "p", p, Dirichlet)
    counts = check_counts(name, "observed", observed, missing, 1)
    if counts.shape[-1:] != (x.node.dimension,):
        raise ModelError(
            f"variable {name!r}: observed= has shape {counts.shape}, but {x.name!r} has {x.node.dimension} categories, which its "
            "last axis must count"
        )
    likelihood(draft, name, Multinomial(), x, {"counts": counts}, np.asarray(~np.isnan(counts).any(axis=-1)))


def _seen_counts(name: str, entries: Entries) -> np.ndarray:
    """Observed counts, NaN where there are none."""
    check_seen(name, entries.observed, missing=entries.missing)
    if entries.observed is None:
        return np.array(np.nan)
    return check_counts(name, "observed", entries.observed, entries.missing)


def _trials_and_counts(name: str, n: Any, entries: Entries) -> dict[str, np.ndarray]:
    """The data of a binomial."""
    trials, counts = check_counts(name, "n", n), _seen_counts(name, entries)
    if np.isnan(trials).any():
        raise ModelError(f"variable {name!r}: n holds NaN; NaN means 'missing' only in observed=")
    fit(f"variable {name!r}: n and observed=", trials.shape, counts.shape)
    if np.any(counts > trials):
        raise ModelError(f"variable {name!r}: more successes were observed than there were trials")
    return {"n": trials, "count": counts}
