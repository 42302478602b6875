"""A surrogate of functions that are known at scattered points: a polynomial and cubic radial functions through all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Surrogate", "fit", "matrix"]


class Surrogate(NamedTuple):
    """An interpolant of one function."""

    points: np.ndarray  # (P, d)
    weights: np.ndarray  # (P,) of the radial functions
    tail: np.ndarray  # coefficients of the polynomial
    degree: int

    def at(self, z: np.ndarray) -> np.ndarray:
        """Its values at points ``(K, d)``."""
        return _radial(z, self.points) @ self.weights + _monomials(z, self.degree) @ self.tail


def fit(points: np.ndarray, values: np.ndarray) -> Surrogate:
    """The interpolant through values at points.

    The polynomial is quadratic where there are points enough for one, linear or constant else; the cubic radial functions carry
    what it leaves, and have no part in any polynomial of its degree.

    >>> points = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> fit(points, 3.0 - points[:, 0] ** 2).at(np.array([[0.5]])).round(12)
    array([2.75])
    """
    operator, degree = _operator(points)
    solved = operator @ values
    n = len(points)
    return Surrogate(points, solved[:n], solved[n:], degree)


def matrix(points: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The matrix ``(K, P)`` that takes values at the points to those of the interpolant at z."""
    operator, degree = _operator(points)
    return np.concatenate([_radial(z, points), _monomials(z, degree)], axis=1) @ operator


def _operator(points: np.ndarray) -> tuple[np.ndarray, int]:
    """What takes values at the points to the weights and the tail, and the degree of the tail."""
    n = len(points)
    degree = next(k for k in (2, 1, 0) if k == 0 or _well_placed(points, k))
    tail = _monomials(points, degree)
    q = tail.shape[1]
    system = np.zeros((n + q, n + q))
    system[:n, :n] = _radial(points, points)
    system[:n, n:], system[n:, :n] = tail, tail.T
    return np.linalg.pinv(system, rcond=1e-13)[:, :n], degree


def _well_placed(points: np.ndarray, degree: int) -> bool:
    """Whether the points determine a polynomial of that degree, with some to spare."""
    tail = _monomials(points, degree)
    n, q = tail.shape
    if n < q + (degree > 1):
        return False
    size = np.linalg.svd(tail, compute_uv=False)
    return bool(size[-1] > 1e-4 * size[0])


def _radial(z: np.ndarray, points: np.ndarray) -> np.ndarray:
    gaps = z[:, None, :] - points[None, :, :]
    return np.einsum("kpd,kpd->kp", gaps, gaps) ** 1.5


def _monomials(z: np.ndarray, degree: int) -> np.ndarray:
    n, d = z.shape
    columns = [np.ones(n)]
    if degree > 0:
        columns += [z[:, i] for i in range(d)]
    if degree > 1:
        columns += [z[:, i] * z[:, j] for i in range(d) for j in range(i, d)]
    return np.stack(columns, axis=1)
