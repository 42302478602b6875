"""Those entries of the covariance that the pattern holds, and the variances of expressions made from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heliograph.numerics.sparse.batched import inverse_from_cholesky
from heliograph.numerics.sparse.factor import Factor, blocks
from heliograph.numerics.sparse.layout import Group
from heliograph.numerics.sparse.placing import Placed, from_upper_triangles

__all__ = ["Inverse", "add_core", "invert", "variances"]

CHUNK = 4096  # rows whose dense part over the core is made at a time


@dataclass(frozen=True)
class Inverse:
    """The inverse of the sparse part where the filled pattern has entries, and that of the core."""

    factor: Factor
    values: np.ndarray  # laid out as the plan says, up to the border
    core: np.ndarray  # (D, D) covariance of the core


def invert(factor: Factor) -> Inverse:
    """Selected inversion: about the cost of the factorisation again."""
    plan = factor.plan
    assert plan.layout is not None
    values = np.empty(plan.border.start)
    values[plan.tail_values] = inverse_from_cholesky(factor.tail).ravel()
    for group in reversed(plan.layout.groups):
        _invert_group(factor.values, values, group)
    return Inverse(factor, values, inverse_from_cholesky(factor.core_root))


def _invert_group(factor: np.ndarray, inverse: np.ndarray, group: Group) -> None:
    """``S_near = -inv(D) C S_later`` and ``S_self = inv(D) + inv(D) C S_later C' inv(D)`` for a group."""
    _, d, k = group.shape
    root, beside = blocks(factor, group)
    own, near = blocks(inverse, group)
    if d == 1:
        own[...] = root**2
    else:
        own[...] = root.transpose(0, 2, 1) @ root
    if not k:
        return
    later = np.take(inverse[group.targets], group.full, axis=1)  # (m, k, k)
    gain = root * beside if d == 1 else root.transpose(0, 2, 1) @ beside  # inv(D) C
    if d == 1:
        moved = np.einsum("mk,mkl->ml", gain[:, 0], later)
        own[:, 0, 0] += np.einsum("mk,mk->m", moved, gain[:, 0])
        near[:, 0] = -moved
    else:
        moved = gain @ later
        own += moved @ gain.transpose(0, 2, 1)
        near[...] = -moved


def variances(inverse: Inverse, placed: Placed) -> np.ndarray:
    """Variances (m,) of placed rows; where sites have q rows, their joint covariances (sites, q, q).

    With ``a = (s, c)``, s over the sparse part and c over the core, the variance is ``s' inv(Q) s + g' S g`` where S is the
    covariance of the core and ``g = c - B' inv(Q) s``.
    """
    if placed.from_inverse is None or placed.from_core is None:
        raise ValueError("these rows were placed with queried=False")
    out = from_upper_triangles(placed.from_inverse @ inverse.values, placed.rows.width)
    if placed.core_alone:
        out += from_upper_triangles(placed.from_core @ inverse.core.ravel(), placed.rows.width)
    else:
        add_core(out, placed, inverse.factor.border, inverse.core)
    return out


def add_core(out: np.ndarray, placed: Placed, border: np.ndarray, core: np.ndarray) -> None:
    """Add ``g' S g`` to variances (m,) or (sites, q, q), given ``border = inv(Q) B`` and the covariance S of the core."""
    q, n_rows, n_core = placed.rows.width, placed.rows.n_rows, len(core)
    if not n_core:
        return
    for low in range(0, n_rows, CHUNK * q):
        g = _over_core(placed, border, slice(low, min(low + CHUNK * q, n_rows)))
        sites = slice(low // q, low // q + len(g) // q)
        if q == 1:
            out[sites] += np.einsum("md,md->m", g @ core, g)
        else:
            g = g.reshape(-1, q, n_core)
            out[sites] += g @ core @ g.transpose(0, 2, 1)


def _over_core(placed: Placed, border: np.ndarray, rows: slice) -> np.ndarray:
    """``c - B' inv(Q) s`` for some rows (m, D)."""
    n = placed.plan.n_sparse
    part = placed.matrix[rows]
    if not part.nnz:
        g = np.zeros((rows.stop - rows.start, placed.plan.n_core))
    else:
        g = part[:, n:].toarray() - part[:, :n] @ border
    for dense in placed.dense:
        low, high = max(rows.start, dense.first), min(rows.stop, dense.stop)
        if low < high:
            columns = slice(dense.start, dense.start + dense.matrix.shape[1])
            g[low - rows.start : high - rows.start, columns] += dense.matrix[low - dense.first : high - dense.first]
    return g
