# pyright: basic
"""Vectors of a known precision matrix as rows of weight 1."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from heliograph.engine.blocks.records import Known
from heliograph.engine.blocks.rows import Rows, apply, is_base, shifted
from heliograph.numerics.triangular import cholesky

__all__ = ["whitened"]


def whitened(rows: Rows, precision: np.ndarray, lower: np.ndarray | None = None) -> tuple[Known, float]:
    """Rows ``L'x`` of weight 1, where ``L L'`` is the precision, and the log of the factor that this leaves out of the density.

    Parameters
    ----------
    rows
        The components of n vectors around 0, one vector after the other: (n d,).
    precision
        ``(n, d, d)``; where all are diagonal, their diagonals are the weights of the rows as they are.
    lower
        Its Cholesky factors, where they are known.
    """
    n, d, _ = precision.shape
    diagonal = np.einsum("nii->ni", precision)
    if not np.any(precision - diagonal[:, :, None] * np.eye(d)):
        return Known(rows, diagonal.reshape(-1)), 0.0
    root = lower
    if root is None:
        precision = 0.5 * (precision + np.swapaxes(precision, 1, 2))
        good, root = cholesky(precision)
        if not good.all():
            raise np.linalg.LinAlgError("a precision matrix is not positive definite")
    log_constant = float(np.log(np.einsum("nii->ni", root)).sum())
    white = np.swapaxes(root, 1, 2)
    if n == 1:
        gram = (rows.sparse.indices, precision[0]) if is_base(shifted(rows, -rows.constant)) else None
        return Known(apply(white[0], rows), np.ones(d), gram), log_constant
    columns = np.broadcast_to(np.arange(n * d).reshape(n, 1, d), white.shape)
    blocks = sp.csr_array((white.reshape(-1), columns.reshape(-1), np.arange(0, white.size + 1, d)))
    return Known(apply(blocks, rows), np.ones(n * d)), log_constant
