"""Connected sets of numbers, given lists of numbers that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["joined_sets"]


def joined_sets(lists: Iterable[Sequence[int]]) -> list[set[int]]:
    """Join lists with common numbers into sets. The set with the smallest number comes first.

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
