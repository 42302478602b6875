"""The handle a user holds: a node of the graph, or some entries of it, with the operators of the modelling language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.families import MultivariateGaussian
from heliograph.graph import ufuncs
from heliograph.graph.check import check_divisor
from heliograph.graph.data import Data, inside, kept, plain
from heliograph.graph.draft import Component, Draft
from heliograph.graph.hyper import hyper_of
from heliograph.graph.labels import Labels
from heliograph.graph.language.arrays import from_left, matmul, mean, part_of, reshaped, total, transposed
from heliograph.graph.language.functions import absolute, greater, inner, multiply, power, square, within
from heliograph.graph.language.linear import add, scale, subtract
from heliograph.graph.magnitude import Magnitude
from heliograph.graph.pinned import applied
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Graph, Node
from heliograph.graph.repeated import Made, key_of, made_before
from heliograph.graph.symbols import Symbol
from heliograph.graph.tape import Call, written

__all__ = ["ModelLike", "Variable", "as_symbol", "build", "state"]

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
    args, kwargs = cast(Any, written(model.draft, function, _made(args), _made(kwargs)))
    key = None if model.draft.busy else key_of(function, args, kwargs)
    known = made_before(model.draft.calls, key)
    if known is not None:
        return known
    made = _call(model, function, *args, **kwargs)
    if isinstance(made, (Component, np.ndarray)):
        return cast(Any, made)
    variable = Variable(model, made.node, made.index)
    if not model.draft.busy:
        call = Call(function, kept(args), kept(kwargs), variable, inside=tuple(model.draft.inner))
        call.label()
        model.draft.note(call)
    if key is not None:
        model.draft.keep_call(key, Made(variable, args))
    return variable


def state(model: ModelLike, function: Callable[Concatenate[Draft, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function of the language that makes no variable, all or nothing."""
    args, kwargs = cast(Any, written(model.draft, function, _made(args), _made(kwargs)))
    result = _call(model, function, *args, **kwargs)
    if not model.draft.busy:
        model.draft.note(Call(function, kept(args), kept(kwargs), None, inside=tuple(model.draft.inner)))
    return result


def _call(model: ModelLike, function: Callable[Concatenate[Draft, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function of the language for a model: it takes only variables of that model, and changes all or nothing."""
    for x in inside((args, kwargs), (Variable, Symbol)):
        if x.model is not model:
            raise ModelError(
                f"{function.__name__}: variable {x.name!r} belongs to another model; "
                "make a variable of this one, for example from a posterior with model.variable(name, message)"
            )
        model.draft.check_open(x)
    with model.draft.transaction():
        return applied(model.draft, function, plain(args), plain(kwargs))


def _made(values: Any) -> Any:
    """The arguments of a call with the variable |x| in the place of ``abs(x)``, in lists and by name, too."""
    if isinstance(values, Magnitude):
        return values.made
    if type(values) is dict:
        return {k: _made(x) for k, x in cast("dict[str, Any]", values).items()}
    if type(values) in (list, tuple):
        return type(values)(map(_made, cast("list[Any]", values)))
    return values


def as_symbol(model: ModelLike, x: Variable) -> Symbol:
    """A variable as a hyper-parameter, which is integrated over wherever it is used."""
    known = next((h for h in model.draft.hypers if h.name == x.name), None)
    hyper = known or hyper_of(x.node)
    if known is None:
        model.draft.add_hyper(hyper)
    whole = Symbol(model, hyper)
    return whole if x.index is None else whole.reshape(-1)[x.index]


class Variable(Labels):
    """An array of random quantities in a model.

    A variable supports

    - ``+ - *`` with numbers, arrays and other variables, and ``X @ w``;
    - indexing with integers, slices and integer arrays (repeats allowed), sums and means along an axis;
    - NumPy's functions, where there is a factor for them (``np.exp``, ``np.maximum``, ...);
    - comparisons such as ``a > b`` and ``abs(x) < c``, which make constraints or Bernoulli variables.

    A vector behaves as an array of its entries: ``w[2]``, ``w[:3]``, ``w.sum()``.

    >>> import heliograph as hg
    >>> model = hg.Model()
    >>> x = model.gaussian("x", np.zeros((2, 3)), sd=1.0)
    >>> x.sum(axis=1).shape, x.T.shape, len(x), np.concatenate([x[0], x[1]]).shape
    ((2,), (3, 2), 2, (6,))
    """

    __slots__ = ("model",)
    __pandas_priority__ = 10_000  # so that ``series * variable`` comes to us

    def __init__(self, model: ModelLike, node: Node, index: np.ndarray | None = None) -> None:
        super().__init__(node, index)
        self.model = model

    def apply(self, function: Callable[..., Quantity], *args: Any) -> Variable:
        """Call a function of the language for the model of this variable."""
        return build(self.model, function, *args)

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
        return build(self.model, part_of, self, key)

    def __iter__(self) -> Iterator[Variable]:
        n = len(self)
        return (self[i] for i in range(n))

    def __len__(self) -> int:
        if self.shape:
            return self.shape[0]
        if self.node.dimension is None or self.family is not MultivariateGaussian:
            raise TypeError(f"variable {self.name!r} is a scalar: it has no length and cannot be iterated over")
        return self.node.dimension

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Variable:
        """The same entries with the axes in reverse order."""
        return build(self.model, transposed, self)

    def sum(self, axis: Any = None, dtype: None = None, out: None = None) -> Variable:
        """The sum of the entries along an axis, or of all; `dtype` and `out` are there for ``np.sum`` only."""
        return build(self.model, total, self, axis)

    def mean(self, axis: Any = None, dtype: None = None, out: None = None) -> Variable:
        """The mean of the entries along an axis, or of all; `dtype` and `out` are there for ``np.mean`` only."""
        return build(self.model, mean, self, axis)

    def reshape(self, *shape: Any) -> Variable:
        """The same entries in another shape."""
        return build(self.model, reshaped, self, shape)

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
        if isinstance(other, Symbol):
            return self * (1.0 / other)
        if isinstance(other, Variable):
            raise ModelError(
                f"{self.name!r} / {other.name!r} has no factor; write the quotient as a product "
                "(numerator = quotient * denominator) or as a black-box factor with @hg.factor"
            )
        divisor = check_divisor(self.name, other)
        return build(self.model, scale, self, 1.0 / other if isinstance(other, Data) else 1.0 / divisor)

    def __pow__(self, exponent: Any) -> Variable:
        if ufuncs.check_exponent(self.name, exponent) == 1:
            return self
        return build(self.model, square, self)

    def __rpow__(self, base: Any) -> Variable:
        return build(self.model, power, base, self)

    # ---- NumPy's functions ---------------------------------------------------------------------------------------
    if not TYPE_CHECKING:  # for which ``matrix @ variable`` would be an array

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            """One object: a variable is no array of numbers, and is not to be taken apart into one."""
            if ufuncs.asked_by_pandas():
                raise ModelError(ufuncs.no_frame(self.name))
            whole = np.empty((), dtype=object)
            whole[()] = self
            return whole

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """``np.exp(x)``, ``array + x`` and the like, where the language has them."""
        name: str = ufunc.__name__
        if method == "__call__" and not kwargs:
            if name in ufuncs.UFUNCS:
                return build(self.model, ufuncs.UFUNCS[name], *inputs)
            left, right = ufuncs.BY_OPERATOR.get(name, ("", ""))
            if left and isinstance(inputs[0], Variable):
                return getattr(inputs[0], left)(*inputs[1:])
            if right:
                return getattr(inputs[1], right)(inputs[0])
        raise ModelError(ufuncs.no_function(f"np.{name}", self.name))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """``np.concatenate``, ``np.sum`` and the like, where the language has them."""
        name: str = function.__name__
        if name in ufuncs.JOINS:
            parts, *rest = args
            axis = rest[0] if rest else kwargs.get("axis", 0)
            return build(self.model, ufuncs.JOINS[name], list(parts), axis)
        if name in ufuncs.METHODS:
            return ufuncs.as_method(name, args, kwargs)
        raise ModelError(ufuncs.no_function(f"np.{name}", self.name))

    def __rtruediv__(self, other: Any) -> Variable:
        raise UnsupportedError(
            f"a number over {self.name!r} has no factor; write the whole as a black box: hg.factor(output=hg.Gaussian)"
        )

    def __neg__(self) -> Variable:
        return build(self.model, scale, self, -1.0)

    def __matmul__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            return build(self.model, inner, self, other)
        return build(self.model, from_left, self, other)

    def __rmatmul__(self, other: Any) -> Variable:
        return build(self.model, matmul, other, self)

    # ---- events -------------------------------------------------------------------------------------------------
    def __gt__(self, other: Any) -> Variable:
        return build(self.model, greater, self, other)

    def __lt__(self, other: Any) -> Variable:
        return build(self.model, greater, other, self, less=True)

    __ge__ = __gt__  # continuous variables: the two differ on a set of measure zero
    __le__ = __lt__

    def __abs__(self) -> Magnitude:
        return Magnitude(
            self, lambda bound: build(self.model, within, self, bound), lambda: build(self.model, absolute, self)
        )
