"""The integral of a surrogate: a fine lattice in one and two dimensions, Sobol' points in more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from heliograph.numerics.exploring.surrogate import Surrogate

__all__ = ["Nodes", "integrate"]

_FINE = {1: 0.1, 2: 0.2}  # spacing of the fine lattice, in whitened standard deviations
_SOBOL = 12  # 2 ** 12 points in more than two dimensions
_DF = 6.0  # degrees of freedom of the proposal
_NOTHING = 1e-8  # of the mass: nodes with less are left out


class Nodes(NamedTuple):
    """Points with weights that sum to 1."""

    z: np.ndarray  # (K, d) whitened
    weights: np.ndarray  # (K,)
    log_mass: float  # of the integral over z


def integrate(surrogate: Surrogate, places: np.ndarray, reach: float, seed: int = 0) -> Nodes:
    """Integrate ``exp(surrogate(z) - |z|^2 / 2)`` over the region near the evaluated places.

    Parameters
    ----------
    surrogate
        Of the log density plus half the squared length.
    places
        What was evaluated, ``(P, d)``; the region is all that lies within `reach` of one of them in every coordinate.
    reach
        Whitened standard deviations.
    seed
        Of the scrambled points in more than two dimensions.
    """
    d = places.shape[1]
    z, log_volume = _lattice(places, reach) if d <= 2 else _sobol(places, seed)
    near = np.zeros(len(z), dtype=bool)
    for p in places:
        near |= (np.abs(z - p) <= reach + 1e-9).all(axis=1)
    z, log_volume = z[near], log_volume[near]
    log_weight = surrogate.at(z) - 0.5 * (z**2).sum(axis=1) + log_volume
    log_mass = float(special.logsumexp(log_weight))
    weights = np.exp(log_weight - log_mass)
    keep = weights > _NOTHING / len(weights)
    return Nodes(z[keep], weights[keep] / weights[keep].sum(), log_mass)


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
    from scipy.stats import qmc  # when it is needed: it takes longer to load than everything else

    d = places.shape[1]
    scale = 1.2
    uniform = qmc.Sobol(d + 1, seed=seed).random_base2(_SOBOL)
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
