"""The Cholesky factor of a planned precision, and what is solved with it.

With the sparse part ``Q = L L'``, the border B and the core C the precision is factorised as

    [ Q   B ]   [ L    0 ] [ L'   H ]
    [ B'  C ] = [ H'   R ] [ 0    R']     with H = inv(L) B and R R' = C - H'H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from heliograph.numerics.sparse.batched import cholesky, inverse_roots, lost
from heliograph.numerics.sparse.layout import Group
from heliograph.numerics.sparse.plan import Plan, TooExpensiveError
from heliograph.numerics.sparse.rows import Rows, entries

__all__ = ["Factor", "backward", "blocks", "covariance", "factorise", "forward", "sample", "solve"]


@dataclass(frozen=True)
class Factor:
    """A precision, factorised. Vectors over the sparse part are in the order of elimination."""

    plan: Plan
    values: np.ndarray  # laid out as the plan says: inv(L) of each diagonal block, and inv(L) times what is beside it
    tail: np.ndarray  # (T, T) lower Cholesky factor
    half_border: np.ndarray  # (n_sparse, D) H
    border: np.ndarray  # (n_sparse, D) inv(Q) B
    core_root: np.ndarray  # (D, D) lower Cholesky factor of C - H'H
    log_determinant: float


def blocks(values: np.ndarray, group: Group) -> tuple[np.ndarray, np.ndarray]:
    """Views of a group's diagonal blocks (m, d, d) and of the blocks (m, d, k) beside them."""
    m, d, k = group.shape
    return values[group.diagonal].reshape(m, d, d), values[group.beside].reshape(m, d, k)


def factorise(plan: Plan, values: np.ndarray) -> Factor:
    """Factorise the precision with these `values`, or raise `NotPositiveDefiniteError`."""
    if plan.layout is None:
        raise TooExpensiveError(f"a joint solve takes {plan.flops:.1e} operations and {plan.bytes:.1e} bytes")
    if not plan.filled:
        raise ValueError("this plan has no room for a factor")
    if values.shape != (plan.fill,):
        raise ValueError(f"{values.shape} values for a plan of {plan.fill}")
    values = np.array(values, dtype=float)
    border = values[plan.border].reshape(plan.n_sparse, plan.n_core)
    core = values[plan.core].reshape(plan.n_core, plan.n_core)
    tail = values[plan.tail_values].reshape(plan.tail, plan.tail)
    tail_floor = lost(np.diagonal(tail))
    core_floor = lost(np.diagonal(core))
    log_determinant = 0.0
    floors = [lost(np.einsum("mii->mi", blocks(values, group)[0])) for group in plan.layout.groups]
    for group, floor in zip(plan.layout.groups, floors, strict=True):
        log_determinant += _eliminate(values, group, floor)
    root = cholesky(tail, tail_floor)
    log_determinant += 2.0 * float(np.log(np.diagonal(root)).sum())
    half = border
    if plan.n_core:
        sparse_part = Factor(plan, values, root, border, border, core, log_determinant)
        half = forward(sparse_part, border)
        core -= half.T @ half
        border = backward(sparse_part, half)
    core_root = cholesky(core, core_floor)
    log_determinant += 2.0 * float(np.log(np.diagonal(core_root)).sum())
    return Factor(plan, values, root, half, border, core_root, log_determinant)


def _eliminate(values: np.ndarray, group: Group, floor: np.ndarray) -> float:
    """Eliminate a group in place; gives its part of the log determinant."""
    m, d, k = group.shape
    diagonal, beside = blocks(values, group)
    root = inverse_roots(diagonal, floor)
    diagonal[...] = root
    if k:
        if d == 1:
            beside *= root
            flat = beside[:, 0]
            update = np.take(flat, group.first, axis=1) * np.take(flat, group.second, axis=1)
        else:
            beside[...] = root @ beside
            square = beside.transpose(0, 2, 1) @ beside
            update = np.take(square.reshape(m, k * k), group.first * k + group.second, axis=1)
        np.subtract.at(values, group.targets.ravel(), update.ravel())
    return -2.0 * float(np.log(np.einsum("mii->mi", root)).sum())


def _times(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Matrices (m, a, b) times blocks (m, b, c); single numbers are multiplied without BLAS, which is slow for them."""
    return matrix * vector if matrix.shape[2] == 1 else matrix @ vector


def forward(factor: Factor, right: np.ndarray) -> np.ndarray:
    """``inv(L) right`` for right-hand sides (n_sparse, c)."""
    assert factor.plan.layout is not None
    h = np.array(right, dtype=float)
    n, c = h.shape
    flat = h.reshape(-1)
    for group in factor.plan.layout.groups:
        m, d, k = group.shape
        root, beside = blocks(factor.values, group)
        solved = _times(root, h[group.rows].reshape(m, d, c))
        h[group.rows] = solved.reshape(m * d, c)
        if k:
            update = _times(beside.transpose(0, 2, 1), solved)
            at = group.neighbours if c == 1 else group.neighbours[:, :, None] * c + np.arange(c)
            np.subtract.at(flat, at.ravel(), update.ravel())
    rest = n - factor.plan.tail
    if factor.plan.tail and c:
        h[rest:] = solve_triangular(factor.tail, h[rest:], lower=True, check_finite=False)
    return h


def backward(factor: Factor, half: np.ndarray) -> np.ndarray:
    """``inv(L') half`` for right-hand sides (n_sparse, c)."""
    assert factor.plan.layout is not None
    x = np.array(half, dtype=float)
    n, c = x.shape
    rest = n - factor.plan.tail
    if factor.plan.tail and c:
        x[rest:] = solve_triangular(factor.tail, x[rest:], lower=True, trans=1, check_finite=False)
    for group in reversed(factor.plan.layout.groups):
        m, d, k = group.shape
        root, beside = blocks(factor.values, group)
        mine = x[group.rows].reshape(m, d, c)
        if k and d == 1:
            mine = mine - np.einsum("mk,mkc->mc", beside[:, 0], x[group.neighbours])[:, None]
        elif k:
            mine = mine - beside @ x[group.neighbours]
        x[group.rows] = _times(root.transpose(0, 2, 1), mine).reshape(m * d, c)
    return x


def _half_solve(factor: Factor, right: np.ndarray) -> np.ndarray:
    """inv of the whole lower factor, times right-hand sides (n, c) in the order of elimination."""
    n = factor.plan.n_sparse
    upper = forward(factor, right[:n])
    lower = right[n:] - factor.half_border.T @ upper
    return np.concatenate([upper, solve_triangular(factor.core_root, lower, lower=True, check_finite=False)])


def _finish_solve(factor: Factor, half: np.ndarray) -> np.ndarray:
    """inv of the whole factor transposed, times (n, c), into the order of the variables."""
    plan, n = factor.plan, factor.plan.n_sparse
    x = np.empty_like(half)
    lower = solve_triangular(factor.core_root, half[n:], lower=True, trans=1, check_finite=False)
    x[plan.order[n:]] = lower
    x[plan.order[:n]] = backward(factor, half[:n]) - factor.border @ lower
    return x


def solve(factor: Factor, right: np.ndarray) -> np.ndarray:
    """Solve ``precision x = right`` for right-hand sides (n,) or (n, c): means, from information vectors."""
    columns = right.reshape(len(right), -1)
    return _finish_solve(factor, _half_solve(factor, columns[factor.plan.order])).reshape(right.shape)


def sample(rng: np.random.Generator, factor: Factor, n_samples: int) -> np.ndarray:
    """Draws (n_samples, n) with mean zero and the inverse of the precision as covariance."""
    return _finish_solve(factor, rng.standard_normal((len(factor.plan.order), n_samples))).T


def covariance(factor: Factor, rows: Rows, others: Rows | None = None) -> np.ndarray:
    """Covariance (m, m') of a few expressions, of any pattern, with each other or with `others`, by solves."""
    half = _half_solve(factor, _transposed(factor.plan, rows))
    return half.T @ (half if others is None else _half_solve(factor, _transposed(factor.plan, others)))


def _transposed(plan: Plan, rows: Rows) -> np.ndarray:
    """A' (n, m), dense, in the order of elimination."""
    dense = entries(rows).T.toarray()
    for part in rows.dense:
        dense[part.start : part.start + part.matrix.shape[1], part.first : part.stop] += part.matrix.T
    return dense[plan.order]
