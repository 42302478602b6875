"""One round of elimination: which variables, and who their neighbours are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["independent_set", "neighbours_of"]

_SMALL = 4096.0  # entries of a clique's table up to which it is taken in any order
_PAIR = 32768.0  # the same of a variable with two neighbours: its sum is a product of matrices, and joins nobody else
_ALL_PAIRS = 3e8  # entries of all of these up to which it takes less time than a round for the two ends of every chain
_AT_ONCE = 2e7  # entries of all tables of one round


def independent_set(
    cards: np.ndarray, alive: np.ndarray, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Variables with small cliques, no two of them neighbours, and the logarithms of their cliques' sizes.

    Parameters
    ----------
    cards
        (n,) numbers of categories.
    alive
        The variables that are left, ascending.
    a, b
        Neighbours, both ways round.
    """
    n = len(cards)
    log_card = np.log(cards)
    log_size = log_card + np.bincount(a, weights=log_card[b], minlength=n)
    own = log_size[alive]
    allowed = _allowed(own, np.bincount(a, minlength=n)[alive])
    open_ = np.zeros(n, dtype=bool)
    open_[alive[allowed]] = True
    # the smallest first; among equals every second one, which halves a chain that is written in its order
    rank = np.arange(len(alive))
    key = np.zeros(n)
    key[alive] = np.round(own * 256.0) * 4.0 + np.where(rank % 2 == 1, 0.0, 2.0) + rank / len(alive)
    chosen = np.zeros(n, dtype=bool)
    near = open_[a] & open_[b]
    a, b = a[near], b[near]
    behind = key[b] < key[a]
    while True:
        beaten = np.zeros(n, dtype=bool)
        beaten[a[behind]] = True
        wins = open_ & ~beaten
        chosen |= wins
        open_ &= beaten
        open_[b[wins[a]]] = False
        if not open_.any():
            break
        left = open_[a] & open_[b]
        a, b, behind = a[left], b[left], behind[left]
    found = np.flatnonzero(chosen)
    size = log_size[found]
    if np.exp(size).sum() <= _AT_ONCE:
        return found, size
    order = np.argsort(size, kind="stable")
    n_fitting = max(1, int(np.searchsorted(np.cumsum(np.exp(size[order])), _AT_ONCE)))
    order = np.sort(order[:n_fitting])
    return found[order], size[order]


def _allowed(log_size: np.ndarray, degree: np.ndarray) -> np.ndarray:
    """The variables that may go now, by the sizes of their cliques and the numbers of their neighbours."""
    limit = np.full(len(log_size), np.log(_SMALL))
    inner = (degree <= 2) & (log_size <= np.log(_PAIR))
    if np.exp(log_size[inner]).sum() <= _ALL_PAIRS:
        limit[inner] = np.log(_PAIR)
    return log_size <= np.maximum(float(log_size.min()), limit) + 1e-9


def neighbours_of(chosen: np.ndarray, edges: np.ndarray, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The chosen variables and their neighbours (m, d), for every number of neighbours d.

    `edges` are sorted numbers a * n + b.
    """
    starts = np.searchsorted(edges, chosen.astype(np.int64) * n)
    degree = np.searchsorted(edges, (chosen.astype(np.int64) + 1) * n) - starts
    for d in np.flatnonzero(np.bincount(degree)):
        mine = degree == d
        yield chosen[mine], edges[starts[mine][:, None] + np.arange(d)] % n
