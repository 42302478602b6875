"""A cache of symbolic work, for one model that is solved again and again with other numbers.

The symbolic work of a solve (which rows touch which variables, in which order these are eliminated, where products of entries go)
is a function of index arrays. Inside `remembering` such functions are computed once per pattern: `recalled` is given the pattern
itself as the key, so that nothing stale can be found, whatever changes from one solve to the next (decision 0059).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import numpy as np

__all__ = ["Memory", "is_remembering", "pattern_of", "recalled", "remembering", "same_again"]

_MOST = 256  # things that are kept; where patterns never repeat, the memory is cleared and begun again
_LARGE = 2_000_000  # bytes of a pattern beyond which it is not kept

_NOTHING = object()
Memory = dict[Hashable, Any]
T = TypeVar("T")

_memory: ContextVar[Memory | None] = ContextVar("memory", default=None)


@contextmanager
def remembering(memory: Memory) -> Generator[None, None, None]:
    """Keep in `memory` what is computed of patterns inside the context, and take it from there."""
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


def is_remembering() -> bool:
    """Whether anything is kept: if not, no key need be made."""
    return _memory.get() is not None


def pattern_of(*arrays: np.ndarray | None) -> Hashable:
    """A key of index arrays: their types, shapes and bytes; None where they are too large to be kept.

    >>> pattern_of(np.array([1, 2])) == pattern_of(np.array([1, 2])), pattern_of(np.array([1, 2])) == pattern_of(np.array([[1, 2]]))
    (True, False)
    """
    if sum(a.nbytes for a in arrays if a is not None) > _LARGE:
        return None
    return tuple(None if a is None else (a.dtype.char, a.shape, a.tobytes()) for a in arrays)


def recalled(name: str, key: Hashable, make: Callable[[], T]) -> T:
    """What `make` gave for this key before, or what it gives now.

    >>> with remembering({}):
    ...     first, second = recalled("list", (1, 2), lambda: [1, 2]), recalled("list", (1, 2), lambda: [1, 2])
    >>> first is second
    True
    """
    memory = _memory.get()
    if memory is None or key is None:
        return make()
    whole = name, key
    found = memory.get(whole, _NOTHING)  # one look: another thread may clear the memory
    if found is _NOTHING:
        if len(memory) >= _MOST:
            memory.clear()
        found = memory[whole] = make()
    return cast(T, found)


def same_again(name: str, make: Callable[[], T], *arrays: np.ndarray | None) -> T:
    """What `make` gave last under this name, if the arrays that it depends on are the same once more; or what it gives now.

    For integrals that are asked for twice in a row: one place per name is kept, and only inside `remembering`.
    """
    memory = _memory.get()
    key = None if memory is None else pattern_of(*arrays)
    if memory is None or key is None:
        return make()
    before = memory.get((name, "latest"))
    if before is not None and before[0] == key:
        return cast(T, before[1])
    found = make()
    memory[name, "latest"] = key, found
    return found
