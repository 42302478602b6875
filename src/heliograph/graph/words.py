"""The words of the modelling language: methods of a model, made of the functions of `graph.language` that write to its draft."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from heliograph.families import Gamma
from heliograph.graph.draft import Draft
from heliograph.graph.language.keywords import signature_of
from heliograph.graph.quantity import Quantity
from heliograph.graph.variable import ModelLike, Variable, as_symbol, build, state

__all__ = ["statement", "word"]

_HEADING = "Parameters\n----------\n"
_FIRST = [("name", "The name of the variable.")]  # arguments that most words share, for their docstrings
_LAST = [
    ("size", "The shape; by default that of the parameters."),
    ("observed", "Observed values, with NaN where they are missing."),
    ("missing", "In place of NaN: True where a value is missing."),
]

P = ParamSpec("P")
R = TypeVar("R")


def word(
    function: Callable[Concatenate[Draft, P], Quantity], *numbers: str
) -> Callable[Concatenate[ModelLike, P], Variable]:
    """The method that makes a variable by a function of the language.

    A Gamma variable that is given as one of these `numbers` is integrated over like any hyper-parameter, because it
    has no messages there.
    """
    return _method(build, function, numbers)


def statement(function: Callable[Concatenate[Draft, P], R], *numbers: str) -> Callable[Concatenate[ModelLike, P], R]:
    """The method that calls a function of the language which makes no variable; see `word`."""
    return _method(state, function, numbers)


def _method(call: Callable[..., Any], function: Callable[..., Any], numbers: tuple[str, ...]) -> Any:
    signature = signature_of(function)
    names = list(signature.parameters)[1:]
    at = [names.index(n) for n in numbers if n in names]

    @wraps(function)
    def method(self: ModelLike, *args: Any, **kwargs: Any) -> Any:
        _check_keywords(function.__name__, names, kwargs)
        if numbers:
            args = tuple(_known(self, x) if k in at else x for k, x in enumerate(args))
            kwargs = {k: _known(self, x) if k in numbers else x for k, x in kwargs.items()}
        return call(self, function, *args, **kwargs)

    cast(Any, method).__signature__ = _as_method(signature, call is build)
    method.__doc__ = _with_shared(inspect.getdoc(function) or "", names)
    return method


def _check_keywords(word: str, names: list[str], kwargs: dict[str, Any]) -> None:
    """Refuse a keyword that the word does not have, as Python would if the shared ones stood in its signature."""
    for keyword in kwargs:
        if keyword not in names:
            raise TypeError(f"{word}() got an unexpected keyword argument {keyword!r}")


def _with_shared(doc: str, names: list[str]) -> str:
    """A docstring that also lists the arguments that most words share, but for those that it lists itself."""
    if not {"name", "size", "observed", "missing"} & {*names}:
        return doc
    head, heading, listed = doc.partition(_HEADING)
    if not heading:
        head, _, examples = doc.partition("\n\nExamples\n")
        head, listed = f"{head}\n\n", f"\n\nExamples\n{examples}" if examples else ""
    own, blank, rest = listed.partition("\n\n")
    there = {word for line in own.split("\n") if not line.startswith(" ") for word in line.split(", ")}
    first, last = (
        [f"{x}\n    {text}" for x, text in entries if x in names and x not in there] for entries in (_FIRST, _LAST)
    )
    return head + _HEADING + "\n".join([*first, *([own] if own else []), *last]) + blank + rest


def _known(model: ModelLike, value: Any) -> Any:
    """An argument where a number is wanted: a symbol in place of a Gamma variable, anything else as it is."""
    return as_symbol(model, value) if isinstance(value, Variable) and value.family is Gamma else value


def _as_method(signature: inspect.Signature, makes: bool) -> inspect.Signature:
    """The signature as users see it: of a method, with variables in the place of quantities."""
    self, *rest = signature.parameters.values()
    shown = [p.replace(annotation=str(p.annotation).replace("Quantity", "Variable")) for p in rest]
    returned = "Variable" if makes else signature.return_annotation
    return signature.replace(
        parameters=[self.replace(name="self", annotation="ModelLike"), *shown], return_annotation=returned
    )
