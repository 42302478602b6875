"""Random effects under every likelihood of the language, with a known or an unknown scale.

``z = a + u[g] + offset`` with ``u ~ N(0, h^2)``: given a and h the groups are independent, so the exact posterior is one integral
per group inside one over a and h, all of them by dense trapezoids on densities of SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import comb, expit, gammaln, log_expit, log_ndtr, logsumexp, ndtr

from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["LIKELIHOODS", "random_effects"]

_A, _T, _H = 81, 641, 61  # nodes of the intercept, of an effect over its scale, of the log scale
_DEEP = 45.0  # nats below the top: less is nothing
_WIDE = 8.0  # standard deviations on either side


class _Likelihood(NamedTuple):
    """The line that observes, without its beginning, and the log density of every row at values (S, n) of z."""

    line: str
    log_density: Callable[[np.ndarray], np.ndarray]


def random_effects(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One intercept, one to four groups, 1 to 60 rows."""
    n, groups = int(rng.choice([1, 2, 3, 5, 8, 13, 21, 40, 60])), int(rng.choice([1, 2, 3, 4]))
    g, offset = rng.integers(0, groups, n), rounded(rng.standard_normal(n) * rng.choice([0.0, 0.5]), 3)
    wide, scale, unknown = float(rng.choice([0.5, 1.0, 3.0])), float(rng.choice([0.3, 1.0])), rng.random() < 0.3
    a, u = rng.normal(0, min(wide, 1.0)), rng.normal(0, scale, groups)
    likelihood = LIKELIHOODS[seed % len(LIKELIHOODS)](rng, a + u[g] + offset)
    lines = ["m = hg.Model()", f'a = m.gaussian("a", 0.0, sd={wide})',
             *(['h = m.half_normal("h", 1.0)'] if unknown else []),
             f'u = m.gaussian("u", 0.0, sd={"h" if unknown else scale}, size={groups})',
             f"z = a + u[{literal(g)}] + {literal(offset)}", likelihood.line]  # fmt: skip

    def truth() -> Truth:
        tables = [_table(likelihood, offset, g == k, wide) for k in range(groups)]
        scales = np.exp(np.linspace(np.log(1e-4), np.log(6.0), _H)) if unknown else np.array([scale])
        prior = stats.halfnorm.logpdf(scales) + np.log(scales) if unknown else np.zeros(1)
        return _integrated(tables, wide, scales, prior)

    # one of four groups that are all alike says little of h, and three rows may decide: EP's own errors are those of regression
    return World(kind, seed, "\n".join(lines), "random effects", truth)


def _table(likelihood: _Likelihood, offset: np.ndarray, mine: np.ndarray, wide: float) -> CubicSpline:
    """The log likelihood of one group as a function of its ``v = a + u``."""
    reach = _WIDE * (wide + 6.0)
    v = np.concatenate([np.linspace(-reach, -9, 1500), np.linspace(-9, 9, 9001)[1:-1], np.linspace(9, reach, 1500)])
    values = np.concatenate([likelihood.log_density(part[:, None] + offset)[:, mine].sum(axis=1)
                             for part in np.array_split(v, 12)])  # fmt: skip
    return CubicSpline(v, np.maximum(values, -1e5))


def _integrated(tables: list[CubicSpline], wide: float, scales: np.ndarray, log_prior: np.ndarray) -> Truth:
    step = np.log(scales[1] / scales[0]) if len(scales) > 1 else 1.0
    found = [_given(tables, wide, h) for h in scales]
    log_weight = log_prior + np.log(step) + np.array([f.log_z for f in found])
    log_evidence = float(logsumexp(log_weight))
    share = np.exp(log_weight - log_evidence)
    first = share @ np.array([f.first for f in found])
    sd = np.sqrt(share @ np.array([f.second for f in found]) - first**2)
    return Truth({"a": first[0], "u": first[1:]}, {"a": sd[0], "u": sd[1:]}, log_evidence=log_evidence)


class _Given(NamedTuple):
    """The integral at one scale, and the first and second moments of a and every effect."""

    log_z: float
    first: np.ndarray
    second: np.ndarray


def _given(tables: list[CubicSpline], wide: float, h: float) -> _Given:
    low, high = -_WIDE * wide, _WIDE * wide
    for _ in range(4):  # the window of a closes in on its mass: small scales leave a narrow posterior
        a = np.linspace(low, high, _A)
        t, log_weight, log_joints = _at(tables, wide, h, a)
        near = np.flatnonzero(log_weight > log_weight.max() - _DEEP)
        if near[-1] - near[0] > _A // 2:
            break
        low, high = a[max(near[0] - 1, 0)], a[min(near[-1] + 1, _A - 1)]
    log_z = float(logsumexp(log_weight))
    share = np.exp(log_weight - log_z)
    first, second = [share @ a], [share @ a**2]
    for log_joint in log_joints:
        inside = np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True))
        first.append(h * (share @ (inside @ t)))
        second.append(h**2 * (share @ (inside @ t**2)))
    return _Given(log_z, np.array(first), np.array(second))


def _at(
    tables: list[CubicSpline], wide: float, h: float, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The nodes of ``t = u / h``, the log weights of the nodes of a, and those of each group over both."""
    t = np.linspace(-_WIDE, _WIDE, _T)
    log_t = stats.norm.logpdf(t) + np.log(t[1] - t[0])
    log_joints = [table(a[:, None] + h * t) + log_t for table in tables]
    log_a = stats.norm.logpdf(a, 0.0, wide) + np.log(a[1] - a[0])
    return t, log_a + sum(logsumexp(j, axis=1) for j in log_joints), log_joints


# ---- likelihoods --------------------------------------------------------------------------------------------------------
def _gaussian(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    s, y = float(rng.choice([0.3, 1.0])), rounded(z + rng.standard_normal(len(z)))
    return _Likelihood(f'm.gaussian("y", z, sd={s}, observed={literal(y)})', lambda z: stats.norm.logpdf(y, z, s))


def _censored(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    s, y, c = float(rng.choice([0.3, 1.0])), rounded(z + rng.standard_normal(len(z))), rng.random(len(z)) < 0.4
    line = f'm.gaussian("y", z, sd={s}, observed={literal(y)}, censored={literal(c)})'
    return _Likelihood(line, lambda z: np.where(c, stats.norm.logsf(y, z, s), stats.norm.logpdf(y, z, s)))


def _student(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    s, dof = float(rng.choice([0.3, 1.0])), float(rng.choice([3.0, 4.0, 8.0]))
    y = rounded(z + s * rng.standard_t(dof, len(z)))
    line = f'm.student_t("y", z, {s}, {dof}, observed={literal(y)})'
    return _Likelihood(line, lambda z: stats.t.logpdf((y - z) / s, dof) - np.log(s))


def _laplace(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    s = float(rng.choice([0.3, 1.0]))
    y = rounded(z + rng.laplace(0.0, s, len(z)))
    return _Likelihood(f'm.laplace("y", z, {s}, observed={literal(y)})', lambda z: stats.laplace.logpdf(y, z, s))


def _labels(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    link, at, log_at = (("logit", expit, log_expit), ("probit", ndtr, log_ndtr))[rng.integers(2)]
    y = rng.random(len(z)) < at(z)
    return _Likelihood(
        f'm.bernoulli("y", {link}=z, observed={literal(y)})', lambda z: log_at(np.where(y, 1.0, -1.0) * z)
    )


def _poisson(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    y = rng.poisson(np.exp(np.minimum(z, 6.0)))
    line = f'm.poisson("y", log_rate=z, observed={literal(y)})'
    return _Likelihood(line, lambda z: y * z - np.exp(np.minimum(z, 700.0)) - gammaln(y + 1.0))


def _binomial(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    k = rng.integers(1, 9, len(z))
    y = rng.binomial(k, expit(z))
    line = f'm.binomial("y", {literal(k)}, logit=z, observed={literal(y)})'
    return _Likelihood(line, lambda z: log_expit(z) * y + log_expit(-z) * (k - y) + np.log(comb(k, y)))


def _negative_binomial(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    r = float(rng.choice([0.5, 2.5, 20.0]))
    y = rng.poisson(rng.gamma(r, np.exp(np.minimum(z, 6.0)) / r))
    known = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0) + r * np.log(r)
    line = f'm.negative_binomial("y", log_mean=z, dispersion={r}, observed={literal(y)})'
    return _Likelihood(line, lambda z: known + y * z - (y + r) * np.logaddexp(np.log(r), z))


def _lifetimes(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    weibull = rng.random() < 0.5
    k = 1.7 if weibull else 1.0
    c = rng.random(len(z)) < 0.3
    t = rounded(np.maximum(np.exp(z) * rng.weibull(k, len(z)) * np.where(c, rng.random(len(z)), 1.0), 1e-3))
    begin = f'm.weibull("y", {k}, log_scale=z' if weibull else 'm.exponential("y", log_rate=-z'

    def log_density(z: np.ndarray) -> np.ndarray:
        survived = -np.exp(np.minimum(k * (np.log(t) - z), 700.0))
        return survived + np.where(c, 0.0, np.log(k) + (k - 1.0) * np.log(t) - k * z)

    return _Likelihood(f"{begin}, observed={literal(t)}, censored={literal(c)})", log_density)


def _ordinal(rng: np.random.Generator, z: np.ndarray) -> _Likelihood:
    link, log_at, noise = (("probit", log_ndtr, rng.standard_normal(len(z))), ("logit", log_expit, rng.logistic(size=len(z))))[
        rng.integers(2)
    ]  # fmt: skip
    cuts = np.array([-1.0, 0.2, 1.5])
    y = np.searchsorted(cuts, z + noise)
    edges = np.array([-np.inf, *cuts, np.inf])

    def log_density(z: np.ndarray) -> np.ndarray:
        low, high = edges[y] - z, edges[y + 1] - z
        low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)  # the side where nothing cancels
        with np.errstate(divide="ignore"):
            return log_at(high) + np.log1p(-np.exp(log_at(low) - log_at(high)))

    return _Likelihood(f'm.ordinal("y", z, {literal(cuts)}, link="{link}", observed={literal(y)})', log_density)


LIKELIHOODS: tuple[Callable[[np.random.Generator, np.ndarray], _Likelihood], ...] = (
    _gaussian, _censored, _student, _laplace, _labels, _poisson, _binomial, _negative_binomial, _lifetimes, _ordinal,
)  # fmt: skip
