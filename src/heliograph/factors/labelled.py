"""Labels whose probabilities are a function of a Gaussian number or vector: the base classes of such factors.

A subclass of `OfVector` gives the tilt of a cavity for each label; soft labels mix them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.integrals.vector_tilt import (
    VectorCavity,
    VectorTilt,
    mix_tilts,
    vector_belief,
    vector_cavity,
    vector_site,
)
from heliograph.families import Bernoulli, Categorical, Family, Gaussian, MultivariateGaussian

__all__ = ["OfScore", "OfVector"]


class OfScore(Factor):
    """A binary ``y`` given a Gaussian number ``z``."""

    families: ClassVar = {"z": (Gaussian,), "y": (Bernoulli,)}
    ignores_own = ("y",)
    powers = True
    smooth = True


class OfVector(Factor):
    """A categorical ``y`` given a Gaussian vector ``z``; an improper cavity learns nothing, and says nothing of y."""

    families: ClassVar = {"z": (MultivariateGaussian,), "y": (Categorical,)}
    ignores_own = ("y",)

    def tilt(self, cavity: VectorCavity, label: np.ndarray) -> VectorTilt:
        """The tilt of each cavity and the probability of its label."""
        raise NotImplementedError  # pragma: no cover

    def at_point(self, z: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``log`` of the probability of the label at z, its slope (n, d) and curvature (n, d, d)."""
        raise NotImplementedError  # pragma: no cover

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        z, y, shape = self._read(incoming)
        cavity = vector_cavity(z)
        if to == "y":
            log_p = self._log_p(cavity, y.n_categories)
            return Categorical.from_naturals((np.where(cavity.known[:, None], log_p, 0.0),)).reshape(shape)
        flat = self._silent(y) | ~cavity.known
        shift, precision = np.zeros(z.naturals[0].shape), np.zeros(z.naturals[1].shape)
        soft = np.flatnonzero(~flat & ~cavity.point)
        if soft.size:
            part = VectorCavity(*(a[soft] for a in cavity))
            shift[soft], precision[soft] = vector_site(part, self._tilt(part, y[soft]))
        points = np.flatnonzero(~flat & cavity.point)
        if points.size:
            shift[points], precision[points] = self._point_site(cavity.mean[points], y[points])
        return MultivariateGaussian.from_naturals((shift, precision)).reshape(shape)

    def belief(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """The projected tilted distribution of z, which keeps more digits than the product; of y the product."""
        sent = self.message(to, incoming)
        if to == "y":
            return sent * incoming["y"]
        z, y, shape = self._read(incoming)
        cavity = vector_cavity(z)
        soft = np.flatnonzero(~self._silent(y) & cavity.known & ~cavity.point)
        whole = sent.reshape((z.size,)) * z
        if not soft.size:
            return whole.reshape(shape)
        part = VectorCavity(*(a[soft] for a in cavity))
        tilt = self._tilt(part, y[soft])
        good = np.isfinite(tilt.mean).all(axis=1) & np.isfinite(tilt.excess).all(axis=(1, 2))
        held = vector_belief(VectorCavity(*(a[good] for a in part)), VectorTilt(*(a[good] for a in tilt)))
        naturals = [a.copy() for a in whole.naturals]
        for a, b in zip(naturals, held.naturals, strict=True):
            a[soft[good]] = b
        return MultivariateGaussian.from_naturals(tuple(naturals), whole.point).reshape(shape)

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the probability of the message at y."""
        z, y, shape = self._read(incoming)
        cavity = vector_cavity(z)
        log_p = self._log_p(cavity, y.n_categories, y)
        weight = y.log_p
        both = np.where(np.isneginf(weight), -np.inf, weight + np.where(np.isneginf(weight), 0.0, log_p))
        top = both.max(axis=1)
        safe = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            log_z = safe + np.log(np.exp(both - safe[:, None]).sum(axis=1))
        # under an improper cavity a uniform y leaves what is not normalised, any other y what may diverge
        return np.where(cavity.known, log_z, np.inf).reshape(shape)

    # ---- parts ----------------------------------------------------------------------------------------------------
    def _tilt(self, cavity: VectorCavity, y: Categorical) -> VectorTilt:
        """The tilt under labels that may be soft."""
        if y.point is not None and y.is_point.all():
            return self.tilt(cavity, y.point.astype(int))
        k = y.n_categories
        tilts = [self.tilt(cavity, np.full(y.size, j)) for j in range(k)]
        return mix_tilts(tilts, y.log_p)

    def _log_p(self, cavity: VectorCavity, k: int, y: Categorical | None = None) -> np.ndarray:
        """``log`` of the probability of every label (n, k), or only of the known one."""
        n = len(cavity.mean)
        if y is not None and y.point is not None and y.is_point.all():
            label = y.point.astype(int)
            found = np.full((n, k), -np.inf)
            found[np.arange(n), label] = self._log_z(cavity, label)
            return found
        return np.stack([self._log_z(cavity, np.full(n, j)) for j in range(k)], axis=1)

    def _log_z(self, cavity: VectorCavity, label: np.ndarray) -> np.ndarray:
        points = self.at_point(cavity.mean, label)[0] if cavity.point.any() else 0.0
        if cavity.point.all():
            return np.asarray(points)
        d = cavity.mean.shape[1]
        soft = cavity._replace(root=np.where(cavity.point[:, None, None], np.eye(d), cavity.root))
        return np.where(cavity.point, points, self.tilt(soft, label).log_z)

    def _point_site(self, z: np.ndarray, y: Categorical) -> tuple[np.ndarray, np.ndarray]:
        """The limit of narrow cavities: slope and curvature of the log of the factor."""
        k = y.n_categories
        logs, slopes, bends = zip(*(self.at_point(z, np.full(len(z), j)) for j in range(k)), strict=True)
        log_w = np.stack(logs, axis=1) + y.log_p
        w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        g = np.einsum("nk,knd->nd", w, np.stack(slopes))
        gap = np.stack(slopes) - g
        h = np.einsum("nk,knij->nij", w, np.stack(bends)) + np.einsum("nk,kni,knj->nij", w, gap, gap)
        return g - np.einsum("nij,nj->ni", h, z), -h

    @staticmethod
    def _silent(y: Categorical) -> np.ndarray:
        """Where y is uniform."""
        return y.is_uniform & ~y.is_point

    def _read(self, incoming: Incoming) -> tuple[Any, Any, tuple[int, ...]]:
        z, y = as_message(self, incoming, "z"), as_message(self, incoming, "y")
        shape = np.broadcast_shapes(z.shape, y.shape)
        n = int(np.prod(shape))
        return z.broadcast_to(shape).reshape((n,)), y.broadcast_to(shape).reshape((n,)), shape
