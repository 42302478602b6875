"""Variances of rows of one or two scalars, read off the covariance: a difference of players is three numbers of it.

``a^2 S_ii + b^2 S_jj + 2 a b S_ij`` cancels where two scalars vary together far more than apart. Rows that lose two digits in
this way get their variance as the squared length of the whitened row, like all others.
"""

from __future__ import annotations

import numpy as np

from heliograph.engine.blocks.rows import Rows, over, take

__all__ = ["ShortRows", "short_rows"]

_KEPT = 0.01  # of the sum of both ends' variances: below it, two digits are lost
_MANY = 2  # rows per scalar from which on this pays
_PER_ROW = 25  # entries of the covariance per row, up to which it costs less than whitened rows (measured, 40 to 1,000 scalars)


class ShortRows:
    """Rows of one or two scalars of a dense system."""

    def __init__(self, rows: Rows) -> None:
        s = rows.sparse
        self._rows = rows
        first, last = s.indptr[:-1], s.indptr[1:] - 1
        two = last > first
        a, b = s.data[first], np.where(two, s.data[last], 0.0)
        self._first, self._second = s.indices[first], s.indices[last]
        self._square, self._other_square, self._product = a * a, b * b, 2.0 * a * b
        self._place = self._first.astype(np.int64) * rows.n_columns + self._second

    def variances(self, root: np.ndarray) -> np.ndarray:
        """Of all rows; `root` (N, N) is a square root of the covariance."""
        covariance = root @ root.T
        own = covariance.diagonal()
        apart = self._square * own[self._first] + self._other_square * own[self._second]
        variance = apart + self._product * covariance.reshape(-1)[self._place]
        lost = np.flatnonzero(~(variance >= _KEPT * apart))
        if len(lost):
            white = over(take(self._rows, lost), root)
            variance[lost] = np.einsum("ij,ij->i", white, white)
        return variance


def short_rows(rows: Rows) -> ShortRows | None:
    """Make `ShortRows` of rows, if each has one or two scalars and there are many of them."""
    length = np.diff(rows.sparse.indptr)
    n = rows.n_columns
    if rows.dense or not len(rows) or len(rows) < max(_MANY * n, n * n / _PER_ROW):
        return None
    return ShortRows(rows) if length.min() >= 1 and length.max() <= 2 else None
