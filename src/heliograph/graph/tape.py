"""The calls that made a model, kept so that they can be made again with other data.

`replay` writes the model anew: the same calls in the same order, with the data and the observed values that stand now. What it
gives is what a user would get who ran the same lines on the new data, bit for bit. Variables that the user holds become
variables of the new graph.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, cast

from heliograph.errors import ModelError
from heliograph.graph.data import Data, inside, roots_of
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Entries
from heliograph.graph.language.keywords import signature_of
from heliograph.graph.language.statements import observe
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Gate
from heliograph.graph.symbols import Values, substituted

__all__ = ["Call", "Taped", "named_calls", "replayed", "rewritten", "touched", "written"]


class Call(NamedTuple):
    """One call of a function of the language, and the variable that the user got from it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    made: Quantity | None
    gates: tuple[Gate, ...] = ()  # that it was made under, the outermost first
    inside: tuple[Any, ...] = ()  # variables and data that functions among its arguments used in calls of their own

    @property
    def arguments(self) -> dict[str, Any]:
        """What was given, by the names of the function's parameters."""
        return dict(signature_of(self.function).bind(None, *self.args, **self.kwargs).arguments)

    @property
    def name(self) -> str | None:
        """The name of the variable that it makes or observes."""
        name = self.arguments.get("name")
        return name if isinstance(name, str) else None

    @property
    def takes_observed(self) -> bool:
        """Whether it can be given observed values."""
        return "observed" in signature_of(self.function).parameters

    def label(self) -> None:
        """Give the columns' names of a table to the vector that it is multiplied with."""
        for data in self.args:
            labels = data.labels if isinstance(data, Data) else None
            for x in self.args if labels else ():
                if isinstance(x, Quantity) and x.node.dimension == len(labels or ()):
                    x.node.labels = labels


class Taped(Protocol):
    """The part of a model that is written anew."""

    draft: Draft


def named_calls(calls: Iterable[Any]) -> dict[str, Call]:
    """The calls that can be given observed values, by the name of the variable."""
    return {c.name: c for c in cast("Iterable[Call]", calls) if c.name is not None and c.takes_observed}


def _with_observed(call: Call, values: Any, missing: Any = None) -> Call:
    """The same call with other observed values."""
    signature = signature_of(call.function)
    given = call.arguments | {"observed": values, "missing": missing}
    bound = signature.bind_partial()
    bound.arguments.update({k: given[k] for k in signature.parameters if k in given})
    return call._replace(args=bound.args[1:], kwargs=bound.kwargs)


def _as_component(call: Call, entries: Entries) -> Call:
    """The call of a builder that makes a component of a mixture, with what was observed of the mixture."""
    given = call.arguments
    if any(given.get(k) is not None for k in ("size", "observed")):
        raise ModelError(
            f"variable {call.name!r}: give observed= to model.mixture, and no size=, not to its components"
        )
    return _with_observed(call, entries.observed, entries.missing)


def written(
    draft: Draft, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The arguments of a call that is about to be made; one made by a function among the arguments of another is noted there.

    If it makes a component of a mixture, it is given what was observed of that.
    """
    if not draft.busy:
        draft.inner.clear()
        return args, kwargs
    draft.inner.extend([*roots_of((args, kwargs)), *inside((args, kwargs), Quantity)])
    call = Call(function, args, kwargs, None)
    if draft.mixtures and draft.mixes(call.name):
        call = _as_component(call, draft.mixtures[cast(str, call.name)].entries)
    return call.args, call.kwargs


def rewritten(calls: Iterable[Any], observed: Mapping[str, Any]) -> list[Call]:
    """The calls with these observed values, whatever was observed before; None takes them away."""
    found: list[Call] = []
    for call in cast("Iterable[Call]", calls):
        name = call.name
        if name is not None and name in observed and call.takes_observed:
            call = _with_observed(call, observed[name])
        elif call.function is observe and call.args[0].name in observed:
            continue
        found.append(call)
    return found


@contextmanager
def replayed(
    model: Taped, calls: Iterable[Call], keep: bool, values: Values | None = None
) -> Generator[Draft, None, None]:
    """Write a model anew by these calls; with `keep` it stays so, unless something goes wrong.

    `values` are those of its hyper-parameters; by default those that its author's lines were read with.

    Inside the context the model and its variables are the new ones.
    """
    old, new = model.draft, Draft()
    new.data, new.hypers = old.data, list(old.hypers)
    new.names.update(h.name for h in old.hypers if not h.variable)
    before: list[tuple[Quantity, Any]] = []
    done = False
    try:
        model.draft = new
        for call in calls:
            with new.transaction():
                made = call.function(new, *substituted(call.args, values), **substituted(dict(call.kwargs), values))
            if call.made is not None:
                before.append((call.made, (call.made.node, call.made.index, call.made.shape)))
                call.made.node, call.made.index, call.made.shape = made.node, made.index, made.shape
            call.label()
            new.tape.append(call)
        yield new
        done = keep
    finally:
        if not done:
            model.draft = old
            for variable, was in reversed(before):
                variable.node, variable.index, variable.shape = was


def touched(calls: Iterable[Any], data: set[str]) -> set[str]:
    """The names of the variables that depend on any of these data, by their own or their parents' arguments."""
    names: set[str] = set()
    found: set[int] = set()  # of variables that the user holds
    for call in cast("Iterable[Call]", calls):
        used = (call.args, dict(call.kwargs), call.inside)
        if any(d.name in data for d in roots_of(used)) or any(id(v) in found for v in inside(used, Quantity)):
            if call.made is not None:
                found.add(id(call.made))
            if call.name is not None:
                names.add(call.name)
    return names
