"""Small models put together at random: everything beside everything, on one to four unknown numbers.

Unknown scalars, arrays, vectors and a positive scale; one to three statements, each any likelihood of the language (or an event)
about any expression, curved ones and repeated ones included. The truth is found by draws around annealed particles (`annealed.py`),
weighed by densities written in NumPy and SciPy. EP approximates here, and its run must say so where that is far off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from benchmarks.truth.annealed import annealed
from benchmarks.truth.effects import LIKELIHOODS
from benchmarks.truth.grids import gamma_projected
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["program"]

_FINAL, _KERNELS, _DOF = 40_000, 50, 5.0
_EFFECTIVE = 1000.0  # draws, at the least, for a truth that is worth a verdict
_AGREE = 0.2  # nats between the two evidences, at the most

Values = dict[str, np.ndarray]
Function = Callable[[Values], np.ndarray]


class _Unknown(NamedTuple):
    """A variable: its values are the numbers of a column block, through `exp` where it is positive."""

    name: str
    line: str
    shape: tuple[int, ...]
    positive: bool
    draw: Callable[[np.random.Generator, int], np.ndarray]
    log_density: Callable[[np.ndarray], np.ndarray]  # of values (S, *shape)


class _Expression(NamedTuple):
    source: str
    value: Function  # (S, n)


class _Program(NamedTuple):
    unknowns: list[_Unknown]
    lines: list[str]
    statements: list[Function]  # (S,) log densities


def program(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A random program."""
    made = _written(rng)
    lines = ["m = hg.Model()", *(u.line for u in made.unknowns), *made.lines]
    settings = [{}, {}, {}, {"schedule": "sequential"}, {"damping": 0.4}][rng.integers(5)]
    return World(kind, seed, "\n".join(lines), "program", lambda: _truth(made, seed), settings)


# ---- writing ------------------------------------------------------------------------------------------------------------
def _written(rng: np.random.Generator) -> _Program:
    unknowns = [_gaussian("a", rng)]
    form = int(rng.integers(4))
    if form:
        unknowns.append([_gaussian, _array, _vector][form - 1]("b", rng))
    if rng.random() < 0.3:
        unknowns.append(_positive("t", rng))
    truth = {u.name: u.draw(rng, 1) for u in unknowns}
    lines, statements = [], []
    for k in range(int(rng.integers(1, 4))):
        n = int(rng.choice([1, 2, 4]))
        z = _expression(rng, unknowns, n)
        at = z.value(truth)[0]
        name = f"z{k}"
        if rng.random() < 0.2:
            low = float(rounded(at.min() - rng.exponential(0.5), 2))
            text, log_density = f"m.constrain({name} > {low})", (lambda x, low=low: np.where(x > low, 0.0, -np.inf))
        else:
            chosen = LIKELIHOODS[rng.integers(len(LIKELIHOODS))](rng, np.clip(at, -4.0, 4.0))
            text, log_density = re.sub(r"\bz\b", name, chosen.line).replace('"y"', f'"y{k}"'), chosen.log_density
        lines += [f"{name} = {z.source}", text]
        statements.append(lambda v, z=z, f=log_density: f(z.value(v)).sum(axis=1))
    return _Program(unknowns, lines, statements)


def _gaussian(name: str, rng: np.random.Generator) -> _Unknown:
    mean, sd = float(rounded(rng.normal(), 2)), float(rng.choice([0.3, 1.0, 3.0]))
    line = f'{name} = m.gaussian("{name}", {mean}, sd={sd})'
    return _Unknown(
        name, line, (), False, lambda rng, n: rng.normal(mean, sd, n), lambda x: stats.norm.logpdf(x, mean, sd)
    )


def _array(name: str, rng: np.random.Generator) -> _Unknown:
    sd = float(rng.choice([0.3, 1.0, 3.0]))
    line = f'{name} = m.gaussian("{name}", 0.0, sd={sd}, size=2)'
    return _Unknown(
        name, line, (2,), False, lambda rng, n: rng.normal(0, sd, (n, 2)),
        lambda x: stats.norm.logpdf(x, 0.0, sd).sum(axis=1),
    )  # fmt: skip


def _vector(name: str, rng: np.random.Generator) -> _Unknown:
    root = rounded(rng.normal(0, 1, (2, 2)), 2)
    covariance = np.round(root @ root.T + 0.3 * np.eye(2), 3)
    line = f'{name} = m.gaussian("{name}", np.zeros(2), covariance={literal(covariance)})'
    known = stats.multivariate_normal(np.zeros(2), covariance)
    lower = np.linalg.cholesky(covariance)
    return _Unknown(name, line, (2,), False, lambda rng, n: rng.standard_normal((n, 2)) @ lower.T, known.logpdf)


def _positive(name: str, rng: np.random.Generator) -> _Unknown:
    shape, rate = float(rng.choice([1.5, 3.0, 8.0])), float(rng.choice([1.0, 3.0]))
    line = f'{name} = m.gamma("{name}", {shape}, {rate})'
    return _Unknown(
        name, line, (), True, lambda rng, n: rng.gamma(shape, 1 / rate, n),
        lambda x: stats.gamma.logpdf(x, shape, scale=1 / rate),
    )  # fmt: skip


def _expression(rng: np.random.Generator, unknowns: list[_Unknown], n: int) -> _Expression:
    real = [u for u in unknowns if not u.positive]
    z = _row(rng, real[rng.integers(len(real))], n)
    if rng.random() < 0.5:
        other, sign = _row(rng, real[rng.integers(len(real))], n), float(rng.choice([-1, 1]))
        z = _Expression(
            f"({z.source}) + {sign} * ({other.source})", lambda v, a=z.value, b=other.value: a(v) + sign * b(v)
        )
    form, source, value = int(rng.integers(10)), z.source, z.value
    if form == 0:
        return _Expression(f"abs({source})", lambda v: np.abs(value(v)))
    if form == 1:
        return _Expression(f"({source}) ** 2", lambda v: value(v) ** 2)
    if form == 2 and len(real) > 1 and real[-1].name not in source:
        other = _row(rng, real[-1], n)
        return _Expression(f"m.maximum({source}, {other.source})", lambda v: np.maximum(value(v), other.value(v)))
    if form == 3 and len(real) > 1 and real[-1].name not in source:
        other = _row(rng, real[-1], n)
        return _Expression(f"({source}) * ({other.source})", lambda v: value(v) * other.value(v))
    if form == 4 and unknowns[-1].positive:
        return _Expression(f"t * ({source})", lambda v: v["t"][:, None] * value(v))
    return z


def _row(rng: np.random.Generator, unknown: _Unknown, n: int) -> _Expression:
    """n rows of one unknown: repeated, times data, an entry, gathered, or times a matrix."""
    name = unknown.name
    if not unknown.shape:
        x = np.ones(n) if rng.random() < 0.4 else rounded(rng.normal(0, 1, n), 2)
        return _Expression(f"{name} * {literal(x)}", lambda v: v[name][:, None] * x)
    if "covariance" not in unknown.line and rng.random() < 0.5:
        g = rng.integers(0, 2, n)
        return _Expression(f"{name}[{literal(g)}]", lambda v: v[name][:, g])
    x = rounded(rng.normal(0, 1, (n, 2)), 2)
    return _Expression(f"{literal(x)} @ {name}", lambda v: v[name] @ x.T)


# ---- the truth ----------------------------------------------------------------------------------------------------------
def _truth(made: _Program, seed: int) -> Truth:
    rng = np.random.default_rng([seed, 1])
    found = annealed(
        rng,
        lambda rng, n: _columns(made, {u.name: u.draw(rng, n) for u in made.unknowns}),
        lambda x: _log_prior(made, x),
        lambda x: _log_joint(made, x) - _log_prior(made, x),
    )
    if found is None:
        return Truth()  # nothing is claimed of a posterior that these draws do not find
    x, log_w = _round(made, rng, found.x, np.zeros(len(found.x)), _FINAL)
    weight = np.exp(log_w - logsumexp(log_w))
    log_evidence = float(logsumexp(log_w) - np.log(len(x)))
    if 1.0 / np.sum(weight**2) < _EFFECTIVE or abs(log_evidence - found.log_evidence) > _AGREE:
        return Truth()
    values, mean, sd = _values(made, x), {}, {}
    for u in made.unknowns:
        v = values[u.name]
        mean[u.name] = np.tensordot(weight, v, axes=1)
        sd[u.name] = np.sqrt(np.tensordot(weight, (v - mean[u.name]) ** 2, axes=1))
        if u.positive:
            mean[u.name], sd[u.name] = gamma_projected(weight @ v, weight @ np.log(v))
    return Truth(mean, sd, log_evidence=log_evidence)


def _round(
    made: _Program, rng: np.random.Generator, x: np.ndarray, log_w: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws from Student's kernels around the best draws so far, an eighth from the prior, and their log weights."""
    power = 1.0
    while _effective(power * log_w) < 100 and power > 1e-4:
        power *= 0.7
    weight = np.exp(power * log_w - logsumexp(power * log_w))
    d = x.shape[1]
    gap = x - weight @ x
    lower = np.linalg.cholesky(0.6 * (gap * weight[:, None]).T @ gap + 1e-12 * np.eye(d))
    centres = x[rng.choice(len(x), _KERNELS, p=weight)]
    n_prior = n // 8
    drawn = rng.standard_normal((n - n_prior, d)) / np.sqrt(rng.chisquare(_DOF, n - n_prior) / _DOF)[:, None]
    near = centres[rng.integers(_KERNELS, size=n - n_prior)] + drawn @ lower.T
    x = np.concatenate([near, _columns(made, {u.name: u.draw(rng, n_prior) for u in made.unknowns})])
    kernels = np.log(1 - n_prior / n) + _log_kernels(x, centres, lower)
    log_q = np.logaddexp(kernels, np.log(n_prior / n) + _log_prior(made, x))
    return x, _log_joint(made, x) - log_q


def _effective(log_w: np.ndarray) -> float:
    return float(np.exp(2 * logsumexp(log_w) - logsumexp(2 * log_w)))


def _log_kernels(x: np.ndarray, centres: np.ndarray, lower: np.ndarray) -> np.ndarray:
    d = x.shape[1]
    white, around = (np.linalg.solve(lower, a.T).T for a in (x, centres))
    far = np.stack([np.sum((white - c) ** 2, axis=1) for c in around])
    constant = gammaln((_DOF + d) / 2) - gammaln(_DOF / 2) - d / 2 * np.log(_DOF * np.pi) - np.log(np.diag(lower)).sum()
    return constant + logsumexp(-(_DOF + d) / 2 * np.log1p(far / _DOF), axis=0) - np.log(len(centres))


def _columns(made: _Program, values: Values) -> np.ndarray:
    parts = [np.log(values[u.name]) if u.positive else values[u.name] for u in made.unknowns]
    return np.concatenate([p.reshape(len(p), -1) for p in parts], axis=1)


def _values(made: _Program, x: np.ndarray) -> Values:
    values, start = {}, 0
    for u in made.unknowns:
        size = int(np.prod(u.shape, dtype=int))
        part = x[:, start : start + size].reshape(len(x), *u.shape)
        values[u.name], start = np.exp(part) if u.positive else part, start + size
    return values


def _log_prior(made: _Program, x: np.ndarray) -> np.ndarray:
    """Of the columns: a positive value's logarithm has its density times the value."""
    values = _values(made, x)
    parts = [u.log_density(values[u.name]) + (np.log(values[u.name]) if u.positive else 0.0) for u in made.unknowns]
    return np.sum(parts, axis=0)


def _log_joint(made: _Program, x: np.ndarray) -> np.ndarray:
    values = _values(made, x)
    total = _log_prior(made, x) + np.sum([s(values) for s in made.statements], axis=0)
    return np.where(np.isnan(total), -np.inf, total)
