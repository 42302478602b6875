"""What is asked of a posterior besides beliefs: predictions for new data, draws, expressions, pointwise likelihoods, a second run.

Regressions of two unknowns (two scalars, or one vector) under every likelihood; the truth is the posterior on a grid of two
dimensions. The source goes on after `infer`, as a user's would, and names what it asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit, gammaln

from benchmarks.truth.grids import plane
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["answers"]

Function = Callable[[np.ndarray], np.ndarray]


class _Noise(NamedTuple):
    """A likelihood: how it is written, what it draws, its log density (of y, z), and the mean and variance of y given z."""

    line: str  # z, y and NAME are put in
    draw: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray]
    mean: Function
    variance: Function


FORMS = ["predict", "sample", "expression", "pointwise", "new data", "start"]
NOISES = [
    _Noise('m.gaussian("y", Z, sd=0.7, observed=Y)', lambda r, z: z + 0.7 * r.standard_normal(z.shape),
           lambda y, z: stats.norm.logpdf(y, z, 0.7), lambda z: z, lambda z: 0.49 + 0 * z),
    _Noise('m.student_t("y", Z, 0.5, 6.0, observed=Y)', lambda r, z: z + 0.5 * r.standard_t(6.0, z.shape),
           lambda y, z: stats.t.logpdf((y - z) / 0.5, 6.0) - np.log(0.5), lambda z: z, lambda z: 0.25 * 1.5 + 0 * z),
    _Noise('m.laplace("y", Z, 0.6, observed=Y)', lambda r, z: z + r.laplace(0, 0.6, z.shape),
           lambda y, z: stats.laplace.logpdf(y, z, 0.6), lambda z: z, lambda z: 2 * 0.36 + 0 * z),
    _Noise('m.bernoulli("y", logit=Z, observed=Y)', lambda r, z: (r.random(z.shape) < expit(z)).astype(float),
           lambda y, z: -np.logaddexp(0, -(2 * y - 1) * z), expit, lambda z: expit(z) * expit(-z)),
    _Noise('m.bernoulli("y", probit=Z, observed=Y)', lambda r, z: (r.random(z.shape) < stats.norm.cdf(z)).astype(float),
           lambda y, z: stats.norm.logcdf((2 * y - 1) * z), stats.norm.cdf, lambda z: stats.norm.cdf(z) * stats.norm.sf(z)),
    _Noise('m.poisson("y", log_rate=Z, observed=Y)', lambda r, z: r.poisson(np.exp(np.minimum(z, 5.0))).astype(float),
           lambda y, z: y * z - np.exp(np.minimum(z, 700.0)) - gammaln(y + 1), np.exp, np.exp),
    _Noise('m.binomial("y", 6, logit=Z, observed=Y)', lambda r, z: r.binomial(6, expit(z)).astype(float),
           lambda y, z: stats.binom.logpmf(y, 6, expit(z)), lambda z: 6 * expit(z), lambda z: 6 * expit(z) * expit(-z)),
    _Noise('m.negative_binomial("y", log_mean=Z, dispersion=2.5, observed=Y)',
           lambda r, z: r.poisson(r.gamma(2.5, np.exp(np.minimum(z, 5.0)) / 2.5)).astype(float),
           lambda y, z: stats.nbinom.logpmf(y, 2.5, 2.5 / (2.5 + np.exp(np.minimum(z, 700.0)))), np.exp,
           lambda z: np.exp(z) + np.exp(2 * z) / 2.5),
]  # fmt: skip


def answers(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One regression, and one of six things that are done with its posterior."""
    n = int(rng.choice([2, 5, 12, 40]))
    noise = NOISES[rng.integers(len(NOISES))]
    x, new = rounded(rng.normal(0, 1, n), 3), rounded(rng.normal(0, 1, 3), 3)
    mean, sd = rounded(rng.normal(0, 0.5, 2), 2), rounded(rng.uniform(0.3, 1.0, 2), 2)
    ab = mean + sd * rng.standard_normal(2)
    y = rounded(noise.draw(rng, ab[0] + ab[1] * x))
    gone = rng.random(n) < float(rng.choice([0.0, 0.3]))
    written = np.where(gone & (rng.random() < 0.7), np.nan, y)
    vector = rng.random() < 0.5
    form = FORMS[rng.integers(len(FORMS))]
    again = form in FORMS[-2:]
    later_x = rounded(rng.normal(0, 1, n + 2), 3)
    later_y = rounded(noise.draw(rng, ab[0] + ab[1] * later_x))
    shown_x, shown_y = (later_x, later_y) if again else (x, written)

    lines = _lines(noise, vector, x, written, mean, sd, again)
    first, second = ("w[0]", "w[1]") if vector else ("a", "b")
    after = {
        "predict": f'new = posterior.predict("y", draws=20000, x={literal(new)})',
        "sample": "draws = posterior.sample(20000, seed=1)\n"
        + ("both = draws['w']" if vector else "both = np.stack([draws['a'], draws['b']], axis=1)")
        + "\nclass drawn:\n    mean, variance = both.mean(axis=0), both.var(axis=0)\n"
        "class product:\n    mean, variance = both.prod(axis=1).mean(), both.prod(axis=1).var()",
        "expression": f"line = posterior[{first} - 2.0 * {second} + 1.0]",
        "pointwise": 'each = posterior.log_likelihood(pointwise=True)["y"]\n'
        "class pointwise:\n    mean = np.nan_to_num(each)\n    variance = np.ones(mean.shape)",
        "new data": f"m.observe(x={literal(later_x)}, seen={literal(later_y)})\nposterior = m.infer()",
        "start": f"old = posterior\nm.observe(x={literal(later_x)}, seen={literal(later_y)})\nposterior = m.infer(start=old)",
    }[form]
    if again:
        after += f"\none, two = posterior[{first}], posterior[{second}]"

    def truth() -> Truth:
        kept = ~np.isnan(shown_y)

        def joint(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            total = stats.norm.logpdf(a, mean[0], sd[0]) + stats.norm.logpdf(b, mean[1], sd[1])
            for xi, yi in zip(shown_x[kept], shown_y[kept], strict=True):
                total = total + noise.log_density(yi, a + b * xi)
            return total

        a, b, weight, log_z = plane(joint, tuple(mean - 9 * sd), tuple(mean + 9 * sd), 401)
        a, b = a[:, None], b[None, :]

        def of(value: np.ndarray) -> tuple[float, float]:
            centre = float((weight * value).sum())
            return centre, float(np.sqrt((weight * (value - centre) ** 2).sum()))

        if form == "predict":
            found = [(of(noise.mean(a + b * k)), (weight * noise.variance(a + b * k)).sum()) for k in new]
            m = np.array([f[0][0] for f in found])
            return Truth({"new": m}, {"new": np.sqrt([f[0][1] ** 2 + f[1] for f in found])}, log_evidence=log_z)
        if form == "sample":
            moments = [of(a + 0 * b), of(b + 0 * a)]
            product = of(a * b)
            return Truth({"drawn": np.array([k[0] for k in moments]), "product": product[0]},
                         {"drawn": np.array([k[1] for k in moments]), "product": product[1]}, log_evidence=log_z)  # fmt: skip
        if form == "expression":
            m, s = of(a - 2.0 * b + 1.0)
            return Truth({"line": m}, {"line": s}, log_evidence=log_z)
        if form == "pointwise":
            each = [np.log((weight * np.exp(noise.log_density(yi, a + b * xi))).sum()) if k else 0.0
                    for xi, yi, k in zip(shown_x, shown_y, kept, strict=True)]  # fmt: skip
            return Truth({"pointwise": np.array(each)}, {"pointwise": np.ones(n)}, log_evidence=log_z)
        (m1, s1), (m2, s2) = of(a + 0 * b), of(b + 0 * a)
        return Truth({"one": m1, "two": m2}, {"one": s1, "two": s2}, log_evidence=log_z)

    return World(kind, seed, "\n".join(lines), "answers", truth, after=after)


def _lines(
    noise: _Noise, vector: bool, x: np.ndarray, written: np.ndarray, mean: np.ndarray, sd: np.ndarray, again: bool
) -> list[str]:
    """The model; `again`: what is seen has a name, so that other values can be given."""
    lines = ["m = hg.Model()", f'x = m.data("x", {literal(x)})']
    if vector:
        lines.append(f'w = m.gaussian("w", {literal(mean)}, covariance=np.diag({literal(sd**2)}))')
        z = "w[0] + w[1] * x"
    else:
        lines += [f'{k} = m.gaussian("{k}", {u}, sd={s})' for k, u, s in zip("ab", mean, sd, strict=True)]
        z = "a + b * x"
    observed = 'm.data("seen", {})' if again else "{}"
    lines.append(f"z = {z}")
    lines.append(re.sub(r"\bY\b", observed.format(literal(written)), noise.line.replace("Z", "z")))
    return lines
