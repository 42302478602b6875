"""New data for a model that is written already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.graph.check import as_floats
from heliograph.graph.data import Data, labels_of, without_labels
from heliograph.graph.draft import Draft
from heliograph.graph.tape import Taped, named_calls, replayed, rewritten

__all__ = ["again", "as_data", "check_names", "give", "name_data"]


def as_data(name: str, values: Any) -> np.ndarray:
    """The values of named data as an array of the model's own; labels and masks are taken off."""
    values = without_labels(values)
    if isinstance(values, np.ma.MaskedArray):
        masked = cast(Any, values)
        values = np.where(np.ma.getmaskarray(masked), np.nan, as_floats(f"data {name!r}", masked.filled(0)))
    try:
        array = np.asarray(values)
    except ValueError:
        array = as_floats(f"data {name!r}", values)
    if array.dtype.kind in "iu":  # what is computed from them must not overflow a byte
        return array.astype(float if array.dtype == np.uint64 else np.int64)
    if array.dtype.kind == "b":
        return array.copy()
    return as_floats(f"data {name!r}", values)


def again(data: Data, values: Any) -> np.ndarray:
    """Other values of named data. The columns of a table must not have changed places, which the numbers do not show."""
    old, new = data.labels or (), labels_of(values) or ()
    moved = [name for k, name in enumerate(new) if name in old and name not in old[k : k + 1]]
    if moved:
        raise ModelError(
            f"data {data.name!r}: column {moved[0]!r} was number {old.index(moved[0])} and is number {new.index(moved[0])} now; "
            f"give the columns in the order that they had, frame[{list(old)!r}]"
        )
    return as_data(data.name, values)


def name_data(draft: Draft, name: str, values: Any) -> Data:
    """Data that can be given again by name."""
    draft.check_name(name)
    if name in draft.data:
        raise ModelError(f"data called {name!r} exist already; choose another name")
    made = draft.data[name] = Data(name, as_data(name, values))
    made.labels = labels_of(values)
    return made


def check_names(draft: Draft, given: Iterable[str]) -> None:
    """Refuse names that are neither data nor variables that can be observed."""
    can = [*draft.data, *named_calls(draft.tape)]
    for name in given:
        if name not in can:
            raise ModelError(
                f"this model has neither data nor an observable variable called {name!r}; it has {can}. Name an array with "
                "model.data(name, values) to give it again"
            )


def give(model: Taped, given: Mapping[str, Any]) -> None:
    """Write a model anew with other data and observed values; all or nothing."""
    draft = model.draft
    if any(call.gates for call in draft.tape):
        raise ModelError(
            "new data cannot be given to a model with gates; write the model again with them, in a function"
        )
    check_names(draft, given)
    before = {name: data.value for name, data in draft.data.items()}
    observed = {name: values for name, values in given.items() if name not in draft.data}
    done = False
    try:
        for name in before.keys() & given.keys():
            draft.data[name].set(again(draft.data[name], given[name]))
            draft.data[name].labels = labels_of(given[name]) or draft.data[name].labels
        with replayed(model, rewritten(draft.tape, observed), keep=True) as new:
            pass
        done = True
    finally:
        if not done:
            for name, values in before.items():
                draft.data[name].set(values)
    graph = draft.graph  # posteriors know their model by its graph
    graph.nodes[:], graph.plates[:], graph.version = new.graph.nodes, new.graph.plates, graph.version + 1
    new.graph = graph
