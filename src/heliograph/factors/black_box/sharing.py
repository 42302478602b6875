"""A black box in several places: one thread at a time learns with it, and pickles find it by its name or make it again."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

__all__ = ["Shared", "in_turn"]

F = TypeVar("F", bound=Callable[..., Any])


class Shared:
    """Copies of a black box are the box itself, since what it learns serves every model; pickles do not know what it learned."""

    turn: threading.RLock  # of the thread that sends messages

    def __new__(cls, *_: Any, **__: Any) -> Self:
        self = super().__new__(cls)
        self.turn = threading.RLock()
        return self

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        """By name, like any function, where its module has it by that name; else from the function alone."""
        box = cast(Any, self)
        found: Any = sys.modules.get(box.__module__)
        for part in box.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is box:
            return box.__qualname__
        kept = {"dimension": box.dimension, "data_ranks": box.data_ranks, "oracle": box.oracle}
        return functools.partial(type(box), **kept), (box.sampler,)


def in_turn(method: F) -> F:
    """A method that waits until no other thread sends messages of the same black box: runs side by side may share it."""

    @functools.wraps(method)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self.root.turn:
            return method(self, *args, **kwargs)

    return cast(F, alone)
