"""Categories given other categories, by tables of known probabilities or of Dirichlet rows."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.factors import ConditionalTable, DirichletTable
from heliograph.families import Bernoulli, Categorical, Dirichlet
from heliograph.graph.check import check_probability
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Entries, Kind, child, want
from heliograph.graph.quantity import Quantity

__all__ = ["bernoulli_given", "categorical_given", "parents_of"]


def parents_of(name: str, given: Any) -> list[Quantity]:
    """The variables that a category is given by: one, or a list or tuple of them."""
    parents = cast("list[Any]", list(given)) if isinstance(given, (list, tuple)) else [given]  # type: ignore[arg-type]
    if not parents:
        raise ModelError(f"variable {name!r}: given= holds no variable; leave it out")
    return [want(name, "given", x, (Categorical, Bernoulli)) for x in parents]


def categorical_given(draft: Draft, name: str, table: Any, given: Any, entries: Entries) -> Quantity:
    """A Categorical variable by a table of known probabilities; see `Builder.categorical`."""
    parents = parents_of(name, given)
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


def bernoulli_given(draft: Draft, name: str, p: Any, given: Any, entries: Entries) -> Quantity:
    """A Bernoulli variable by a table of known probabilities; see `Builder.bernoulli`."""
    parents = parents_of(name, given)
    p = check_probability(name, "p", p)
    sizes = tuple(x.node.dimension or 2 for x in parents)
    if p.ndim < len(sizes) or p.shape[p.ndim - len(sizes) :] != sizes:
        raise ModelError(
            f"variable {name!r}: its p has shape {p.shape}; with given= it needs a probability for each combination of "
            f"categories, an array whose last axes are {sizes}"
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
