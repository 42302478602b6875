"""The integral of a surrogate on a fine lattice: the trapezoidal rule, which converges exponentially for smooth densities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from heliograph.numerics.exploring.surrogate import Surrogate
from heliograph.numerics.special import logsumexp

__all__ = ["LogPrior", "Nodes", "held", "integrate"]

# spacing of the fine lattice, in whitened standard deviations: of a standard Gaussian it misses ``2 exp(-2 pi^2 / h^2)`` a
# dimension, 1e-4 at 1.4. In three and more dimensions chosen on random densities of log scales, on which half of it gives the same
_FINE = {1: 0.1, 2: 0.2, 3: 0.7, 4: 1.1, 5: 1.4, 6: 1.6}
_EMPTY = 13.0  # nats below the top, beyond which the lattice ends in three and more dimensions; chosen with it
_WIDE = 400  # points of that lattice along a coordinate, at the most
_MOST = 100_000  # and of all that are looked at, where well-behaved densities take 5,000 to 45,000; with more its spacing grows
_COARSER = 1.25
_TAIL = 5.0  # spacings to which the fine lattice goes beyond what was evaluated
_SLOWEST = -0.2  # nats per whitened standard deviation: a tail falls at least so fast, or its mass would not be known
_STEEPEST = 2.5  # bend of a tail where it begins, at the most: that of a Gaussian is 1; chosen on random log scales
_FASTEST = 1.5  # growth of a bend per standard deviation, at the most: that of ``exp(z)`` is 1
_DIFFERENCE = 0.25  # spacings between the values that slopes and bends are taken from
_GUESS = 0.3  # nats: standard deviation of the surrogate beyond the edge, above which it is one
_FOLLOWED = 3  # dimensions in which that is looked at
_BEYOND = 1.5  # spacings beyond the edge to which moments are carried on: chosen on stochastic volatility
_NOTHING = 1e-8  # of the mass: nodes with less are left out


LogPrior = Callable[[np.ndarray], np.ndarray]


class Nodes(NamedTuple):
    """Points with weights that sum to 1."""

    z: np.ndarray  # (K, d) whitened
    weights: np.ndarray  # (K,)
    log_mass: float  # of the integral over z
    highest: float  # log density at any of them
    beyond: np.ndarray  # (K,) bool: where nothing was evaluated, and what is said is a guess


def integrate(surrogate: Surrogate, places: np.ndarray, spacing: float, log_prior: LogPrior) -> Nodes:
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
    log_prior
        The part of the log density that is known everywhere, at points ``(K, d)``. What is left does not turn upwards beyond the
        edge.
    """
    d = places.shape[1]
    z, h = (_lattice(places, spacing), _FINE[d]) if d <= 2 else _flooded(surrogate, places, spacing, log_prior)
    log_density, beyond = _log_density(surrogate, places, spacing, log_prior, z)
    log_weight = log_density + d * np.log(h)
    log_mass = float(logsumexp(log_weight))
    weights = np.exp(log_weight - log_mass)
    keep = weights > _NOTHING / len(weights)
    weights = weights[keep] / weights[keep].sum()
    z, beyond = z[keep], beyond[keep]
    if d <= _FOLLOWED:
        beyond[beyond] = surrogate.sd(z[beyond]) > _GUESS
    return Nodes(z, weights, log_mass, float(log_density.max()), beyond)


def _log_density(
    surrogate: Surrogate, places: np.ndarray, spacing: float, log_prior: LogPrior, z: np.ndarray
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
        known, known_before = log_prior(edge[:, None] * ray), log_prior((edge - step)[:, None] * ray)
        slope = (at_edge - before[0] - known + known_before) / step  # of what the prior leaves
        most = at_edge + np.maximum(slope, 0.0) * beyond + log_prior(z[out]) - known
        value[out] = np.minimum(value[out], most)
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


def _lattice(places: np.ndarray, spacing: float) -> np.ndarray:
    """The points of a lattice in a box around the places."""
    h, reach = _FINE[places.shape[1]], _TAIL * spacing
    low = np.floor((places.min(axis=0) - reach) / h).astype(int)
    high = np.ceil((places.max(axis=0) + reach) / h).astype(int)
    axes = [h * np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    return np.stack([g.reshape(-1) for g in np.meshgrid(*axes, indexing="ij")], axis=1)


def _flooded(surrogate: Surrogate, places: np.ndarray, spacing: float, log_prior: LogPrior) -> tuple[np.ndarray, float]:
    """The points of a lattice where there is mass, found from its places outwards, and their spacing.

    The lattice is turned, so that its points have different coordinates each, of which marginals are read. It is coarser where
    there would be too many of them.
    """
    d = places.shape[1]
    turn = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
    h, found = _FINE[d], None
    while found is None:
        found = _at_spacing(h, turn, surrogate, places, spacing, log_prior)
        h *= 1.0 if found is not None else _COARSER
    return found, h


def _at_spacing(
    h: float, turn: np.ndarray, surrogate: Surrogate, places: np.ndarray, spacing: float, log_prior: LogPrior
) -> np.ndarray | None:
    d, reach = len(turn), _TAIL * spacing
    low, high = places.min(axis=0) - reach, places.max(axis=0) + reach
    steps = np.concatenate([np.eye(d, dtype=int), -np.eye(d, dtype=int)])
    fresh = np.unique(np.round(places @ turn / h).astype(int), axis=0)
    cells, values, known = fresh[:0], np.zeros(0), np.zeros(0, dtype=int)
    radix = _WIDE ** np.arange(d)  # takes coordinates to one whole number
    while len(fresh):
        z = h * fresh @ turn.T
        found = _log_density(surrogate, places, spacing, log_prior, z)[0]
        cells, values = np.concatenate([cells, fresh]), np.concatenate([values, found])
        known = np.concatenate([known, fresh @ radix])
        if len(cells) > _MOST or np.abs(fresh).max() > _WIDE // 2 - 2:
            return None
        here = (found > values.max() - _EMPTY) & ((z >= low) & (z <= high)).all(axis=1)
        beside = (fresh[here][:, None] + steps).reshape(-1, d)
        code, first = np.unique(beside @ radix, return_index=True)
        fresh = beside[first[~np.isin(code, known)]]
    return h * cells[values > values.max() - _EMPTY] @ turn.T
