# pyright: basic
"""The connected parts of a block: base scalars that rows of known weight, or sites, join."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from heliograph.engine.blocks.rows import Rows

__all__ = ["part_of_columns", "part_of_rows"]


def part_of_columns(n_columns: int, groups: Sequence[tuple[Rows, int]]) -> np.ndarray:
    """The number of the part that each base scalar belongs to; every `d` rows of a group ``(rows, d)`` are one site."""
    i, j, n_rows = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)], 0
    for rows, d in groups:
        part, first = rows.sparse.tocoo(), n_rows
        i.append(first + part.coords[0] // d)
        j.append(part.coords[1])
        n_rows += len(rows)
        for x, columns in rows.dense:  # one vector, all of whose scalars meet
            i.append(np.full(len(columns), n_rows))
            j.append(columns)
            n_rows += 1
            if d > 1 or part.nnz or len(rows.dense) > 1:  # sites that join it with other scalars
                met = np.flatnonzero(x.any(axis=1)) // d
                i.append(first + met)
                j.append(np.full(len(met), columns[0]))
    rows, columns = np.concatenate(i), n_rows + np.concatenate(j)
    size = n_rows + n_columns
    _, label = connected_components(
        sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size)), directed=False
    )
    return np.unique(label[n_rows:], return_inverse=True)[1] if n_columns else np.zeros(0, dtype=int)


def part_of_rows(rows: Rows, label: np.ndarray) -> np.ndarray:
    """The part that each row belongs to, -1 for rows without a variable."""
    found = np.full(len(rows), -1)
    some = np.diff(rows.sparse.indptr) > 0
    found[some] = label[rows.sparse.indices[rows.sparse.indptr[:-1][some]]]
    for x, columns in rows.dense:
        met = x.any(axis=1)
        found[met] = label[columns[0]]
    return found
