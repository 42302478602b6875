"""Tilted distributions of vectors: a Gaussian cavity of several numbers times a factor, and the message that follows.

Everything is measured in the cavity's own coordinates, ``z = mean + L t`` with ``L L'`` its covariance, so that a narrow cavity
loses no digits: of the tilted t, the mean and what its covariance has more than the identity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.families import MultivariateGaussian
from heliograph.numerics.symmetric import positive_definite

__all__ = ["VectorCavity", "VectorTilt", "mix_tilts", "vector_belief", "vector_cavity", "vector_site"]


class VectorCavity(NamedTuple):
    """A plate of Gaussian cavities of vectors; where there is none, the standard one stands in."""

    mean: np.ndarray  # (n, d)
    root: np.ndarray  # (n, d, d), lower triangular; zero at point masses
    known: np.ndarray  # (n,) where there is a distribution at all
    point: np.ndarray  # (n,) where it is a point mass


class VectorTilt(NamedTuple):
    """The tilted distribution in the cavity's coordinates."""

    log_z: np.ndarray  # (n,)
    mean: np.ndarray  # (n, d) of t: the slope of log Z along the root
    excess: np.ndarray  # (n, d, d): the covariance of t less the identity


def vector_cavity(message: MultivariateGaussian) -> VectorCavity:
    """The cavities of a flat plate of messages."""
    shift, precision = message.naturals
    d = shift.shape[-1]
    point = message.is_point
    soft = message.proper & ~point
    lower = np.linalg.cholesky(np.where(soft[:, None, None], precision, np.eye(d)))
    back = np.linalg.inv(lower)  # precision = lower lower', so that covariance = back' back
    mean = np.einsum("nji,nj->ni", back, np.einsum("nij,nj->ni", back, np.where(soft[:, None], shift, 0.0)))
    root = np.linalg.qr(back).R  # triangular again: back = Q R, covariance = R' R
    root = np.swapaxes(root * np.sign(np.einsum("nii->ni", root))[:, :, None], 1, 2)
    if message.point is not None:
        mean = np.where(point[:, None], np.where(point[:, None], message.point, 0.0), mean)
        root = np.where(point[:, None, None], 0.0, root)
    return VectorCavity(mean, root, soft | point, point)


def vector_site(cavity: VectorCavity, tilt: VectorTilt) -> tuple[np.ndarray, np.ndarray]:
    """Shift and precision of the message, eq. (1): the tilted belief divided by the cavity; not for point masses."""
    d = cavity.mean.shape[1]
    safe = np.where(cavity.point[:, None, None], np.eye(d), cavity.root)
    back = np.linalg.inv(safe)
    whole = np.eye(d) + tilt.excess
    good = np.asarray(np.isfinite(whole).all(axis=(1, 2)))
    good[good] = positive_definite(whole[good])
    inverse = np.where(good[:, None, None], np.linalg.inv(np.where(good[:, None, None], whole, np.eye(d))), np.nan)
    inner = -tilt.excess @ inverse
    precision = np.swapaxes(back, 1, 2) @ (0.5 * (inner + np.swapaxes(inner, 1, 2))) @ back
    shift = np.einsum("nji,nj->ni", back, np.einsum("nij,nj->ni", inverse, tilt.mean))
    return shift + np.einsum("nij,nj->ni", precision, cavity.mean), precision


def vector_belief(cavity: VectorCavity, tilt: VectorTilt) -> MultivariateGaussian:
    """The projected tilted distribution; not for point masses."""
    d = cavity.mean.shape[1]
    safe = np.where(cavity.point[:, None, None], np.eye(d), cavity.root)
    covariance = safe @ (np.eye(d) + tilt.excess) @ np.swapaxes(safe, 1, 2)
    mean = cavity.mean + np.einsum("nij,nj->ni", safe, tilt.mean)
    return MultivariateGaussian(mean, 0.5 * (covariance + np.swapaxes(covariance, 1, 2)))


def mix_tilts(tilts: list[VectorTilt], log_weight: np.ndarray) -> VectorTilt:
    """The tilt of a weighted sum of factors, ``log_weight`` (n, k)."""
    log_w = np.stack([t.log_z for t in tilts], axis=1) + log_weight
    top = log_w.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    w = np.exp(log_w - safe[:, None])
    total = w.sum(axis=1)
    w = w / np.where(total > 0, total, 1.0)[:, None]
    mean = sum(w[:, k, None] * t.mean for k, t in enumerate(tilts))
    excess = sum(
        w[:, k, None, None] * (t.excess + (t.mean - mean)[:, :, None] * (t.mean - mean)[:, None, :])
        for k, t in enumerate(tilts)
    )
    with np.errstate(divide="ignore"):
        return VectorTilt(safe + np.log(total), np.asarray(mean), np.asarray(excess))
