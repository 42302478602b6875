"""A Gaussian process conditioned on the nearest labels of each row only.

Fewer labels never give a smaller variance than all of them, so these predictions are not overconfident. They serve where
landmarks are too few for a function that changes fast: the variance by landmarks cannot fall below what they leave
unexplained, however many labels there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.numerics.chunks import chunks
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.squared_exponential import Widths, departs, scaled

if TYPE_CHECKING:
    from scipy.spatial import KDTree

__all__ = ["Neighbours"]

_CHUNK = 64  # rows at a time: 64 matrices of 128 x 128 are 8 MB
_LEAST = 1e-9  # share of the prior variance that rounding may hide: the matrices have condition 1e8 and less


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Labels, to be looked up by place."""

    widths: Widths
    labels: LabelledRows
    n_near: int = 128

    @cached_property
    def _tree(self) -> KDTree:
        from scipy.spatial import KDTree  # slow to import, and few operators have so many labels

        return KDTree(self._places)

    @cached_property
    def _places(self) -> np.ndarray:
        return scaled(self.widths, self.labels.inputs)

    def predict(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean and variance ``(n, q)``, and ``1 - c^2`` for the correlation c with the nearest label ``(n,)``."""
        signal = self.widths.signal
        mean, variance = np.zeros((len(rows), signal.size)), np.tile(signal, (len(rows), 1))
        new = np.ones(len(rows))
        away = departs(self.widths, rows)
        known = np.arange(len(rows)) if away is None else np.flatnonzero(~away)
        if len(self.labels.inputs):
            with one_blas_thread():
                for part in chunks(len(known), _CHUNK):
                    some = known[part]
                    mean[some], variance[some], new[some] = self._chunk(rows[some])
        return mean, variance, new

    def _chunk(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        at = scaled(self.widths, rows)
        k = min(self.n_near, len(self.labels.inputs))
        distance, near = self._tree.query(at, k)
        distance, near = distance.reshape(len(at), k), near.reshape(len(at), k)
        c = np.exp(-0.5 * distance**2)  # (n, k)
        u = self._places[near] - at[:, None]  # about the row itself: differences of large numbers lose digits
        squares = (u**2).sum(axis=-1)
        among = np.exp(-0.5 * np.maximum(squares[:, :, None] + squares[:, None, :] - 2 * u @ np.swapaxes(u, 1, 2), 0.0))
        targets, noise = self.labels.targets, self.labels.noise
        q = targets.shape[1]
        mean, left = np.empty((len(at), q)), np.empty((len(at), q))
        n_factors = 1 if noise is None else q
        for f in range(n_factors):
            columns = slice(None) if n_factors == 1 else slice(f, f + 1)
            matrix = among.copy()
            extra = 0.0 if noise is None else noise[near, f] / self.widths.signal[f]
            matrix[:, np.arange(k), np.arange(k)] = 1.0 + self.widths.noise + extra
            sides = np.concatenate([c[:, :, None], targets[near][:, :, columns]], axis=2)
            solved = np.linalg.solve(matrix, sides)
            mean[:, columns] = np.einsum("nk,nkq->nq", c, solved[:, :, 1:])
            left[:, columns] = (1 - np.einsum("nk,nk->n", c, solved[:, :, 0]))[:, None]
        return mean, np.maximum(left, _LEAST) * self.widths.signal, 1 - c[:, 0] ** 2
