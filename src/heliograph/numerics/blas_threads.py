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
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # listing the loaded libraries costs milliseconds, so it happens once


class _Pinned:
    """A context in which BLAS uses one thread; inside another one it costs nothing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            self.depth += 1
            if self.depth == 1:
                self.limit = _controller().limit(limits=1, user_api="blas")
                self.limit.__enter__()

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.limit.__exit__(*error)


_PINNED = _Pinned()  # the number of threads belongs to the process, so there is one


def one_blas_thread() -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread."""
    return _PINNED
