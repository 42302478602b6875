"""The integral of a surrogate: a fine lattice in one and two dimensions, Sobol' points in more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from heliograph.numerics.exploring.surrogate import Surrogate
from heliograph.numerics.sobol import BITS, sobol
from heliograph.numerics.special import logsumexp

__all__ = ["Nodes", "held", "integrate"]

_FINE = {1: 0.1, 2: 0.2}  # spacing of the fine lattice, in whitened standard deviations
_SOBOL = 12  # 2 ** 12 points in more than two dimensions
_DF = 6.0  # degrees of freedom of the proposal
_TAIL = 5.0  # spacings to which the fine lattice goes beyond what was evaluated
_SLOWEST = -0.2  # nats per whitened standard deviation: a tail falls at least so fast, or its mass would not be known
_STEEPEST = 2.5  # bend of a tail where it begins, at the most: that of a Gaussian is 1; chosen on random log scales
_FASTEST = 1.5  # growth of a bend per standard deviation, at the most: that of ``exp(z)`` is 1
_DIFFERENCE = 0.25  # spacings between the values that slopes and bends are taken from
_GUESS = 0.3  # nats: standard deviation of the surrogate beyond the edge, above which it is one
_FOLLOWED = 3  # dimensions in which that is looked at
_BEYOND = 1.5  # spacings beyond the edge to which moments are carried on: chosen on stochastic volatility
_NOTHING = 1e-8  # of the mass: nodes with less are left out


class Nodes(NamedTuple):
    """Points with weights that sum to 1."""

    z: np.ndarray  # (K, d) whitened
    weights: np.ndarray  # (K,)
    log_mass: float  # of the integral over z
    highest: float  # log density at any of them
    beyond: np.ndarray  # (K,) bool: where nothing was evaluated, and what is said is a guess


def integrate(surrogate: Surrogate, places: np.ndarray, spacing: float, seed: int = 0) -> Nodes:
    """Integrate ``exp(surrogate(z) - |z|^2 / 2)``.

    Where nothing was evaluated, the log density falls along rays from the origin as it does at the edge, with the slope and the
    bend that it has there, and the bend grows or ends exponentially, as in the two tails of a log scale.

    Parameters
    ----------
    surrogate
        Of the log density plus half the squared length.
    places
        What was evaluated, ``(P, d)``.
    spacing
        Of the lattice that was evaluated.
    seed
        Of the scrambled points in more than two dimensions.
    """
    d = places.shape[1]
    z, log_volume = _lattice(places, _TAIL * spacing) if d <= 2 else _sobol(places, seed)
    log_density, beyond = _log_density(surrogate, places, spacing, z)
    log_weight = log_density + log_volume
    log_mass = float(logsumexp(log_weight))
    weights = np.exp(log_weight - log_mass)
    keep = weights > _NOTHING / len(weights)
    weights = weights[keep] / weights[keep].sum()
    z, beyond = z[keep], beyond[keep]
    if d <= _FOLLOWED:
        beyond[beyond] = surrogate.sd(z[beyond]) > _GUESS
    return Nodes(z, weights, log_mass, float(log_density.max()), beyond)


def _log_density(
    surrogate: Surrogate, places: np.ndarray, spacing: float, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The surrogate's log density, its continuation outside what was evaluated, and which nodes are there."""

    def inside(x: np.ndarray) -> np.ndarray:
        return surrogate.at(x) - 0.5 * (x**2).sum(axis=1)

    length = np.linalg.norm(z, axis=1)
    ray = z / np.maximum(length, 1e-300)[:, None]
    edge = _edge(ray, places, spacing)
    out = length > edge
    value = np.empty(len(z))
    value[~out] = inside(z[~out])
    if out.any():
        ray, edge, beyond = ray[out], edge[out], (length - edge)[out]
        step = _DIFFERENCE * spacing
        at_edge, *before = (inside((edge - k * step)[:, None] * ray) for k in range(4))
        value[out] = at_edge + _fall(at_edge, before, step, beyond)
    return value, out


def _fall(end: np.ndarray, before: Sequence[np.ndarray], step: float, beyond: np.ndarray) -> np.ndarray:
    """How far a log density has fallen at some distance beyond its end; its values one, two and three steps before are known.

    Its slope and its bend go on from what they are, and the bend grows or shrinks exponentially, as its third derivative says:
    a Gaussian's stays, that of ``a v - exp(v)`` shrinks to one side and grows to the other.
    """
    one, two, three = before
    first, second, third = end - one, end - 2.0 * one + two, end - 3.0 * one + 3.0 * two - three
    slope = (first + second / 2.0 + third / 3.0) / step
    bend = np.clip((second + third) / step**2, -_STEEPEST, 0.0)
    rate = np.clip(third / step**3 / np.minimum(bend, -1e-9), -_FASTEST, _FASTEST)
    rate = np.where(np.abs(rate) < 1e-4, 1e-4, rate)
    at_last = np.where(rate > 0, -np.inf, -bend / rate)  # what the slope gains until the bend has gone
    at_last = np.where(bend < 0, at_last, 0.0)
    slope = np.minimum(slope, _SLOWEST - at_last)
    grown = np.minimum(rate * beyond, 30.0)
    return slope * beyond + bend * (np.expm1(grown) - grown) / rate**2


def held(z: np.ndarray, places: np.ndarray, spacing: float) -> np.ndarray:
    """Points ``(K, d)``, drawn back along their rays where they are far from all that was evaluated.

    What is known at the evaluated places alone is interpolated there: carried on farther, the logarithm of a variance would go
    anywhere, and one of a node with next to no weight could outweigh all others.
    """
    length = np.linalg.norm(z, axis=1)
    ray = z / np.maximum(length, 1e-300)[:, None]
    most = _edge(ray, places, spacing) + _BEYOND * spacing
    return z * np.minimum(1.0, most / np.maximum(length, 1e-300))[:, None]


def _edge(ray: np.ndarray, places: np.ndarray, spacing: float) -> np.ndarray:
    """How far along every ray the surrogate is believed: to the last evaluated point that the ray passes within a spacing.

    A single point far out, which another climb has left, says nothing of the rays that miss it.
    """
    along = ray @ places.T
    beside = (places**2).sum(axis=1) - along**2
    return np.maximum(np.where(beside <= spacing**2, along, 0.0).max(axis=1), 0.0)


def _lattice(places: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    d = places.shape[1]
    h = _FINE[d]
    low = np.floor((places.min(axis=0) - reach) / h).astype(int)
    high = np.ceil((places.max(axis=0) + reach) / h).astype(int)
    axes = [h * np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    z = np.stack([g.reshape(-1) for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    return z, np.full(len(z), d * np.log(h))


def _sobol(places: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a multivariate t that is as wide as the evaluated region, with the log of 1 / density / number."""
    d = places.shape[1]
    scale = 1.2
    rng = np.random.default_rng(seed)
    shift = rng.random(d + 1)  # a random shift of the plain points: the same bits whatever SciPy's scrambling does
    uniform = (sobol(d + 1, _SOBOL) * 2.0**-BITS + shift) % 1.0
    uniform = np.clip(uniform, 1e-12, 1.0 - 1e-12)
    spread = np.sqrt(2.0 * special.gammaincinv(0.5 * _DF, uniform[:, d]) / _DF)
    z = scale * special.ndtri(uniform[:, :d]) / spread[:, None]
    length2 = ((z / scale) ** 2).sum(axis=1)
    log_density = (
        special.gammaln(0.5 * (_DF + d))
        - special.gammaln(0.5 * _DF)
        - 0.5 * d * np.log(_DF * np.pi)
        - d * np.log(scale)
        - 0.5 * (_DF + d) * np.log1p(length2 / _DF)
    )
    return z, -log_density - np.log(len(z))
