"""A surrogate of functions that are known at scattered points: a polynomial and cubic radial functions through all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Surrogate", "fit", "matrix"]


class Surrogate(NamedTuple):
    """An interpolant of one function."""

    points: np.ndarray  # (P, d)
    sloped: np.ndarray  # (S, d) points whose gradient is known
    weights: np.ndarray  # (P + S d,) of the radial functions, and of their derivatives
    tail: np.ndarray  # coefficients of the polynomial
    degree: int

    def at(self, z: np.ndarray) -> np.ndarray:
        """Its values at points ``(K, d)``."""
        columns = np.concatenate([_radial(z, self.points), _slopes(z, self.sloped)], axis=1)
        return columns @ self.weights + _monomials(z, self.degree) @ self.tail


def fit(points: np.ndarray, values: np.ndarray, gradients: np.ndarray | None = None) -> Surrogate:
    """The interpolant through values at points, and through gradients where they are known.

    The polynomial is quadratic where there are points enough for one, linear or constant else; the cubic radial functions carry
    what it leaves, and have no part in any polynomial of its degree.

    Parameters
    ----------
    points
        ``(P, d)``.
    values
        ``(P,)``.
    gradients
        ``(P, d)``, NaN where one is not known.

    >>> points = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> fit(points, 3.0 - points[:, 0] ** 2).at(np.array([[0.5]])).round(12)
    array([2.75])
    """
    known = np.zeros(len(points), dtype=bool) if gradients is None else np.isfinite(gradients).all(axis=1)
    sloped, degree = points[known], _degree(points)
    tail = np.concatenate([_monomials(points, degree), _monomial_slopes(sloped, degree)])
    n, q = tail.shape
    cross = _slopes(points, sloped)
    system = np.zeros((n + q, n + q))
    system[:n, :n] = np.block([[_radial(points, points), cross], [cross.T, _bends(sloped)]])
    system[:n, n:], system[n:, :n] = tail, tail.T
    said = values if gradients is None else np.concatenate([values, gradients[known].reshape(-1)])
    solved = np.linalg.lstsq(system, np.concatenate([said, np.zeros(q)]), rcond=1e-13)[0]
    return Surrogate(points, sloped, solved[:n], solved[n:], degree)


def matrix(points: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The matrix ``(K, P)`` that takes values at the points to those of the interpolant at z."""
    operator, degree = _operator(points)
    return np.concatenate([_radial(z, points), _monomials(z, degree)], axis=1) @ operator


def _operator(points: np.ndarray) -> tuple[np.ndarray, int]:
    """What takes values at the points to the weights and the tail, and the degree of the tail."""
    n = len(points)
    degree = _degree(points)
    tail = _monomials(points, degree)
    q = tail.shape[1]
    system = np.zeros((n + q, n + q))
    system[:n, :n] = _radial(points, points)
    system[:n, n:], system[n:, :n] = tail, tail.T
    return np.linalg.pinv(system, rcond=1e-13)[:, :n], degree


def _degree(points: np.ndarray) -> int:
    return next(k for k in (2, 1, 0) if k == 0 or _well_placed(points, k))


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


def _slopes(z: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Derivatives of ``|z - x|^3`` by every coordinate of the points x, ``(K, S d)``."""
    gaps = z[:, None, :] - points[None, :, :]
    length = np.sqrt(np.einsum("ksd,ksd->ks", gaps, gaps))
    return (-3.0 * length[:, :, None] * gaps).reshape(len(z), -1)


def _bends(points: np.ndarray) -> np.ndarray:
    """Derivatives of ``|z - x|^3`` by the coordinates of both, ``(S d, S d)``."""
    n, d = points.shape
    gaps = points[:, None, :] - points[None, :, :]
    length = np.sqrt(np.einsum("ksd,ksd->ks", gaps, gaps))
    over = gaps / np.where(length > 0, length, 1.0)[:, :, None]
    each = length[:, :, None, None] * np.eye(d) + gaps[:, :, :, None] * over[:, :, None, :]  # (S, S, d, d)
    return -3.0 * np.transpose(each, (0, 2, 1, 3)).reshape(n * d, n * d)


def _monomial_slopes(z: np.ndarray, degree: int) -> np.ndarray:
    """Derivatives of the monomials by every coordinate, ``(S d, q)``."""
    n, d = z.shape
    columns = [np.zeros((n, d))]
    unit = np.eye(d)
    if degree > 0:
        columns += [np.broadcast_to(unit[i], (n, d)) for i in range(d)]
    if degree > 1:
        columns += [z[:, i : i + 1] * unit[j] + z[:, j : j + 1] * unit[i] for i in range(d) for j in range(i, d)]
    return np.stack([c.reshape(-1) for c in columns], axis=1)


def _monomials(z: np.ndarray, degree: int) -> np.ndarray:
    n, d = z.shape
    columns = [np.ones(n)]
    if degree > 0:
        columns += [z[:, i] for i in range(d)]
    if degree > 1:
        columns += [z[:, i] * z[:, j] for i in range(d) for j in range(i, d)]
    return np.stack(columns, axis=1)
