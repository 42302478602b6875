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
from law_specs import Units

from heliograph.factors import Factor
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.numerics.gamma_function import digamma_gap
from heliograph.numerics.inverse_dirichlet import dirichlet_mean_log


# ---- (a) -----------------------------------------------------------------------------------------------------------
class Direction(NamedTuple):
    """One way of changing a message by a number h per row, and the derivative of log Z that a belief predicts."""

    name: str
    moved: Callable[[float], Family]
    slope: Callable[[Family], np.ndarray]
    rounding: np.ndarray | float = (
        1e-15  # relative rounding of h itself: a mean of 1e6 deviations is known to 1e-10 of one
    )


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
    held: Callable[[str, str, Family], np.ndarray] | None = None,
) -> int:
    """Law (a), at every port and every row where log Z is finite and the port's message is a density.

    Rows at which the difference quotient itself is not known to `tolerance` cannot be judged; at least the share
    `judged` of the others must be. Returns the number of comparisons made. A NaN belief is no answer and is passed over;
    so is one that `held` says is not the moment match on purpose.
    """
    compared = 0
    with np.errstate(all="ignore"):
        log_z = factor.log_z(incoming, power)
        for to in ports or targets(factor):
            own = incoming[to]
            belief, sent = factor.belief(to, incoming, power), factor.message(to, incoming, power)
            after = own * sent.from_naturals(sent.naturals)
            usable = np.isfinite(log_z) & own.proper & ~own.is_point & ~belief.is_point & ~sent.is_point
            usable &= finite_rows(belief)
            if held is not None:
                usable &= ~held(factor.name, to, belief)
            for way in directions(own, rng):
                slope, error = derivative(lambda h, way=way, to=to: factor.log_z({**incoming, to: way.moved(h)}, power))
                error = error + 100.0 * (way.rounding + rounding_of(belief)) * (1.0 + np.abs(slope))
                for name, b in (("belief", belief), ("message times cavity", after)):
                    claimed = way.slope(b)
                    size = 1.0 + np.abs(slope)
                    known = usable & (error <= 0.1 * tolerance * size) & np.isfinite(claimed)
                    compared += int(known.sum())
                    assert known.sum() >= judged * usable.sum(), (
                        f"{factor.name} to {to}, {way.name}: only {known.sum()} of {usable.sum()} rows can be judged"
                    )
                    off = np.where(known, np.abs(claimed - slope) / size, 0.0)
                    if not (off <= tolerance).all():
                        i = int(off.argmax())
                        raise AssertionError(
                            f"{factor.name} to {to}, {way.name}, power {power}: the {name} says {claimed[i]:.9g}, the "
                            f"gradient of log_z is {slope[i]:.9g} +- {error[i]:.1g} at row {i}: {rows_of(incoming, i)}"
                        )
    return compared


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


# ---- (b) and (d) ---------------------------------------------------------------------------------------------------
def order_law(factor: Factor, incoming: dict, rng: np.random.Generator) -> None:
    """Law (b): rows in any order give the same rows. A `Prior` holds its own plate, and is put in order with it."""
    n = _plate_size(factor, incoming)
    order = rng.permutation(n)
    shuffled = rows_of(incoming, order)
    for to in targets(factor):
        _assert_same(
            factor, to, factor.message(to, incoming)[order], _at(factor, order).message(to, shuffled), incoming
        )
    np.testing.assert_allclose(_at(factor, order).log_z(shuffled), factor.log_z(incoming)[order], rtol=1e-9, atol=1e-9)


def plate_law(factor: Factor, incoming: dict, most: int = 50) -> None:
    """Law (d): a plate equals its rows one by one, as plates of one row; `most` rows of it are looked at."""
    n = _plate_size(factor, incoming)
    whole, log_z = {to: factor.message(to, incoming) for to in targets(factor)}, factor.log_z(incoming)
    for i in np.linspace(0, n - 1, min(n, most)).astype(int):
        one, alone = rows_of(incoming, slice(i, i + 1)), _at(factor, slice(i, i + 1))
        for to in targets(factor):
            _assert_same(factor, to, alone.message(to, one), whole[to][i : i + 1], one)
        np.testing.assert_allclose(alone.log_z(one), log_z[i : i + 1], rtol=1e-9, atol=1e-9, err_msg=factor.name)


def _plate_size(factor: Factor, incoming: dict) -> int:
    return incoming[targets(factor)[0]].shape[0]


def _at(factor: Factor, index: object) -> Factor:
    """The factor for some rows of its plate: only a prior's own message has a plate."""
    fixed = getattr(factor, "fixed", None)
    return factor if fixed is None else type(factor)(fixed[index])  # type: ignore[call-arg]


def _assert_same(factor: Factor, to: str, a: Family, b: Family, incoming: dict) -> None:
    """The same messages but for the rounding of a batched and of a single product, which narrow cavities amplify."""
    np.testing.assert_array_equal(a.is_point, b.is_point, err_msg=f"{factor.name} to {to}")
    for x, y, own, rank in zip(a.naturals, b.naturals, incoming[to].naturals, a.ranks, strict=True):
        axes = tuple(range(-rank, 0))
        per_row = (lambda v, axes=axes: np.abs(v).max(axis=axes, keepdims=True)) if rank else np.abs
        scale = np.maximum(per_row(x), per_row(y))
        scale = scale + (per_row(own) if own.shape == x.shape else np.abs(own).max())
        off = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        assert (off <= 1e-9 * scale).all(), (
            f"{factor.name} to {to}: a row changes with its neighbours, by {off.max():.3g}"
        )


# ---- (c) -----------------------------------------------------------------------------------------------------------
def in_units(value: object, unit: float, offset: float) -> object:
    """A message, or data, of which the variable is multiplied with `unit` and then moved by `offset`."""
    if isinstance(value, Gaussian):
        mean = np.where(np.isnan(value.mean), 0.0, value.mean) * unit + offset
        tau = value.naturals[1] / unit / unit
        shift = np.where(value.naturals[1] == 0, value.naturals[0] / unit, mean * tau)
        point = None if value.point is None else value.point * unit + offset
        return Gaussian.from_naturals(
            (shift, tau) if point is None else (np.where(value.is_point, 0, shift), tau), point
        )
    if isinstance(value, MultivariateGaussian):
        tau = value.naturals[1] / unit / unit
        shift = value.naturals[0] / unit + offset * tau.sum(axis=-1)
        point = None if value.point is None else value.point * unit + offset
        return MultivariateGaussian.from_naturals((shift, tau), point)
    if isinstance(value, Gamma):
        assert offset == 0
        point = None if value.point is None else value.point * unit
        return Gamma.from_naturals((value.naturals[0], value.naturals[1] / unit), point)
    assert not isinstance(value, Family), f"{type(value).__name__} messages have no unit"
    return np.asarray(value) * unit + offset


def units_law(
    factor: Factor,
    incoming: dict,
    units: Units,
    k: int,
    tolerance: float = 1e-6,
    held: Callable[[str, str, Family], np.ndarray] | None = None,
) -> None:
    """Law (c): with ports in units of 10^k, and moved by 10^k, beliefs and log Z are those of the plain ones."""
    for unit, offset in ((10.0**k, 0.0), (1.0, 10.0**k)):
        if (offset and not units.moves) or (unit != 1.0 and not (units.scales or units.logs)):
            continue

        def change(port: str, value: object, unit: float = unit, offset: float = offset) -> object:
            moved = offset * units.moves.get(port, 0.0) + units.logs.get(port, 0.0) * np.log(unit)
            scale = unit ** units.scales.get(port, 0.0)
            return value if scale == 1.0 and moved == 0.0 else in_units(value, scale, moved)

        other = {p: change(p, m) for p, m in incoming.items()}
        before, after = factor.log_z(incoming), factor.log_z(other) + units.density * np.log(unit)
        both = np.isfinite(before)
        np.testing.assert_array_equal(both, np.isfinite(after), err_msg=f"{factor.name} log_z, unit 1e{k}")
        # a mean moved by 10^k is rounded by 10^k eps, which is this share of the narrowest deviation there is
        lost = _digits_lost(incoming, other)
        off = np.abs(np.where(both, after, 0.0) - np.where(both, before, 0.0))
        assert (off <= (tolerance + 100.0 * lost) * (1.0 + np.abs(np.where(both, before, 0.0)))).all(), (
            f"{factor.name} log_z, unit 1e{k}, offset {offset:g}: {before} becomes {after}"
        )
        for to in targets(factor):
            expected, found = change(to, factor.belief(to, incoming)), factor.belief(to, other)
            if held is not None:  # a belief held back on purpose is held in units of its own
                free = ~held(factor.name, to, expected) & ~held(factor.name, to, found)
                expected, found = expected[free], found[free]
                limit = tolerance + 100.0 * np.broadcast_to(lost, free.shape)[free]
            else:
                limit = tolerance + 100.0 * lost
            _assert_near(f"{factor.name} to {to}, unit {unit:g}, offset {offset:g}", expected, found, limit)


def _digits_lost(*incomings: dict) -> np.ndarray | float:
    """eps times the largest ratio of a mean to a deviation among all Gaussian ports, row by row."""
    worst: np.ndarray | float = 0.0
    for incoming in incomings:
        size, narrow = 0.0, np.inf
        for m in incoming.values():
            if isinstance(m, (Gaussian, MultivariateGaussian)):
                sd = np.sqrt(np.where(m.proper & ~m.is_point.reshape(m.shape), 1.0, np.inf))
                own = np.where(np.isfinite(m.variance) & (m.variance > 0), np.sqrt(np.abs(m.variance)), np.inf)
                mean = np.where(np.isnan(m.mean), 0.0, np.abs(m.mean))
                if isinstance(m, MultivariateGaussian):
                    own, mean = own.min(axis=-1), mean.max(axis=-1)
                size, narrow = np.maximum(size, mean), np.minimum(narrow, own * sd)
        worst = np.maximum(worst, 2e-16 * size / narrow)
    return worst


def _assert_near(what: str, a: Family, b: Family, tolerance: np.ndarray | float) -> None:
    """The same belief to a share of its own width."""
    both = a.proper & b.proper & ~a.is_point & ~b.is_point & finite_rows(a) & finite_rows(b)
    np.testing.assert_array_equal(a.is_point, b.is_point, err_msg=what)
    np.testing.assert_array_equal(finite_rows(a), finite_rows(b), err_msg=what)
    with np.errstate(all="ignore"):
        kl = np.where(both, np.maximum(a.kl(b), b.kl(a)), 0.0)
    assert (kl <= np.asarray(tolerance) ** 2 + 1e-12).all(), f"{what}: {a} becomes {b}, KL {kl.max():.3g}"


# ---- (e) -----------------------------------------------------------------------------------------------------------
def silence_law(factor: Factor, incoming: dict) -> None:
    """Law (e): a factor is a density of its child, so with a uniform child log Z is that of the uniform message."""
    child = incoming[factor.child]
    silent = {**incoming, factor.child: child.as_uniform()}
    # a uniform message that is proper counts as a distribution: 1/2 for a Bernoulli, 1/K for a category
    expected = -child.as_uniform().log_normaliser()
    log_z = factor.log_z(silent)
    known = np.isfinite(log_z)
    np.testing.assert_allclose(np.where(known, log_z, expected), expected, atol=1e-7, err_msg=factor.name)
    assert known.mean() > 0.5, f"{factor.name}: with a silent child log_z is {log_z}"
