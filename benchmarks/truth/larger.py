"""Programs of three to twelve unknown numbers as strangers write them: hierarchies, gaps in the data, black boxes, every setting.

The truth is by annealed particles (`annealed.py`) on densities written in NumPy and SciPy. EP approximates here, and its run must
say so where that is far off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import gammaln, log_ndtr, xlogy

from benchmarks.truth.annealed import annealed
from benchmarks.truth.effects import LIKELIHOODS
from benchmarks.truth.grids import gamma_projected
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["larger_program"]

Values = dict[str, np.ndarray]
Function = Callable[[Values], np.ndarray]
BOXES = [
    "np.tanh(z)",
    "z + 0.3 * np.sin(2 * z)",
    "np.exp(0.5 * z)",
    "np.arctan(2 * z)",
    "np.log1p(np.exp(z))",
    "1 / (1 + z**2)",
]
PAIRS = ["z / (1 + v**2)", "z * np.exp(0.3 * v)", "np.hypot(z, v)", "z * v", "np.sin(z) + v"]
SETTINGS: list[dict[str, Any]] = [{}, {}, {}, {"schedule": "sequential"}, {"damping": 0.4}, {"power": 0.5},
                                  {"structure": "factorised"}]  # fmt: skip


class _Unknown(NamedTuple):
    """A variable, given those before it; `positive` ones are walked in their logarithms."""

    name: str
    line: str
    shape: tuple[int, ...]
    positive: bool
    draw: Callable[[np.random.Generator, int, Values], np.ndarray]
    log_density: Callable[[np.ndarray, Values], np.ndarray]  # of values (S, *shape)
    row: str = ""  # how rows of it are written: "scalar", "array" or "vector"; "" never


class _Expression(NamedTuple):
    source: str
    value: Function  # (S, n)
    names: frozenset[str]


class _Program(NamedTuple):
    unknowns: list[_Unknown]
    lines: list[str]
    statements: list[Function]  # (S,) log densities


def larger_program(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A random program."""
    made = _written(rng)
    settings = dict(SETTINGS[rng.integers(len(SETTINGS))])
    boxes = [line for line in made.lines if line.startswith("@")]
    if boxes and "schedule" in settings:
        settings = {}  # to ask element by element takes minutes
    lines = [*boxes, "m = hg.Model()", *(u.line for u in made.unknowns), *(k for k in made.lines if k not in boxes)]
    return World(kind, seed, "\n".join(lines), "program", lambda: _truth(made, seed), settings)


# ---- unknowns -----------------------------------------------------------------------------------------------------------
def _written(rng: np.random.Generator) -> _Program:
    unknowns = [_scalar("a", rng)]
    makers = [_scalar, _array, _effects, _vector, _positive]
    for name, form in zip(
        "bcde", rng.choice(len(makers), int(rng.integers(1, 4)), p=[0.25, 0.2, 0.25, 0.15, 0.15]), strict=False
    ):
        unknowns.append(makers[form](name, rng, unknowns))
    true: Values = {}
    for u in unknowns:
        true[u.name] = u.draw(rng, 1, true)
    lines: list[str] = []
    statements: list[Function] = []
    n_boxes = 0
    for k in range(int(rng.integers(2, 6))):
        n = int(rng.choice([1, 2, 4, 8]))
        z = _expression(rng, unknowns, n)
        if rng.random() < 0.2:
            box, z = _boxed(rng, unknowns, z, n, f"f{n_boxes}")
            lines.append(box)
            n_boxes += 1
        at = z.value(true)[0]
        text, log_density = _statement(rng, unknowns, true, z, at, k)
        lines += [f"z{k} = {z.source}", text]
        statements.append(log_density)
    return _Program(unknowns, lines, statements)


def _scalar(name: str, rng: np.random.Generator, before: Any = ()) -> _Unknown:
    mean, sd = float(rounded(rng.normal(), 2)), float(rng.choice([0.3, 1.0, 3.0]))
    line = f'{name} = m.gaussian("{name}", {mean}, sd={sd})'
    return _Unknown(name, line, (), False, lambda rng, n, v: rng.normal(mean, sd, n),
                    lambda x, v: stats.norm.logpdf(x, mean, sd), "scalar")  # fmt: skip


def _array(name: str, rng: np.random.Generator, before: Any = ()) -> _Unknown:
    k, sd = int(rng.integers(2, 5)), float(rng.choice([0.3, 1.0, 3.0]))
    line = f'{name} = m.gaussian("{name}", 0.0, sd={sd}, size={k})'
    return _Unknown(name, line, (k,), False, lambda rng, n, v: rng.normal(0, sd, (n, k)),
                    lambda x, v: stats.norm.logpdf(x, 0.0, sd).sum(axis=1), "array")  # fmt: skip


def _effects(name: str, rng: np.random.Generator, before: Any = ()) -> _Unknown:
    """Around a scalar that is unknown too."""
    k, sd = int(rng.integers(2, 5)), float(rng.choice([0.3, 1.0]))
    line = f'{name} = m.gaussian("{name}", a, sd={sd}, size={k})'
    return _Unknown(name, line, (k,), False, lambda rng, n, v: v["a"][:, None] + rng.normal(0, sd, (n, k)),
                    lambda x, v: stats.norm.logpdf(x, v["a"][:, None], sd).sum(axis=1), "array")  # fmt: skip


def _vector(name: str, rng: np.random.Generator, before: Any = ()) -> _Unknown:
    d = int(rng.integers(2, 4))
    root = rounded(rng.normal(0, 1, (d, d)), 2)
    covariance = np.round(root @ root.T + 0.3 * np.eye(d), 3)
    line = f'{name} = m.gaussian("{name}", np.zeros({d}), covariance={literal(covariance)})'
    known = stats.multivariate_normal(np.zeros(d), covariance)
    lower = np.linalg.cholesky(covariance)
    return _Unknown(name, line, (d,), False, lambda rng, n, v: rng.standard_normal((n, d)) @ lower.T,
                    lambda x, v: known.logpdf(x), "vector")  # fmt: skip


def _positive(name: str, rng: np.random.Generator, before: Any = ()) -> _Unknown:
    shape, rate = float(rng.choice([1.5, 3.0, 8.0])), float(rng.choice([1.0, 3.0]))
    line = f'{name} = m.gamma("{name}", {shape}, {rate})'
    return _Unknown(name, line, (), True, lambda rng, n, v: rng.gamma(shape, 1 / rate, n),
                    lambda x, v: stats.gamma.logpdf(x, shape, scale=1 / rate))  # fmt: skip


# ---- expressions --------------------------------------------------------------------------------------------------------
def _expression(rng: np.random.Generator, unknowns: list[_Unknown], n: int) -> _Expression:
    real = [u for u in unknowns if u.row]
    z = _row(rng, real[rng.integers(len(real))], n)
    for _ in range(int(rng.choice([0, 1, 2], p=[0.4, 0.4, 0.2]))):
        z = _plus(z, _row(rng, real[rng.integers(len(real))], n), float(rng.choice([-1, 1])))
    form, source, value = int(rng.integers(12)), z.source, z.value
    if form == 0:
        return _Expression(f"abs({source})", lambda v: np.abs(value(v)), z.names)
    if form == 1:
        return _Expression(f"({source}) ** 2", lambda v: value(v) ** 2, z.names)
    others = [u for u in real if u.name not in z.names]
    if form in (2, 3, 4) and others:
        other = _row(rng, others[rng.integers(len(others))], n)
        names = z.names | other.names
        if form == 2:
            return _Expression(
                f"m.maximum({source}, {other.source})", lambda v: np.maximum(value(v), other.value(v)), names
            )
        if form == 3:
            return _Expression(
                f"m.minimum({source}, {other.source})", lambda v: np.minimum(value(v), other.value(v)), names
            )
        return _Expression(f"({source}) * ({other.source})", lambda v: value(v) * other.value(v), names)
    scales = [u.name for u in unknowns if u.positive]
    if form == 5 and scales:
        t = scales[0]
        return _Expression(f"{t} * ({source})", lambda v: v[t][:, None] * value(v), z.names | {t})
    return z


def _plus(z: _Expression, other: _Expression, sign: float) -> _Expression:
    return _Expression(f"({z.source}) + {sign} * ({other.source})", lambda v: z.value(v) + sign * other.value(v),
                       z.names | other.names)  # fmt: skip


def _row(rng: np.random.Generator, unknown: _Unknown, n: int) -> _Expression:
    """n rows of one unknown: repeated, times data, gathered, or times a matrix."""
    name, names = unknown.name, frozenset({unknown.name})
    if unknown.row == "scalar":
        x = np.ones(n) if rng.random() < 0.4 else rounded(rng.normal(0, 1, n), 2)
        return _Expression(f"{name} * {literal(x)}", lambda v: v[name][:, None] * x, names)
    if unknown.row == "array":
        g = rng.integers(0, unknown.shape[0], n)
        return _Expression(f"{name}[{literal(g)}]", lambda v: v[name][:, g], names)
    x = rounded(rng.normal(0, 1, (n, unknown.shape[0])), 2)
    return _Expression(f"{literal(x)} @ {name}", lambda v: v[name] @ x.T, names)


def _boxed(
    rng: np.random.Generator, unknowns: list[_Unknown], z: _Expression, n: int, name: str
) -> tuple[str, _Expression]:
    """A black box of an expression, or of two."""
    others = [u for u in unknowns if u.row == "scalar" and u.name not in z.names]
    if others and rng.random() < 0.4:
        text = str(rng.choice(PAIRS))
        other = _row(rng, others[0], n)
        f = eval(f"lambda z, v: {text}", {"np": np})
        line = f"@hg.factor(output=hg.Gaussian)\ndef {name}(z, v):\n    return {text}"
        return line, _Expression(
            f"{name}({z.source}, {other.source})", lambda v: f(z.value(v), other.value(v)), z.names | other.names
        )
    text = str(rng.choice(BOXES))
    f = eval(f"lambda z: {text}", {"np": np})
    line = f"@hg.factor(output=hg.Gaussian)\ndef {name}(z):\n    return {text}"
    return line, _Expression(f"{name}({z.source})", lambda v: f(z.value(v)), z.names)


# ---- statements ---------------------------------------------------------------------------------------------------------
def _statement(
    rng: np.random.Generator, unknowns: list[_Unknown], true: Values, z: _Expression, at: np.ndarray, k: int
) -> tuple[str, Function]:
    name, value = f"z{k}", z.value
    form = rng.random()
    scales = [u.name for u in unknowns if u.positive]
    if form < 0.12:
        low = float(rounded(at.min() - rng.exponential(0.5), 2))
        return f"m.constrain({name} > {low})", lambda v: np.where(value(v) > low, 0.0, -np.inf).sum(axis=1)
    if form < 0.27 and scales:
        t = scales[0]
        if rng.random() < 0.5:
            y = rounded(at + rng.standard_normal(len(at)) / np.sqrt(true[t][0]))
            text = f'm.gaussian("y{k}", {name}, precision={t}, observed={literal(y)})'
            return text, lambda v: stats.norm.logpdf(y, value(v), 1 / np.sqrt(v[t])[:, None]).sum(axis=1)
        count = rng.poisson(true[t][0], 3)
        text = f'm.poisson("y{k}", {t}, observed={literal(count)})'
        return text, lambda v: (xlogy(count, v[t][:, None]) - v[t][:, None] - gammaln(count + 1.0)).sum(axis=1)
    if form < 0.35:
        s, low = 1.0, float(rounded(at.min() - rng.exponential(1.0), 2))
        y = rounded(np.maximum(at + rng.standard_normal(len(at)), low + 0.01 + rng.random(len(at))))
        text = f'm.truncated_gaussian("y{k}", {name}, sd={s}, lower={low}, observed={literal(y)})'
        return text, lambda v: (stats.norm.logpdf(y, value(v), s) - log_ndtr((value(v) - low) / s)).sum(axis=1)
    if form < 0.47:
        s = float(rng.choice([0.3, 1.0]))
        gone = rng.random(len(at)) < 0.4
        y = rounded(at + s * rng.standard_normal(len(at)))
        text = f'm.gaussian("y{k}", {name}, sd={s}, observed={literal(np.where(gone, np.nan, y))})'
        return text, lambda v: np.where(gone, 0.0, stats.norm.logpdf(y, value(v), s)).sum(axis=1)
    chosen = LIKELIHOODS[rng.integers(len(LIKELIHOODS))](rng, np.clip(at, -4.0, 4.0))
    text = re.sub(r"\bz\b", name, chosen.line).replace('"y"', f'"y{k}"')
    return text, lambda v: chosen.log_density(value(v)).sum(axis=1)


# ---- the truth ----------------------------------------------------------------------------------------------------------
def _truth(made: _Program, seed: int) -> Truth:
    rng = np.random.default_rng([seed, 2])

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        values: Values = {}
        for u in made.unknowns:
            values[u.name] = u.draw(rng, n, values)
        return _columns(made, values)

    def log_prior(x: np.ndarray) -> np.ndarray:
        values = _values(made, x)
        parts = [
            u.log_density(values[u.name], values) + (np.log(values[u.name]) if u.positive else 0.0)
            for u in made.unknowns
        ]
        return np.sum(parts, axis=0)

    def log_likelihood(x: np.ndarray) -> np.ndarray:
        values = _values(made, x)
        return np.sum([s(values) for s in made.statements], axis=0)

    with np.errstate(all="ignore"):
        found = annealed(rng, draw, log_prior, log_likelihood)
    if found is None:
        return Truth()  # nothing is claimed of a posterior that these particles do not find
    values, mean, sd = _values(made, found.x), {}, {}
    for u in made.unknowns:
        v = values[u.name]
        mean[u.name], sd[u.name] = v.mean(axis=0), v.std(axis=0)
        if u.positive:
            mean[u.name], sd[u.name] = gamma_projected(v.mean(), np.log(v).mean())
    return Truth(mean, sd, log_evidence=found.log_evidence)


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
