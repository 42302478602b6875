"""Symbols: numbers of a model that depend on hyper-parameters, with the arithmetic of NumPy.

``1 - phi**2`` and ``np.exp(-distances / length)`` of symbols are symbols. A symbol knows its value at the reference values of the
hyper-parameters, at which the model is first written, and `evaluate` gives the one at any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.graph.data import Data, Formula, inside, is_long, plain, roots_of
from heliograph.graph.hyper import Hyper
from heliograph.graph.quantity import Quantity

__all__ = ["Symbol", "Values", "has_symbols", "substituted"]

Values = Mapping[str, np.ndarray]  # the values of hyper-parameters by name


class Recipe(NamedTuple):
    """How a symbol is made of others."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any]


class Symbol(Formula, np.lib.mixins.NDArrayOperatorsMixin):
    """A number or an array that depends on hyper-parameters of one model.

    NumPy's functions and operators make further symbols of it, and the model's builders accept it wherever they
    take numbers.

    >>> from heliograph.graph import Builder
    >>> model = Builder()
    >>> phi = model.flat("phi", 0.0, 1.0)
    >>> (1 - phi) * [1.0, 2.0]
    Symbol(depends on phi, shape=(2,))
    """

    __slots__ = ("_recipe", "hyper", "model")

    def __init__(self, model: Any, hyper: Hyper | None, recipe: Recipe | None = None) -> None:
        """Either a hyper-parameter itself, or how it is made of other symbols and numbers."""
        self.model = model
        self.hyper = hyper
        self._recipe = recipe

    @property
    def value(self) -> np.ndarray:
        """Its value where the model is written: at the reference values of the hyper-parameters, or at those of a `Replay`."""
        if self.hyper is None:
            return self._made_with(None)
        values: Values = self.model.draft.values
        if self.hyper.name in values:
            return values[self.hyper.name]
        return self.hyper.prior.value(self.hyper.prior.reference)

    def at(self, values: Values) -> np.ndarray:
        """Its value at given values of the hyper-parameters."""
        return values[self.hyper.name] if self.hyper is not None else self._made_with(values)

    def _made_with(self, values: Values | None) -> np.ndarray:
        assert self._recipe is not None
        function, args, keywords = self._recipe
        return np.asarray(function(*substituted(args, values), **substituted(keywords, values)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its value."""
        return self.value.shape

    @property
    def name(self) -> str:
        """The hyper-parameter's name, or those it depends on."""
        return " and ".join(h.name for h in self.hypers())

    def hypers(self) -> list[Hyper]:
        """The hyper-parameters that it depends on."""
        if self._recipe is None:
            return [] if self.hyper is None else [self.hyper]
        found = inside((self._recipe.args, self._recipe.keywords), Symbol)
        return list(dict.fromkeys(h for s in found for h in s.hypers()))

    def sources(self) -> Iterator[Data]:
        """The named data that it is made of."""
        return iter(()) if self._recipe is None else roots_of((self._recipe.args, self._recipe.keywords))

    # ---- arithmetic ---------------------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if any(isinstance(x, Quantity) for x in inputs):  # a variable: its own operators know what to do
            return NotImplemented
        if method != "__call__" or "out" in keywords:
            raise ModelError(f"{ufunc.__name__}.{method} of the symbol {self.name!r} is not a function of numbers")
        return _apply(self.model, ufunc, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        if any(issubclass(kind, Quantity) for kind in types):
            return NotImplemented
        return _apply(self.model, function, args, keywords)

    def __getitem__(self, key: Any) -> Symbol:
        return _apply(self.model, _entry, (self, key), {})

    def reshape(self, *shape: Any) -> Symbol:
        """The same entries in another shape."""
        return _apply(self.model, np.reshape, (self, shape[0] if len(shape) == 1 else shape), {})

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Symbol]:
        if not self.shape:
            raise TypeError(f"{self.name!r} is one number and cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    @property
    def T(self) -> Symbol:
        """The transpose."""
        return _apply(self.model, np.transpose, (self,), {})

    def __bool__(self) -> bool:
        raise ModelError(
            f"{self.name!r} is a hyper-parameter, or depends on one, and has no value yet: it cannot decide anything"
        )

    def __float__(self) -> float:
        raise ModelError(f"{self.name!r} is a hyper-parameter, or depends on one: it is no number until it is inferred")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise ModelError(
            f"{self.name!r} is a hyper-parameter, or depends on one: it is no array until it is inferred, and cannot be "
            "given as data; several are joined with np.stack([a, b])"
        )

    def __repr__(self) -> str:
        if self.hyper is not None:
            return f"Symbol({self.name!r}, {self.hyper.prior.words}, shape={self.shape})"
        return f"Symbol(depends on {self.name}, shape={self.shape})"


def _entry(array: np.ndarray, key: Any) -> np.ndarray:
    return array[key]


def _apply(model: Any, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]) -> Symbol:
    """The symbol of a function of symbols and numbers."""
    for s in inside((*args, *keywords.values()), Symbol):
        if s.model is not model:
            raise ModelError(f"hyper-parameter {s.name!r} belongs to another model")
    made = Symbol(model, None, Recipe(function, tuple(args), dict(keywords)))
    np.shape(made.value)  # what cannot be computed is an error here, and not where it is used
    return made


def has_symbols(*values: Any) -> bool:
    """Return whether symbols are among some values, also inside lists, tuples and dictionaries."""
    return next(inside(values, Symbol), None) is not None


def substituted(value: Any, values: Values | None, other: Callable[[Any], Any] | None = None) -> Any:
    """A value with numbers in the place of symbols; without `values` those at the reference.

    Parameters
    ----------
    value
        Anything; lists, tuples and dictionaries are gone through.
    values
        The values of the hyper-parameters; None for the reference.
    other
        What is done with everything else that is no list, tuple or dictionary; by default data become arrays.
    """
    if isinstance(value, Symbol):
        return value.value if values is None else value.at(values)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {key: substituted(v, values, other) for key, v in items}
    if isinstance(value, (list, tuple)):
        inner = cast("Sequence[Any]", value)
        if is_long(inner):
            return inner
        made = [substituted(v, values, other) for v in inner]
        if isinstance(value, list):
            return made
        kind = cast(Any, type(inner))
        return kind(*made) if hasattr(kind, "_fields") else kind(made)
    return plain(value) if other is None else other(value)
