"""Sites on vectors in a dense system: precisions of q numbers each are added up, and joint cavities read off.

Few numbers are laid out as one array (vectors, q, N). Many stay as q groups of rows, the first components, the second
components and so on, since the scores of a softmax, say, touch other scalars each.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heliograph.engine.blocks.rows import Rows, over, pull, take
from heliograph.engine.blocks.system import VectorSites

__all__ = ["DenseVectors"]

_LARGEST = 4_000_000  # numbers up to which the rows of a site are laid out as one array
_CHUNK = 2**21  # numbers of a temporary


class DenseVectors:
    """The rows of m vectors of q components over N base scalars."""

    def __init__(self, rows: Rows, q: int) -> None:
        self.rows, self.q = rows, q
        self.m = len(rows) // q
        self.whole: np.ndarray | None = None  # (m q, N)
        self.components: list[Rows] = []
        if len(rows) * rows.n_columns <= _LARGEST:
            self.whole = over(rows, np.eye(rows.n_columns)) if rows.dense else rows.sparse.toarray()
        else:
            self.components = [_without_zeros(take(rows, np.arange(k, len(rows), q))) for k in range(q)]

    def add(self, precision: np.ndarray, shift: np.ndarray, site: VectorSites) -> None:
        """Add what the sites say to the precision (N, N) and shift (N,) of the base scalars, in place."""
        constant = self.rows.constant.reshape(self.m, self.q)
        said = site.shift - np.einsum("mij,mj->mi", site.precision, constant)
        shift += pull(self.rows, said.reshape(-1))
        if self.whole is not None:
            weighed = (site.precision @ self.whole.reshape(self.m, self.q, -1)).reshape(self.whole.shape)
            precision += self.whole.T @ weighed
            return
        for i, left in enumerate(self.components):
            for j, right in enumerate(self.components[: i + 1]):
                part = _cross(left, right, site.precision[:, i, j])
                precision += part if i == j else part + part.T

    def means(self, mean: np.ndarray) -> np.ndarray:
        """``(m, q)`` means of the vectors, given those of the base scalars."""
        return (self.rows.constant + over(self.rows, mean)).reshape(self.m, self.q)

    def covariances(self, root: np.ndarray) -> np.ndarray:
        """``(m, q, q)`` covariances of the vectors, where ``root root'`` is that of the base scalars."""
        found = np.empty((self.m, self.q, self.q))
        step = max(1, _CHUNK // max(1, self.q * root.shape[1]))
        for start in range(0, self.m, step):
            some = slice(start, min(start + step, self.m))
            if self.whole is not None:
                white = self.whole[some.start * self.q : some.stop * self.q] @ root
                white = white.reshape(some.stop - some.start, self.q, root.shape[1])
            else:
                white = np.stack([over(c, root, some) for c in self.components], axis=1)
            found[some] = white @ white.transpose(0, 2, 1)
        return found


def _cross(left: Rows, right: Rows, weight: np.ndarray) -> np.ndarray:
    """``A' diag(weight) B``."""
    n = left.n_columns
    total = np.zeros((n, n))
    if right.n_entries:
        weighed = right.sparse.multiply(weight[:, None]).tocsr()
        if left.n_entries:
            part = (left.sparse.T @ weighed).tocoo()
            total[part.coords[0], part.coords[1]] += part.data
        for x, columns in left.dense:
            total[columns] += x.T @ weighed
    for x, columns in right.dense:
        weighed = weight[:, None] * x
        if left.n_entries:
            total[:, columns] += left.sparse.T @ weighed
        for y, others in left.dense:
            total[np.ix_(others, columns)] += y.T @ weighed
    return total


def _without_zeros(rows: Rows) -> Rows:
    """The same rows without matrices of zeros."""
    return replace(rows, dense=tuple((np.ascontiguousarray(x), c) for x, c in rows.dense if x.any()))
