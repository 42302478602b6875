"""The product of expected product kernels, one per message, and its tensor features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from heliograph.errors import ModelError
from heliograph.kernels.embeddings import Embedding
from heliograph.kernels.features import Draws, FeatureMap, Kernel, expected_cosines
from heliograph.kernels.inner_products import message_products

__all__ = ["Product"]


@dataclass(frozen=True)
class Product(Kernel):
    """``prod_l <mu_r(l), mu_s(l)>``; `width2` holds a tuple of variances for each message.

    With a Gaussian k the exact kernel is that of `ExpectedProduct`; the features differ. These are all products of
    one feature of each message, ``D^c`` of them, so they are many and their error falls slower in their number.

    >>> from heliograph.families import Gaussian
    >>> k = Product(width2=((1.0,), (1.0,)))
    >>> k.gram([Gaussian([0.0], [0.5]), Gaussian([0.0], [1.0])], [Gaussian([0.0], [2.5]), Gaussian([0.0], [2.0])])
    array([[0.25]])
    """

    width2: tuple[tuple[float, ...], ...]  # one tuple per message
    axis: str = "identity"
    how: str = "moments"
    name: ClassVar[str] = "product"

    def between(self, a: Embedding, b: Embedding) -> np.ndarray:
        """The product of the messages' own kernels."""
        return np.prod(message_products(a, b, np.concatenate(self.width2)), axis=0)

    def features(self, rng: np.random.Generator, n_each: int = 25) -> FeatureMap:
        """A map with a fresh seed and `n_each` features per message, ``n_each^c`` together."""
        if n_each ** len(self.width2) > 100_000:
            raise ModelError(
                f"{n_each} features for each of {len(self.width2)} messages make {n_each ** len(self.width2)}; "
                "take fewer, or ExpectedProduct, whose features are of the same kernel and need no tensor"
            )
        return super().features(rng, n_each)

    def n_features(self, sizes: tuple[int, ...]) -> int:
        """The number of features."""
        return sizes[0] ** len(self.width2)

    def map_rows(self, rows: Embedding, draws: Draws, sizes: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Features of a few tuples: the Kronecker product of the messages' own."""
        out = np.ones((len(rows), 1), dtype=dtype)
        for k, width2 in enumerate(self.width2):
            omega = draws.normals(k, sizes[0], len(width2)) / np.sqrt(width2)
            phi = expected_cosines(rows.message(k), omega, draws.phases(k, sizes[0]), dtype)
            phi *= phi.dtype.type(np.sqrt(2 / sizes[0]))
            out = (out[:, :, None] * phi[:, None, :]).reshape(len(rows), -1)
        return out
