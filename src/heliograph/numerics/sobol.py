"""Sobol' points as whole numbers, plain or scrambled: the same bits as SciPy's, without half a second of its import.

Reference: Joe and Kuo, Constructing Sobol sequences with better two-dimensional projections, SIAM J. Sci. Comput. 30
(2008); the scrambling is Matousek's, a random linear map of the digits and a random shift. `scipy.stats.qmc` is loaded for more
dimensions than the table here has.
"""

from __future__ import annotations

import numpy as np

__all__ = ["BITS", "scrambled_sobol", "sobol"]

BITS = 30  # of a coordinate: good for 2^30 points
# primitive polynomials with their first direction numbers, for the dimensions after the first
_TABLE: tuple[tuple[int, tuple[int, ...]], ...] = (
    (3, (1,)), (7, (1, 3)), (11, (1, 3, 1)), (13, (1, 1, 1)), (19, (1, 1, 3, 3)), (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)), (41, (1, 1, 5, 5, 5)), (47, (1, 1, 7, 11, 19)), (55, (1, 1, 5, 1, 1)), (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)), (67, (1, 3, 3, 9, 7, 49)), (91, (1, 1, 1, 15, 21, 21)), (97, (1, 3, 1, 13, 27, 49)),
    (103, (1, 1, 1, 15, 7, 5)), (109, (1, 3, 1, 15, 13, 25)), (115, (1, 1, 5, 5, 19, 61)), (131, (1, 3, 7, 11, 23, 15, 103)),
    (137, (1, 3, 7, 13, 13, 15, 69)), (143, (1, 1, 3, 13, 7, 35, 63)), (145, (1, 3, 5, 9, 1, 25, 53)),
    (157, (1, 3, 1, 13, 9, 35, 107)), (167, (1, 3, 1, 5, 27, 61, 31)), (171, (1, 1, 5, 11, 19, 41, 61)),
    (185, (1, 3, 5, 3, 3, 13, 69)), (191, (1, 1, 7, 13, 1, 19, 1)), (193, (1, 3, 7, 5, 13, 19, 59)),
    (203, (1, 1, 3, 9, 25, 29, 41)), (211, (1, 3, 5, 13, 23, 1, 55)), (213, (1, 3, 7, 3, 13, 59, 17)),
)  # fmt: skip


def sobol(dimension: int, log2_n: int) -> np.ndarray:
    """The first ``2**log2_n`` points ``(n, dimension)``, as whole numbers below ``2**BITS``.

    >>> sobol(2, 2) / 2**BITS
    array([[0.  , 0.  ],
           [0.5 , 0.5 ],
           [0.75, 0.25],
           [0.25, 0.75]])
    """
    if dimension > len(_TABLE) + 1:
        return _by_scipy(dimension, log2_n, None)
    return _walk(_direction_numbers(dimension), np.zeros(dimension, dtype=np.int64), log2_n)


def scrambled_sobol(rng: np.random.Generator, dimension: int, log2_n: int) -> np.ndarray:
    """The same, scrambled: each point is uniform, and nets of other generators are independent."""
    if dimension > len(_TABLE) + 1:
        return _by_scipy(dimension, log2_n, rng)
    rng = rng.spawn(1)[0]
    digits = np.arange(BITS)
    shift = rng.integers(0, 2, size=(dimension, BITS), dtype=np.uint32).astype(np.int64) @ (1 << digits)
    lower = np.tril(rng.integers(0, 2, size=(dimension, BITS, BITS), dtype=np.uint32)).astype(float)
    lower[:, digits, digits] = 1.0
    # digits of the direction numbers, the first after the point first; sums of thirty products are exact
    plain = (_direction_numbers(dimension)[:, :, None] >> digits[::-1]) & 1
    mixed = (plain.astype(float) @ np.swapaxes(lower, 1, 2)).astype(np.int64) & 1
    return _walk(mixed @ (1 << digits[::-1]), shift, log2_n)


def _direction_numbers(dimension: int) -> np.ndarray:
    """The number ``(dimension, BITS)`` by which a point changes where a digit of its place does."""
    numbers = np.ones((dimension, BITS), dtype=np.int64)
    for row, (polynomial, first) in zip(numbers[1:], _TABLE, strict=False):
        degree = len(first)
        row[:degree] = first
        for j in range(degree, BITS):
            value = row[j - degree] ^ (row[j - degree] << degree)
            for k in range(1, degree):
                if polynomial >> (degree - k) & 1:
                    value ^= row[j - k] << k
            row[j] = value
    return numbers << np.arange(BITS - 1, -1, -1)


def _walk(directions: np.ndarray, start: np.ndarray, log2_n: int) -> np.ndarray:
    """Points in the order of Gray's code: each block of 2^j is the one before, backwards, and one direction away."""
    points = np.empty((1 << log2_n, len(start)), dtype=np.int64)
    points[0] = start
    for j in range(log2_n):
        n = 1 << j
        points[n : 2 * n] = points[:n][::-1] ^ directions[:, j]
    return points


def _by_scipy(dimension: int, log2_n: int, rng: np.random.Generator | None) -> np.ndarray:
    from scipy.stats import qmc  # when it is needed: it takes longer to load than everything else

    try:
        engine = qmc.Sobol(dimension, scramble=rng is not None, bits=BITS, rng=rng)
    except TypeError:  # before scipy 1.15 the argument had another name
        engine = qmc.Sobol(dimension, scramble=rng is not None, bits=BITS, seed=rng)  # type: ignore[call-arg]
    return np.rint(engine.random(1 << log2_n) * 2.0**BITS).astype(np.int64) & (2**BITS - 1)
