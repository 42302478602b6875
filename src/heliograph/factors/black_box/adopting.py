"""Operators that users hand in: which factor they belong to, and checks of their replies."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.families import Family
from heliograph.operators.protocol import Reply

__all__ = ["adopt", "checked"]

_OWNERS: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()  # operator -> its factor


def adopt(operator: Any, factor: Any) -> None:
    """Note that what the operator learns is of this factor's function; raise where it has learned another's.

    An operator without the property `empty` is taken to learn nothing, and may serve any factor.
    """
    if not hasattr(operator, "empty"):
        return
    try:
        owner = _OWNERS.get(operator)
    except TypeError:  # no weak reference or no hash is possible: its factor cannot be recorded
        return
    known = None if owner is None else owner()
    if known is not None and known is not factor and not operator.empty:
        raise ModelError(
            f"operator {getattr(operator, 'name', operator)!r} has learned the messages of factor {known.name!r}, and factor "
            f"{factor.name!r} is another function: give it a new operator, by its name or an object that has learned nothing "
            "(with a method fresh(), if one object is to serve several factors)"
        )
    _OWNERS[operator] = weakref.ref(factor)


def checked(operator: Any, to: str, incoming: Family, reply: Any) -> Reply:
    """The reply of an operator, where it has a message of the right family for every row."""
    name, n = getattr(operator, "name", type(operator).__name__), len(incoming)

    def wrong(what: str) -> ModelError:
        return ModelError(
            f"operator {name!r}, asked for {n} messages to {to!r}, {what}; see docs/adding_an_operator.md"
        )

    if not isinstance(reply, Reply):
        raise wrong(f"returned a {type(reply).__name__} and not a Reply")
    if type(reply.message) is not type(incoming):
        raise wrong(f"sent a {type(reply.message).__name__} where a {type(incoming).__name__} is needed")
    rows = {"message": reply.message.shape, "failed": np.shape(reply.failed), "asked": np.shape(reply.asked)}
    if reply.expected_kl is not None:
        rows["expected_kl"] = np.shape(reply.expected_kl)
    for field, shape in rows.items():
        if shape != (n,):
            raise wrong(f"gave {field!r} the shape {shape}, not ({n},)")
    return reply
