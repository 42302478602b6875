"""Operators by name: the word a user gives to `infer(operator=...)`, and the word a saved file holds."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from heliograph.errors import FileFormatError, ModelError

__all__ = ["make_operator", "operator_from_state", "operator_names", "register"]

# name -> the place of its maker, imported when first wanted, so that a run with one operator loads no other (and nothing
# here imports the wing of the paper, where those of earlier papers are)
_KNOWN: dict[str, tuple[str, str]] = {
    "ask": ("heliograph.operators.asking", "AlwaysAsk"),
    "forest": ("heliograph.paper.rivals.forest", "Forest"),
    "kjit": ("heliograph.operators.kjit.kernel_learner", "Kjit"),
    "learned": ("heliograph.operators.learned", "Learned"),
    "neural": ("heliograph.paper.rivals.neural", "Neural"),
}
_REGISTERED: dict[str, Callable[..., Any]] = {}


def register(name: str, make: Callable[..., Any]) -> None:
    """Let `name` select ``make(**settings)``, here and in saved files."""
    _REGISTERED[name] = make


def operator_names() -> list[str]:
    """Every name that selects an operator."""
    return sorted({*_KNOWN, *_REGISTERED})


def make_operator(choice: Any) -> Any:
    """A new operator from its name; an object that can `send` comes back as it is.

    >>> make_operator("ask").name
    'ask'
    """
    if isinstance(choice, str):
        return _maker(choice)()
    if isinstance(choice, type) and callable(getattr(choice, "send", None)):
        raise ModelError(f"operator is the class {choice.__name__}; give an object of it, {choice.__name__}()")
    if not callable(getattr(choice, "send", None)):
        raise ModelError(
            f"operator must be one of {operator_names()} or an object with a method send, not {type(choice).__name__}"
        )
    return choice


def operator_from_state(
    name: str, settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> Any:
    """The operator that a saved file describes."""
    try:
        make = _maker(name)
    except ModelError as error:
        raise FileFormatError(
            f"the file holds an operator {name!r} that this version does not know; if it is yours, "
            "call heliograph.operators.register before loading"
        ) from error
    operator = make(**settings)
    operator.restore(arrays, header)
    return operator


def _maker(name: str) -> Callable[..., Any]:
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in _KNOWN:
        raise ModelError(f"there is no operator {name!r}; there are {operator_names()}")
    module, attribute = _KNOWN[name]
    return getattr(importlib.import_module(module), attribute)
