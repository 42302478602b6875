"""Pairs of entries in a site: the places of the precision that a site touches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from heliograph.numerics.sparse.rows import Rows

__all__ = ["Pairs", "count_pairs", "pairs_of"]


CHUNK = 1 << 15  # pairs: the arrays made from a batch stay in the cache


class Pairs(NamedTuple):
    """Pairs of entries, the first not after the second, of sites with equally many entries."""

    site: np.ndarray  # (k,) which sites
    first: np.ndarray  # (k, P) the first entry's place in `Rows.indices`
    second: np.ndarray  # (k, P)


def count_pairs(rows: Rows) -> int:
    """How many pairs `pairs_of` gives, without making them."""
    length = np.diff(rows.indptr[:: rows.width])
    return int((length * (length + 1) // 2).sum())


def pairs_of(rows: Rows) -> Iterator[Pairs]:
    """Every pair of entries in each site (an entry with itself as well), in batches of sites with equally many."""
    begin = rows.indptr[:: rows.width]
    length = np.diff(begin)
    for count in np.flatnonzero(np.bincount(length)):
        if count == 0:
            continue
        sites = np.flatnonzero(length == count)
        p, q = np.triu_indices(int(count))
        step = max(1, CHUNK // len(p))
        for low in range(0, len(sites), step):
            site = sites[low : low + step]
            yield Pairs(site, begin[site][:, None] + p, begin[site][:, None] + q)
