"""Labels, categories, their probabilities, and counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import (
    BernoulliBeta,
    Binomial,
    CategoricalDirichlet,
    LogisticBernoulli,
    Poisson,
    PoissonLog,
    ProbitBernoulli,
)
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian
from heliograph.graph.check import check_counts, check_number, check_positive, check_probability
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import (
    Entries,
    Kind,
    child,
    fit,
    fitted_size,
    from_message,
    from_parameters,
    likelihood,
    want,
    with_prior,
)
from heliograph.graph.language.tables import bernoulli_given, categorical_given
from heliograph.graph.quantity import Quantity

__all__ = ["bernoulli", "binomial", "categorical", "dirichlet", "poisson", "seen_counts", "trials_and_counts"]

_NEVER = 1e-300  # the rate of counts that are always 0, as in a zero-inflated Poisson


def bernoulli(draft: Draft, name: str, p: Any, logit: Any, probit: Any, given: Any, entries: Entries) -> Quantity:
    """A Bernoulli variable; see `Builder.bernoulli`."""
    if given is not None:
        if p is None or logit is not None or probit is not None:
            raise ModelError(
                f"variable {name!r}: with given= a Bernoulli needs p, a table of probabilities, and nothing else"
            )
        return bernoulli_given(draft, name, p, given, entries)
    if sum(v is not None for v in (p, logit, probit)) != 1:
        raise ModelError(f"variable {name!r}: a Bernoulli needs exactly one of p, logit= and probit=")
    if isinstance(p, Family):
        return from_message(draft, name, p, (Bernoulli,), entries)
    for z, factor, what in ((logit, LogisticBernoulli, "logit"), (probit, ProbitBernoulli, "probit")):
        if z is not None:
            if not isinstance(z, Quantity):
                raise ModelError(f"variable {name!r}: {what}= takes a Gaussian variable; give a number as p")
            want(name, what, z, Gaussian)
            return child(draft, name, factor(), {"z": z}, {}, Kind(Bernoulli), entries)
    if isinstance(p, Quantity):
        want(name, "p", p, Beta, " (a Gaussian goes to logit= or probit=)")
        return child(draft, name, BernoulliBeta(), {"p": p}, {}, Kind(Bernoulli), entries)
    return from_parameters(draft, name, Bernoulli, (check_probability(name, "p", p),), entries)


def categorical(draft: Draft, name: str, p: Any, given: Any, entries: Entries) -> Quantity:
    """A Categorical variable; see `Builder.categorical`."""
    if given is not None:
        return categorical_given(draft, name, p, given, entries)
    if isinstance(p, Family):
        return from_message(draft, name, p, (Categorical,), entries)
    if isinstance(p, Quantity):
        want(name, "p", p, Dirichlet)
        kind = Kind(Categorical, p.node.dimension)
        return child(draft, name, CategoricalDirichlet(), {"p": p}, {}, kind, entries)
    p = check_probability(name, "p", p)
    if p.ndim == 0 or not np.allclose(p.sum(axis=-1), 1.0):
        raise ModelError(f"variable {name!r}: its probabilities must sum to 1 along the last axis")
    k = p.shape[-1]
    shape = fitted_size(name, p.shape[:-1], entries.size)
    return with_prior(draft, name, Categorical(np.broadcast_to(p, (*shape, k))), k, entries)


def dirichlet(draft: Draft, name: str, concentration: Any, entries: Entries) -> Quantity:
    """A Dirichlet variable; see `Builder.dirichlet`."""
    if isinstance(concentration, Family):
        return from_message(draft, name, concentration, (Dirichlet,), entries)
    concentration = check_positive(name, "concentration", concentration)
    if concentration.ndim == 0 or concentration.shape[-1] < 2:
        raise ModelError(f"variable {name!r}: a Dirichlet needs at least two concentrations")
    k = concentration.shape[-1]
    shape = fitted_size(name, concentration.shape[:-1], entries.size)
    return with_prior(draft, name, Dirichlet(np.broadcast_to(concentration, (*shape, k))), k, entries)


def poisson(draft: Draft, name: str, rate: Any, log_rate: Any, observed: Any) -> None:
    """Observed counts; see `Builder.poisson`."""
    if (rate is None) == (log_rate is None):
        raise ModelError(f"variable {name!r}: a Poisson needs exactly one of rate and log_rate=")
    what, z = ("rate", rate) if log_rate is None else ("log_rate", log_rate)
    if draft.mixes(name) and what == "rate" and not isinstance(z, Quantity):
        fixed = check_number(name, "rate", z)
        fixed = check_positive(name, "rate", np.where(fixed == 0, _NEVER, fixed))
        return draft.component(name, Poisson(), {"rate": fixed}, {"count": seen_counts(name, observed)}, None)
    if not isinstance(z, Quantity):
        raise ModelError(f"variable {name!r}: {what} must be a variable; a fixed rate leaves nothing to infer")
    want(name, what, z, Gamma if what == "rate" else Gaussian, " (a Gaussian goes to log_rate=, a Gamma to rate=)")
    counts = seen_counts(name, observed)
    likelihood(draft, name, Poisson() if what == "rate" else PoissonLog(), z, {"count": counts}, ~np.isnan(counts))


def seen_counts(name: str, observed: Any) -> np.ndarray:
    """Observed counts, NaN where there are none."""
    return np.array(np.nan) if observed is None else check_counts(name, "observed", observed)


def binomial(draft: Draft, name: str, n: Any, p: Any, observed: Any) -> None:
    """Observed counts of successes; see `Builder.binomial`."""
    fixed = draft.mixes(name) and not isinstance(p, Quantity)  # which leaves to infer which component it is
    if not isinstance(p, Quantity) and not fixed:
        raise ModelError(f"variable {name!r}: p must be a variable; a fixed p leaves nothing to infer")
    p = check_probability(name, "p", p) if fixed else want(name, "p", p, Beta, " (a Gaussian goes to logit=)")
    data = trials_and_counts(name, n, observed)
    likelihood(draft, name, Binomial(), p, data, ~np.isnan(data["count"]))


def trials_and_counts(name: str, n: Any, observed: Any) -> dict[str, np.ndarray]:
    """The data of a binomial."""
    trials, counts = check_counts(name, "n", n), seen_counts(name, observed)
    if np.isnan(trials).any():
        raise ModelError(f"variable {name!r}: n holds NaN; NaN means 'missing' only in observed=")
    fit(f"variable {name!r}: n and observed=", trials.shape, counts.shape)
    if np.any(counts > trials):
        raise ModelError(f"variable {name!r}: more successes were observed than there were trials")
    return {"n": trials, "count": counts}
