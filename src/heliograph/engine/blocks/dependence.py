# pyright: basic
"""Which beliefs of a block depend on which sites: those in a connected part of it with a site that is not their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from heliograph.engine.blocks.rows import Rows

__all__ = ["dependence"]


def dependence(
    rows: Mapping[str, Rows] | None, sites: Sequence[str], parts: Callable[[], Mapping[str, np.ndarray]]
) -> dict[str, frozenset[str]]:
    """The ports whose sites the entries of each port depend on, apart from the own site of each entry.

    `rows` are those of every port, one for each entry, and `parts` gives the connected part that each of its entries is in. In
    most models rows of all ports hold scalars that rows of every site hold, too, and nobody needs to know the parts.
    """
    every = frozenset(sites)
    if rows is not None and all(_share(rows[port], rows[p], port == p) for port in rows for p in sites):
        return dict.fromkeys(rows, every)
    found = parts()
    n = 1 + max(int(at.max(initial=-1)) for at in found.values())
    count = {p: np.bincount(found[p][found[p] >= 0], minlength=n) for p in sites}
    reads = {}
    for port, at in found.items():
        mine = at[at >= 0]
        others = {p: count[p][mine] - (p == port) for p in sites} if len(mine) else {}
        reads[port] = frozenset(p for p, n_others in others.items() if (n_others > 0).any())
    return reads


def _share(rows: Rows, others: Rows, same: bool) -> bool:
    """Whether a scalar is certainly in rows of both, or, of the same rows, in two of them."""
    s, t = rows.sparse, others.sparse
    if not (rows.length and others.length and s.data.all() and t.data.all()):
        return False  # rows of different lengths, products, and zeros are left to the parts
    if same:
        at = t.indices[:: others.length]  # one of each row, so that no row meets itself
        return bool(len(at)) and bool(np.bincount(at).max() > 1)
    held = np.zeros(rows.n_columns, dtype=bool)
    held[t.indices] = True
    return bool(held[s.indices].any())
