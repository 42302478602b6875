"""Nested dicts and lists with arrays inside, as JSON beside a table of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["flatten", "unflatten"]

_ARRAY = "__array__"  # the one key of the dict that stands for an array


def flatten(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """`value` with its arrays moved to `arrays` and a name left in the place of each.

    >>> arrays = {}
    >>> flatten({"x": [1, np.zeros(2)]}, arrays), list(arrays)
    ({'x': [1, {'__array__': '0'}]}, ['0'])
    """
    if isinstance(value, np.ndarray):
        arrays[str(len(arrays))] = value
        return {_ARRAY: str(len(arrays) - 1)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(k): flatten(v, arrays) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [flatten(v, arrays) for v in value]
    return value


def unflatten(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The reverse of `flatten`; tuples come back as lists."""
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {k: unflatten(v, arrays) for k, v in value.items()}
    if isinstance(value, list):
        return [unflatten(v, arrays) for v in value]
    return value
