# pyright: basic
"""Vectors of a known precision matrix as rows of weight 1."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from heliograph.engine.blocks.records import Known
from heliograph.engine.blocks.rows import Rows, apply, shifted
from heliograph.families import MultivariateGaussian
from heliograph.numerics.triangular import cholesky

__all__ = ["whitened"]


def whitened(rows: Rows, precision: np.ndarray, prior: MultivariateGaussian | None = None) -> tuple[Known, float]:
    """Rows ``W x`` of weight 1, where ``W'W`` is the precision, and the log of the factor that this leaves out of the density.

    Parameters
    ----------
    rows
        The components of n vectors around 0, one vector after the other: (n d,).
    precision
        ``(n, d, d)``; where all are diagonal, their diagonals are the weights of the rows as they are.
    prior
        The same as a message on the vectors, where it is one: it may have W.
    """
    n, d, _ = precision.shape
    diagonal = np.einsum("nii->ni", precision)
    if np.count_nonzero(precision) == np.count_nonzero(diagonal):
        return Known(rows, diagonal.reshape(-1)), 0.0
    white = _whitener(precision, prior)
    log_constant = float(np.log(np.einsum("nii->ni", white)).sum())
    if n == 1:
        plain = shifted(rows, -rows.constant).is_base
        gram = (rows.sparse.indices, precision[0]) if plain else None
        return Known(apply(white[0], rows), np.ones(d), gram, prior if plain else None), log_constant
    columns = np.broadcast_to(np.arange(n * d).reshape(n, 1, d), white.shape)
    blocks = sp.csr_array((white.reshape(-1), columns.reshape(-1), np.arange(0, white.size + 1, d)))
    return Known(apply(blocks, rows), np.ones(n * d)), log_constant


def _whitener(precision: np.ndarray, prior: MultivariateGaussian | None) -> np.ndarray:
    """Triangular matrices W with ``W'W`` the precision."""
    if prior is not None and prior.root is not None:
        return prior.root[1]
    if prior is None:
        precision = 0.5 * (precision + np.swapaxes(precision, 1, 2))
    good, root = cholesky(precision) if prior is None else prior.cholesky()
    if not good.all():
        raise np.linalg.LinAlgError("a precision matrix is not positive definite")
    return np.swapaxes(root, 1, 2)
