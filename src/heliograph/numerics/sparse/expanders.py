"""Graphs of which every order of elimination leaves a large dense rest: leagues in which anybody meets anybody.

Nothing separates a random graph but a large part of it. What minimum degree leaves is a share of the variables that follows
from their degree. Whether a graph is like a random one shows in how fast balls grow around a few of its variables.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

__all__ = ["least_tail"]

# the share that is left, ``_MOST - _LESS / degree``, measured on random graphs of 1,000 to 10,000 variables of degrees 4 to 20
_MOST, _LESS = 0.72, 2.0
_SAFE = 0.8  # of it
_BALLS = 16
_MEAN, _LEAST = (
    0.8,
    0.4,
)  # of the share of variables in a ball of a random graph: what balls must hold on average, and each


def least_tail(n: int, a: np.ndarray, b: np.ndarray) -> float:
    """About the fewest of `n` variables with links ``a - b``, each once, that are left as a dense matrix; 0 if that cannot be told.

    >>> chain = np.arange(9_999)
    >>> least_tail(10_000, chain, chain + 1)
    0.0
    """
    degree = np.bincount(a, minlength=n) + np.bincount(b, minlength=n)
    usual, mean = float(np.median(degree)), float(degree.mean())
    share = _MOST - _LESS / max(usual, 1.0)
    if share <= 0 or mean <= 3.0:
        return 0.0
    steps = max(2, round(np.log(n) / np.log(mean - 1.0)))
    expected = 1.0 - np.exp(-mean * (mean - 1.0) ** (steps - 1) / n)
    one = np.ones(len(a), dtype=np.float32)
    links = sparse.csr_array((one, (a, b)), shape=(n, n))
    back = sparse.csr_array(links.T)
    inside = np.zeros((n, _BALLS), dtype=np.float32)
    inside[np.linspace(0, n - 1, _BALLS).astype(int), np.arange(_BALLS)] = 1.0
    for _ in range(steps):
        inside = np.minimum(inside + links @ inside + back @ inside, np.float32(1.0))
    held = inside.mean(axis=0) / expected
    return _SAFE * share * n if held.mean() >= _MEAN and held.min() >= _LEAST else 0.0
