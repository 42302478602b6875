# pyright: basic
"""SciPy's sparse matrices, which have no type annotations, behind functions that have."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from heliograph.graph.records import Matrix

__all__ = ["connected_parts", "csr_array", "is_sparse"]

csr_array: Any = scipy.sparse.csr_array


def is_sparse(x: Matrix) -> bool:
    """Return whether a matrix is one of SciPy's sparse ones."""
    return bool(scipy.sparse.issparse(x))


def connected_parts(n: int, a: np.ndarray, b: np.ndarray, *, strongly: bool = False) -> np.ndarray:
    """The number of the part that each of `n` vertices belongs to, with links ``a[k] -> b[k]``.

    Links count in both directions, or, with `strongly`, parts are those within which every vertex reaches every other.

    >>> connected_parts(4, np.array([0, 2]), np.array([1, 1]))
    array([0, 0, 0, 1], dtype=int32)
    """
    links = scipy.sparse.csr_array((np.ones(len(a)), (a, b)), shape=(n, n))
    _, part = connected_components(links, directed=strongly, connection="strong" if strongly else "weak")
    return np.asarray(part)
