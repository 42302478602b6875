"""The mean-variance kernel of the appendix: messages as plain vectors of means and variances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heliograph.kernels.embeddings import FAR, Embedding
from heliograph.kernels.features import Draws, Kernel, cosine

__all__ = ["MeanVariance"]


@dataclass(frozen=True)
class MeanVariance(Kernel):
    """``exp(-sum (m - mu)^2 / (2 w_m^2) - sum (v - sigma^2)^2 / (2 w_v^2))``.

    `width2` holds the squared widths of the c means, then of the c variances, then of the covariances inside vector
    messages.

    >>> from heliograph.families import Gaussian
    >>> k = MeanVariance(width2=(1.0, 4.0))
    >>> k.gram([Gaussian([0.0, 1.0], [1.0, 3.0])])[0].round(4)  # exp(-1/2 - 4/8)
    array([1.    , 0.3679])
    """

    width2: tuple[float, ...]
    axis: str = "identity"
    how: str = "moments"
    name: ClassVar[str] = "mean_variance"

    def between(self, a: Embedding, b: Embedding) -> np.ndarray:
        """A Gaussian kernel of means and variances as vectors."""
        x, y = self._scaled(a), self._scaled(b)
        d2 = np.zeros((len(x), len(y)))
        for j in range(x.shape[1]):
            d2 += (x[:, j, None] - y[None, :, j]) ** 2
        return np.exp(-0.5 * d2)

    def map_rows(self, rows: Embedding, draws: Draws, sizes: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Features of a few tuples."""
        x = self._scaled(rows)
        angle = x @ draws.normals(0, sizes[0], x.shape[1]).T + draws.phases(0, sizes[0])
        out = cosine(angle, dtype)
        out *= out.dtype.type(np.sqrt(2 / sizes[0]))
        return out

    def _scaled(self, rows: Embedding) -> np.ndarray:
        x = rows.vectors() / np.sqrt(self.width2)
        if rows.absent is not None:
            c = rows.n_dimensions
            x[:, :c] = np.where(rows.absent, FAR, x[:, :c])
        return x
