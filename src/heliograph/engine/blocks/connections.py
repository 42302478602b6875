"""The connected parts of a block: base scalars that rows join, directly or through others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heliograph.engine.blocks.private import Fold
from heliograph.engine.blocks.rows import Rows
from heliograph.graph.sparse import connected_parts
from heliograph.numerics.remembering import is_remembering, pattern_of, recalled

__all__ = ["parts_of_rows", "parts_of_scalars", "parts_without_private"]


def parts_of_scalars(groups: Sequence[tuple[Rows, int]], n: int) -> np.ndarray:
    """The number of the connected part that each of `n` base scalars belongs to; every d rows of a group are one vector."""
    if any(len(columns) == n for rows, _ in groups for _, columns in rows.dense):
        return np.zeros(n, dtype=int)  # one vector, all of whose scalars meet
    key = None
    if is_remembering():
        arrays = [(r.sparse.indptr, r.sparse.indices, *(columns for _, columns in r.dense)) for r, _ in groups]
        pattern = pattern_of(*(a for each in arrays for a in each))
        key = (
            None
            if pattern is None
            else (pattern, n, tuple((len(a), d) for a, (_, d) in zip(arrays, groups, strict=True)))
        )
    return recalled("parts", key, lambda: _connected(groups, n))


def parts_without_private(fold: Fold) -> np.ndarray:
    """The same of a block with private scalars, each of which is in the part of the site that reads it."""
    rows, n = fold.site_rows, fold.rest.n_columns
    part = parts_of_scalars([*((k.rows, 1) for k in fold.known), (rows, 1)], n)
    of_site = parts_of_rows(rows, part)
    alone = of_site < 0  # sites that read nothing else
    of_site[alone] = part.max(initial=-1) + np.cumsum(alone)[alone]
    found = np.empty(len(fold.number), dtype=int)
    left = fold.number >= 0
    found[left] = part[fold.number[left]]
    found[fold.private] = of_site[fold.site]
    return found


def _connected(groups: Sequence[tuple[Rows, int]], n: int) -> np.ndarray:
    a, b = [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)]
    for rows, d in groups:  # the first scalar of a row with each of the others
        s = rows.sparse
        starts = s.indptr[::d]
        count = np.diff(starts)
        later = np.ones(len(s.indices), dtype=bool)
        later[starts[:-1][count > 0]] = False
        long = count > 1
        a.append(np.repeat(s.indices[starts[:-1][long]], count[long] - 1))
        b.append(s.indices[later])
        for _, columns in rows.dense:  # every row holds all of these, beside its own
            beside = np.concatenate([columns, rows.dense[0][1], s.indices])
            a.append(np.full(len(beside), columns[0]))
            b.append(beside)
    return connected_parts(n, np.concatenate(a), np.concatenate(b))


def parts_of_rows(rows: Rows, part: np.ndarray) -> np.ndarray:
    """The part that each row belongs to, -1 for rows without a variable."""
    found = np.full(len(rows), -1)
    some = np.diff(rows.sparse.indptr) > 0
    found[some] = part[rows.sparse.indices[rows.sparse.indptr[:-1][some]]]
    for _, columns in rows.dense:
        found[:] = part[columns[0]]
    return found
