"""The matrices that a user gives for a Gaussian on vectors: checked, factored, and a covariance turned into a precision."""

from __future__ import annotations

import numpy as np

from heliograph.errors import ModelError
from heliograph.numerics.triangular import cholesky, gram_of_lower, inverse_of_lower

__all__ = ["checked", "inverted"]


def inverted(covariance: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Precisions of covariances, the Cholesky factors of the covariances, and their inverses; or the sentence of `checked`."""
    _, root = checked(covariance, name)
    white = inverse_of_lower(root)
    return gram_of_lower(white), root, white


def checked(matrix: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A matrix made symmetric to the last bit, and its Cholesky factor, or the sentence that says why not."""
    if not np.isfinite(matrix).all():
        raise ModelError(f"the {name} of a MultivariateGaussian has entries that are not finite")
    transposed = np.swapaxes(matrix, -1, -2)
    if not (matrix == transposed).all():
        # 1e-8 of the largest entry: more than any rounding of an honest computation, less than any mistake
        if np.abs(matrix - transposed).max(initial=0.0) > 1e-8 * np.abs(matrix).max(initial=0.0):
            raise ModelError(
                f"the {name} of a MultivariateGaussian must be symmetric; use (m + m.T) / 2 if it nearly is"
            )
        matrix = 0.5 * (matrix + transposed)
    good, lower = cholesky(matrix)
    if not good.all():
        raise ModelError(
            f"the {name} of a MultivariateGaussian must be positive definite, and its smallest eigenvalue is "
            f"{np.linalg.eigvalsh(matrix).min():.3g}; add to its diagonal, or drop the directions without variance"
        )
    return matrix, lower
