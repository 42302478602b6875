"""The Gaussian kernel on joint mean embeddings, eq. (7), and its two-stage random features, Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heliograph.kernels.embeddings import Embedding
from heliograph.kernels.features import Draws, FeatureMap, Kernel, cosines, expected_cosines
from heliograph.kernels.inner_products import squared_distances, tuple_products, tuple_squared_norms

__all__ = ["JointGaussian"]


@dataclass(frozen=True)
class JointGaussian(Kernel):
    """``exp(-||mu_r - mu_s||^2 / (2 gamma2))``, the paper's kernel.

    `width2` holds the variance of the embedding kernel k in each dimension, `gamma2` the outer width.

    >>> from heliograph.families import Gaussian
    >>> k = JointGaussian(width2=(1.0,), gamma2=0.5)
    >>> k.gram([Gaussian([0.0, 0.0, 9.0], [1.0, 1.0, 1.0])])[0].round(3)
    array([1.   , 1.   , 0.315])
    """

    width2: tuple[float, ...]  # (c,)
    gamma2: float
    axis: str = "identity"
    how: str = "moments"
    name: ClassVar[str] = "joint_gaussian"

    def between(self, a: Embedding, b: Embedding) -> np.ndarray:
        """``kappa`` of every tuple of `a` with every tuple of `b`, eq. (7)."""
        w = np.asarray(self.width2)
        d2 = squared_distances(tuple_squared_norms(a, w), tuple_squared_norms(b, w), tuple_products(a, b, w))
        return np.exp(-0.5 * d2 / self.gamma2)

    def features(self, rng: np.random.Generator, n_outer: int = 500, n_inner: int = 300) -> FeatureMap:
        """A map with a fresh seed and the paper's sizes."""
        return FeatureMap(self, int(rng.integers(2**62)), (n_inner, n_outer))

    def n_features(self, sizes: tuple[int, ...]) -> int:
        """The number of outer features."""
        return sizes[1]

    def map_rows(self, rows: Embedding, draws: Draws, sizes: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Algorithm 1 for a few tuples; its Gaussian kernel on inner features is eq. (8)."""
        n_inner, n_outer = sizes
        omega = draws.normals(0, n_inner, rows.n_dimensions) / np.sqrt(self.width2)
        phi = expected_cosines(rows, omega, draws.phases(0, n_inner), dtype)  # its sqrt(2 / D_in) is in the scale below
        return cosines(phi, draws, 1, n_outer, float(np.sqrt(2 / n_inner / self.gamma2)))
