"""BLAS on one thread: how every hot loop over a plate runs.

A thread pool inside OpenBLAS stalls on a busy machine (150 ms for 300 messages against 2 ms), so the loops pin it.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  (its BLAS must be loaded before the controller lists the libraries)
from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries that are loaded; listing them costs milliseconds, so it happens once."""
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


class _Pinned:
    """A context in which BLAS uses one thread; inside another one it costs nothing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.before: list[tuple[Any, int]] = []  # libraries with several threads, and how many

    def __enter__(self) -> None:
        with self.lock:
            self.depth += 1
            if self.depth == 1:
                self.before = [(blas, n) for blas in _libraries() if (n := blas.get_num_threads()) > 1]
                for blas, _ in self.before:
                    blas.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                for blas, n in self.before:
                    blas.set_num_threads(n)


_PINNED = _Pinned()  # the number of threads belongs to the process, so there is one


def one_blas_thread() -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread."""
    return _PINNED
