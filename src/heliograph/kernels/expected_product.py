"""The expected product kernel on joint embeddings: their inner product itself, without a Gaussian around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heliograph.kernels.embeddings import Embedding
from heliograph.kernels.features import Draws, Kernel, expected_cosines
from heliograph.kernels.inner_products import tuple_products

__all__ = ["ExpectedProduct"]


@dataclass(frozen=True)
class ExpectedProduct(Kernel):
    """``<mu_r, mu_s> = E E k(x - y)`` for x of one tuple and y of the other, k Gaussian of variances `width2`.

    >>> from heliograph.families import Gaussian
    >>> k = ExpectedProduct(width2=(1.0,))
    >>> k.gram([Gaussian([0.0], [0.5])], [Gaussian([0.0, 2.0], [2.5, 2.5])]).round(4)  # sqrt(1/4), times exp(-1/2)
    array([[0.5   , 0.3033]])
    """

    width2: tuple[float, ...]  # (c,)
    axis: str = "identity"
    how: str = "moments"
    name: ClassVar[str] = "expected_product"

    def between(self, a: Embedding, b: Embedding) -> np.ndarray:
        """Inner products of the embeddings."""
        return tuple_products(a, b, np.asarray(self.width2))

    def map_rows(self, rows: Embedding, draws: Draws, sizes: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Features of a few tuples: ``sqrt(2 / D) E cos(w . x + b)``."""
        omega = draws.normals(0, sizes[0], rows.n_dimensions) / np.sqrt(self.width2)
        phi = expected_cosines(rows, omega, draws.phases(0, sizes[0]), dtype)
        phi *= phi.dtype.type(np.sqrt(2 / sizes[0]))
        return phi
