"""Make `data/hierarchical.json`: small hierarchical models and their posteriors by long importance sampling.

    python -m benchmarks.truth.make_data

The proposal is a multivariate t with 5 degrees of freedom on the unconstrained parameters (logs of precisions), fitted in
eight rounds of 40,000 weighted draws; the answer comes from 2,000,000 fresh draws. Kept only if the effective sample
size passes 100,000, so that every mean is right to .004 sds or better. Gamma beliefs are compared with the
projection of the posterior (E t and E log t), as EP's are. NumPy and SciPy only; heliograph is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.special import gammaln

from benchmarks.truth.grids import gamma_projected
from benchmarks.truth.world import literal, rng_of, rounded

PAGE = Path(__file__).parent / "data" / "hierarchical.json"
N_FINAL, LEAST = 2_000_000, 100_000
LogJoint = Callable[[np.ndarray], np.ndarray]
Model = tuple[
    str, LogJoint, dict[str, tuple[slice | int, bool]], int
]  # source, log joint, asked (columns, log?), dimension


def _normal(x: np.ndarray, mean: np.ndarray | float, variance: float) -> np.ndarray:
    return -0.5 * (x - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)


def _log_gamma(u: np.ndarray, a: float, b: float) -> np.ndarray:
    """The density of u = log t for t ~ Gamma(a, b)."""
    return a * np.log(b) - gammaln(a) + a * u - b * np.exp(u)


def groups(rng: np.random.Generator) -> Model:
    """Effects around a common mean with unknown spread, one noisy value each."""
    k = int(rng.integers(3, 7))
    s2 = rounded(rng.uniform(0.3, 1.5, k), 2)
    y = rounded(rng.normal(1, 1.2, k) + np.sqrt(s2) * rng.standard_normal(k))
    source = (
        'm = hg.Model()\nmu = m.gaussian("mu", 0.0, variance=4.0)\nt = m.gamma("t", 3.0, 2.0)\n'
        f'theta = m.gaussian("theta", mu, precision=t, size={k})\n'
        f'm.gaussian("y", theta, variance={literal(s2)}, observed={literal(y)})'
    )

    def log_joint(p: np.ndarray) -> np.ndarray:
        mu, u, theta = p[:, 0], p[:, 1], p[:, 2:]
        effects = 0.5 * u[:, None] - 0.5 * np.log(2 * np.pi) - 0.5 * np.exp(u)[:, None] * (theta - mu[:, None]) ** 2
        data = -0.5 * (y - theta) ** 2 / s2 - 0.5 * np.log(2 * np.pi * s2)
        return _normal(mu, 0.0, 4.0) + _log_gamma(u, 3.0, 2.0) + effects.sum(axis=1) + data.sum(axis=1)

    return source, log_joint, {"mu": (0, False), "t": (1, True), "theta": (slice(2, None), False)}, 2 + k


def counts(rng: np.random.Generator) -> Model:
    """Poisson counts whose log rates scatter around a common mean."""
    k = int(rng.integers(3, 7))
    y = rng.poisson(np.exp(rng.normal(1, 0.7, k)))
    source = (
        'm = hg.Model()\nmu = m.gaussian("mu", 0.0, variance=4.0)\n'
        f'z = m.gaussian("z", mu, variance=0.5, size={k})\nm.poisson("y", log_rate=z, observed={literal(y)})'
    )

    def log_joint(p: np.ndarray) -> np.ndarray:
        mu, z = p[:, 0], p[:, 1:]
        rows = _normal(z, mu[:, None], 0.5) + y * z - np.exp(np.minimum(z, 50)) - gammaln(y + 1)
        return _normal(mu, 0.0, 4.0) + rows.sum(axis=1)

    return source, log_joint, {"mu": (0, False), "z": (slice(1, None), False)}, 1 + k


def items(rng: np.random.Generator) -> Model:
    """Persons answer items: a logistic label for every pair."""
    a, b = (int(v) for v in rng.integers(2, 4, 2))
    i, j = (v.ravel() for v in np.meshgrid(np.arange(a), np.arange(b), indexing="ij"))
    y = rng.integers(0, 2, a * b)
    source = (
        f'm = hg.Model()\nr = m.gaussian("r", 0.0, variance=1.0, size={a})\nd = m.gaussian("d", 0.0, variance=1.0, size={b})\n'
        f'm.bernoulli("y", logit=r[{literal(i)}] - d[{literal(j)}], observed={literal(y)})'
    )
    sign = np.where(y == 1, 1.0, -1.0)

    def log_joint(p: np.ndarray) -> np.ndarray:
        z = p[:, i] - p[:, a + j]
        return _normal(p, 0.0, 1.0).sum(axis=1) - np.logaddexp(0, -sign * z).sum(axis=1)

    return source, log_joint, {"r": (slice(0, a), False), "d": (slice(a, None), False)}, a + b


def noisy_line(rng: np.random.Generator) -> Model:
    """Linear regression with an unknown noise precision."""
    n = int(rng.choice([6, 12, 30]))
    x = rounded(np.column_stack([np.ones(n), rng.standard_normal(n)]), 3)
    y = rounded(x @ rng.standard_normal(2) + 0.7 * rng.standard_normal(n))
    source = (
        'm = hg.Model()\nw = m.gaussian("w", np.zeros(2), covariance=4.0 * np.eye(2))\nt = m.gamma("t", 2.0, 1.0)\n'
        f'm.gaussian("y", {literal(x)} @ w, precision=t, observed={literal(y)})'
    )

    def log_joint(p: np.ndarray) -> np.ndarray:
        w, u = p[:, :2], p[:, 2]
        gap = ((y - w @ x.T) ** 2).sum(axis=1)
        data = 0.5 * n * (u - np.log(2 * np.pi)) - 0.5 * np.exp(u) * gap
        return _normal(w, 0.0, 4.0).sum(axis=1) + _log_gamma(u, 2.0, 1.0) + data

    return source, log_joint, {"w": (slice(0, 2), False), "t": (2, True)}, 3


def heavy_tails(rng: np.random.Generator) -> Model:
    """A mean under Student-t noise, written with a precision for every row; the precisions are integrated out."""
    n = int(rng.choice([3, 6, 15]))
    y = rounded(1 + 0.7 * rng.standard_t(4, n))
    source = (
        'm = hg.Model()\nx = m.gaussian("x", 0.0, variance=9.0)\n'
        f't = m.gamma("t", 2.0, 1.0, size={n})\nm.gaussian("y", x, precision=t, observed={literal(y)})'
    )

    def log_joint(p: np.ndarray) -> np.ndarray:
        rows = gammaln(2.5) - gammaln(2.0) - 0.5 * np.log(2 * np.pi) - 2.5 * np.log(1.0 + 0.5 * (y - p) ** 2)
        return _normal(p[:, 0], 0.0, 9.0) + rows.sum(axis=1)

    return source, log_joint, {"x": (0, False)}, 1


def rank_one(rng: np.random.Generator) -> Model:
    """A small matrix of rank one plus noise, with priors that tell the sign."""
    a, b = 2, int(rng.integers(2, 4))
    i, j = (v.ravel() for v in np.meshgrid(np.arange(a), np.arange(b), indexing="ij"))
    y = rounded(rng.normal(2, 0.5, a)[i] * rng.normal(1, 0.4, b)[j] + 0.5 * rng.standard_normal(a * b))
    source = (
        f'm = hg.Model()\nu = m.gaussian("u", 2.0, variance=0.25, size={a})\nv = m.gaussian("v", 1.0, variance=0.16, size={b})\n'
        f'm.gaussian("y", u[{literal(i)}] * v[{literal(j)}], variance=0.25, observed={literal(y)})'
    )

    def log_joint(p: np.ndarray) -> np.ndarray:
        prior = _normal(p[:, :a], 2.0, 0.25).sum(axis=1) + _normal(p[:, a:], 1.0, 0.16).sum(axis=1)
        return prior + _normal(y, p[:, i] * p[:, a + j], 0.25).sum(axis=1)

    return source, log_joint, {"u": (slice(0, a), False), "v": (slice(a, None), False)}, a + b


TEMPLATES = [groups, counts, items, noisy_line, heavy_tails, rank_one]


def weighted(rng: np.random.Generator, log_joint: LogJoint, mean: np.ndarray, scale: np.ndarray, n: int):
    """Draws of a multivariate t with 5 degrees of freedom, and their log weights."""
    d, nu = len(mean), 5.0
    e = rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(nu, n) / nu)[:, None]
    x = mean + e @ np.linalg.cholesky(scale).T
    log_q = -0.5 * (nu + d) * np.log1p((e**2).sum(axis=1) / nu) - 0.5 * np.linalg.slogdet(scale)[1]
    log_q += gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi)
    return x, log_joint(x) - log_q


def posterior(rng: np.random.Generator, model: Model) -> dict:
    """The record that is kept."""
    source, log_joint, asked, d = model
    mean, scale = np.zeros(d), 2.0 * np.eye(d)
    for _ in range(8):
        x, log_w = weighted(rng, log_joint, mean, scale, 40_000)
        w = np.exp((log_w - log_w.max()) * 0.7 if _ < 3 else log_w - log_w.max())
        w /= w.sum()
        mean = w @ x
        scale = 1.1 * ((x - mean).T * w) @ (x - mean) + 1e-6 * np.eye(d)
    x, log_w = weighted(rng, log_joint, mean, scale, N_FINAL)
    top = log_w.max()
    w = np.exp(log_w - top)
    size = float(w.sum() ** 2 / (w**2).sum())
    if size < LEAST:
        raise RuntimeError(f"effective sample size {size:.0f} is below {LEAST}")
    log_evidence = float(top + np.log(w.mean()))
    w /= w.sum()
    answer: dict = {"source": source, "effective": round(size), "log_evidence": log_evidence, "mean": {}, "sd": {}}
    for name, (where, logged) in asked.items():
        v = x[:, where]
        if logged:
            m, s = gamma_projected(w @ np.exp(v), w @ v)
        else:
            m = w @ v
            s = np.sqrt(w @ (v - m) ** 2)
        answer["mean"][name], answer["sd"][name] = np.asarray(m).tolist(), np.asarray(s).tolist()
    return answer


def main() -> None:
    """Write the file."""
    found = []
    for template in TEMPLATES:
        for k in range(6):
            rng = rng_of(template.__name__, k)
            found.append({"template": template.__name__, **posterior(rng, template(rng))})
            print(template.__name__, k, found[-1]["effective"], flush=True)
    PAGE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
