"""Random black boxes: functions of one or two variables, smooth and not, with and without noise, against grids.

Where every row has its own unknowns (a tree), EP's belief is the projection of the exact posterior, so the truth is one integral a
row. Where rows share a vector, the truth is our own EP with the sites' integrals on grids.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, gammaln, ndtr
from scipy.stats import t as student

from benchmarks.truth.grids import beta_projected, ep, gamma_projected, line, moments, plane
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["box_loop", "box_pair", "box_tree", "noisy_box"]

SMOOTH = ["np.tanh(C * z)", "np.sin(C * z)", "np.exp(C * z)", "z**2", "z + C * z**3", "np.arctan(C * z)", "np.sqrt(C + z**2)",
          "np.log1p(np.exp(C * z))", "np.arcsinh(3 * z)", "np.cos(z) + z", "np.exp(-(z**2))", "C * z + 1"]  # fmt: skip
ROUGH = ["np.abs(z)", "np.maximum(z, 0)", "np.clip(z, -1, 1)", "np.where(z > C, z, 0.3 * z)", "np.sign(z)", "np.floor(z)",
         "np.abs(np.sin(z))", "np.round(C * z)"]  # fmt: skip
PROBABILITIES = ["1 / (1 + np.exp(-C * z))", "0.5 + np.arctan(z) / np.pi", "0.02 + 0.96 * (z > 0)", "np.exp(-np.exp(-z))",
                 "0.1 + 0.8 * np.sin(z) ** 2", "np.clip(0.5 + 0.3 * z, 0.01, 0.99)"]  # fmt: skip
RATES = ["np.exp(C * z)", "np.log1p(np.exp(z)) + 0.01", "0.1 + z**2", "np.abs(z) + 0.05", "0.05 + 5 / (1 + np.exp(-z))"]
EVENTS = ["(z > C).astype(float)", "(np.sin(z) > 0).astype(float)", "(np.abs(z) < C).astype(float)"]
PAIRS = ["a * b", "a / (1 + b**2)", "np.hypot(a, b)", "np.maximum(a, b)", "a * np.exp(0.5 * b)", "np.sin(a) + b",
         "np.where(a > 0, b, -b)", "a**2 - b", "np.abs(a - b)"]  # fmt: skip


class Output(NamedTuple):
    """What is said about a box's output: source lines, and the log likelihood of an output value, row by row."""

    family: str
    lines: list[str]
    log_likelihood: Callable[[np.ndarray], np.ndarray]  # (rows, nodes) of output values -> the same


def _function(expression: str, arguments: str) -> Callable[..., Any]:
    with np.errstate(all="ignore"):
        f = eval(f"lambda {arguments}: {expression}", {"np": np})

    def quiet(*values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return f(*values) + 0.0 * values[0]

    return quiet


def _output(rng: np.random.Generator, kind: str, values: np.ndarray, text: str = "out") -> Output:
    """Data on an output that truly took `values`."""
    n = len(values)
    if kind == "Gaussian":
        v = rounded(10 ** rng.uniform(-2, 0.3), 2)
        y = rounded(values + np.sqrt(v) * rng.standard_normal(n) * rng.choice([1, 3], p=[0.9, 0.1]))
        missing = rng.random(n) < rng.choice([0.0, 0.3])
        seen = literal(np.where(missing, np.nan, y))
        lines = [f'm.gaussian("y", {text}, variance={v}, observed={seen})']
        said = (~missing)[:, None]
        return Output(kind, lines, lambda o: said * (-0.5 * (y[:, None] - o) ** 2 / v - 0.5 * np.log(2 * np.pi * v)))
    if kind == "Beta":
        trials = int(rng.choice([1, 1, 5, 30]))
        count = rng.binomial(trials, values)
        if trials == 1:
            lines = [f'm.bernoulli("y", {text}, observed={literal(count)})']
        else:
            lines = [f'm.binomial("y", {trials}, {text}, observed={literal(count)})']
        choose = -np.log(trials + 1) - betaln(trials - count + 1, count + 1)
        return Output(kind, lines, lambda o: choose[:, None] + _xlog(count, o) + _xlog(trials - count, 1 - o))
    if kind == "Gamma":
        count = rng.poisson(np.minimum(values, 1e4))
        lines = [f'm.poisson("y", {text}, observed={literal(count)})']
        return Output(kind, lines, lambda o: _xlog(count, o) - o - gammaln(count + 1)[:, None])
    return Output(
        kind, [f"m.observe({text}, {literal(values)})"], lambda o: np.where(o == values[:, None], 0.0, -np.inf)
    )


def _xlog(count: np.ndarray, o: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count[:, None] == 0, 0.0, count[:, None] * np.log(o))


def _settings(rng: np.random.Generator) -> dict[str, Any]:
    how = rng.choice(["learned", "quadrature", "importance", "kjit"], p=[0.6, 0.18, 0.14, 0.08])
    if how == "learned":
        return {}
    return {"operator": "kjit"} if how == "kjit" else {"operator": "ask", "oracle": str(how)}


def _box(expression: str, family: str, arguments: str = "z") -> list[str]:
    return [f"@hg.factor(output=hg.{family})", f"def box({arguments}):", f"    return {expression}", "m = hg.Model()"]


def _plate(rng: np.random.Generator) -> int:
    return int(rng.integers(1, 61)) if rng.random() < 0.5 else int(rng.integers(1, 13))


def _expression(rng: np.random.Generator) -> tuple[str, str]:
    family = str(rng.choice(["Gaussian", "Beta", "Gamma", "Bernoulli"], p=[0.5, 0.2, 0.2, 0.1]))
    if family == "Gaussian":
        pool = SMOOTH if rng.random() < 0.65 else ROUGH
    else:
        pool = {"Beta": PROBABILITIES, "Gamma": RATES, "Bernoulli": EVENTS}[family]
    c = str(rounded(rng.uniform(0.3, 2.0), 2))
    return family, str(rng.choice(pool)).replace("C", c)


def _rows(log_likelihood: Callable[[np.ndarray], np.ndarray], mean: np.ndarray, variance: float) -> Truth:
    """The exact posterior of z, a row each, projected onto Gaussians."""
    sd = np.sqrt(variance)
    at = mean[:, None]

    def joint(z: np.ndarray) -> np.ndarray:
        return log_likelihood(z) - 0.5 * (z - at) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)

    z, weight, log_z = line(joint, mean - 12 * sd, mean + 12 * sd)
    m, s = moments(z, weight)
    return Truth({"z": m}, {"z": s}, log_evidence=float(log_z.sum()))


def box_tree(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A plate of rows, each with its own unknown z (sometimes positive or a probability) and a deterministic box."""
    family, expression = _expression(rng)
    f, n = _function(expression, "z"), _plate(rng)
    prior = str(rng.choice(["gaussian", "gamma", "beta"], p=[0.85, 0.1, 0.05]))
    if prior == "gaussian":
        mean, variance = rounded(rng.normal(0, 1, n)), rounded(10 ** rng.uniform(-1, 0.5), 2)
        given = f'z = m.gaussian("z", {literal(mean)}, variance={variance})'
        out = _output(rng, family, f(mean + np.sqrt(variance) * rng.standard_normal(n)))
        truth = lambda: _rows(lambda z: out.log_likelihood(f(z)), mean, variance)  # noqa: E731
    else:
        a, b = (rounded(v, 2) for v in rng.uniform(1.0, 6.0, 2))
        given = f'z = m.{prior}("z", {a}, {b}, size={n})'
        drawn = rng.gamma(a, 1 / b, n) if prior == "gamma" else rng.beta(a, b, n)
        out = _output(rng, family, f(drawn))
        truth = lambda: _positive_rows(prior, a, b, n, lambda z: out.log_likelihood(f(z)))  # noqa: E731
    lines = [*_box(expression, family), given, "out = box(z)", *out.lines]
    return World(kind, seed, "\n".join(lines), "tolerance", truth, _settings(rng))


def _positive_rows(prior: str, a: float, b: float, n: int, log_likelihood: Callable[..., np.ndarray]) -> Truth:
    """Rows with a Gamma or Beta prior, integrated over the log or the logit of z, and projected."""
    low, high = np.full(n, -40.0), np.full(n, 12.0 if prior == "gamma" else 40.0)
    if prior == "gamma":

        def joint(u: np.ndarray) -> np.ndarray:
            return log_likelihood(np.exp(u)) + a * u - b * np.exp(u) + a * np.log(b) - gammaln(a)

        u, weight, log_z = line(joint, low, high)
        mean, sd = gamma_projected((weight * np.exp(u)).sum(axis=1), (weight * u).sum(axis=1))
    else:

        def joint(u: np.ndarray) -> np.ndarray:
            return (
                log_likelihood(1 / (1 + np.exp(-u))) - a * np.logaddexp(0, -u) - b * np.logaddexp(0, u) - betaln(a, b)
            )

        u, weight, log_z = line(joint, low, high)
        mean, sd = beta_projected(
            (-weight * np.logaddexp(0, -u)).sum(axis=1), (-weight * np.logaddexp(0, u)).sum(axis=1)
        )
    return Truth({"z": mean}, {"z": sd}, log_evidence=float(log_z.sum()))


def noisy_box(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A plate of rows with a stochastic box, whose likelihood with the noise integrated out is known."""
    n, c = min(_plate(rng), 30), rounded(rng.uniform(0.2, 0.8), 2)
    mean, variance = rounded(rng.normal(0, 1, n)), rounded(10 ** rng.uniform(-1, 0.5), 2)
    z0 = mean + np.sqrt(variance) * rng.standard_normal(n)
    v = rounded(10 ** rng.uniform(-1.3, 0.3), 2)
    form = int(rng.integers(6))
    if form <= 2:
        g = ["np.sin(z)", "z", "np.abs(z)"][form]
        f = _function(g, "z")
        if form == 2:
            expression = f"{g} + {c} * (1 + np.abs(z)) * rng.standard_normal(z.shape)"
            spread = lambda z: v + (c * (1 + np.abs(z))) ** 2  # noqa: E731
        else:
            expression = f"{g} + {c} * rng.standard_normal(z.shape)"
            spread = lambda z: v + c**2 + 0 * z  # noqa: E731
        y = rounded(f(z0) + np.sqrt(spread(z0)) * rng.standard_normal(n))
        lines = [f'm.gaussian("y", out, variance={v}, observed={literal(y)})']
        family = "Gaussian"
        like = lambda z: -0.5 * (y[:, None] - f(z)) ** 2 / spread(z) - 0.5 * np.log(2 * np.pi * spread(z))  # noqa: E731
    elif form == 3:  # heavy tails
        expression, family = f"z + {c} * rng.standard_t(4, z.shape)", "Gaussian"
        y = rounded(z0 + c * rng.standard_t(4, n) + np.sqrt(v) * rng.standard_normal(n))
        lines = [f'm.gaussian("y", out, variance={v}, observed={literal(y)})']
        gap = np.linspace(-60, 60, 12001)
        e = np.linspace(-9, 9, 301)
        density = np.exp(-0.5 * e**2) / np.exp(-0.5 * e**2).sum()
        blurred = student.pdf((gap[:, None] - np.sqrt(v) * e) / c, 4) @ density / c
        like = lambda z: np.interp(y[:, None] - z, gap, np.log(blurred))  # noqa: E731
    elif form == 4:
        expression, family = "(z + rng.logistic(size=z.shape) > 0).astype(float)", "Bernoulli"
        y = (z0 + rng.logistic(size=n) > 0).astype(float)
        lines = [f"m.observe(out, {literal(y)})"]
        like = lambda z: -np.logaddexp(0, np.where(y[:, None] == 1, -z, z))  # noqa: E731
    else:  # a probit event with its own noise
        expression, family = f"(np.sin(z) + {c} * rng.standard_normal(z.shape) > 0).astype(float)", "Bernoulli"
        y = (np.sin(z0) + c * rng.standard_normal(n) > 0).astype(float)
        lines = [f"m.observe(out, {literal(y)})"]
        like = lambda z: np.log(ndtr(np.where(y[:, None] == 1, 1, -1) * np.sin(z) / c))  # noqa: E731
    given = f'z = m.gaussian("z", {literal(mean)}, variance={variance})'
    source = [*_box(expression, family, "z, rng"), given, "out = box(z)", *lines]
    settings = {} if rng.random() < 0.75 else {"operator": "ask", "oracle": "importance"}
    return World(kind, seed, "\n".join(source), "sampled", lambda: _rows(like, mean, variance), settings)


def box_pair(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A box of two unknowns, a pair of its own for each row."""
    expression = str(rng.choice(PAIRS))
    f, n = _function(expression, "a, b"), int(rng.integers(1, 7))
    ma, mb = rounded(rng.normal(0, 1.5, n)), rounded(rng.normal(0, 1.5, n))
    va, vb = (rounded(10 ** rng.uniform(-1, 0.3), 2) for _ in range(2))
    v = rounded(10 ** rng.uniform(-1.3, 0.3), 2)
    value = f(ma + np.sqrt(va) * rng.standard_normal(n), mb + np.sqrt(vb) * rng.standard_normal(n))
    y = rounded(value + np.sqrt(v) * rng.standard_normal(n))
    lines = [
        *_box(expression, "Gaussian", "a, b"),
        f'a = m.gaussian("a", {literal(ma)}, variance={va})',
        f'b = m.gaussian("b", {literal(mb)}, variance={vb})',
        f'm.gaussian("y", box(a, b), variance={v}, observed={literal(y)})',
    ]

    def truth() -> Truth:
        found = np.zeros((n, 5))
        for i in range(n):

            def joint(a: np.ndarray, b: np.ndarray, i: int = i) -> np.ndarray:
                return (
                    -0.5 * (a - ma[i]) ** 2 / va - 0.5 * (b - mb[i]) ** 2 / vb - 0.5 * (y[i] - f(a, b)) ** 2 / v
                    - 0.5 * np.log((2 * np.pi) ** 3 * va * vb * v)
                )  # fmt: skip

            sa, sb = 9 * np.sqrt(va), 9 * np.sqrt(vb)
            a, b, weight, log_z = plane(joint, (ma[i] - sa, mb[i] - sb), (ma[i] + sa, mb[i] + sb))
            found[i] = *moments(a, weight.sum(axis=1)), *moments(b, weight.sum(axis=0)), log_z
        return Truth(
            {"a": found[:, 0], "b": found[:, 2]}, {"a": found[:, 1], "b": found[:, 3]},
            log_evidence=float(found[:, 4].sum()),
        )  # fmt: skip

    return World(kind, seed, "\n".join(lines), "tolerance", truth, _settings(rng))


LOOPED = [("Gaussian", "np.tanh(C * z)"), ("Gaussian", "np.exp(0.5 * z)"), ("Gaussian", "np.arcsinh(3 * z)"),
          ("Gaussian", "np.maximum(z, 0)"), ("Gaussian", "np.abs(z)"), ("Gaussian", "np.sin(C * z)"),
          ("Beta", "1 / (1 + np.exp(-C * z))"), ("Beta", "0.5 + np.arctan(z) / np.pi"), ("Gamma", "np.exp(C * z)"),
          ("Gamma", "np.log1p(np.exp(z)) + 0.01"), ("Bernoulli", "(z > C).astype(float)")]  # fmt: skip


def box_loop(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Boxes on the rows of X @ w: our own EP must settle on one fixed point from two dampings, else another is drawn."""
    while True:
        family, expression = LOOPED[rng.integers(len(LOOPED))]
        expression = expression.replace("C", str(rounded(rng.uniform(0.5, 1.5), 2)))
        f, n, d = _function(expression, "z"), min(_plate(rng), 40), int(rng.integers(1, 4))
        x = rounded(rng.standard_normal((n, d)) * (1 if d > 1 else 1.3), 3)
        mean, variance = rounded(rng.normal(0, 0.5, d), 2), rounded(10 ** rng.uniform(-0.7, 0.3), 2)
        covariance = variance * np.eye(d)
        w = mean + np.sqrt(variance) * rng.standard_normal(d)
        out = _output(rng, family, f(x @ w))
        settings = _settings(rng)
        first = ep(lambda z, o=out, f=f: o.log_likelihood(f(z)), x, mean, covariance, 0.3, 100)
        if not first[3]:
            continue
        second = ep(lambda z, o=out, f=f: o.log_likelihood(f(z)), x, mean, covariance, 0.6, 150)
        if second[3] and np.allclose(first[0], second[0], atol=1e-5):
            break
    m, belief, log_evidence, _ = first
    truth = Truth({"w": m}, {"w": np.sqrt(np.diag(belief))}, covariance={"w": belief}, log_evidence=log_evidence)
    lines = [*_box(expression, family), f'w = m.gaussian("w", {literal(mean)}, covariance={literal(covariance)})',
             f"out = box({literal(x)} @ w)", *out.lines]  # fmt: skip
    return World(kind, seed, "\n".join(lines), "tolerance", lambda: truth, settings)
