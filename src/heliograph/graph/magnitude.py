"""``abs(x)`` of a variable: an event where it is compared with a bound, and a variable of its own everywhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.graph.check import as_floats
from heliograph.graph.quantity import Quantity

__all__ = ["Magnitude"]


class Magnitude:
    """``abs(x)``: ``abs(x) < bound`` is the event that x is between two bounds, any other use makes a variable."""

    def __init__(self, variable: Quantity, within: Callable[[np.ndarray], Any], make: Callable[[], Any]) -> None:
        self.variable = variable
        self.within = within  # the event that the variable is between minus a bound and the bound
        self._make = make
        self._made: Any = None

    @property
    def made(self) -> Any:
        """The variable |x|, made when it is first asked for."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __lt__(self, bound: Any) -> Any:
        if isinstance(bound, (Quantity, Magnitude)):
            return self.made < bound
        limit = self._bound(bound)
        if (limit <= 0).any():
            raise ContradictionError(f"abs({self.variable.name!r}) < bound: no magnitude is below {limit.min():g}")
        return self.within(limit)

    def __gt__(self, bound: Any) -> Any:
        if isinstance(bound, (Quantity, Magnitude)):
            return self.made > bound
        return ~self.within(np.maximum(self._bound(bound), 0.0))  # every magnitude is above what is negative

    __le__, __ge__ = __lt__, __gt__

    def _bound(self, bound: Any) -> np.ndarray:
        return as_floats(f"abs({self.variable.name!r}) < bound: the bound", bound)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.made, name)


def _as_variable(name: str) -> Callable[..., Any]:
    def method(self: Magnitude, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.made, name)(*(a.made if isinstance(a, Magnitude) else a for a in args), **kwargs)

    method.__name__ = name
    return method


_OPERATORS = "add radd sub rsub mul rmul truediv neg pow rpow matmul rmatmul abs array array_ufunc array_function"
for _name in (*_OPERATORS.split(), "getitem", "len", "iter", "bool", "repr"):
    setattr(Magnitude, f"__{_name}__", _as_variable(f"__{_name}__"))
