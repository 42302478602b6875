"""The keywords that most words of the language share, declared once, and signatures that list them by their names.

A function of the language ends in ``**keywords: Unpack[EntryKeywords]``, and makes `Entries` of them. Type checkers know which
keywords that allows; `signature_of` is for what reads signatures while the program runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, TypedDict, get_args, get_type_hints

__all__ = ["EntryKeywords", "SeenKeywords", "signature_of"]


class EntryKeywords(TypedDict, total=False):
    """The keywords of a word that makes a variable."""

    size: Any  # a whole number or a tuple of them; None: as many as the parameters have
    observed: Any  # values, NaN where missing; None: nothing was observed
    missing: Any  # True where a value is missing


class SeenKeywords(TypedDict, total=False):
    """The keywords of a word whose shape is that of its data or of its parameters."""

    observed: Any
    missing: Any


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function of the language, with the shared keywords one by one; None is the default of each."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if parameters[-1].kind is not Parameter.VAR_KEYWORD:
        return signature
    (shared,) = get_args(get_type_hints(function)[parameters[-1].name])
    each = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=inspect.formatannotation(hint))
        for name, hint in get_type_hints(shared).items()
    ]
    return signature.replace(parameters=[*parameters[:-1], *each])
