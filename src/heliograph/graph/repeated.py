"""Expressions that are written twice: a function of the same quantities is the same quantity, and not another one like it.

``x ** 2 - x ** 2`` is 0, and ``f(x)`` seen four times is one value seen four times. With a node for every time that it is written,
messages would treat the values as independent given x. So a call that was made before, with the same arguments, gives what it gave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from heliograph.factors import Factor
from heliograph.graph.data import Data
from heliograph.graph.language import arrays, boxes, functions, linear
from heliograph.graph.quantity import Quantity
from heliograph.graph.symbols import Symbol

__all__ = ["Made", "key_of", "made_before"]

_MOST = 10_000  # numbers among the arguments of a call: to compare more would take longer than most models
_FUNCTIONS: frozenset[Callable[..., Any]] = frozenset(
    [
        *(
            arrays.from_left,
            arrays.matmul,
            arrays.mean,
            arrays.part_of,
            arrays.reshaped,
            arrays.total,
            arrays.transposed,
        ),
        *(linear.add, linear.scale, linear.subtract),
        *(functions.absolute, functions.exp, functions.log, functions.maximum, functions.minimum, functions.multiply),
        *(functions.power, functions.sigmoid, functions.square, boxes.black_box),
    ]
)  # of the language, that make the same of the same


class Made(NamedTuple):
    """What a call made; the arguments are kept so that no other object takes their place in memory."""

    variable: Any
    arguments: Any


def made_before(calls: Mapping[Any, Made], key: Any) -> Any:
    """What the call of this key made before; None where there was none, or where that is observed, and is not any such value."""
    known = None if key is None else calls.get(key)
    return known.variable if known is not None and known.variable.node.observed is None else None


def key_of(function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
    """What this call has in common with others that make the same; None where that cannot be said."""
    if function not in _FUNCTIONS or kwargs:
        return None
    try:
        return function, _key(args)
    except _UnknownError:
        return None


class _UnknownError(Exception):
    """An argument of which nothing says when another is the same."""


def _key(value: Any) -> Any:
    """What two arguments have in common if and only if they are the same."""
    if type(value) in (list, tuple):
        items = cast("list[Any]", value)
        if len(items) > _MOST:
            raise _UnknownError
        return type(items), *map(_key, items)
    if type(value) is dict:
        return tuple((k, _key(v)) for k, v in cast("dict[Any, Any]", value).items())
    if isinstance(value, slice):
        ends = cast(Any, value)
        return "slice", _key(ends.start), _key(ends.stop), _key(ends.step)
    return _key_of_one(value)


def _key_of_one(value: Any) -> Any:
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str, np.generic)):
        return type(cast(Any, value)), value
    if isinstance(value, Quantity):
        return id(value.node), value.shape, None if value.index is None else _key(value.index)
    if isinstance(value, (Data, Symbol)) or (isinstance(value, Factor) and not value.draws):
        return id(value)
    if isinstance(value, np.ndarray):
        array = cast(Any, value)
        if array.size <= _MOST and not array.dtype.hasobject:
            return array.shape, array.dtype.str, array.tobytes()
    raise _UnknownError
