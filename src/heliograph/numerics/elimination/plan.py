"""The order in which variables are summed out, and where every table goes: all that does not depend on numbers.

Each round takes an independent set of variables with small neighbourhoods. A variable v with neighbours N has a *clique*,
a table over (v, N) to which every table that contains v is added; the sum over v is a new table over N. Cliques of equal
shape are one *group* and are worked on together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.numerics.elimination.rounds import independent_set, neighbours_of

__all__ = ["Group", "Part", "Plan", "TooManyConfigurationsError", "make_plan"]

_LARGEST = 2e7  # entries of one clique's table
_ALL = 4e8  # entries of all of them, about two seconds of work


class TooManyConfigurationsError(ValueError):
    """The tables that an exact sum would need are too large."""


class Part(NamedTuple):
    """Some rows of one table, and the cliques of a group that they are added to."""

    source: int  # the number of the table
    rows: np.ndarray | slice  # (m,) of the table
    axes: tuple[int, ...]  # of the clique, one for every axis of the table
    target: np.ndarray | slice  # (k,) cliques, each once
    counts: np.ndarray | None = None  # (k,) how many rows of each follow one another, if some cliques have several

    @property
    def order(self) -> tuple[int, ...]:
        """The axes of the table in the order of the clique's, before the axis of rows."""
        return (*(int(k) for k in np.argsort(self.axes)), len(self.axes))


class Group(NamedTuple):
    """Cliques of one shape that are summed in one round."""

    size: int
    shape: tuple[int, ...]  # the categories of v first, then those of its neighbours
    parts: tuple[Part, ...]
    output: int  # the number of the table that the sum over v makes

    @property
    def paired(self) -> bool:
        """Whether v has two neighbours and no table sees both: the sum is then a product of matrices."""
        return len(self.shape) == 3 and all(len(p.axes) < 3 for p in self.parts)


class Plan(NamedTuple):
    """Groups in the order of elimination."""

    n_tables: int  # that are given; the outputs of groups are numbered after them
    groups: tuple[Group, ...]
    shapes: tuple[tuple[int, ...], ...]  # of all tables, outputs included, with their rows

    @property
    def n_entries(self) -> float:
        """Entries of all cliques, which is what a solve costs."""
        return sum(g.size * float(np.prod(g.shape)) for g in self.groups)


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
    planner = _Planner(cards, scopes)
    while len(planner.alive):
        planner.advance()
    return planner.plan()


class _Planner:
    def __init__(self, cards: np.ndarray, scopes: list[np.ndarray]) -> None:
        self.cards = cards
        self.scopes = [np.asarray(s) for s in scopes]
        self.n_tables = len(scopes)
        self.open = {k: np.arange(len(s)) for k, s in enumerate(self.scopes)}  # rows of tables not yet in a clique
        self.shapes = [_shape(cards, s) for s in self.scopes]
        self.alive = np.arange(len(cards))
        self.edges = _joined(len(cards), self.scopes)  # a * n + b for neighbours a, b, sorted
        self.groups: list[Group] = []
        self.entries = 0.0
        self.group_of = np.full(len(cards), -1)
        self.row_of = np.zeros(len(cards), dtype=int)

    def plan(self) -> Plan:
        return Plan(self.n_tables, tuple(self.groups), tuple(self.shapes))

    def advance(self) -> None:
        """One round: choose variables, gather their tables into cliques, and join their neighbours."""
        n = len(self.cards)
        a, b = np.divmod(self.edges, n)
        chosen, log_size = independent_set(self.cards, self.alive, a, b)
        self._check(log_size)
        first = len(self.groups)
        cliques = [clique for v, nbrs in neighbours_of(chosen, self.edges, n) for clique in _alike(self.cards, v, nbrs)]
        for k, clique in enumerate(cliques):
            self.group_of[clique[:, 0]], self.row_of[clique[:, 0]] = first + k, np.arange(len(clique))
        parts = self._parts(chosen, cliques, first)
        for clique, found in zip(cliques, parts, strict=True):
            shape = tuple(int(c) for c in self.cards[clique[0]])
            self.groups.append(Group(len(clique), shape, tuple(found), len(self.scopes)))
            if clique.shape[1] > 1:
                self.open[len(self.scopes)] = np.arange(len(clique))
            self.scopes.append(clique[:, 1:])
            self.shapes.append((len(clique), *shape[1:]))
        gone = np.zeros(n, dtype=bool)
        gone[chosen] = True
        kept = self.edges[~(gone[a] | gone[b])]
        self.edges = _distinct(np.concatenate([kept, _joined(n, [c[:, 1:] for c in cliques])]))
        self.alive = self.alive[~gone[self.alive]]

    def _check(self, log_size: np.ndarray) -> None:
        self.entries += float(np.exp(log_size).sum())
        if log_size.max() > np.log(_LARGEST) or self.entries > _ALL:
            raise TooManyConfigurationsError(
                f"an exact sum over {len(self.cards)} discrete variables needs tables of more than "
                f"{max(np.exp(log_size.max()), self.entries):.0e} entries"
            )

    def _parts(self, chosen: np.ndarray, cliques: list[np.ndarray], first: int) -> list[list[Part]]:
        """The rows of open tables that contain a chosen variable, by clique group."""
        found: list[list[Part]] = [[] for _ in cliques]
        is_chosen = np.zeros(len(self.cards), dtype=bool)
        is_chosen[chosen] = True
        for k, rows in list(self.open.items()):
            scope = self.scopes[k][rows]
            hit = is_chosen[scope]
            met = hit.any(axis=1)
            if not met.any():
                continue
            self.open[k] = rows[~met]
            if met.all():
                del self.open[k]
            scope, v = scope[met], scope[hit]  # every table has at most one of an independent set
            rows, group, row = rows[met], self.group_of[v] - first, self.row_of[v]
            for g in np.flatnonzero(np.bincount(group)):
                mine = slice(None) if len(cliques) == 1 else group == g
                found[g] += _placed(k, len(self.scopes[k]), rows[mine], scope[mine], cliques[g], row[mine])
        return found


def _placed(
    source: int, n_rows: int, rows: np.ndarray, scope: np.ndarray, clique: np.ndarray, target: np.ndarray
) -> list[Part]:
    """The parts of one table in one group: rows whose axes lie alike in their cliques go together."""
    axes: np.ndarray = np.zeros(scope.shape, dtype=int)
    near: np.ndarray = clique[target]
    for k in range(1, clique.shape[1]):
        axes += k * (near[:, k, None] == scope)
    code = axes @ clique.shape[1] ** np.arange(axes.shape[1])
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
        where = slice(None) if len(to) == len(clique) else to
        found.append(Part(source, _whole(of, n_rows), tuple(int(x) for x in axes[at[0]]), where, counts))
    return found


def _whole(rows: np.ndarray, n: int) -> np.ndarray | slice:
    """All rows in their order as a slice, which copies nothing."""
    return slice(None) if len(rows) == n and (rows[1:] > rows[:-1]).all() else rows


def _alike(cards: np.ndarray, v: np.ndarray, neighbours: np.ndarray) -> list[np.ndarray]:
    """Cliques (v, neighbours) in groups of one shape, the neighbours in the order of their numbers of categories."""
    sizes = cards[neighbours]
    if neighbours.shape[1] and sizes.min() < sizes.max():
        neighbours = np.take_along_axis(neighbours, np.argsort(sizes, axis=1, kind="stable"), axis=1)
    clique = np.concatenate([v[:, None], neighbours], axis=1)
    shapes = cards[clique]
    if (shapes == shapes[0]).all():
        return [clique]
    _, label = np.unique(shapes, axis=0, return_inverse=True)
    label = label.reshape(-1)
    return [clique[label == k] for k in range(label.max() + 1)]


def _joined(n: int, scopes: list[np.ndarray]) -> np.ndarray:
    """The pairs of variables that some table holds, both ways round, as sorted numbers a * n + b."""
    keys = [np.zeros(0, dtype=np.int64)]
    for scope in scopes:
        scope = scope.astype(np.int64)
        for i in range(scope.shape[1]):
            keys += [scope[:, i] * n + scope[:, j] for j in range(scope.shape[1]) if j != i]
    return _distinct(np.concatenate(keys))


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Sorted, each once (NumPy's own goes by hashes, which takes longer)."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def _shape(cards: np.ndarray, scope: np.ndarray) -> tuple[int, ...]:
    return (len(scope), *(int(c) for c in cards[scope[0]]))
