"""Cells beside a jump of the output, whose place between two midpoints is unknown, and so is the mass there."""

from __future__ import annotations

import numpy as np

__all__ = ["doubt_of_edges", "edges_of"]

_LEAST = 1e-26  # keeps a logarithm finite where a jump changes nothing


def edges_of(log_mass: np.ndarray, jump: np.ndarray) -> np.ndarray:
    """Half the mass of neighbours between which the output jumps: the place of the jump between them is unknown."""
    edge = np.full(log_mass.shape, -np.inf)
    k, r = np.nonzero(jump)
    if len(k):
        a, b = log_mass[k, r], log_mass[k + 1, r]
        gap = np.maximum(a, b) + np.log(0.5 * -np.expm1(-np.abs(a - b)) + _LEAST)
        np.maximum.at(edge, (k, r), gap)
        np.maximum.at(edge, (k + 1, r), gap)
    return edge


def doubt_of_edges(share: np.ndarray, gap2: np.ndarray) -> np.ndarray:
    """Nats ``(n,)`` that shares ``(k, n)`` of the mass are worth if each is there or not by chance, at squared deviations `gap2`.

    Halves of cells beside jumps, anything between none and all of each: a third of the square, of mean, variance and log Z.
    """
    return (share**2 / 3 * (1 + 0.5 * gap2 + 0.25 * (gap2 - 1) ** 2)).sum(axis=0)
