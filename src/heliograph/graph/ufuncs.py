"""Which of NumPy's functions the language has, and what each of them is for variables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from heliograph.errors import ModelError
from heliograph.graph.language.arrays import join, pile
from heliograph.graph.language.functions import exp, log, maximum, minimum, square
from heliograph.graph.quantity import Quantity

__all__ = [
    "BY_OPERATOR",
    "JOINS",
    "METHODS",
    "UFUNCS",
    "as_method",
    "asked_by_pandas",
    "check_exponent",
    "no_frame",
    "no_function",
]

# ufunc -> the operator of the left operand, and that of the right one where the left is no variable
_ARITHMETIC = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "matmul": "matmul",
    "power": "pow",
}
BY_OPERATOR = {
    **{ufunc: (f"__{name}__", f"__r{name}__") for ufunc, name in _ARITHMETIC.items()},
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "negative": ("__neg__", ""),
    "absolute": ("__abs__", ""),
}

# ufunc -> function of the language
UFUNCS: dict[str, Callable[..., Quantity]] = {
    "exp": exp,
    "log": log,
    "maximum": maximum,
    "minimum": minimum,
    "square": square,
}

# NumPy function -> function of the language that takes a list of variables and an axis
JOINS: dict[str, Callable[..., Quantity]] = {"concatenate": join, "stack": pile}

# NumPy functions that are methods or attributes of a variable
METHODS = frozenset({"sum", "mean", "reshape", "shape", "size", "ndim"})


def asked_by_pandas() -> bool:
    """Return whether pandas' ``frame @ w`` asked for an array: it does not defer to other types, and would raise its own error."""
    caller = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  (of `__array__`, which called this)
    return caller.f_code.co_name == "dot" and str(caller.f_globals.get("__name__", "")).startswith("pandas.")


def check_exponent(name: str, exponent: Any) -> int:
    """1 or 2, the powers of a variable that there are."""
    if isinstance(exponent, (int, float)) and exponent in (1, 2):
        return int(exponent)
    raise ModelError(
        f"variable {name!r}: only x ** 2 has a factor of its own; write another power as a function of one variable, for "
        "example @hg.factor(output=hg.Gaussian) def cube(x): return x**3"
    )


def no_frame(name: str) -> str:
    """The sentence for a pandas object that is multiplied with a variable from the left."""
    return (
        f"pandas cannot multiply a frame with the random variable {name!r}; write frame.to_numpy() @ {name}, or name the data, "
        f"X = model.data('X', frame), and write X @ {name}"
    )


def no_function(function: str, name: str) -> str:
    """The sentence for a function of NumPy that the language lacks."""
    return (
        f"{function} of the random variable {name!r} has no factor of its own; write it as a function, for example "
        f"@hg.factor(output=hg.Gaussian) def f(x): return {function}(x)"
    )


def as_method(function: str, args: Any, kwargs: Any) -> Any:
    """Call the method of the first argument that a function of NumPy is."""
    x, *rest = args
    found = getattr(x, function)
    return found(*rest, **kwargs) if callable(found) else found
