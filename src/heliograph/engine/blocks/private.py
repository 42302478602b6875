"""Scalars that only one site reads: noise of its own, which need not be solved for.

The performance of a player in one game, the extra spread of one count: such a scalar has a row of known weight, and one site.
The row is solved for it, ``scalar = rest + scale * deviation``, and put into the site's expression, which is then an
expression of the other scalars and of a deviation that nothing else depends on. Only its variance matters (`folding.FoldedSystem`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from heliograph.engine.blocks.csr import compressed
from heliograph.engine.blocks.records import Block, Known
from heliograph.engine.blocks.rows import Rows, add, apply, joined, scale, take

__all__ = ["Fold", "entries_at", "fold_of", "private_nodes", "without_private"]


class Fold(NamedTuple):
    """Private scalars written as deviations ``e`` of known variance, and all rows without them."""

    number: np.ndarray  # (N,) of each base scalar among those that are left, -1 for private ones
    private: np.ndarray  # (p,) base scalars
    rest: Rows  # (p,) what each is, besides its deviation, over the scalars that are left
    scale: np.ndarray  # (p,) of the deviation in it
    variance: np.ndarray  # (p,) of the deviation
    site: np.ndarray  # (p,) the site that reads it
    weight: np.ndarray  # (p,) of the deviation in the site's expression
    known: tuple[Known, ...]
    site_rows: Rows  # (n,) the sites' expressions without the deviations


def private_nodes(block: Block, candidates: Iterable[int], site_rows: Rows) -> list[int]:
    """The nodes, among base nodes of scalars, of which every entry is in one row of known weight and in one site."""
    n = block.n_columns
    in_sites, in_known = np.bincount(site_rows.sparse.indices, minlength=n), np.zeros(n, dtype=int)
    solved_for = np.zeros(n, dtype=bool)  # scalars that some row can be solved for
    for rows, *_ in block.known:
        s = rows.sparse
        in_known += np.bincount(s.indices, minlength=n)
        solved_for[s.indices if s.data.all() else s.indices[s.data != 0]] = True
    for rows in (site_rows, *(k.rows for k in block.known)):
        for _, columns in rows.dense:
            solved_for[columns] = False
    alone = solved_for & (in_sites == 1) & (in_known == 1)
    chosen = [k for k in candidates if (block.base[k] >= 0).all() and alone[block.base[k]].all()]
    place = np.full(n, -1)
    for k in chosen:
        place[block.base[k]] = k
    for rows, *_ in block.known:  # of two that share a row only one can be solved for
        row, node, _ = entries_at(rows, place)
        shared = np.bincount(row, minlength=len(rows))[row] > 1
        chosen = [k for k in chosen if k not in set(node[shared].tolist())]
    return chosen


def fold_of(block: Block, nodes: list[int], site_rows: Rows) -> Fold:
    """The block without the scalars of its private nodes."""
    private = np.concatenate([block.base[k] for k in nodes])
    p = len(private)
    place = np.full(block.n_columns, -1)
    place[private] = np.arange(p)
    left = place < 0
    n_left = int(left.sum())
    number = np.where(left, np.cumsum(left) - 1, -1)
    scales, variance = np.empty(p), np.empty(p)
    known: list[Known] = []
    solved: list[Rows] = []
    order = np.zeros(0, dtype=int)
    for rows, weight, gram, _ in block.known:
        row, column, value = entries_at(rows, place)
        scales[column], variance[column] = 1.0 / value, 1.0 / weight[row]
        order = np.concatenate([order, column])
        solved.append(without_private(take(rows, row), number, n_left))
        kept = np.ones(len(rows), dtype=bool)
        kept[row] = False
        if kept.any():
            rest = None if kept.all() else np.flatnonzero(kept)
            gram = None if gram is None or rest is not None else (number[gram[0]], gram[1])
            known.append(Known(without_private(take(rows, rest), number, n_left), weight[kept], gram))
    back = np.empty(p, dtype=int)
    back[order] = np.arange(p)
    rests = scale(take(joined(solved, n_left), back), -scales)
    site, column, value = entries_at(site_rows, place)
    ends = np.concatenate([[0], np.cumsum(np.bincount(site, minlength=len(site_rows)))])
    spread = compressed(value, column, ends, (len(site_rows), p))
    rows = add(without_private(site_rows, number, n_left), apply(spread, rests))
    reader, weight = np.empty(p, dtype=int), np.empty(p)
    reader[column], weight[column] = site, value * scales[column]
    return Fold(number, private, rests, scales, variance, reader, weight, tuple(known), rows)


def entries_at(rows: Rows, place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, place and value of the entries of scalars that have a place."""
    s = rows.sparse
    at = place[s.indices]
    mine = np.flatnonzero(at >= 0)
    if rows.length:
        row = mine if rows.length == 1 else mine // rows.length
    else:
        row = np.repeat(np.arange(len(rows)), np.diff(s.indptr))[mine]
    return row, at[mine], s.data[mine]


def without_private(rows: Rows, number: np.ndarray, n_left: int) -> Rows:
    """The rows over the scalars that are left, without the others."""
    s = rows.sparse
    column = number[s.indices]
    kept = column >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])[s.indptr]
    sparse = compressed(s.data[kept], column[kept], ends, (len(rows), n_left))
    return replace(rows, sparse=sparse, dense=tuple((x, number[c]) for x, c in rows.dense))
