"""Rows of at most two variables, and the links between these: all that leagues, pairs and differences have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heliograph.numerics.sparse.layout import BEYOND
from heliograph.numerics.sparse.rows import Rows

__all__ = ["Alike", "Links", "PairRows", "add_gram_of_pairs", "find_links", "on_links"]


class PairRows(NamedTuple):
    """Rows of at most two variables, the first before the second."""

    first: np.ndarray  # (m,)
    second: np.ndarray  # (m,) the first again where there is one only
    link: np.ndarray  # (m,) the link between them; the number of links where there is one variable only
    one: np.ndarray  # (m,) coefficients
    two: np.ndarray  # (m,) 0 where there is one variable only

    @property
    def alike(self) -> Alike | None:
        """What all rows of two variables have in common; None where that is nothing, and where there are none."""
        double = self.two != 0
        at = int(np.argmax(double))
        one, two = float(self.one[at]), float(self.two[at])
        same = (self.one == one) & (self.two == two) | (self.one == -one) & (self.two == -two)
        return Alike(one, two, np.flatnonzero(~double)) if two != 0 and bool((same | ~double).all()) else None


class Alike(NamedTuple):
    """Rows of which those of two variables have the same coefficients, up to the sign of a whole row."""

    one: float
    two: float
    single: np.ndarray  # the rows of one variable


class Links(NamedTuple):
    """Pairs of variables that share a row, each once, and the rows of every part."""

    keys: np.ndarray  # (E + 1,) ascending: the first variable times n, plus the second; the last is beyond all
    parts: tuple[PairRows, ...]


def find_links(n: int, parts: Sequence[Rows]) -> Links | None:
    """The links of rows over `n` variables; None where one has no entry, or three."""
    found = [_ends(part) for part in parts]
    if any(one is None for one in found):
        return None
    rows = [one for one in found if one is not None]
    code = np.concatenate([np.zeros(0, dtype=np.int64), *(r.first * n + r.second for r in rows)])
    double = np.flatnonzero(np.concatenate([np.zeros(0), *(r.two for r in rows)]))
    order = double[
        np.argsort(code[double])
    ]  # one sort; a search for each row in the sorted keys takes ten times as long
    sorted_code = code[order]
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = sorted_code[1:] != sorted_code[:-1]
    keys = sorted_code[fresh]
    link = np.full(len(code), len(keys))
    link[order] = np.cumsum(fresh) - 1
    ends = np.cumsum([0, *(len(r.one) for r in rows)])
    placed = tuple(r._replace(link=link[a:b]) for r, a, b in zip(rows, ends[:-1], ends[1:], strict=True))
    return Links(np.append(keys, BEYOND), placed)


def on_links(n: int, keys: np.ndarray, rows: Rows) -> PairRows | None:
    """Rows over links that are known; None where one has no entry, or three, or joins variables that are not linked."""
    found = _ends(rows)
    if found is None:
        return None
    key = found.first * n + found.second
    link = np.searchsorted(keys, key)
    single = found.two == 0
    if not ((keys[link] == key) | single).all():
        return None
    return found._replace(link=np.where(single, len(keys) - 1, link))


def _ends(rows: Rows) -> PairRows | None:
    """Rows as pairs without links."""
    count = np.diff(rows.indptr)
    if rows.width != 1 or rows.dense or not ((count > 0) & (count < 3)).all():
        return None
    at, last = rows.indptr[:-1], rows.indptr[1:] - 1
    two = rows.values[last] if (count == 2).all() else np.where(count == 2, rows.values[last], 0.0)
    none = np.zeros(0, dtype=np.int64)
    return PairRows(rows.indices[at], rows.indices[last], none, rows.values[at], two)


def add_gram_of_pairs(total: np.ndarray, n: int, rows: PairRows, tau: np.ndarray) -> None:
    """Add ``A' diag(tau) A`` to `total`: the diagonal (n,), then the entries of the links."""
    weighed = rows.one * tau
    total[:n] += np.bincount(rows.first, rows.one * weighed, n)
    if rows.two.any():
        weighed *= rows.two
        total[n:] += np.bincount(rows.link, weighed, len(total) - n + 1)[: len(total) - n]
        np.multiply(rows.two, tau, out=weighed)
        weighed *= rows.two
        total[:n] += np.bincount(rows.second, weighed, n)
