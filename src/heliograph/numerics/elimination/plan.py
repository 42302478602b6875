"""The plan of an exact sum: the order in which variables are summed out, and where every table goes.

Each round takes an independent set of variables with small neighbourhoods. A variable v with neighbours N has a *clique*,
a table over (v, N) to which every table that contains v is added; the sum over v is a new table over N. Cliques of equal
shape are one *group* and are worked on together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np

from heliograph.numerics.elimination.chain import chain_plan
from heliograph.numerics.elimination.records import Group, Part, Plan
from heliograph.numerics.elimination.rounds import independent_set, neighbours_of

__all__ = ["TooManyConfigurationsError", "make_plan"]

_LARGEST = 2e7  # entries of one clique's table
_ALL = 4e8  # entries of all of them, about two seconds of work


class TooManyConfigurationsError(ValueError):
    """The tables that an exact sum would need are too large."""


def make_plan(cards: np.ndarray, scopes: list[np.ndarray]) -> Plan:
    """Plan exact sums over variables with these numbers of categories.

    Parameters
    ----------
    cards
        (n,) the number of categories of every variable.
    scopes
        The variables of every table, (m, r) for m tables of r variables each, which have equal shapes. Every variable must be
        in at least one.

    Raises
    ------
    TooManyConfigurationsError
        If no order that was found keeps the tables small.
    """
    chain = chain_plan(cards, scopes)
    if chain is not None:
        return chain
    planner = _Planner(cards, scopes)
    while len(planner.alive):
        planner.advance()
    return planner.plan()


# an array per variable of a scope or a clique: rows of two numbers are slow to work on
Columns = tuple[np.ndarray, ...]


class _Open(NamedTuple):
    """The rows of a table that are in no clique yet."""

    rows: np.ndarray
    scope: Columns


class _Planner:
    def __init__(self, cards: np.ndarray, scopes: list[np.ndarray]) -> None:
        self.cards = cards
        columns = [tuple(np.ascontiguousarray(c) for c in np.asarray(s).T) for s in scopes]
        self.n_tables = len(scopes)
        self.open = {k: _Open(np.arange(len(s)), c) for k, (s, c) in enumerate(zip(scopes, columns, strict=True))}
        self.shapes = [(len(s), *(int(cards[c[0]]) for c in cs)) for s, cs in zip(scopes, columns, strict=True)]
        self.alive = np.arange(len(cards))
        # a * n + b for neighbours a, b, sorted, by their places among the n variables that are left
        self.edges = _joined(len(cards), columns)
        self.groups: list[Group] = []
        self.entries = 0.0
        self.group_of = np.full(len(cards), -1)
        self.row_of = np.zeros(len(cards), dtype=int)

    def plan(self) -> Plan:
        return Plan(self.n_tables, tuple(self.groups), tuple(self.shapes))

    def advance(self) -> None:
        """One round: choose variables, gather their tables into cliques, and join their neighbours."""
        n = len(self.alive)
        a = self.edges // n
        b = self.edges - a * n
        cards = self.cards[self.alive]
        chosen, log_size = independent_set(cards, np.arange(n), a, b)
        self._check(log_size)
        cliques = [clique for v, nbrs in neighbours_of(chosen, self.edges, n) for clique in _alike(cards, v, nbrs)]
        self._gather(chosen, [tuple(self.alive[c] for c in clique) for clique in cliques])
        left = np.ones(n, dtype=bool)
        left[chosen] = False
        place = np.cumsum(left) - 1  # of a variable among those that are left
        m = n - len(chosen)
        kept = left[a] & left[b]
        joined = _joined(m, [tuple(place[c] for c in clique[1:]) for clique in cliques])
        self.edges = _distinct(np.concatenate([place[a[kept]] * m + place[b[kept]], joined]))
        self.alive = self.alive[left]

    def _gather(self, chosen: np.ndarray, cliques: list[Columns]) -> None:
        """Make a group of every list of cliques, with the tables that go into it and the one that comes out."""
        first = len(self.groups)
        for k, clique in enumerate(cliques):
            self.group_of[clique[0]], self.row_of[clique[0]] = first + k, np.arange(len(clique[0]))
        parts = self._parts(self.alive[chosen], cliques, first)
        for clique, found in zip(cliques, parts, strict=True):
            shape, size = tuple(int(self.cards[c[0]]) for c in clique), len(clique[0])
            self.groups.append(Group(size, shape, tuple(found), len(self.shapes)))
            if len(clique) > 1:
                self.open[len(self.shapes)] = _Open(np.arange(size), clique[1:])
            self.shapes.append((size, *shape[1:]))

    def _check(self, log_size: np.ndarray) -> None:
        self.entries += float(np.exp(log_size).sum())
        if log_size.max() > np.log(_LARGEST) or self.entries > _ALL:
            raise TooManyConfigurationsError(
                f"an exact sum over {len(self.cards)} discrete variables needs tables of more than "
                f"{max(np.exp(log_size.max()), self.entries):.0e} entries"
            )

    def _parts(self, chosen: np.ndarray, cliques: list[Columns], first: int) -> list[list[Part]]:
        """The rows of open tables that contain a chosen variable, by clique group."""
        found: list[list[Part]] = [[] for _ in cliques]
        is_chosen = np.zeros(len(self.cards), dtype=bool)
        is_chosen[chosen] = True
        for k, (rows, scope) in list(self.open.items()):
            v, met = scope[0], is_chosen[scope[0]]
            for column in scope[1:]:  # every table has at most one of an independent set
                hit = is_chosen[column]
                v, met = np.where(hit, column, v), met | hit
            if met.all():
                del self.open[k]
            elif met.any():
                rest = np.flatnonzero(~met)
                self.open[k] = _Open(rows[rest], tuple(c[rest] for c in scope))
                at = np.flatnonzero(met)
                rows, v, scope = rows[at], v[at], tuple(c[at] for c in scope)
            else:
                continue
            if len(cliques) == 1:
                found[0] += _placed(k, rows, scope, cliques[0], self.row_of[v])
                continue
            group, row = self.group_of[v] - first, self.row_of[v]
            for g in np.flatnonzero(np.bincount(group)):
                mine = np.flatnonzero(group == g)
                some = tuple(c[mine] for c in scope)
                found[g] += _placed(k, rows[mine], some, cliques[g], row[mine])
        return found


def _placed(source: int, rows: np.ndarray, scope: Columns, clique: Columns, target: np.ndarray) -> list[Part]:
    """The parts of one table in one group: rows whose axes lie alike in their cliques go together."""
    code = np.zeros(len(rows), dtype=int)  # the axis of every variable of the scope, as a digit
    for k in range(1, len(clique)):
        near = clique[k][target]
        for j, column in enumerate(scope):
            code += (near == column) * (k * len(clique) ** j)
    found: list[Part] = []
    for c in np.flatnonzero(np.bincount(code)):
        at = np.flatnonzero(code == c)
        to, of, counts = target[at], rows[at], None
        if not (to[1:] > to[:-1]).all():
            order = np.argsort(to, kind="stable")
            to, of = to[order], of[order]
            new = np.append(True, to[1:] != to[:-1])
            if not new.all():
                counts = np.diff(np.append(np.flatnonzero(new), len(to)))
                to = to[new]
        axes = tuple(int(c) // len(clique) ** j % len(clique) for j in range(len(scope)))
        found.append(Part(source, _evenly(of), axes, _evenly(to), counts))
    return found


def _evenly(rows: np.ndarray) -> np.ndarray | slice:
    """Ascending rows at equal distances as a slice, which copies nothing: all of them, or every second one of a chain."""
    first, last, n = int(rows[0]), int(rows[-1]), len(rows)
    if n == 1:
        return slice(first, first + 1)
    step = int(rows[1]) - first
    even = step > 0 and last - first == step * (n - 1) and bool((rows[1:] - rows[:-1] == step).all())
    return slice(first, last + 1, step) if even else rows


def _alike(cards: np.ndarray, v: np.ndarray, neighbours: np.ndarray) -> list[Columns]:
    """Cliques (v, neighbours) in groups of one shape, the neighbours in the order of their numbers of categories."""
    one = cards.min() == cards.max()
    if not one and neighbours.shape[1]:
        order = np.argsort(cards[neighbours], axis=1, kind="stable")
        neighbours = np.take_along_axis(neighbours, order, axis=1)
    clique = (v, *(np.ascontiguousarray(c) for c in neighbours.T))
    if one:
        return [clique]
    _, label = np.unique(np.stack([cards[c] for c in clique], axis=1), axis=0, return_inverse=True)
    label = label.reshape(-1)
    return [tuple(c[label == k] for c in clique) for k in range(label.max() + 1)]


def _joined(n: int, scopes: Sequence[Columns]) -> np.ndarray:
    """The pairs of variables that some table holds, both ways round, as sorted numbers a * n + b."""
    keys = [np.zeros(0, dtype=np.int64)]
    for scope in scopes:
        keys += [a.astype(np.int64) * n + b for a, b in permutations(scope, 2)]
    return _distinct(np.concatenate(keys))


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Sorted, each once (NumPy's own goes by hashes, which takes longer)."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
