"""Scalars as one vector: ``out = (x0, ..., x(K-1))``, so that what follows sees them jointly. Closed form."""

from __future__ import annotations

import numpy as np

from heliograph.factors.base import Factor, Incoming
from heliograph.factors.incoming import as_message
from heliograph.factors.plane import check_no_partial_points, vector_overlap
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.numerics.symmetric import positive_definite

__all__ = ["Stack"]


class Stack(Factor):
    """``out = (x0, ..., x(K-1))`` for K scalar Gaussians at the ports x0, x1, ...

    The message to one scalar integrates the others out of the vector's message. Where that diverges (the vector's
    message is improper in a way the others do not mend) it is uniform.
    """

    name = "stack"
    how = {"x0": "closed form", "x1": "closed form", "out": "closed form"}  # noqa: RUF012  (each instance has its own)
    families = {"x0": (Gaussian,), "x1": (Gaussian,), "out": (MultivariateGaussian,)}  # noqa: RUF012

    def __init__(self, n: int = 2) -> None:
        self.n = n
        scalars = tuple(f"x{k}" for k in range(n))
        self.ports = (*scalars, "out")  # type: ignore[misc]
        self.families = {**dict.fromkeys(scalars, (Gaussian,)), "out": (MultivariateGaussian,)}  # type: ignore[misc]
        self.how = dict.fromkeys(self.ports, "closed form")  # type: ignore[misc]
        self.ignores_own = self.ports  # type: ignore[misc]

    def message(self, to: str, incoming: Incoming, power: float = 1.0) -> Family:
        """To out the scalars side by side; to a scalar the vector's message with the others integrated out."""
        scalars = [as_message(self, incoming, p) for p in self.ports[:-1]]
        if to == "out":
            return _side_by_side(scalars)
        return _without_others(int(to[1:]), scalars, as_message(self, incoming, "out"))

    def log_z(self, incoming: Incoming, power: float = 1.0) -> np.ndarray:
        """``log`` of the integral of the scalars' messages times the vector's."""
        scalars = [as_message(self, incoming, p) for p in self.ports[:-1]]
        out = as_message(self, incoming, "out")
        stacked = _side_by_side(scalars)
        proper = np.all([s.proper for s in scalars], axis=0)
        # scalars that are partly improper keep the normalisers of the proper ones
        extra = sum(s.log_normaliser() for s in scalars)
        log_z = vector_overlap(stacked, out)
        return np.where(proper | (stacked.is_uniform & out.proper), log_z, log_z - extra)


def _side_by_side(scalars: list[Gaussian]) -> MultivariateGaussian:
    shift = np.stack(np.broadcast_arrays(*(s.naturals[0] for s in scalars)), axis=-1)
    tau = np.stack(np.broadcast_arrays(*(s.naturals[1] for s in scalars)), axis=-1)
    precision = tau[..., None] * np.eye(len(scalars))
    at = np.stack(np.broadcast_arrays(*(s.is_point for s in scalars)), axis=-1)
    if not at.any():
        return MultivariateGaussian.from_naturals((shift, precision))
    check_no_partial_points("stack", at)
    point = np.stack(np.broadcast_arrays(*(s.mean for s in scalars)), axis=-1)
    return MultivariateGaussian.from_naturals((shift, precision), np.where(at, point, np.nan))


def _without_others(k: int, scalars: list[Gaussian], out: MultivariateGaussian) -> Gaussian:
    """The Schur complement of the other coordinates, each with its own scalar's message added."""
    h, p = out.naturals
    n = len(scalars)
    rest = [j for j in range(n) if j != k]
    s, t, x = (
        np.stack(np.broadcast_arrays(*(f(m) for m in scalars), h[..., 0])[:-1], axis=-1)
        for f in (lambda m: m.naturals[0], lambda m: m.naturals[1], _point_or_zero)
    )
    at = np.stack(np.broadcast_arrays(*(m.is_point for m in scalars), np.zeros(out.shape, dtype=bool))[:-1], axis=-1)
    shape = s.shape[:-1]
    h, p = np.broadcast_to(h, (*shape, n)), np.broadcast_to(p, (*shape, n, n))
    # a known scalar moves its terms to the shift and leaves an idle coordinate behind
    fixed = at & (np.arange(n) != k)
    h = h - np.einsum("...ij,...j->...i", p, np.where(fixed, x, 0.0))
    cross = np.where(fixed, 0.0, p[..., k, :])[..., rest]
    if n == 1:
        shift, precision = h[..., 0], p[..., 0, 0]
    else:
        idle = fixed[..., rest]
        block = p[..., rest, :][..., :, rest] + t[..., rest][..., None] * np.eye(n - 1)
        block = np.where(idle[..., :, None] | idle[..., None, :], np.eye(n - 1), block)
        right = np.where(idle, 0.0, h[..., rest] + s[..., rest])
        # an uncoupled coordinate does not matter, even if it cannot be normalised
        free = ~(block - np.eye(n - 1) * np.diagonal(block, axis1=-2, axis2=-1)[..., None]).any(axis=-1) & (cross == 0)
        block = np.where(free[..., None] & np.eye(n - 1, dtype=bool), 1.0, block)
        good = positive_definite(block)
        safe = np.where(good[..., None, None], block, np.eye(n - 1))
        solved = np.linalg.solve(safe, np.stack([cross, np.where(free, 0.0, right)], axis=-1))
        precision = np.where(good, p[..., k, k] - (cross * solved[..., 0]).sum(axis=-1), 0.0)
        shift = np.where(good, h[..., k] - (cross * solved[..., 1]).sum(axis=-1), 0.0)
    if out.point is None:
        return Gaussian.from_naturals((shift, precision))
    known = np.broadcast_to(out.is_point, shape)
    point = np.broadcast_to(out.point[..., k], shape)
    return Gaussian.from_naturals(
        (np.where(known, 0.0, shift), np.where(known, 0.0, precision)), np.where(known, point, np.nan)
    )


def _point_or_zero(m: Gaussian) -> np.ndarray:
    return np.where(m.is_point, m.mean, 0.0) if m.point is not None else np.zeros(m.shape)
