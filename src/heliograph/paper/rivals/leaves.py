"""The leaves of Eslami's trees: ridge regressions on polynomials of degree 2, and what a split of one gains."""

from __future__ import annotations

import numpy as np

__all__ = ["fit_leaves", "n_quadratic_terms", "quadratic_terms", "standardised", "two_sided_gain"]

_RIDGE = 1e-3  # of the linear fits that score a candidate; their inputs are standardised


def n_quadratic_terms(n_columns: int) -> int:
    """How many terms a polynomial of degree 2 has.

    >>> n_quadratic_terms(2)  # 1, x, y, xx, xy, yy
    6
    """
    return 1 + n_columns + n_columns * (n_columns + 1) // 2


def quadratic_terms(Z: np.ndarray) -> np.ndarray:
    """1, the inputs, and their products of two, along the last axis."""
    i, j = np.triu_indices(Z.shape[-1])
    return np.concatenate([np.ones((*Z.shape[:-1], 1)), Z, Z[..., i] * Z[..., j]], axis=-1)


def fit_leaves(
    Z: np.ndarray, Y: np.ndarray, there: np.ndarray, ridge: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ridge regressions of many leaves at once: the centre and scale of their inputs, and the weights of the terms.

    Parameters
    ----------
    Z
        Inputs (leaves, rows, columns), padded to the longest leaf, which is the last.
    Y
        Outputs (leaves, rows, q), padded alike.
    there
        Which of the rows (leaves, rows) are rows and not padding.
    ridge
        The prior precision of every weight.
    """
    weight, n = there[..., None].astype(float), there.sum(axis=1)[:, None]
    centre = (Z * weight).sum(axis=1) / n
    Z = (Z - centre[:, None]) * weight
    scale = np.sqrt((Z**2).sum(axis=1) / n)
    scale = np.where(scale > 1e-9 * np.abs(centre), scale, np.inf)  # constant in this leaf: it has no slope
    offset = (Y * weight).sum(axis=1) / n
    phi = quadratic_terms(Z / scale[:, None]) * weight
    Y = (Y - offset[:, None]) * weight
    phi_t = phi.transpose(0, 2, 1)
    n_rows, n_terms = phi.shape[1:]
    if n_terms <= n_rows:
        weights = np.linalg.solve(phi_t @ phi + ridge * np.eye(n_terms), phi_t @ Y)
    else:  # fewer rows than terms: the same ridge from the smaller side
        weights = phi_t @ np.linalg.solve(phi @ phi_t + ridge * np.eye(n_rows), Y)
    weights[:, 0] += offset
    return centre, scale, weights


def two_sided_gain(Z: np.ndarray, Y: np.ndarray, is_left: np.ndarray) -> np.ndarray:
    """How much ridge regressions on (1, Z) explain on the two sides of each candidate split, (candidates,).

    Linear fits, though leaves are quadratic: a quadratic with as many terms as a small side has rows explains
    everything there, and would make the smallest sides look best.
    """
    phi = np.concatenate([np.ones((len(Z), 1)), Z], axis=1)
    p = phi.shape[1]
    i, j = np.triu_indices(p)
    products = np.concatenate([phi[:, i] * phi[:, j], (phi[:, :, None] * Y[:, None, :]).reshape(len(Y), -1)], axis=1)
    left = is_left.T.astype(float) @ products  # all candidates' sums in one product
    sums = np.concatenate([left, products.sum(axis=0) - left])
    gram = np.empty((len(sums), p, p))
    gram[:, i, j] = gram[:, j, i] = sums[:, : len(i)]
    gram += _RIDGE * np.eye(p)
    cross = sums[:, len(i) :].reshape(len(sums), p, -1)
    gain = (np.linalg.solve(gram, cross) * cross).sum(axis=(1, 2))
    return gain[: len(left)] + gain[len(left) :]


def standardised(A: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1; a constant column becomes 0."""
    mean, sd = A.mean(axis=0), A.std(axis=0)
    return (A - mean) / np.where(sd > 1e-12 * np.abs(mean), sd, np.inf)
