"""A Gaussian process laid out for prediction: a plate of rows costs two matrix products and one exponential."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.regression.gaussian_process import Process
from heliograph.regression.landmarks import Landmarks

__all__ = ["ROUNDING", "LaidOut"]

ROUNDING: dict[Any, float] = {np.float32: 1e-3, np.float64: 1e-12}  # share of the prior variance that rounding may hide
_CHUNK = 1024  # rows: the kernel matrix with a few hundred points stays in the second-level cache


# squared distance from the centre, in widths, from which on distances are not taken from a difference of squares
_FAR: dict[Any, float] = {np.float32: 1e4, np.float64: 1e12}


class LaidOut:
    """The points, factors and weights of a process in one precision.

    Labels run along the first axis and rows of the plate along the second, so that every sum is over long rows of memory.
    """

    def __init__(self, process: Process | Landmarks, precision: Any) -> None:
        w = process.widths
        self.precision = precision
        self.kept = np.flatnonzero(np.isfinite(w.widths))
        self.all_kept = len(self.kept) == len(w.widths)
        self.scale = 1.0 / w.widths[self.kept]
        self.offset = w.centre[self.kept] * self.scale
        u = process.inputs[:, self.kept] * self.scale - self.offset
        self.points = u.astype(precision)  # (N, k)
        self.half_squares = (0.5 * (u**2).sum(axis=1))[:, None].astype(precision)
        # the factors of all outputs one below the other, then the weights: one product gives every variance and every mean
        self.n_factors, self.n_labels = len(process.lower), len(process)
        self.matrix = np.concatenate([*process.inverse_lower, process.weights.T]).astype(precision)  # (f N + q, N)
        self.signal = w.signal
        constant = np.flatnonzero(np.isinf(w.widths))
        self.constant, self.centre = constant, w.centre[constant]
        self.slack = 1e-9 * (1 + np.abs(self.centre))

    def predict(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means and variances ``(n, q)``, and how new a row is, ``(n,)``.

        That is the share of the prior variance which would be left if its nearest label were the only one and exact. It
        depends on the inputs alone: with noisy labels, the variance itself does not measure the distance from them.
        """
        n = len(inputs)
        mean, variance, new = np.empty((n, self.signal.size)), np.empty((n, self.signal.size)), np.empty(n)
        for k in range(0, n, _CHUNK):
            part = slice(k, k + _CHUNK)
            self._chunk(inputs[part], mean[part], variance[part], new[part])
        return mean, variance, new

    def _chunk(self, inputs: np.ndarray, mean: np.ndarray, variance: np.ndarray, new: np.ndarray) -> None:
        u = inputs * self.scale if self.all_kept else inputs[:, self.kept] * self.scale
        u -= self.offset
        u = u.astype(self.precision, copy=False)
        c = self.points @ u.T  # (N, n)
        c -= self.half_squares
        size = 0.5 * np.einsum("nk,nk->n", u, u)
        c -= size
        far = size > _FAR[self.precision]
        if far.any():  # so large that the difference of squares is rounding, and might even be positive
            gap = self.points[:, None, :].astype(float) - u[far].astype(float)
            c[:, far] = -0.5 * np.minimum(np.einsum("nfk,nfk->nf", gap, gap), 1e4)
        np.exp(c, out=c)
        if len(self.constant):
            departs = np.abs(inputs[:, self.constant] - self.centre) > self.slack
            if departs.any():
                c[:, departs.any(axis=1)] = 0.0  # in a column that was constant so far: the prior holds there
        nearest = c.max(axis=0)
        np.subtract(1.0, nearest * nearest, out=new)
        both = self.matrix @ c
        f, size = self.n_factors, self.n_labels
        halves = both[: f * size]
        halves *= halves
        left = 1.0 - halves.reshape(f, size, -1).sum(axis=1)
        np.maximum(left, ROUNDING[self.precision], out=left)  # smaller variances are hidden by rounding
        np.multiply(left.T, self.signal, out=variance)
        mean[...] = both[f * size :].T
