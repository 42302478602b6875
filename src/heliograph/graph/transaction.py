"""A call of the modelling language either succeeds or leaves the model as it was."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from heliograph.errors import ModelError
from heliograph.graph.variable import Variable

__all__ = ["Transactions", "building"]

F = TypeVar("F", bound=Callable[..., Any])


class Transactions:
    """Keeps how to take back every change that was made since the outermost call of the language began."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []
        self._depth = 0  # how many calls of the language are inside one another

    def _record(self, undo: Callable[[], Any]) -> None:
        """Note how to take back the change just made."""
        if self._depth:
            self._undo.append(undo)


def building(method: F) -> F:
    """Make a method of a model a transaction: it takes only variables of that model, and changes all or nothing."""

    @functools.wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        for x in _variables([*args, *kwargs.values()]):
            if x.model is not self:
                raise ModelError(
                    f"{method.__name__.lstrip('_')}: variable {x.name!r} belongs to another model; "
                    "make a variable of this one, for example from a posterior with model.variable(name, message)"
                )
        mark = len(self._undo)
        self._depth += 1
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            while len(self._undo) > mark:
                self._undo.pop()()
            raise
        finally:
            self._depth -= 1
            if not self._depth:
                self._undo.clear()

    return whole  # type: ignore[return-value]


def _variables(arguments: Iterable[Any]) -> Iterator[Variable]:
    """The variables among the arguments of a call, also inside lists, tuples and dictionaries."""
    for value in arguments:
        if isinstance(value, Variable):
            yield value
        elif isinstance(value, dict):
            yield from _variables(value.values())
        elif isinstance(value, (list, tuple)) and not (value and isinstance(value[0], (int, float))):  # long data
            yield from _variables(value)
