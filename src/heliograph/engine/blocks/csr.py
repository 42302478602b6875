"""CSR matrices of arrays that are known to fit, without SciPy's checks of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp  # pyright: ignore[reportMissingTypeStubs]

__all__ = ["compressed", "empty", "even", "even_length", "stacked"]

_SMALL = 8192  # rows up to which SciPy's checks of a matrix take longer than its use
_SHORT = 8  # entries of a row up to which rows of one length are looked for
_new = object.__new__


def compressed(data: np.ndarray, columns: np.ndarray, ends: np.ndarray, shape: tuple[int, int]) -> Any:
    """A CSR matrix of arrays that are known to fit."""
    if shape[0] > _SMALL:
        return sp.csr_array((data, columns, ends), shape=shape)
    made: Any = _new(sp.csr_array)
    made.__dict__.update(_template(*shape).__dict__)
    made.data, made.indices, made.indptr = data, columns.astype(np.int32, copy=False), ends.astype(np.int32, copy=False)
    return made


@lru_cache(maxsize=256)
def _template(n: int, n_columns: int) -> Any:
    """A CSR matrix without entries that is only ever asked for its shape, because SciPy caches answers in the matrix."""
    return sp.csr_array((n, n_columns))


def empty(n: int, n_columns: int) -> Any:
    """A CSR matrix without an entry."""
    return compressed(np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(n + 1, dtype=np.int32), (n, n_columns))


def even(data: np.ndarray, columns: np.ndarray, n_columns: int) -> Any:
    """A CSR matrix from (n, k) coefficients and columns."""
    n, k = data.shape
    ends = np.arange(0, n * k + 1, k, dtype=columns.dtype)
    return compressed(data.reshape(-1), columns.reshape(-1), ends, (n, n_columns))


def even_length(s: Any) -> int:
    """The number of entries of every row of a CSR matrix, where it is the same and not large; otherwise 0."""
    n, n_entries = s.shape[0], len(s.data)
    k = n_entries // n if n else 0
    return k if 0 < k <= _SHORT and n_entries == k * n and bool((s.indptr[1:] - s.indptr[:-1] == k).all()) else 0


def stacked(parts: Sequence[Any], n_columns: int) -> Any:
    """The rows of CSR matrices, one below the other."""
    before = np.cumsum([0, *(len(s.data) for s in parts)])
    ends = [parts[0].indptr, *(s.indptr[1:] + start for s, start in zip(parts[1:], before[1:-1], strict=True))]
    data, columns = np.concatenate([s.data for s in parts]), np.concatenate([s.indices for s in parts])
    return compressed(data, columns, np.concatenate(ends), (sum(s.shape[0] for s in parts), n_columns))
