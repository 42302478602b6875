"""Conjugate gradients for many right-hand sides at once; solves and draws where a factorisation is too expensive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from heliograph.errors import UnsupportedError
from heliograph.numerics.sparse.bare import Bare, scaled, values_of
from heliograph.numerics.sparse.batched import NotPositiveDefiniteError

__all__ = ["Run", "conjugate_gradients", "information_noise", "solve_iteratively"]

MOST = 2_000  # iterations


class Run(NamedTuple):
    """How a run of conjugate gradients ended."""

    n_iterations: int
    residual: float  # the largest of all columns, relative to its right-hand side


def conjugate_gradients(
    matrix: sparse.csr_array, right: np.ndarray, start: np.ndarray | None, tolerance: float
) -> tuple[np.ndarray, Run]:
    """Solve ``matrix x = right`` for the columns of `right`, each to a relative residual of `tolerance`.

    A direction of negative curvature shows that the matrix is not positive definite, and raises.
    """
    x = np.zeros_like(right) if start is None else start.copy()
    rest = right.copy() if start is None else right - matrix @ x
    goal = np.einsum("nc,nc->c", right, right) * tolerance**2
    size = np.einsum("nc,nc->c", rest, rest)
    direction = rest.copy()
    n_iterations = 0
    while (size > goal).any() and n_iterations < MOST:
        moved = matrix @ direction
        curvature = np.einsum("nc,nc->c", direction, moved)
        active = size > goal
        if not (curvature[active] > 0).all():
            raise NotPositiveDefiniteError("the precision is not positive definite")
        step = np.divide(size, curvature, out=np.zeros_like(size), where=active)
        x += step * direction
        moved *= step
        rest -= moved
        new = np.einsum("nc,nc->c", rest, rest)
        direction *= np.divide(new, size, out=np.zeros_like(size), where=active)
        direction += rest
        size = new
        n_iterations += 1
    relative = np.sqrt(np.divide(size, goal, out=np.zeros_like(size), where=goal > 0)).max(initial=0.0) * tolerance
    return x, Run(n_iterations, float(relative))


# ---- solves and draws by them alone ----------------------------------------------------------------------------------
_EXACT = 1e-10  # relative residual


def solve_iteratively(
    bare: Bare, taus: Sequence[np.ndarray], right: np.ndarray, tolerance: float = _EXACT
) -> np.ndarray:
    """``inv(precision) right`` for right-hand sides (n, c) in the order of the variables, to a relative residual.

    `taus` are the weights of every part, as in `estimate`.
    """
    plan = bare.plan
    n, n_core = plan.n_sparse, plan.n_core
    values = values_of(bare, taus)
    if not n_core:
        scale, matrix, _ = scaled(bare, values)
    else:
        inner = sparse.csr_array((values[bare.source], bare.indices, bare.indptr), shape=(n, n))
        border = sparse.csr_array(values[plan.border].reshape(n, n_core))
        core = values[plan.core].reshape(n_core, n_core)
        core = sparse.csr_array(np.tril(core) + np.tril(core, -1).T)
        whole = sparse.csr_array(sparse.block_array([[inner, border], [border.T, core]]))
        scale = 1.0 / np.sqrt(whole.diagonal())
        matrix = sparse.csr_array(whole.multiply(scale[:, None]).multiply(scale[None, :]))
    ordered = np.asarray(right, dtype=float)[plan.order]
    solved, _ = conjugate_gradients(matrix, scale[:, None] * ordered, None, tolerance)
    found = np.empty_like(solved)
    found[plan.order] = scale[:, None] * solved
    return found


def information_noise(rng: np.random.Generator, bare: Bare, taus: Sequence[np.ndarray], n_draws: int) -> np.ndarray:
    """Normal draws (n, n_draws) whose covariance is the precision itself: its inverse times one is a draw of the variables.

    Raises `UnsupportedError` where a site has a negative weight: the precision is then no sum of squares.
    """
    total = np.zeros((len(bare.plan.order), n_draws))
    for part, tau in zip(bare.parts, taus, strict=True):
        tau = np.asarray(tau, dtype=float)
        z = rng.standard_normal((part.rows.n_rows, n_draws))
        if tau.ndim == 1:
            if (tau < 0).any():
                raise UnsupportedError(_NEGATIVE)
            weighed = np.sqrt(tau)[:, None] * z
        else:
            value, vector = np.linalg.eigh(tau)
            if (value < -1e-10 * np.abs(value).max(axis=1, keepdims=True)).any():
                raise UnsupportedError(_NEGATIVE)
            root = vector * np.sqrt(np.maximum(value, 0.0))[:, None]
            weighed = (root @ z.reshape(-1, part.rows.width, n_draws)).reshape(-1, n_draws)
        ordered = part.matrix.T @ weighed
        for dense in part.dense:
            at = slice(bare.plan.n_sparse + dense.start, bare.plan.n_sparse + dense.start + dense.matrix.shape[1])
            ordered[at] += dense.matrix.T @ weighed[dense.first : dense.stop]
        total[bare.plan.order] += ordered
    return total


_NEGATIVE = (
    "some messages to a block have a negative precision, and the block is too large to be drawn from; "
    "use structure='factorised'"
)
