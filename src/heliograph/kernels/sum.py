"""The sum of kernels on the embedding of each message: expected product kernels, or Gaussian ones around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heliograph.kernels.embeddings import Embedding
from heliograph.kernels.features import Draws, FeatureMap, Kernel, cosines, expected_cosines
from heliograph.kernels.inner_products import message_products, message_squared_norms, squared_distances

__all__ = ["Sum"]


@dataclass(frozen=True)
class Sum(Kernel):
    """``sum_l <mu_r(l), mu_s(l)>``, or with outer widths ``sum_l exp(-||mu_r(l) - mu_s(l)||^2 / (2 gamma2_l))``.

    `width2` holds a tuple of variances for each message, `gamma2` an outer width for each message or None.

    >>> from heliograph.families import Gaussian
    >>> k = Sum(width2=((1.0,), (1.0,)))
    >>> k.gram([Gaussian([0.0], [0.5]), Gaussian([0.0], [1.0])], [Gaussian([0.0], [2.5]), Gaussian([0.0], [2.0])])
    array([[1.]])
    """

    width2: tuple[tuple[float, ...], ...]  # one tuple per message
    gamma2: tuple[float, ...] | None = None
    axis: str = "identity"
    how: str = "moments"
    name: ClassVar[str] = "sum"

    def between(self, a: Embedding, b: Embedding) -> np.ndarray:
        """The sum of the messages' own kernels."""
        width2 = np.concatenate(self.width2)
        products = message_products(a, b, width2)
        if self.gamma2 is None:
            return np.sum(products, axis=0)
        norms = zip(message_squared_norms(a, width2), message_squared_norms(b, width2), strict=True)
        out = np.zeros((len(a), len(b)))
        for (norm_a, norm_b), product, gamma2 in zip(norms, products, self.gamma2, strict=True):
            out += np.exp(-0.5 * squared_distances(norm_a, norm_b, product) / gamma2)
        return out

    def features(self, rng: np.random.Generator, n_each: int = 250, n_inner: int = 300) -> FeatureMap:
        """A map with a fresh seed and `n_each` features per message; `n_inner` serves the Gaussian form only."""
        return FeatureMap(self, int(rng.integers(2**62)), (n_each,) if self.gamma2 is None else (n_inner, n_each))

    def n_features(self, sizes: tuple[int, ...]) -> int:
        """The number of features."""
        return sizes[-1] * len(self.width2)

    def map_rows(self, rows: Embedding, draws: Draws, sizes: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Features of a few tuples: those of each message side by side."""
        parts = []
        for k, width2 in enumerate(self.width2):
            omega = draws.normals(2 * k, sizes[0], len(width2)) / np.sqrt(width2)
            phi = expected_cosines(rows.message(k), omega, draws.phases(2 * k, sizes[0]), dtype)
            if self.gamma2 is None:
                phi *= phi.dtype.type(np.sqrt(2 / sizes[0]))
                parts.append(phi)
            else:
                parts.append(cosines(phi, draws, 2 * k + 1, sizes[1], float(np.sqrt(2 / sizes[0] / self.gamma2[k]))))
        return np.concatenate(parts, axis=1)
