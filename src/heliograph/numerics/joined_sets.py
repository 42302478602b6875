"""Which numbers belong together, when lists of them say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["joined_sets"]


def joined_sets(lists: Iterable[Sequence[int]]) -> list[set[int]]:
    """Sets of all the numbers in `lists`: what stands in one list is in one set. The set of the smallest number is first.

    >>> joined_sets([[4, 2], [0, 1], [2, 3]])
    [{0, 1}, {2, 3, 4}]
    """
    root: dict[int, int] = {}

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    for numbers in lists:
        for k in numbers:
            a, b = find(root.setdefault(numbers[0], numbers[0])), find(root.setdefault(k, k))
            root[max(a, b)] = min(a, b)
    found: dict[int, set[int]] = {}
    for k in sorted(root):
        found.setdefault(find(k), set()).add(k)
    return list(found.values())
