"""Tuples of which some variables were observed: the part of their table that is left, and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.engine.discrete.compile import Tuples

__all__ = ["Piece", "pieces_of"]


class Piece(NamedTuple):
    """Tuples of one node with the same variables open."""

    port: str
    rows: np.ndarray  # (m,) of the node
    shape: tuple[int, ...]  # categories of each variable
    scope: np.ndarray  # (m, r) the open variables
    known: np.ndarray  # (r,) which were observed
    values: np.ndarray  # (m, n_known) their categories

    def table(self, weights: np.ndarray) -> np.ndarray:
        """The log weights of the open variables, of those of all entries of the node."""
        return np.moveaxis(weights[self.rows].reshape(-1, *self.shape), self._axes, self._first)[self._index]

    def write(self, log_p: np.ndarray | None, found: np.ndarray) -> None:
        """Put the log marginals of the open variables (none: all are known) where they belong in those of the node."""
        whole = np.full((len(self.rows), *self.shape), -np.inf)
        np.moveaxis(whole, self._axes, self._first)[self._index] = 0.0 if log_p is None else log_p
        found[self.rows] = whole.reshape(len(self.rows), -1)

    @property
    def _axes(self) -> list[int]:
        return [1 + int(k) for k in np.flatnonzero(self.known)]

    @property
    def _first(self) -> list[int]:
        return [1 + k for k in range(int(self.known.sum()))]

    @property
    def _index(self) -> tuple[np.ndarray, ...]:
        return (np.arange(len(self.rows)), *self.values.T)


def pieces_of(port: str, tuples: Tuples) -> list[Piece]:
    """The tuples of a node, those with the same variables open together."""
    seen: np.ndarray = np.less(tuples.variables, 0)
    code = np.zeros(len(seen), dtype=int)
    for k in range(seen.shape[1]):
        code += seen[:, k] * 2**k
    found: list[Piece] = []
    for c in np.flatnonzero(np.bincount(code)):
        rows = np.flatnonzero(code == c)
        known = seen[rows[0]]
        values = tuples.values[rows][:, known].astype(int)
        found.append(Piece(port, rows, tuples.shape, tuples.variables[rows][:, ~known], known, values))
    return found
