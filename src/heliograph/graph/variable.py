"""The handle a user holds: a node of the graph, or some entries of it, with the operators of the modelling language."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.graph.check import as_floats
from heliograph.graph.records import Node
from heliograph.numerics.checks import in_words

if TYPE_CHECKING:
    from heliograph.graph.builder import Builder

__all__ = ["Variable"]


class Variable:
    """An array of random quantities in a model.

    Supports ``+ - *`` with numbers, arrays and other variables, ``X @ w``, indexing with integers, slices and integer
    arrays (repeats allowed), ``abs(x) < c``, and the comparisons ``a > b`` that make constraints or Bernoulli variables.
    """

    __slots__ = ("index", "model", "node", "shape")
    __array_ufunc__ = None  # so that ``ndarray @ variable`` comes to us

    def __init__(self, model: Builder, node: Node, index: np.ndarray | None = None) -> None:
        self.model = model
        self.node = node
        self.index = index  # integer array of entries of the flat node, or None for all
        self.shape = node.shape if index is None else index.shape

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def family(self) -> type:
        """The family of its messages."""
        return self.node.family

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    def entries(self) -> np.ndarray:
        """The flat positions in the node, in this handle's shape."""
        if self.index is not None:
            return self.index
        return np.arange(self.node.size).reshape(self.node.shape)

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
        try:
            index = self.entries()[key]
        except (IndexError, TypeError, ValueError) as error:
            raise ModelError(f"variable {self.name!r} of shape {self.shape}: {error}") from None
        return Variable(self.model, self.node, np.asarray(index))

    def __iter__(self) -> Iterator[Variable]:
        if not self.shape:
            raise TypeError(f"variable {self.name!r} is a scalar and cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    def reshape(self, *shape: int) -> Variable:
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
        return self.model._add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Variable:
        return self.model._subtract(self, other)

    def __rsub__(self, other: Any) -> Variable:
        return self.model._add(self.model._scale(self, -1.0), other)

    def __mul__(self, other: Any) -> Variable:
        return self.model._multiply(self, other)

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
        return self.model._scale(self, 1.0 / other)

    def __pow__(self, exponent: Any) -> Variable:
        raise ModelError(
            f"variable {self.name!r}: a power has no factor of its own; write it as a function of one variable, for example "
            "@hg.factor(output=hg.Gaussian) def square(x): return x**2"
        )

    __rpow__ = __pow__

    def __neg__(self) -> Variable:
        return self.model._scale(self, -1.0)

    def __matmul__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            raise ModelError(f"{self.name!r} @ {other.name!r}: the product of two random vectors has no factor here")
        return self.model._dot(other, self)

    __rmatmul__ = __matmul__

    # ---- events -------------------------------------------------------------------------------------------------
    def __gt__(self, other: Any) -> Variable:
        return self.model._greater(self, other)

    def __lt__(self, other: Any) -> Variable:
        return self.model._greater(other, self, less=True)

    __ge__ = __gt__  # continuous variables: the two differ on a set of measure zero
    __le__ = __lt__

    def __abs__(self) -> _Magnitude:
        return _Magnitude(self)


class _Magnitude:
    """``abs(x)``, good for ``abs(x) < bound`` only."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable

    def __lt__(self, bound: Any) -> Variable:
        bound = as_floats(f"abs({self.variable.name!r}) < bound: the bound", bound)
        return self.variable.model.between(self.variable, -bound, bound)

    __le__ = __lt__
