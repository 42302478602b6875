"""Labels, categories and their probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Unpack, cast

import numpy as np

from heliograph.errors import AccuracyWarning, ModelError
from heliograph.factors import (
    BernoulliBeta,
    CategoricalDirichlet,
    ConditionalTable,
    DirichletTable,
    LogisticBernoulli,
    ProbitBernoulli,
    Softmax,
)
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gaussian
from heliograph.graph.check import check_positive, check_probability
from heliograph.graph.draft import Draft
from heliograph.graph.language.arrays import components
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
from heliograph.graph.language.keywords import EntryKeywords
from heliograph.graph.language.linear import stacked, subtract
from heliograph.graph.quantity import Argument, Quantity

__all__ = ["bernoulli", "categorical", "dirichlet"]


def bernoulli(
    draft: Draft,
    name: str,
    p: Argument | None = None,
    *,
    logit: Quantity | None = None,
    probit: Quantity | None = None,
    given: Quantity | Sequence[Quantity] | None = None,
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """A Bernoulli variable, 0 or 1, with a probability `p`, or with `logit=z` or `probit=z` of a Gaussian z.

    Parameters
    ----------
    p
        The probability of 1: a number, an array or a Beta variable. With `given`, a table of numbers.
    logit, probit
        A Gaussian variable z, for the probability ``1 / (1 + exp(-z))`` or ``Phi(z)``.
    given
        A Bernoulli or Categorical variable, or several: the table `p` then has an axis for each of them.
    """
    entries = Entries(**keywords)
    if given is not None:
        if p is None or logit is not None or probit is not None:
            raise ModelError(
                f"variable {name!r}: with given= a Bernoulli needs p, a table of probabilities, and nothing else"
            )
        return _bernoulli_given(draft, name, p, given, entries)
    if sum(v is not None for v in (p, logit, probit)) != 1:
        raise ModelError(f"variable {name!r}: a Bernoulli needs exactly one of p, logit= and probit=")
    if isinstance(p, Family):
        return from_message(draft, name, p, (Bernoulli,), entries)
    for z, factor, what in ((logit, LogisticBernoulli, "logit"), (probit, ProbitBernoulli, "probit")):
        if z is not None:
            if not isinstance(z, Quantity):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ModelError(f"variable {name!r}: {what}= takes a Gaussian variable; give a number as p")
            want(name, what, z, Gaussian)
            return child(draft, name, factor(), {"z": z}, {}, Kind(Bernoulli), entries)
    if isinstance(p, Quantity):
        want(name, "p", p, Beta, " (a Gaussian goes to logit= or probit=)")
        return child(draft, name, BernoulliBeta(), {"p": p}, {}, Kind(Bernoulli), entries)
    return from_parameters(draft, name, Bernoulli, (check_probability(name, "p", p),), entries)


def categorical(
    draft: Draft,
    name: str,
    p: Argument | None = None,
    *,
    given: Quantity | Sequence[Quantity] | None = None,
    logits: Quantity | None = None,
    **keywords: Unpack[EntryKeywords],
) -> Quantity:
    """A Categorical variable, one of 0, ..., K - 1, with probabilities `p` or with scores `logits`.

    Parameters
    ----------
    p
        An array whose last axis sums to 1, or a Dirichlet variable. With `given`, a table of either.
    logits
        Gaussian scores along the last axis; the probabilities are their softmax.
    given
        A Categorical or Bernoulli variable: row k of `p` then holds the probabilities when `given` is k. With
        several variables the table has an axis for each of them before its last.
    """
    entries = Entries(**keywords)
    if logits is not None and p is None and given is None:
        return _softmax(draft, name, logits, entries)
    if p is None or logits is not None:
        raise ModelError(f"variable {name!r}: a Categorical needs exactly one of p and logits=")
    if given is not None:
        return _categorical_given(draft, name, p, given, entries)
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


def _softmax(draft: Draft, name: str, logits: Any, entries: Entries) -> Quantity:
    """A category with softmax probabilities."""
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


def dirichlet(draft: Draft, name: str, concentration: Argument, **keywords: Unpack[EntryKeywords]) -> Quantity:
    """A Dirichlet variable, a vector of probabilities, with fixed concentrations along the last axis.

    Parameters
    ----------
    concentration
        Positive numbers, one per category along the last axis, or a Dirichlet message, which becomes the prior.
    """
    entries = Entries(**keywords)
    if isinstance(concentration, Family):
        return from_message(draft, name, concentration, (Dirichlet,), entries)
    concentration = check_positive(name, "concentration", concentration)
    if concentration.ndim == 0 or concentration.shape[-1] < 2:
        raise ModelError(f"variable {name!r}: a Dirichlet needs at least two concentrations")
    k = concentration.shape[-1]
    shape = fitted_size(name, concentration.shape[:-1], entries.size)
    return with_prior(draft, name, Dirichlet(np.broadcast_to(concentration, (*shape, k))), k, entries)


# ---- categories given other categories, by tables --------------------------------------------------------------------
def _parents_of(name: str, given: Any) -> list[Quantity]:
    """The variables that a category is given by: one, or a list or tuple of them."""
    parents = cast("list[Any]", list(given)) if isinstance(given, (list, tuple)) else [given]  # type: ignore[arg-type]
    if not parents:
        raise ModelError(f"variable {name!r}: given= holds no variable; leave it out")
    return [want(name, "given", x, (Categorical, Bernoulli)) for x in parents]


def _categorical_given(draft: Draft, name: str, table: Any, given: Any, entries: Entries) -> Quantity:
    """A Categorical variable by a table of known probabilities."""
    parents = _parents_of(name, given)
    if isinstance(table, Quantity):
        return _given_by_rows(draft, name, table, parents, entries)
    table = check_probability(name, "table", table)
    sizes = tuple(x.node.dimension or 2 for x in parents)
    if table.ndim <= len(sizes) or table.shape[-1 - len(sizes) : -1] != sizes or not np.allclose(table.sum(-1), 1.0):
        raise ModelError(f"variable {name!r}: its table has shape {table.shape}; it needs {_rows_for(parents, sizes)}")
    return _given(draft, name, table, parents, Kind(Categorical, table.shape[-1]), entries)


def _given_by_rows(draft: Draft, name: str, table: Quantity, parents: list[Quantity], entries: Entries) -> Quantity:
    """A category by a table whose rows are Dirichlet variables."""
    rows = want(name, "table", table, Dirichlet)
    sizes = tuple(x.node.dimension or 2 for x in parents)
    if rows.shape[len(rows.shape) - len(sizes) :] != sizes:
        raise ModelError(
            f"variable {name!r}: its table {rows.name!r} has shape {rows.shape}; it needs one Dirichlet for each combination of "
            f"the categories of {', '.join(repr(x.name) for x in parents)}, so its last axes must be {sizes}"
        )
    factor = DirichletTable(sizes)
    ports = {port: rows.part((..., *np.unravel_index(k, sizes))) for k, port in enumerate(factor.rows)}
    ports |= dict(zip(factor.parents, parents, strict=True))
    return child(draft, name, factor, ports, {}, Kind(Categorical, rows.node.dimension), entries)


def _bernoulli_given(draft: Draft, name: str, p: Any, given: Any, entries: Entries) -> Quantity:
    """A Bernoulli variable by a table of known probabilities."""
    parents = _parents_of(name, given)
    p = check_probability(name, "p", p)
    sizes = tuple(x.node.dimension or 2 for x in parents)
    if p.ndim < len(sizes) or p.shape[p.ndim - len(sizes) :] != sizes:
        raise ModelError(
            f"variable {name!r}: its p has shape {p.shape}; with given= it needs a probability for each combination of "
            f"categories, an array whose last axes are {sizes}"
        )
    if p.shape == (*sizes, 2) and sizes[-1] == 2 and np.allclose(p.sum(axis=-1), 1.0):
        warnings.warn(
            f"variable {name!r}: its p is read as a table of the probability of 1 for each of {sizes[0]} entries; all its rows sum "
            "to 1, and if they are the probabilities of 0 and of 1, give those of 1 only, p[..., 1]",
            AccuracyWarning,
            stacklevel=7,
        )
    return _given(draft, name, np.stack([1.0 - p, p], axis=-1), parents, Kind(Bernoulli), entries)


def _given(
    draft: Draft, name: str, table: np.ndarray, parents: list[Quantity], kind: Kind, entries: Entries
) -> Quantity:
    factor = ConditionalTable(len(parents))
    ports = dict(zip(factor.parents, parents, strict=True))
    return child(draft, name, factor, ports, {"table": table}, kind, entries)


def _rows_for(parents: list[Quantity], sizes: tuple[int, ...]) -> str:
    if len(parents) == 1:
        return f"one row of probabilities (summing to 1) for each of the {sizes[0]} categories of {parents[0].name!r}"
    names = ", ".join(repr(x.name) for x in parents)
    return (
        f"a row of probabilities (summing to 1) for each combination of {names}: an array whose axes before the last are "
        f"{sizes}"
    )
