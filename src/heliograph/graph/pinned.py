"""Calls of the language in a model where some variables are numbers: hyper-parameters with a fixed prior, at one of their values.

The user wrote ``tau * x`` and ``gaussian(..., precision=tau)`` for a variable, in calls that are made again and in functions that
these calls run. The variable becomes a number there, and what operators make of numbers only becomes one, too. Where a Gaussian is
needed, a number in its place becomes an expression without variables, which all that takes a Gaussian takes.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

import numpy as np

from heliograph.families import Gaussian
from heliograph.graph.draft import Draft
from heliograph.graph.language.arrays import part_of, reshaped, transposed
from heliograph.graph.language.boxes import black_box
from heliograph.graph.language.functions import absolute, exp, log, maximum, minimum, multiply, power, sigmoid, square
from heliograph.graph.language.linear import add, express, scale, subtract
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Affine
from heliograph.graph.symbols import substituted

__all__ = ["applied"]


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(0.5 * z)


def _reshaped(x: np.ndarray, shape: tuple[Any, ...]) -> np.ndarray:
    return np.reshape(x, shape[0] if len(shape) == 1 else shape)


_OF_NUMBERS: dict[Callable[..., Any], Callable[..., Any]] = {
    absolute: np.abs,
    add: np.add,
    exp: np.exp,
    log: np.log,
    maximum: np.maximum,
    minimum: np.minimum,
    multiply: np.multiply,
    part_of: getitem,
    power: np.power,
    reshaped: _reshaped,
    scale: np.multiply,
    sigmoid: _sigmoid,
    square: np.square,
    subtract: np.subtract,
    transposed: np.transpose,
}


def applied(draft: Draft, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of the language with numbers in the place of variables that are numbers in this model.

    Returns
    -------
    Any
        What the function makes; a number, where it is an operator and all that it works on are numbers.
    """
    if not draft.pinned:
        return function(draft, *args, **kwargs)

    def number(x: Any) -> Any:
        return _number(draft, x)

    def expression(x: Any) -> Any:
        value = _number(draft, x)
        if value is x or x.family is not Gaussian:
            return value
        return express(draft, x.name, Affine(value.shape, (), value.reshape(-1)))

    if function in _OF_NUMBERS:
        numbers = substituted(args, draft.values, number)
        if not any(isinstance(x, Quantity) for x in numbers):
            return np.asarray(_OF_NUMBERS[function](*numbers))
        if function is multiply and not isinstance(numbers[0], Quantity):
            args = args[::-1]
    needed = number if function is black_box else expression
    return function(draft, *substituted(args, draft.values, needed), **substituted(kwargs, draft.values, needed))


def _number(draft: Draft, x: Any) -> Any:
    """The number that stands for a variable, or for some of its entries; anything else as it is."""
    if not isinstance(x, Quantity) or x.node not in draft.pinned:
        return x
    value = draft.pinned[x.node]
    return value if x.index is None else value.reshape(-1)[x.index]
