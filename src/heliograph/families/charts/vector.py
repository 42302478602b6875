# ruff: noqa: D102  (what each method gives is said once, at `Chart`)
"""The chart of vectors: corrections in the coordinates that whiten the reference."""

# Each chart takes messages of its own family.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from heliograph.families.charts.chart import Moments, Unchanged
from heliograph.families.multivariate_gaussian import MultivariateGaussian
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.symmetric import of_eigenvalues

__all__ = ["VectorChart"]


_MOST = 12.0  # |log ratio| beyond which a correction is cut: a matrix must stay positive definite in floating point


class VectorChart(Unchanged):
    """MultivariateGaussian: whitened by the symmetric root of the reference's covariance."""

    scalar, gaussian = False, True

    def __init__(self, dimension: int) -> None:
        self.dimension = self.n_coordinates = dimension
        self.rows, self.columns = np.tril_indices(dimension)
        # off-diagonal entries count twice in a symmetric matrix: with this scale lengths are those of the matrix
        self.scale = np.where(self.rows == self.columns, 1.0, np.sqrt(2.0))
        self.n_outputs = dimension + len(self.rows)
        self.basis = np.zeros((len(self.rows), dimension, dimension))
        for k, (i, j, c) in enumerate(zip(self.rows, self.columns, self.scale, strict=True)):
            self.basis[k, i, j] = self.basis[k, j, i] = 1.0 / c

    def log_jacobian(self, u: ArrayLike) -> np.ndarray:
        return np.zeros(np.shape(u)[:-1])

    def _flat(self, matrix: np.ndarray) -> np.ndarray:
        return matrix[:, self.rows, self.columns] * self.scale

    def _square(self, flat: np.ndarray) -> np.ndarray:
        return np.einsum("nk,kij->nij", flat, self.basis)

    def moments(self, message: MultivariateGaussian) -> Moments:
        return message.mean, message.covariance

    def plain(self, n: int) -> Moments:
        return np.zeros((n, self.dimension)), np.broadcast_to(
            np.eye(self.dimension), (n, self.dimension, self.dimension)
        )

    def features(self, message: MultivariateGaussian) -> np.ndarray:
        return np.concatenate([message.mean, self._flat(of_eigenvalues(message.covariance, np.log))], axis=1)

    def information_share(self, message: MultivariateGaussian, cavity: MultivariateGaussian) -> np.ndarray:
        tau, before = message.naturals[1], cavity.naturals[1]
        total = np.trace(np.linalg.pinv(tau + before) @ tau, axis1=-2, axis2=-1)
        return np.abs(total) / tau.shape[-1]

    def gap(self, moments: Moments, reference: Moments) -> np.ndarray:
        mean, covariance = reference
        white = of_eigenvalues(covariance, lambda v: v**-0.5)
        d1 = np.einsum("nij,nj->ni", white, moments[0] - mean)
        return np.concatenate([d1, self._flat(of_eigenvalues(white @ moments[1] @ white, np.log))], axis=1)

    def belief(self, target: np.ndarray, reference: Moments) -> MultivariateGaussian:
        mean, covariance = reference
        root = of_eigenvalues(covariance, np.sqrt)
        d = self.dimension
        # the precision from its own factors: nothing is inverted that was just multiplied
        half = of_eigenvalues(
            self._square(target[:, d:]), lambda v: np.exp(-0.5 * np.clip(v, -_MOST, _MOST))
        ) @ np.linalg.inv(root)
        precision = np.swapaxes(half, -1, -2) @ half
        m = mean + np.einsum("nij,nj->ni", root, target[:, :d])
        return MultivariateGaussian.from_naturals((np.einsum("nij,nj->ni", precision, m), precision))

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        d = self.dimension
        values, vectors = np.linalg.eigh(self._square(target[:, d:]))
        values = np.clip(values, -_MOST, _MOST)
        of_mean = 0.5 * np.einsum("nik,nk->ni", vectors**2, np.exp(-values))
        # the derivative of the matrix exponential, in its eigenbasis, relative to the matrix itself
        gap = 0.5 * (values[:, :, None] - values[:, None, :])
        flat = np.abs(gap) < 1e-6
        stretch = np.where(flat, 1.0, np.sinh(gap) / np.where(flat, 1.0, gap)) ** 2
        turned = np.einsum("nia,kij,njb->nkab", vectors, self.basis, vectors, optimize=True)
        of_log = 0.25 * np.einsum("nkab,nab->nk", turned**2, stretch)
        return np.concatenate([of_mean, of_log], axis=1)

    def noise(self, belief: MultivariateGaussian, covariance: np.ndarray, reference: Moments) -> np.ndarray:
        n, d = len(covariance), self.dimension
        white = of_eigenvalues(reference[1], lambda v: v**-0.5)
        of_mean = np.einsum("nij,njk,nik->ni", white, covariance[:, :d, :d], white)
        # the derivative of the matrix logarithm at the belief: in the eigenbasis, differences of logs over differences
        values, vectors = np.linalg.eigh(white @ belief.covariance @ white)
        logs = np.log(values)
        gap = values[:, :, None] - values[:, None, :]
        mid = 0.5 * (values[:, :, None] + values[:, None, :])
        near = np.abs(gap) < 1e-6 * mid
        slope = np.where(near, 1.0 / mid, (logs[:, :, None] - logs[:, None, :]) / np.where(near, 1.0, gap))
        turn = np.swapaxes(vectors, -1, -2) @ white  # (n, a, i)
        turned = np.einsum("nia,kij,njb->nkab", vectors, self.basis, vectors, optimize=True) * slope[:, None]
        rows = np.einsum("nkab,nai,nbj->nkij", turned, turn, turn, optimize=True).reshape(n, -1, d * d)
        of_log = np.einsum("nkp,npq,nkq->nk", rows, covariance[:, d:, d:], rows, optimize=True)
        return np.concatenate([of_mean, of_log], axis=1)

    def log_density(self, message: MultivariateGaussian, u: np.ndarray) -> np.ndarray:
        gap = u - message.mean
        return -0.5 * np.einsum("kni,nij,knj->kn", gap, message.naturals[1], gap, optimize=True)

    def log_constant(self, message: MultivariateGaussian) -> np.ndarray:
        return -0.5 * message.dimension * LOG_2PI + 0.5 * np.linalg.slogdet(message.naturals[1])[1]

    def project(self, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = (w[..., None] * u).sum(axis=0)
        gap = u - mean
        return mean, np.einsum("kn,kni,knj->nij", w, gap, gap)
