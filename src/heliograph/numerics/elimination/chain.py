"""The plan for one chain that is written in its order: every second variable goes in every round, and all rows are slices.

It does what the planner of any scopes does, which takes longer to find the order of a long chain than its sum takes.
"""

from __future__ import annotations

import numpy as np

from heliograph.numerics.elimination.records import Group, Part, Plan

__all__ = ["chain_plan"]

_SHORT = 64  # variables, below which any way is fast
_MOST_CATEGORIES = 32  # up to which the tables of three variables of all rounds are small enough
_ALL = 3e8  # entries of these


def chain_plan(cards: np.ndarray, scopes: list[np.ndarray]) -> Plan | None:
    """Plan exact sums over variables each of which has a table of its own, and one with the next variable; None for others."""
    n, k = len(cards), int(cards.max(initial=0))
    if not _SHORT <= n <= _ALL / k**3 or k > _MOST_CATEGORIES or cards.min() < k or len(scopes) != 2:
        return None
    single, pair = (0, 1) if scopes[0].shape[1] == 1 else (1, 0)
    every = np.arange(n)
    if scopes[single].shape != (n, 1) or scopes[pair].shape != (n - 1, 2):
        return None
    if (scopes[single][:, 0] != every).any() or (scopes[pair] != np.stack([every[:-1], every[1:]], axis=1)).any():
        return None
    return _halved(n, k, single, pair)


def _halved(n: int, k: int, single: int, pair: int) -> Plan:
    """The plan for n variables of k categories, from the numbers of their tables."""
    shapes: list[tuple[int, ...]] = [(n, k), (n, k)]
    shapes[pair] = (n - 1, k, k)
    groups: list[Group] = []

    def put(size: int, n_near: int, parts: list[Part]) -> int:
        groups.append(Group(size, (k,) * (1 + n_near), tuple(parts), len(shapes)))
        shapes.append((size,) + (k,) * n_near)
        return len(shapes) - 1

    one, step = (
        slice(0, 1),
        1,
    )  # the variables that are left are 0, step, 2 step, ...; row j of `pair` is of j and j + 1 of them
    last: list[Part] = []  # what the end of the chain has left to the last of them
    while n > 1:
        m, before = n // 2 if n % 2 else n // 2 - 1, pair  # variables 1, 3, ... between two others
        if m:
            inner = slice(0, m)
            parts = [
                Part(single, slice(step, step * (2 * m - 1) + 1, 2 * step), (0,), inner),
                Part(before, slice(0, 2 * m - 1, 2), (1, 0), inner),
                Part(before, slice(1, 2 * m, 2), (0, 2), inner),
            ]
            pair = put(m, 2, parts)
        if n % 2 == 0:  # the last has one neighbour
            own = Part(single, slice(step * (n - 1), step * (n - 1) + 1), (0,), one)
            near = Part(before, slice(n - 2, n - 1), (1, 0), one)
            last = [Part(put(1, 1, [own, near, *last]), one, (0,), one)]
        n, step = (n + 1) // 2, 2 * step
    put(1, 0, [Part(single, one, (0,), one), *last])
    return Plan(2, tuple(groups), tuple(shapes))
