"""Rows of a plate in blocks, so that the temporaries of a hot loop stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["CHUNK", "cached_chunks", "chunks", "integral_chunks"]

CHUNK = 512  # rows: two such float32 blocks of 500 features stay in the second-level cache


def chunks(n: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices that cover ``range(n)`` in order, each of at most `size`.

    >>> list(chunks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def cached_chunks(n: int, width: int) -> Iterator[slice]:
    """Slices of rows of `width` numbers each, short enough that some twenty temporaries of one stay in the cache."""
    return chunks(n, max(1, 16384 // width))


def integral_chunks(n: int) -> Iterator[slice]:
    """Slices of rows that are integrated at once: their nodes, some 300 per row, stay in the cache."""
    return chunks(n, 256)
