"""Where each entry of the precision, and of its factor, lies in the flat array of values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from heliograph.numerics.sparse.ordering import sorted_unique
from heliograph.numerics.sparse.rounds import Elimination

__all__ = ["BEYOND", "Group", "Layout", "bare_layout", "find", "layout_of", "layout_with"]

PAIRS = 1 << 15  # are looked up at a time, so that what is made on the way stays in the cache
BEYOND = np.iinfo(np.int64).max  # closes the keys, so that a search never ends outside


@dataclass(frozen=True)
class Group:
    """m supernodes of d variables, beside k later ones; in the numbers of the elimination."""

    rows: slice  # the variables, supernode after supernode: m d of them
    shape: tuple[int, int, int]  # (m, d, k)
    diagonal: slice  # where the blocks (m, d, d) lie in the values
    beside: slice  # and the blocks (m, d, k)
    neighbours: np.ndarray  # (m, k) ascending
    first: np.ndarray  # (P,) the pairs of neighbours, the first not after the second
    second: np.ndarray  # (P,)
    full: np.ndarray  # (k, k) number of the pair of each entry
    targets: np.ndarray  # (m, P) where the pairs lie in the values


@dataclass(frozen=True)
class Layout:
    """Places by variable, in the numbers of the elimination, for entries (x, y) with x not after y.

    If x and y share a supernode the entry lies at ``diagonal[x] + stride[x] * y``, otherwise at ``beside[x] + i`` where
    ``keys[i]`` is the supernode of x with y.
    """

    groups: tuple[Group, ...]
    pivot_of: np.ndarray  # (n,) the supernode of a variable; the tail is the last
    diagonal: np.ndarray  # (n,)
    stride: np.ndarray  # (n,)
    beside: np.ndarray  # (n,)
    keys: np.ndarray  # supernode * n + neighbour, ascending; the last is beyond all


def layout_of(elimination: Elimination) -> Layout:
    """Give every number of the factor its place."""
    members, n_tail = [g.members for g in elimination.groups], len(elimination.tail)
    order = np.concatenate([*(x.ravel() for x in members), elimination.tail])
    n = len(order)
    number = np.empty(n, dtype=np.int64)
    number[order] = np.arange(n)
    near = [np.sort(number[g.neighbours], axis=1) for g in elimination.groups]
    shapes = [(*x.shape, y.shape[1]) for x, y in zip(members, near, strict=True)]
    m, d, k = np.array(shapes, dtype=np.int64).reshape(-1, 3).T
    ends = np.cumsum(m * d * (d + k))
    start = ends - m * d * (d + k)  # of each group, in the values
    group = np.repeat(np.arange(len(m)), m)  # of each supernode; the tail is one more
    within = np.arange(len(group)) - (np.cumsum(m) - m)[group]
    size, n_beside = np.append(d[group], n_tail), np.append(k[group], 0)
    block = np.append(start[group] + within * (d * d)[group], ends[-1] if len(ends) else 0)
    side = np.append((start + m * d * d)[group] + within * (d * k)[group], 0)
    first, first_key = np.cumsum(size) - size, np.cumsum(n_beside) - n_beside
    pivot_of = np.repeat(np.arange(len(size)), size)
    inner = np.arange(n) - first[pivot_of]
    neighbours = np.concatenate([np.zeros(0, dtype=np.int64), *(x.ravel() for x in near)])
    layout = Layout(
        (),
        pivot_of,
        (block - first * size)[pivot_of] + inner,
        size[pivot_of],
        (side - first_key)[pivot_of] + inner * n_beside[pivot_of],
        np.append(np.repeat(np.arange(len(size)), n_beside) * n + neighbours, BEYOND),
    )
    rows = np.cumsum(m * d) - m * d
    where = zip(shapes, rows.tolist(), start.tolist(), near, strict=True)
    return replace(layout, groups=tuple(_group(layout, *one) for one in where))


def _group(layout: Layout, shape: tuple[int, int, int], row: int, start: int, neighbours: np.ndarray) -> Group:
    """One group, with the places that its elimination changes."""
    m, d, k = shape
    middle = start + m * d * d
    p, q = np.triu_indices(k)
    full = np.empty((k, k), dtype=np.int64)
    full[p, q] = full[q, p] = np.arange(len(p))
    targets = np.empty((m, len(p)), dtype=np.int64)
    step = max(1, PAIRS // max(1, len(p)))
    for low in range(0, m, step):
        near = neighbours[low : low + step]
        targets[low : low + step] = find(layout, near[:, p].ravel(), near[:, q].ravel()).reshape(len(near), len(p))
    rows, diagonal, beside = slice(row, row + m * d), slice(start, middle), slice(middle, middle + m * d * k)
    return Group(rows, shape, diagonal, beside, neighbours, p, q, full, targets)


def bare_layout(n: int, i: np.ndarray, j: np.ndarray) -> Layout:
    """A layout of the precision alone, without room for fill: the diagonal, then each pair of `n` variables once."""
    code = (np.minimum(i, j) * n + np.maximum(i, j))[i != j]
    return layout_with(n, np.append(sorted_unique(code), BEYOND))


def layout_with(n: int, keys: np.ndarray) -> Layout:
    """The same of sorted keys, of which the last is beyond all."""
    every = np.arange(n)
    return Layout((), every, every, 0 * every, 0 * every + n, keys)


def find(layout: Layout, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Places of the entries (x, y), x not after y, given as flat arrays; they must be in the layout's pattern."""
    pivot = layout.pivot_of[x]
    place = layout.diagonal[x] + layout.stride[x] * y
    apart = np.flatnonzero(layout.pivot_of[y] != pivot)
    if len(apart):
        key = pivot[apart] * len(layout.pivot_of) + y[apart]
        at = np.searchsorted(layout.keys, key)
        if not np.array_equal(layout.keys[at], key):
            raise ValueError("an expression joins variables that the analysed rows do not join")
        place[apart] = layout.beside[x[apart]] + at
    return place
