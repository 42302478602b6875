"""Models where several factors that are not Gaussian share an unknown: EP approximates, and `claims.py` says by how much.

The truth is the exact posterior on a grid of two dimensions, projected onto the families of the beliefs.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import norm

from benchmarks.truth.grids import ep, gamma_projected, moments, plane
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["fixed_point", "generalised_linear", "mean_and_precision", "mixture_of_two", "shared_product"]


def _posterior_of_two(log_likelihood, mean, variance, n: int = 401) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The posterior of w ~ N(mean, variance I) of two dimensions on a grid: mean, sd, covariance, log evidence."""

    def joint(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        prior = -0.5 * ((a - mean[0]) ** 2 + (b - mean[1]) ** 2) / variance - np.log(2 * np.pi * variance)
        return prior + log_likelihood(a, b)

    s = 9 * np.sqrt(variance)
    a, b, weight, log_z = plane(joint, (mean[0] - s, mean[1] - s), (mean[0] + s, mean[1] + s), n)
    (m1, s1), (m2, s2) = moments(a, weight.sum(axis=1)), moments(b, weight.sum(axis=0))
    cross = float((a - m1) @ weight @ (b - m2))
    return np.array([m1, m2]), np.array([s1, s2]), np.array([[s1**2, cross], [cross, s2**2]]), log_z


def generalised_linear(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Logistic, probit or Poisson regression with two coefficients (one may be held almost fixed by a zero column)."""
    n = int(rng.choice([1, 2, 4, 8, 20, 60]))
    x = rounded(rng.standard_normal((n, 2)) * 10 ** rng.uniform(-0.5, 0.5, 2), 3)
    if rng.random() < 0.3:
        x[:, 0] = 1.0
    mean, variance = rounded(rng.normal(0, 0.5, 2), 2), rounded(10 ** rng.uniform(-0.5, 0.7), 2)
    z = x @ (mean + np.sqrt(variance) * rng.standard_normal(2))
    form = str(rng.choice(["logit", "probit", "log_rate"]))
    if form == "log_rate":
        y = rng.poisson(np.exp(np.minimum(z, 5)))
    else:
        y = (rng.random(n) < 1 / (1 + np.exp(-np.clip(z * (1 if form == "logit" else 1.7), -30, 30)))).astype(int)
    word = "poisson" if form == "log_rate" else "bernoulli"
    lines = ["m = hg.Model()", f'w = m.gaussian("w", {literal(mean)}, covariance={variance} * np.eye(2))',
             f'm.{word}("y", {form}={literal(x)} @ w, observed={literal(y)})']  # fmt: skip
    sign = np.where(y == 1, 1.0, -1.0)

    def log_likelihood(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        total = np.zeros(np.broadcast_shapes(a.shape, b.shape))
        for i in range(n):
            z = a * x[i, 0] + b * x[i, 1]
            if form == "log_rate":
                total += y[i] * z - np.exp(z) - gammaln(y[i] + 1)
            else:
                total += -np.logaddexp(0, -sign[i] * z) if form == "logit" else log_ndtr(sign[i] * z)
        return total

    def truth() -> Truth:
        m, s, covariance, log_z = _posterior_of_two(log_likelihood, mean, variance)
        return Truth({"w": m}, {"w": s}, covariance={"w": covariance}, log_evidence=log_z)

    settings = {"schedule": "sequential"} if rng.random() < 0.1 else {}
    return World(kind, seed, "\n".join(lines), f"regression: {form}", truth, settings)


def mean_and_precision(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Values with an unknown mean and precision: the textbook case where EP factorises what is dependent."""
    n = int(rng.choice([2, 3, 5, 10, 30, 60]))
    mu, v = rounded(rng.normal(0, 2)), rounded(10 ** rng.uniform(-1, 2), 2)
    a, b = rounded(rng.uniform(1, 6), 2), rounded(10 ** rng.uniform(-1, 1), 2)
    y = rounded(rng.normal(mu + np.sqrt(v) * rng.normal() * 0.5, np.sqrt(b / a), n))
    lines = ["m = hg.Model()", f'x = m.gaussian("x", {mu}, variance={v})', f't = m.gamma("t", {a}, {b})',
             f'm.gaussian("y", x, precision=t, observed={literal(y)})']  # fmt: skip

    def truth() -> Truth:
        total, centre = ((y - y.mean()) ** 2).sum(), y.mean()

        def joint(x: np.ndarray, u: np.ndarray) -> np.ndarray:  # u = log t
            prior = (
                -0.5 * (x - mu) ** 2 / v
                - 0.5 * np.log(2 * np.pi * v)
                + a * u
                - b * np.exp(u)
                + a * np.log(b)
                - gammaln(a)
            )
            return prior + 0.5 * n * (u - np.log(2 * np.pi)) - 0.5 * np.exp(u) * (total + n * (centre - x) ** 2)

        lo, hi = (f([mu - 10 * np.sqrt(v), centre - 10 * y.std() - 1]) for f in (np.min, np.max))
        hi = max(mu + 10 * np.sqrt(v), centre + 10 * y.std() + 1)
        top = np.log((a + n) / b) + 4
        x, u, weight, log_z = plane(joint, (lo, top - 30), (hi, top), 1001)
        wu = weight.sum(axis=0)
        m, s = moments(x, weight.sum(axis=1))
        mt, st = gamma_projected(np.sum(wu * np.exp(u)), np.sum(wu * u))
        return Truth({"x": m, "t": mt}, {"x": s, "t": st}, log_evidence=log_z)

    claim = "mean and precision, n < 10" if n < 10 else "mean and precision, n >= 10"
    return World(kind, seed, "\n".join(lines), claim, truth)


def mixture_of_two(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Several values from two components with known spreads and probabilities and unknown means, kept apart by their priors."""
    n = int(rng.choice([2, 5, 15, 40]))
    apart = rounded(rng.uniform(1.5, 5), 2)
    centres = np.array([-apart, apart])
    v, noise = rounded(10 ** rng.uniform(-1, 0.3), 2), rounded(10 ** rng.uniform(-0.5, 0.3), 2)
    p = rounded(rng.uniform(0.2, 0.8), 2)
    true = centres + np.sqrt(v) * rng.standard_normal(2)
    y = rounded(np.where(rng.random(n) < p, true[1], true[0]) + np.sqrt(noise) * rng.standard_normal(n))
    lines = ["m = hg.Model()", f'means = m.gaussian("means", {literal(centres)}, variance={v})',
             f's = m.bernoulli("s", {p}, size={n})',
             f'm.mixture("y", s, means, variance={noise}, observed={literal(y)})']  # fmt: skip

    def truth() -> Truth:
        def log_likelihood(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            product = np.ones(np.broadcast_shapes(a.shape, b.shape))
            log_scale = np.zeros_like(product)
            for k, value in enumerate(y):  # a product of sums of densities, put into logs before it can underflow
                product *= (
                    (1 - p) * norm.pdf(value, a, np.sqrt(noise)) + p * norm.pdf(value, b, np.sqrt(noise)) + 1e-300
                )
                if k % 2 == 1 or k == n - 1:
                    log_scale, product = log_scale + np.log(product), np.ones_like(product)
            return log_scale

        def joint(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return log_likelihood(a, b) + norm.logpdf(a, -apart, np.sqrt(v)) + norm.logpdf(b, apart, np.sqrt(v))

        s = 9 * np.sqrt(v)
        a, b, weight, log_z = plane(joint, (-apart - s, apart - s), (-apart + s, apart + s), 401)
        labels = []
        for value in y:
            one, two = norm.logpdf(value, a, np.sqrt(noise))[:, None], norm.logpdf(value, b, np.sqrt(noise))[None, :]
            both = np.stack(np.broadcast_arrays(np.log(1 - p) + one, np.log(p) + two))
            labels.append(float((weight * np.exp(both[1] - logsumexp(both, axis=0))).sum()))
        (m1, s1), (m2, s2) = moments(a, weight.sum(axis=1)), moments(b, weight.sum(axis=0))
        return Truth(
            {"means": np.array([m1, m2])}, {"means": np.array([s1, s2])}, {"s": np.array(labels)}, log_evidence=log_z
        )

    return World(kind, seed, "\n".join(lines), "mixture", truth)


def shared_product(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One product or maximum of two unknowns seen several times: rows that share both unknowns."""
    n = int(rng.choice([2, 4, 10]))
    ma, mb = rounded(rng.uniform(0.5, 3)), rounded(rng.uniform(0.5, 3))
    va, vb = (rounded(10 ** rng.uniform(-2, -0.3), 2) for _ in range(2))
    v = rounded(10 ** rng.uniform(-0.5, 0.5), 2)
    times = rng.random() < 0.5
    c = rounded(rng.uniform(0.5, 2, n), 3)
    f = (lambda a, b: a * b) if times else np.maximum
    y = rounded(
        f(c * (ma + np.sqrt(va) * rng.normal()), mb + np.sqrt(vb) * rng.normal()) + np.sqrt(v) * rng.standard_normal(n)
    )
    what = f"({literal(c)} * a) * b" if times else f"m.maximum({literal(c)} * a, b)"
    lines = ["m = hg.Model()", f'a = m.gaussian("a", {ma}, variance={va})', f'b = m.gaussian("b", {mb}, variance={vb})',
             f'm.gaussian("y", {what}, variance={v}, observed={literal(y)})']  # fmt: skip

    def truth() -> Truth:
        def joint(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            total = norm.logpdf(a, ma, np.sqrt(va)) + norm.logpdf(b, mb, np.sqrt(vb))
            for i in range(n):
                total = total - 0.5 * (y[i] - f(c[i] * a, b)) ** 2 / v - 0.5 * np.log(2 * np.pi * v)
            return total

        sa, sb = 10 * np.sqrt(va), 10 * np.sqrt(vb)
        a, b, weight, log_z = plane(joint, (ma - sa, mb - sb), (ma + sa, mb + sb), 601)
        (m1, s1), (m2, s2) = moments(a, weight.sum(axis=1)), moments(b, weight.sum(axis=0))
        return Truth({"a": m1, "b": m2}, {"a": s1, "b": s2}, log_evidence=log_z)

    return World(kind, seed, "\n".join(lines), "shared product or maximum", truth)


def fixed_point(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Regressions with up to five coefficients against our own EP: the error of the engine without EP's own."""
    while True:
        n, d = int(rng.choice([1, 3, 8, 20, 60])), int(rng.integers(1, 6))
        x = rounded(rng.standard_normal((n, d)) * 10 ** rng.uniform(-0.7, 0.3, d), 3)
        mean, variance = rounded(rng.normal(0, 0.5, d), 2), rounded(10 ** rng.uniform(-0.5, 0.7), 2)
        z = x @ (mean + np.sqrt(variance) * rng.standard_normal(d))
        form = str(rng.choice(["logit", "probit", "log_rate"]))
        if form == "log_rate":
            y = rng.poisson(np.exp(np.minimum(z, 5)))
            like = lambda z, y=y: y[:, None] * z - np.exp(np.minimum(z, 300)) - gammaln(y + 1)[:, None]  # noqa: E731
        else:
            y = (rng.random(n) < 1 / (1 + np.exp(-np.clip(1.3 * z, -30, 30)))).astype(int)
            sign = np.where(y == 1, 1.0, -1.0)[:, None]
            if form == "logit":
                like = lambda z, sign=sign: -np.logaddexp(0, -sign * z)  # noqa: E731
            else:
                like = lambda z, sign=sign: log_ndtr(sign * z)  # noqa: E731
        m, belief, log_evidence, settled = ep(like, x, mean, variance * np.eye(d), 0.3)
        if settled:
            break
    word = "poisson" if form == "log_rate" else "bernoulli"
    lines = ["m = hg.Model()", f'w = m.gaussian("w", {literal(mean)}, covariance={variance} * np.eye({d}))',
             f'm.{word}("y", {form}={literal(x)} @ w, observed={literal(y)})']  # fmt: skip
    truth = Truth({"w": m}, {"w": np.sqrt(np.diag(belief))}, covariance={"w": belief}, log_evidence=log_evidence)
    settings = {"schedule": "sequential"} if rng.random() < 0.2 and n <= 20 else {}
    return World(kind, seed, "\n".join(lines), "exact", lambda: truth, settings)
