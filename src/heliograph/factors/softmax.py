"""Categories with softmax probabilities of a Gaussian vector of scores, by quadrature."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from heliograph.factors.integrals.softmax import softmax_tilt
from heliograph.factors.integrals.vector_tilt import VectorCavity, VectorTilt
from heliograph.factors.labelled import OfVector

__all__ = ["Softmax"]


class Softmax(OfVector):
    """``p(y = k) = exp(z_k) / (1 + sum_j exp(z_j))``: K categories, K - 1 scores, and 0 for the last category.

    >>> from heliograph.families import Categorical, MultivariateGaussian
    >>> z = MultivariateGaussian(np.zeros((1, 2)), np.eye(2)[None] + 1.0)  # exchangeable with the last score
    >>> sent = Softmax().message("y", {"z": z, "y": Categorical.uniform((1,), 3)})
    >>> sent.p.round(6)
    array([[0.333333, 0.333333, 0.333333]])
    """

    name = "softmax"
    how: ClassVar = {"z": "quadrature (4 to 40 categories: 2,048 points)", "y": "quadrature"}

    def tilt(self, cavity: VectorCavity, label: np.ndarray) -> VectorTilt:
        """The tilt of each cavity and the probability of its label."""
        return softmax_tilt(cavity, label)

    def at_point(self, z: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``log p_label``, and its slope ``1_label - p`` and curvature ``p p' - diag p``."""
        d = z.shape[1]
        top = np.maximum(z.max(axis=1), 0.0)
        e = np.exp(z - top[:, None])
        total = e.sum(axis=1) + np.exp(-top)
        p = e / total[:, None]
        own = np.where(label < d, np.take_along_axis(z, np.minimum(label, d - 1)[:, None], axis=1)[:, 0], 0.0)
        hot = (label[:, None] == np.arange(d)).astype(float)
        return own - top - np.log(total), hot - p, p[:, :, None] * p[:, None, :] - p[:, :, None] * np.eye(d)
