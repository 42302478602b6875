"""The laws of factors, as functions that raise where one is broken.

(a) `gradient_law`: the belief's expected statistics less the cavity's are the gradient of `log_z` with respect to the
    cavity's natural parameters. Nobody who breaks a mean, a variance or a port can satisfy it by accident.
(b) `order_law`: rows in another order give the same rows.
(c) `units_law`: in other units the answer is the same, in those units.
(d) `plate_law`: a plate equals its rows one by one.
(e) `silence_law`: when nothing is known of the child, the evidence is 1 (or the uniform message's own constant).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from incoming_messages import rows_of, targets

from heliograph.factors import Factor
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.families.inversions import dirichlet_mean_log
from heliograph.families.stirling import digamma_gap


# ---- (a) -----------------------------------------------------------------------------------------------------------
class Direction(NamedTuple):
    """One way of changing a message by a number h per row, and the derivative of log Z that a belief predicts."""

    name: str
    moved: Callable[[float], Family]
    slope: Callable[[Family], np.ndarray]
    rounding: np.ndarray | float = 1e-15  # relative rounding of h itself: a mean of 1e6 deviations is known to 1e-10 of one


def directions(m: Family, rng: np.random.Generator) -> list[Direction]:
    """Directions in which every family's natural parameters can be moved, in units of the message's own width.

    `log Z` moves by ``d eta . (E_belief t - E_cavity t)`` along d eta, each direction here written so that the
    difference is computed without cancellation.
    """
    if isinstance(m, Gaussian):
        return _gaussian_directions(m)
    if isinstance(m, Gamma):
        return _gamma_directions(m)
    if isinstance(m, Beta):
        return _simplex_directions(Beta, np.stack(m.naturals, axis=-1) + 1.0)
    if isinstance(m, Dirichlet):
        return _simplex_directions(Dirichlet, m.naturals[0] + 1.0)
    if isinstance(m, Bernoulli):
        l = m.naturals[0]
        return [Direction("log odds", lambda h: Bernoulli.from_naturals((l + h,)), lambda b: b.p - m.p)]
    if isinstance(m, Categorical):
        way = rng.standard_normal(m.naturals[0].shape)
        return [
            Direction(
                "log p",
                lambda h: Categorical.from_naturals((m.naturals[0] + h * way,)),
                lambda b: ((b.p - m.p) * way).sum(axis=-1),
            )
        ]
    assert isinstance(m, MultivariateGaussian)
    return _vector_directions(m, rng)


def _gaussian_directions(m: Gaussian) -> list[Direction]:
    soft = m.naturals[1] > 0
    tau = np.where(soft, m.naturals[1], 1.0)
    mean, sd = np.where(soft, m.naturals[0], 0.0) / tau, 1.0 / np.sqrt(tau)
    return [
        Direction(
            "mean",
            lambda h: _with(m, Gaussian.from_naturals(((mean + h * sd) * tau, tau)), soft),
            lambda b: (b.mean - mean) / sd,
            1e-15 * (1.0 + np.abs(mean) / sd),
        ),
        Direction(
            "log precision",
            lambda h: _with(m, Gaussian.from_naturals((mean * (tau * np.exp(h)), tau * np.exp(h))), soft),
            lambda b: 0.5 * (1.0 - b.variance * tau - ((b.mean - mean) / sd) ** 2),
            1e-15 * (1.0 + np.abs(mean) / sd),
        ),
    ]


def _gamma_directions(m: Gamma) -> list[Direction]:
    soft = (m.naturals[0] > -1) & (m.naturals[1] > 0)
    s, r = np.where(soft, m.naturals[0] + 1.0, 1.0), np.where(soft, m.naturals[1], 1.0)

    def ratio(b: Gamma) -> np.ndarray:
        return b.mean * (r / s)  # mean over mean

    width = 1.0 / np.sqrt(np.maximum(s, 1.0))  # of log x for large shapes
    return [
        Direction(
            "log scale",
            lambda h: _with(m, Gamma.from_naturals((s - 1.0, r * np.exp(-h * width))), soft),
            lambda b: width * s * (ratio(b) - 1.0),
            1e-15 * (1.0 + np.sqrt(s)) / np.minimum(s, 1.0),  # a shape below 1 is stored less 1
        ),
        Direction(
            "log shape at one mean",
            lambda h: _with(m, Gamma.from_naturals((s * np.exp(h) - 1.0, r * np.exp(h))), soft),
            lambda b: s * (digamma_gap(s) - b.log_gap() + np.log(ratio(b)) - (ratio(b) - 1.0)),
            1e-15 * (1.0 + np.sqrt(s)) / np.minimum(s, 1.0),
        ),
    ]


def _simplex_directions(family: type[Family], a: np.ndarray) -> list[Direction]:
    soft = (a > 0).all(axis=-1)
    a = np.where(soft[..., None], a, 1.0)

    def made(c: np.ndarray) -> Family:
        c = c - 1.0
        return Beta.from_naturals((c[..., 0], c[..., 1])) if family is Beta else Dirichlet.from_naturals((c,))

    def concentrations(b: Family) -> np.ndarray:
        return (np.stack(b.naturals, axis=-1) if family is Beta else b.naturals[0]) + 1.0

    here = dirichlet_mean_log(a)

    def along(way: np.ndarray, name: str) -> Direction:
        return Direction(
            name,
            lambda h: made(a * np.exp(h * way)),
            lambda b: (way * a * (dirichlet_mean_log(concentrations(b)) - here)).sum(axis=-1),
            1e-15 * (1.0 + np.sqrt(a.sum(axis=-1))) / np.minimum(a.min(axis=-1), 1.0),
        )

    k = a.shape[-1]
    return [along((np.arange(k) == j) / np.sqrt(np.maximum(a[..., j : j + 1], 1.0)), f"log a{j}") for j in range(k)]


def _vector_directions(m: MultivariateGaussian, rng: np.random.Generator) -> list[Direction]:
    soft = m.proper & ~m.is_point
    d = m.dimension
    precision = np.where(soft[..., None, None], m.naturals[1], np.eye(d))
    mean = np.where(soft[..., None], m.mean, 0.0)
    lower = np.linalg.cholesky(precision)
    back = np.linalg.inv(np.swapaxes(lower, -1, -2))  # of a white vector to the variable's own units
    way = rng.standard_normal(mean.shape)
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    step = np.einsum("...ij,...j->...i", back, way)
    turn = rng.standard_normal(precision.shape)
    turn = turn + np.swapaxes(turn, -1, -2)
    turn /= np.linalg.norm(turn, axis=(-1, -2), keepdims=True)
    values, vectors = np.linalg.eigh(turn)

    def made(mean: np.ndarray, precision: np.ndarray) -> MultivariateGaussian:
        return MultivariateGaussian.from_naturals((np.einsum("...ij,...j->...i", precision, mean), precision))

    def white(b: MultivariateGaussian) -> np.ndarray:
        return np.einsum("...ji,...j->...i", lower, b.mean - mean)

    def turned(h: float) -> MultivariateGaussian:
        grown = np.einsum("...ij,...j,...kj->...ik", vectors, np.exp(h * values), vectors)
        return made(mean, lower @ grown @ np.swapaxes(lower, -1, -2))

    def turn_slope(b: MultivariateGaussian) -> np.ndarray:
        u = white(b)
        second = np.swapaxes(lower, -1, -2) @ b.covariance @ lower + u[..., :, None] * u[..., None, :]
        return -0.5 * np.einsum("...ij,...ij->...", turn, second - np.eye(d))

    spreads = np.linalg.eigvalsh(precision)
    far = np.abs(np.einsum("...ji,...j->...i", lower, mean)).max(axis=-1)
    rounding = 1e-15 * (1.0 + far) * spreads[..., -1] / np.maximum(spreads[..., 0], 1e-300)
    return [
        Direction(
            "mean",
            lambda h: _with(m, made(mean + h * step, precision), soft),
            lambda b: (white(b) * way).sum(-1),
            rounding,
        ),
        Direction("precision", lambda h: _with(m, turned(h), soft), turn_slope, rounding),
    ]


def _with(old: Family, new: Family, where: np.ndarray) -> Family:
    """The new entries where there is a density to move, the old ones elsewhere."""
    naturals = tuple(
        np.where(where.reshape(where.shape + (1,) * r), a, b)
        for a, b, r in zip(new.naturals, old.naturals, old.ranks, strict=True)
    )
    return type(old).from_naturals(naturals, old.point)


def derivative(f: Callable[[float], np.ndarray], start: float = 0.25, levels: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """``f'(0)`` row by row by Ridders' extrapolation of central differences, and an estimate of its error.

    The error is the largest change that the last extrapolation made, and what the rounding of f leaves of a difference.
    """
    table: list[list[np.ndarray]] = []
    best = error = np.array(np.nan)
    for k in range(levels):
        h = start * 2.0**-k
        above, below = f(h), f(-h)
        row = [(above - below) / (2.0 * h)]
        rounding = 4e-16 * np.maximum(np.abs(above), np.abs(below)) / h
        for j in range(k):
            row.append(row[j] + (row[j] - table[-1][j]) / (4.0 ** (j + 1) - 1.0))
            off = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - table[-1][j])) + rounding
            if k == 1:
                best, error = row[-1], off
            better = off < error
            best, error = np.where(better, row[-1], best), np.where(better, off, error)
        table.append(row)
    return best, error


def gradient_law(
    factor: Factor,
    incoming: dict,
    rng: np.random.Generator,
    power: float = 1.0,
    tolerance: float = 1e-5,
    ports: list[str] | None = None,
    judged: float = 0.5,
) -> int:
    """Law (a), at every port and every row where log Z is finite and the port's message is a density.

    Rows at which the difference quotient itself is not known to `tolerance` cannot be judged; at least the share
    `judged` of the others must be. Returns the number of comparisons made. A NaN belief is no answer and is passed over.
    """
    compared = 0
    with np.errstate(all="ignore"):
        log_z = factor.log_z(incoming, power)
        for to in ports or targets(factor):
            own = incoming[to]
            belief, sent = factor.belief(to, incoming, power), factor.message(to, incoming, power)
            after = _product(sent, own)
            usable = np.isfinite(log_z) & own.proper & ~own.is_point & ~belief.is_point & finite_rows(belief)
            for way in directions(own, rng):
                slope, error = derivative(lambda h, way=way, to=to: factor.log_z({**incoming, to: way.moved(h)}, power))
                error = error + 100.0 * way.rounding * (1.0 + np.abs(slope))
                for name, b in (("belief", belief), ("message times cavity", after)):
                    claimed = way.slope(b)
                    size = 1.0 + np.abs(slope)
                    known = usable & (error <= 0.1 * tolerance * size) & np.isfinite(claimed)
                    compared += int(known.sum())
                    assert known.sum() >= judged * usable.sum(), (
                        f"{factor.name} to {to}, {way.name}: only {known.sum()} of {usable.sum()} rows can be judged"
                    )
                    off = np.where(known, np.abs(claimed - slope) / size, 0.0)
                    # a message far weaker than its cavity is rounded when the two are multiplied
                    limit = tolerance
                    if not (off <= limit).all():
                        i = int(off.argmax())
                        raise AssertionError(
                            f"{factor.name} to {to}, {way.name}, power {power}: the {name} says {claimed[i]:.9g}, the "
                            f"gradient of log_z is {slope[i]:.9g} +- {error[i]:.1g} at row {i}: {rows_of(incoming, i)}"
                        )
    return compared


def _product(a: Family, b: Family) -> Family:
    """The product of a message and a soft cavity; where the message is a point mass, that."""
    return a * b


def finite_rows(m: Family) -> np.ndarray:
    """Where all natural parameters are numbers (an impossible category is -inf)."""
    good = np.ones(m.shape, dtype=bool)
    for a, rank in zip(m.naturals, m.ranks, strict=True):
        fine = ~np.isnan(a) & (a < np.inf) if isinstance(m, Categorical) else np.isfinite(a)
        good &= fine.all(axis=tuple(range(fine.ndim - rank, fine.ndim))) if rank else fine
    return good


def rounding_of(m: Family) -> np.ndarray:
    """How much of a deviation of its own a belief's mean is rounded by when it is kept in natural parameters."""
    if isinstance(m, Gaussian):
        return 1e-15 * (1.0 + np.abs(m.mean) / np.sqrt(np.maximum(m.variance, 1e-300)))
    if isinstance(m, MultivariateGaussian):
        fine = finite_rows(m) & m.proper
        precision = np.where(fine[..., None, None], m.naturals[1], np.eye(m.dimension))
        spreads = np.linalg.eigvalsh(precision)
        white = np.abs(m.mean) * np.sqrt(np.diagonal(precision, axis1=-2, axis2=-1))
        return 1e-15 * (1.0 + white.max(axis=-1)) * spreads[..., -1] / np.maximum(spreads[..., 0], 1e-300)
    return np.full(m.shape, 1e-15)
