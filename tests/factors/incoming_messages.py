"""Random and extreme messages for every factor: what the laws of `laws.py` are put to."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import numpy as np
from law_specs import DATA, D, spread

import heliograph.factors as room
from heliograph.errors import ContradictionError, UnsupportedError
from heliograph.factors import Factor, Prior
from heliograph.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Family,
    Gamma,
    Gaussian,
    MultivariateGaussian,
)


def every_factor() -> list[type[Factor]]:
    """Every concrete `Factor` defined in a module of the package, whether or not its `__init__` lists it."""
    found = set()
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        for kind in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(kind) and issubclass(kind, Factor) and kind.__module__ == module.name:
                found.add(kind)
    # a base that only shares code has ports but no name of its own
    return sorted((k for k in found if k is not Factor and not k.__name__.startswith("_")), key=lambda k: k.__name__)


def make(kind: type[Factor], family: int = 0, rng: np.random.Generator | None = None, n: int = 6) -> Factor:
    """One factor of the kind; a `Prior` holds a plate of n messages of its `family`-th family."""
    if issubclass(kind, Prior):
        rng = rng or np.random.default_rng(0)
        return kind(message_of(kind.families["x"][family % len(kind.families["x"])], rng, n, wild=False))
    return kind()


def targets(factor: Factor) -> list[str]:
    """The ports that the factor sends messages to."""
    return [p for p in factor.ports if factor.families.get(p)]


def n_families(kind: type[Factor]) -> int:
    """In how many families a factor must be tried."""
    return max(len(v) for v in kind.families.values())


def message_of(family: type[Family], rng: np.random.Generator, n: int, wild: bool, k: int = D) -> Family:
    """n messages of one family: narrow and wide, and if `wild` also points, uniform and improper ones."""
    kind = rng.integers(0, 8 if wild else 5, n)  # 5 point, 6 uniform, 7 improper
    if family is Gaussian:
        precision, mean = spread(rng, n, -6, 6), rng.standard_normal(n) * spread(rng, n, -1, 2)
        shift = mean * precision
        precision = np.where(kind == 7, rng.choice([-0.1, 0.0], n), precision)
        off = (kind == 5) | (kind == 6)
        naturals = np.where(off, 0.0, shift), np.where(off, 0.0, precision)
        return Gaussian.with_points(naturals, np.where(kind == 5, np.round(mean, 1), np.nan))
    if family is Gamma:
        shape, rate = spread(rng, n, -1, 4), spread(rng, n, -3, 4)
        shape, rate = (
            np.where(kind == 7, rng.choice([0.2, -1.5], n), shape),
            np.where(kind == 7, rng.choice([0, -1.0], n), rate),
        )
        off = (kind == 5) | (kind == 6)
        return Gamma.with_points(
            (np.where(off, 0, shape - 1), np.where(off, 0, rate)), np.where(kind == 5, rate, np.nan)
        )
    if family is Beta:
        a, b = spread(rng, n, -1, 4), spread(rng, n, -1, 4)
        a = np.where(kind == 7, -0.5, a)
        off = (kind == 5) | (kind == 6)
        return Beta.with_points(
            (np.where(off, 0, a - 1), np.where(off, 0, b - 1)), np.where(kind == 5, rng.uniform(0.01, 0.99, n), np.nan)
        )
    if family is Bernoulli:
        l = rng.standard_normal(n) * 10 ** rng.uniform(-2, 2, n)
        off = kind >= 5
        return Bernoulli.with_points((np.where(off, 0, l),), np.where(kind == 5, rng.integers(0, 2, n), np.nan))
    if family is Categorical:
        log_p = rng.standard_normal((n, k)) * 10 ** rng.uniform(-2, 1.5, (n, 1))
        off = (kind >= 5)[:, None]
        return Categorical.with_points((np.where(off, 0, log_p),), np.where(kind == 5, rng.integers(0, k, n), np.nan))
    if family is Dirichlet:
        a = 10.0 ** rng.uniform(-1, 3, (n, k))
        off = ((kind == 5) | (kind == 6))[:, None]
        a = np.where((kind == 7)[:, None], -0.5, a)
        return Dirichlet.with_points(
            (np.where(off, 0, a - 1),), np.where((kind == 5)[:, None], rng.dirichlet(np.ones(k), n), np.nan)
        )
    assert family is MultivariateGaussian
    root = rng.standard_normal((n, k, k)) * spread(rng, n, -2, 2)[:, None, None]
    precision = (
        root @ np.swapaxes(root, 1, 2)
        + 1e-3 * np.eye(k) * np.trace(root @ np.swapaxes(root, 1, 2), axis1=1, axis2=2)[:, None, None]
    )
    mean = rng.standard_normal((n, k))
    shift = np.einsum("nij,nj->ni", precision, mean)
    off = ((kind == 5) | (kind == 6))[:, None]
    precision = np.where((kind == 7)[:, None, None], -0.1 * precision, precision)
    naturals = np.where(off, 0, shift), np.where(off[..., None], 0, precision)
    return MultivariateGaussian.with_points(naturals, np.where((kind == 5)[:, None], mean, np.nan))


def extreme_message_of(family: type[Family], rng: np.random.Generator, n: int, k: int = D) -> Family:
    """n proper messages at the limits: scales from 1e-30 to 1e30, means to 1e12 deviations, shapes 1e-8 to 1e12."""
    if family is Gaussian:
        sd = spread(rng, n, -30, 30)
        mean = sd * rng.standard_normal(n) * spread(rng, n, -2, 12)
        return Gaussian.from_naturals((mean / sd / sd, 1.0 / sd / sd))
    if family is Gamma:
        shape, scale = spread(rng, n, -8, 12), spread(rng, n, -30, 30)
        return Gamma.from_naturals((shape - 1.0, shape / scale))
    if family is Beta:
        return Beta.from_naturals((spread(rng, n, -8, 12) - 1.0, spread(rng, n, -8, 12) - 1.0))
    if family is Bernoulli:
        return Bernoulli.from_naturals((rng.standard_normal(n) * spread(rng, n, -12, 3),))
    if family is Categorical:
        return Categorical.from_naturals((rng.standard_normal((n, k)) * 10.0 ** rng.uniform(-12, 3, (n, 1)),))
    if family is Dirichlet:
        return Dirichlet.from_naturals((10.0 ** rng.uniform(-8, 12, (n, k)) - 1.0,))
    assert family is MultivariateGaussian
    root, _ = np.linalg.qr(rng.standard_normal((n, k, k)))
    sd = spread(rng, n, -30, 30)[:, None] * 10.0 ** rng.uniform(-1, 1, (n, k))  # condition numbers to 1e4
    half = np.swapaxes(root, 1, 2) / sd[:, :, None]
    precision = np.swapaxes(half, 1, 2) @ half
    mean = root @ (sd * rng.standard_normal((n, k)) * spread(rng, n, -2, 6)[:, None])[..., None]
    return MultivariateGaussian.from_naturals(((precision @ mean)[..., 0], precision))


def data_of(factor: Factor, port: str, rng: np.random.Generator, n: int, extreme: bool = False) -> np.ndarray:
    """Legal values at a data port: the usual ones, or values of any size."""
    port = port.rsplit("_", 1)[0]  # of a component, as its factor calls it
    draws = DATA.get(f"{factor.name}.{port}") or DATA.get(port)
    assert draws, f"factor {factor.name!r}: say in `DATA` of law_specs.py what values its data port {port!r} takes"
    return draws[extreme](rng, n)


def categories_at(factor: Factor, port: str) -> int:
    """The length of vectors, or the number of categories, at a port."""
    if factor.name == "dirichlet_tuple" and port == "x":
        return 2 * D
    two = factor.name in ("mixture", "stack", "conditional_table", "chosen_probability", "between_cuts") or (
        factor.name,
        port,
    ) in (
        ("dirichlet_table", "parent0"),
        ("one_of", "s"),
        ("softmax", "z"),  # K categories have K - 1 scores
    )
    return 2 if two else D


def incoming_of(factor: Factor, family: int, rng: np.random.Generator, n: int, wild: bool) -> dict:
    """Messages at every port, of the `family`-th family that it takes."""
    return {
        port: message_of(_nth(factor, port, family), rng, n, wild, categories_at(factor, port))
        if factor.families.get(port)
        else data_of(factor, port, rng, n)
        for port in factor.ports
    }


def extreme_incoming_of(factor: Factor, family: int, rng: np.random.Generator, n: int) -> dict:
    """Extreme messages at every port; some ports are point masses or uniform, and half of the rows share one scale."""
    incoming = {}
    for port in factor.ports:
        if not factor.families.get(port):
            incoming[port] = data_of(factor, port, rng, n, extreme=True)
            continue
        incoming[port] = extreme_message_of(_nth(factor, port, family), rng, n, categories_at(factor, port))
    return incoming


def _nth(factor: Factor, port: str, family: int) -> type[Family]:
    families = factor.families[port]
    return families[family % len(families)]


def answerable(factor: Factor, incoming: dict) -> dict:
    """The rows that are no contradiction and no unsupported combination: those are errors of the model, not of a row."""
    n = incoming[targets(factor)[0]].shape[0]
    keep = []
    for i in range(n):
        one = rows_of(incoming, slice(i, i + 1))
        try:
            factor.log_z(one)
            for to in targets(factor):
                factor.belief(to, one)
                factor.message(to, one)
        except (ContradictionError, UnsupportedError):
            continue
        keep.append(i)
    return rows_of(incoming, np.array(keep, dtype=int))


def rows_of(incoming: dict, index: object) -> dict:
    """The same incoming with only these rows, in this order."""
    return {p: m[index] for p, m in incoming.items()}
