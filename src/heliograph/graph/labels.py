"""The operators of labels and categories: ``& | ^ ~ == !=``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from heliograph.graph.language.logic import compare, connect, negate
from heliograph.graph.quantity import Quantity

__all__ = ["Labels"]


class Labels(Quantity):
    """A quantity with the operators of Bernoulli and Categorical variables."""

    __slots__ = ()

    def apply(self, function: Callable[..., Quantity], *args: Any) -> Self:
        """Call a function of the language for the model of this variable."""
        raise NotImplementedError  # pragma: no cover

    def __and__(self, other: Any) -> Self:
        return self.apply(connect, "&", self, other)

    def __or__(self, other: Any) -> Self:
        return self.apply(connect, "|", self, other)

    def __xor__(self, other: Any) -> Self:
        return self.apply(connect, "^", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Self:
        return self.apply(negate, self)

    def __eq__(self, other: Any) -> Self:  # type: ignore[override]
        if _no_value(other):
            return NotImplemented
        return self.apply(compare, "==", self, other)

    def __ne__(self, other: Any) -> Self:  # type: ignore[override]
        if _no_value(other):
            return NotImplemented
        return self.apply(compare, "!=", self, other)

    __hash__ = object.__hash__


def _no_value(x: object) -> bool:
    """Whether a variable and this are simply two different things."""
    return x is None or isinstance(x, (str, bytes, type))
