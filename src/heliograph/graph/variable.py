"""The handle a user holds: a node of the graph, or some entries of it, with the operators of the modelling language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.graph.check import as_floats
from heliograph.graph.draft import Draft
from heliograph.graph.language.functions import between, greater, multiply
from heliograph.graph.language.linear import add, dot, scale, subtract
from heliograph.graph.language.logic import compare, connect, negate
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Graph, Node
from heliograph.numerics.checks import in_words

__all__ = ["ModelLike", "Variable", "build", "state"]

P = ParamSpec("P")
R = TypeVar("R")


class ModelLike(Protocol):
    """The part of a model that its variables use."""

    @property
    def draft(self) -> Draft:
        """The graph under construction."""
        ...

    @property
    def graph(self) -> Graph:
        """The graph so far."""
        ...


def build(
    model: ModelLike, function: Callable[Concatenate[Draft, P], Quantity], *args: P.args, **kwargs: P.kwargs
) -> Variable:
    """Call a function of the language for a model, all or nothing, and give what it makes as a variable of the model."""
    made = state(model, function, *args, **kwargs)
    return Variable(model, made.node, made.index)


def state(model: ModelLike, function: Callable[Concatenate[Draft, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function of the language for a model: it takes only variables of that model, and changes all or nothing."""
    for x in _variables([*args, *kwargs.values()]):
        if x.model is not model:
            raise ModelError(
                f"{function.__name__}: variable {x.name!r} belongs to another model; "
                "make a variable of this one, for example from a posterior with model.variable(name, message)"
            )
    with model.draft.transaction():
        return function(model.draft, *args, **kwargs)


def _variables(arguments: Iterable[object]) -> Iterator[Variable]:
    """The variables among the arguments of a call, also inside lists, tuples and dictionaries."""
    for value in arguments:
        if isinstance(value, Variable):
            yield value
        elif isinstance(value, dict):
            yield from _variables(cast("dict[str, object]", value).values())
        elif isinstance(value, (list, tuple)):
            inside = cast("Sequence[object]", value)
            if not (inside and isinstance(inside[0], (int, float))):  # long data
                yield from _variables(inside)


class Variable(Quantity):
    """An array of random quantities in a model.

    Supports ``+ - *`` with numbers, arrays and other variables, ``X @ w``, indexing with integers, slices and integer
    arrays (repeats allowed), ``abs(x) < c``, and the comparisons ``a > b`` that make constraints or Bernoulli variables.
    """

    __slots__ = ("model",)
    __array_ufunc__ = None  # so that ``ndarray @ variable`` comes to us

    def __init__(self, model: ModelLike, node: Node, index: np.ndarray | None = None) -> None:
        super().__init__(node, index)
        self.model = model

    def __repr__(self) -> str:
        part = "" if self.index is None else f", {self.size} entries of {self.node.size}"
        return f"Variable({self.name!r}, {self.family.__name__}, shape={self.shape}{part})"

    def __bool__(self) -> bool:
        raise ModelError(
            f"variable {self.name!r} has no truth value; for lower < x < upper use model.between(x, lower, upper), "
            "and for an event use model.constrain(...)"
        )

    # ---- entries ------------------------------------------------------------------------------------------------
    def __getitem__(self, key: Any) -> Variable:
        if isinstance(key, Variable):
            raise ModelError(
                f"variable {self.name!r} cannot be indexed by the random variable {key.name!r}; "
                "use model.mixture(name, selector, means, ...) to let a variable choose"
            )
        part = self.part(key)
        return Variable(self.model, part.node, part.index)

    def __iter__(self) -> Iterator[Variable]:
        if not self.shape:
            raise TypeError(f"variable {self.name!r} is a scalar and cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    def reshape(self, *shape: Any) -> Variable:
        """The same entries in another shape."""
        if len(shape) == 1 and shape[0] is None:
            raise ModelError(f"variable {self.name!r}: reshape takes whole numbers, not None")
        try:
            index = np.reshape(self.entries(), shape[0] if len(shape) == 1 else shape)
        except (TypeError, ValueError) as error:
            wanted = in_words(shape[0]) if len(shape) == 1 else str(shape)
            raise ModelError(
                f"variable {self.name!r} of shape {self.shape} cannot have the shape {wanted}: {error}"
            ) from None
        return Variable(self.model, self.node, index)

    # ---- arithmetic ---------------------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Variable:
        return build(self.model, add, self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Variable:
        return build(self.model, subtract, self, other)

    def __rsub__(self, other: Any) -> Variable:
        return build(self.model, add, build(self.model, scale, self, -1.0), other)

    def __mul__(self, other: Any) -> Variable:
        return build(self.model, multiply, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            raise ModelError(
                f"{self.name!r} / {other.name!r} has no factor; write the quotient as a product "
                "(numerator = quotient * denominator) or as a black-box factor with @hg.factor"
            )
        other = as_floats(f"variable {self.name!r} is divided by something that", other)
        if (other == 0).any():
            raise ModelError(f"variable {self.name!r} is divided by zero")
        if np.isinf(other).any():
            raise ModelError(
                f"variable {self.name!r} is divided by infinity; multiply it by 0 if that is what is meant"
            )
        return build(self.model, scale, self, 1.0 / other)

    def __pow__(self, exponent: Any) -> Variable:
        raise ModelError(
            f"variable {self.name!r}: a power has no factor of its own; write it as a function of one variable, for example "
            "@hg.factor(output=hg.Gaussian) def square(x): return x**2"
        )

    __rpow__ = __pow__

    def __neg__(self) -> Variable:
        return build(self.model, scale, self, -1.0)

    def __matmul__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            raise ModelError(f"{self.name!r} @ {other.name!r}: the product of two random vectors has no factor here")
        return build(self.model, dot, other, self)

    __rmatmul__ = __matmul__

    # ---- events -------------------------------------------------------------------------------------------------
    def __gt__(self, other: Any) -> Variable:
        return build(self.model, greater, self, other)

    def __lt__(self, other: Any) -> Variable:
        return build(self.model, greater, other, self, less=True)

    __ge__ = __gt__  # continuous variables: the two differ on a set of measure zero
    __le__ = __lt__

    # ---- labels and categories ----------------------------------------------------------------------------------
    def __and__(self, other: Any) -> Variable:
        return build(self.model, connect, "&", self, other)

    def __or__(self, other: Any) -> Variable:
        return build(self.model, connect, "|", self, other)

    def __xor__(self, other: Any) -> Variable:
        return build(self.model, connect, "^", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Variable:
        return build(self.model, negate, self)

    def __eq__(self, other: Any) -> Variable:  # type: ignore[override]
        return NotImplemented if _no_value(other) else build(self.model, compare, self, other, True)

    def __ne__(self, other: Any) -> Variable:  # type: ignore[override]
        return NotImplemented if _no_value(other) else build(self.model, compare, self, other, False)

    __hash__ = object.__hash__

    def __abs__(self) -> _Magnitude:
        return _Magnitude(self)


def _no_value(x: object) -> bool:
    """Whether a variable and this are simply two different things."""
    return x is None or isinstance(x, (str, bytes, type))


class _Magnitude:
    """``abs(x)``, good for ``abs(x) < bound`` only."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable

    def __lt__(self, bound: Any) -> Variable:
        bound = as_floats(f"abs({self.variable.name!r}) < bound: the bound", bound)
        return build(self.variable.model, between, self.variable, -bound, bound)

    __le__ = __lt__
