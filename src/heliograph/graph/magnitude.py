"""``abs(x)`` of a variable, which is good for one thing: a comparison with a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from heliograph.errors import ModelError
from heliograph.graph.check import as_floats
from heliograph.graph.quantity import Quantity

__all__ = ["Magnitude"]

Event = TypeVar("Event")


class Magnitude(Generic[Event]):
    """``abs(x)``, good for ``abs(x) < bound`` only."""

    __array_ufunc__ = None

    def __init__(self, variable: Quantity, within: Callable[[np.ndarray], Event]) -> None:
        self.variable = variable
        self.within = within  # the event that the variable is between minus a bound and the bound

    def __lt__(self, bound: Any) -> Event:
        return self.within(as_floats(f"abs({self.variable.name!r}) < bound: the bound", bound))

    __le__ = __lt__

    def _refuse(self, *other: Any) -> NoReturn:
        raise ModelError(
            f"abs({self.variable.name!r}) can be compared with a bound, abs(x) < c, and nothing else; write it as a function, for "
            "example @hg.factor(output=hg.Gaussian) def magnitude(x): return np.abs(x)"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rmatmul__ = __gt__ = __ge__ = _refuse
