"""Models with one factor that is not Gaussian for each unknown: EP gives the exact moments and the exact evidence.

Every hand-made factor appears here with data on its other side, in random units, with the answer by a formula or on a grid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import betaln, gammaln, log_ndtr, logsumexp, ndtr
from scipy.stats import norm

from benchmarks.truth.grids import beta_projected, gamma_projected, line, moments, plane
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["conjugate", "single"]

Parts = tuple[list[str], Callable[[], Truth]]


def _unit(rng: np.random.Generator) -> float:
    return 1.0 if rng.random() < 0.4 else float(10.0 ** rng.integers(-6, 7))


def _pair(rng: np.random.Generator, unit: float) -> tuple[float, float]:
    return rounded(unit * rng.normal(0, 1.5)), rounded(unit**2 * 10 ** rng.uniform(-1, 1), 3)


def _n(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 2, 3, 7, 20, 21, 50]))


def _truncated(
    mean: np.ndarray, sd: float, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, sd and log mass of a Gaussian between two bounds, on a grid inside them."""
    low = np.maximum(low, np.minimum(mean - 12 * sd, high - 12 * sd))
    far = np.maximum(np.abs(low - mean), sd)
    high = np.minimum(high, np.maximum(mean + 12 * sd, low + 40 * sd**2 / far))
    at = mean[:, None]
    x, weight, log_z = line(lambda x: -0.5 * ((x - at) / sd) ** 2 - 0.5 * np.log(2 * np.pi * sd**2), low, high)
    return *moments(x, weight), log_z


def truncation(rng: np.random.Generator) -> Parts:
    """x > c, x < c, lower < x < upper or |x| < c, for a plate of x."""
    unit, n = _unit(rng), _n(rng)
    mean, (_, variance) = rounded(unit * rng.normal(0, 1.5, n)), _pair(rng, unit)
    sd = np.sqrt(variance)
    c = rounded(mean + sd * rng.uniform(-2, 6, n))
    form = int(rng.integers(4))
    infinite = np.full(n, np.inf)
    if form == 0:
        event, low, high = f"x > {literal(c)}", c, infinite
    elif form == 1:
        event, low, high = f"x < {literal(c)}", -infinite, c
    elif form == 2:
        high = rounded(c + sd * 10 ** rng.uniform(-3, 1, n), 6)
        event, low = f"m.between(x, {literal(c)}, {literal(high)})", c
    else:
        c = rounded(sd * 10 ** rng.uniform(-2, 1))
        event, low, high = f"abs(x) < {c}", np.full(n, -c), np.full(n, c)
    lines = [f'x = m.gaussian("x", {literal(mean)}, variance={variance})', f"m.constrain({event})"]

    def truth() -> Truth:
        if form == 1:
            m, s, z = _truncated(-mean, sd, -high, infinite)
            m = -m
        elif form == 3:
            flip = np.where(mean > 0, -1.0, 1.0)
            m, s, z = _truncated(flip * mean, sd, low, high)
            m = flip * m
        else:
            m, s, z = _truncated(mean, sd, low, high)
        return Truth({"x": m}, {"x": s}, log_evidence=float(z.sum()))

    return lines, truth


def comparison(rng: np.random.Generator) -> Parts:
    """a > b, a + margin > b, and the probability of a comparison that was not seen."""
    unit = _unit(rng)
    (ma, va), (mb, vb) = _pair(rng, unit), _pair(rng, unit)
    margin = rounded(unit * rng.normal()) if rng.random() < 0.5 else 0.0
    seen = rng.random() < 0.75
    event = f"a + {margin} > b" if margin else "a > b"
    lines = [f'a = m.gaussian("a", {ma}, variance={va})', f'b = m.gaussian("b", {mb}, variance={vb})', f"e = {event}"]
    if seen:
        lines.append("m.constrain(e)")

    def truth() -> Truth:
        mean, total = ma + margin - mb, va + vb
        if not seen:
            sds = {"a": np.sqrt(va), "b": np.sqrt(vb)}
            return Truth({"a": ma, "b": mb}, sds, {"e": ndtr(mean / np.sqrt(total))}, log_evidence=0.0)
        m, s, _ = (v[0] for v in _truncated(np.array([mean]), np.sqrt(total), np.zeros(1), np.full(1, np.inf)))
        found = {}
        for name, mu, v, sign in (("a", ma, va, 1), ("b", mb, vb, -1)):
            k = sign * v / total
            found[name] = mu + k * (m - mean), np.sqrt(v - k**2 * (total - s**2))
        return Truth(
            {k: v[0] for k, v in found.items()}, {k: v[1] for k, v in found.items()},
            log_evidence=float(log_ndtr(mean / np.sqrt(total))),
        )  # fmt: skip

    return lines, truth


def two_inputs(rng: np.random.Generator) -> Parts:
    """A product or a maximum of two unknowns, seen with noise."""
    unit = _unit(rng)
    (ma, va), (mb, vb) = _pair(rng, unit), _pair(rng, unit)
    times = rng.random() < 0.5
    scale = unit**2 if times else unit
    v = rounded(scale**2 * 10 ** rng.uniform(-1, 1), 3)
    f = (lambda a, b: a * b) if times else np.maximum
    y = rounded(f(ma + np.sqrt(va) * rng.normal(), mb + np.sqrt(vb) * rng.normal()) + np.sqrt(v) * rng.normal())
    lines = [f'a = m.gaussian("a", {ma}, variance={va})', f'b = m.gaussian("b", {mb}, variance={vb})',
             f'm.gaussian("y", {"a * b" if times else "m.maximum(a, b)"}, variance={v}, observed={y})']  # fmt: skip

    def truth() -> Truth:
        def joint(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            q = (a - ma) ** 2 / va + (b - mb) ** 2 / vb + (y - f(a, b)) ** 2 / v
            return -0.5 * q - 0.5 * (3 * np.log(2 * np.pi) + np.log(va) + np.log(vb) + np.log(v))

        sa, sb = 10 * np.sqrt(va), 10 * np.sqrt(vb)
        a, b, weight, log_z = plane(joint, (ma - sa, mb - sb), (ma + sa, mb + sb), 801)
        (m1, s1), (m2, s2) = moments(a, weight.sum(axis=1)), moments(b, weight.sum(axis=0))
        return Truth({"a": m1, "b": m2}, {"a": s1, "b": s2}, log_evidence=log_z)

    return lines, truth


def likelihood(rng: np.random.Generator) -> Parts:
    """A plate of z with a count or a label each: logit, probit, Poisson, binomial, through expressions and directly."""
    n, variance = _n(rng), rounded(10 ** rng.uniform(-2, 1.3), 3)
    mean = rounded(rng.normal(0, 1.5, n))
    z0 = mean + np.sqrt(variance) * rng.standard_normal(n)
    form = int(rng.integers(6))
    if form in (0, 1):
        y = (rng.random(n) < ndtr(z0)).astype(int)
        what = "logit" if form == 0 else "probit"
        said = f'm.bernoulli("y", {what}=z, observed={literal(y)})'
        sign = np.where(y == 1, 1.0, -1.0)[:, None]
        like = (lambda z: -np.logaddexp(0, -sign * z)) if form == 0 else (lambda z: log_ndtr(sign * z))
    elif form in (2, 3):
        y = rng.poisson(np.exp(np.minimum(z0, 8)))
        said = f'm.poisson("y", {"log_rate=z" if form == 2 else "m.exp(z)"}, observed={literal(y)})'
        like = lambda z: y[:, None] * z - np.exp(z) - gammaln(y + 1)[:, None]  # noqa: E731
    else:
        trials = int(rng.choice([1, 4, 100]))
        y = rng.binomial(trials, 1 / (1 + np.exp(-z0)))
        said = f'm.binomial("y", {trials}, m.sigmoid(z), observed={literal(y)})'
        choose = (-np.log(trials + 1) - betaln(trials - y + 1, y + 1))[:, None]
        k, l = y[:, None], (trials - y)[:, None]
        like = lambda z: choose - k * np.logaddexp(0, -z) - l * np.logaddexp(0, z)  # noqa: E731
    lines = [f'z = m.gaussian("z", {literal(mean)}, variance={variance})', said]

    def truth() -> Truth:
        sd, at = np.sqrt(variance), mean[:, None]

        def joint(z: np.ndarray) -> np.ndarray:
            return like(z) - 0.5 * (z - at) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)

        z, weight, log_z = line(joint, mean - 12 * sd, mean + 12 * sd)
        m, s = moments(z, weight)
        return Truth({"z": m}, {"z": s}, log_evidence=float(log_z.sum()))

    return lines, truth


def choice(rng: np.random.Generator) -> Parts:
    """One value whose component is unknown: a mixture of K, or a switch between two."""
    unit = _unit(rng)
    switch = rng.random() < 0.4
    k = 2 if switch or rng.random() < 0.5 else 3
    means = rounded(unit * rng.normal(0, 2, k))
    priors = rounded(unit**2 * 10 ** rng.uniform(-2, 0.5, k), 3)
    noise = rounded(unit**2 * 10 ** rng.uniform(-1, 1, k), 3) if not switch else np.full(k, rounded(unit**2, 3))
    p = np.floor(rng.dirichlet(np.ones(k) * 2) * 90 + 3)
    p = np.append(p[:-1], 100 - p[:-1].sum()) / 100
    y = rounded(unit * rng.normal(0, 2.5))
    if switch:
        lines = [f's = m.bernoulli("s", {p[1]})', f'b = m.gaussian("b", {means[0]}, variance={priors[0]})',
                 f'a = m.gaussian("a", {means[1]}, variance={priors[1]})',
                 f'm.gaussian("y", m.select(s, a, b), variance={noise[0]}, observed={y})']  # fmt: skip
    else:
        lines = [f's = m.categorical("s", {literal(p)})',
                 f'means = m.gaussian("means", {literal(means)}, variance={literal(priors)})',
                 f'm.mixture("y", s, means, variance={literal(noise)}, observed={y})']  # fmt: skip

    def truth() -> Truth:
        log_w = np.log(p) + norm.logpdf(y, means, np.sqrt(priors + noise))
        w = np.exp(log_w - logsumexp(log_w))
        v1 = 1 / (1 / priors + 1 / noise)
        m1 = v1 * (means / priors + y / noise)
        m = w * m1 + (1 - w) * means
        s = np.sqrt(w * (v1 + (m1 - m) ** 2) + (1 - w) * (priors + (means - m) ** 2))
        z = float(logsumexp(log_w))
        if switch:
            return Truth({"a": m[1], "b": m[0]}, {"a": s[1], "b": s[0]}, {"s": w[1]}, log_evidence=z)
        return Truth({"means": m}, {"means": s}, {"s": w}, log_evidence=z)

    return lines, truth


def mean_and_precision(rng: np.random.Generator) -> Parts:
    """One value with an unknown mean and an unknown precision."""
    mu, v = _pair(rng, 1.0)
    a, b = rounded(rng.uniform(1.5, 8), 2), rounded(10 ** rng.uniform(-1, 1), 2)
    y = rounded(mu + np.sqrt(v + b / a) * rng.normal())
    lines = [f'x = m.gaussian("x", {mu}, variance={v})', f't = m.gamma("t", {a}, {b})',
             f'm.gaussian("y", x, precision=t, observed={y})']  # fmt: skip

    def truth() -> Truth:
        def joint(x: np.ndarray, u: np.ndarray) -> np.ndarray:  # u = log t
            prior = (
                -0.5 * (x - mu) ** 2 / v
                - 0.5 * np.log(2 * np.pi * v)
                + a * u
                - b * np.exp(u)
                + a * np.log(b)
                - gammaln(a)
            )
            return prior + 0.5 * u - 0.5 * np.log(2 * np.pi) - 0.5 * np.exp(u) * (y - x) ** 2

        s = 11 * np.sqrt(v)
        top = np.log(a / b) + 4
        x, u, weight, log_z = plane(joint, (mu - s, top - 30), (mu + s, top), 801)
        wu = weight.sum(axis=0)
        m, sd = moments(x, weight.sum(axis=1))
        mt, st = gamma_projected(np.sum(wu * np.exp(u)), np.sum(wu * u))
        return Truth({"x": m, "t": mt}, {"x": sd, "t": st}, log_evidence=log_z)

    return lines, truth


def compound(rng: np.random.Generator) -> Parts:
    """A Gamma whose rate is another Gamma, seen through a count."""
    a, b, shape = (rounded(v, 2) for v in rng.uniform(1.0, 5.0, 3))
    y = int(rng.poisson(rng.gamma(shape, 1 / rng.gamma(a, 1 / b))))
    lines = [f'r = m.gamma("r", {a}, {b})', f'x = m.gamma("x", {shape}, r)', f'm.poisson("y", x, observed={y})']

    def truth() -> Truth:
        def joint(u: np.ndarray, w: np.ndarray) -> np.ndarray:  # logs of r and x
            prior = a * u - b * np.exp(u) + a * np.log(b) - gammaln(a)
            return prior + shape * (u + w) - np.exp(u + w) - gammaln(shape) + y * w - np.exp(w) - gammaln(y + 1)

        u, w, weight, log_z = plane(joint, (-25.0, -25.0), (6.0, 9.0), 801)
        found = {}
        for name, nodes, q in (("r", u, weight.sum(axis=1)), ("x", w, weight.sum(axis=0))):
            found[name] = gamma_projected(np.sum(q * np.exp(nodes)), np.sum(q * nodes))
        return Truth({k: v[0] for k, v in found.items()}, {k: v[1] for k, v in found.items()}, log_evidence=log_z)

    return lines, truth


def hidden_category(rng: np.random.Generator) -> Parts:
    """A probability with Beta prior and a label seen through noise; the label's other side is a table."""
    a, b = (rounded(v, 2) for v in rng.uniform(0.5, 6.0, 2))
    q = rounded(rng.uniform(0.05, 0.95), 2)
    lines = [f'p = m.beta("p", {a}, {b})', 's = m.bernoulli("s", p)', f"m.attach(s, hg.Bernoulli({q}))"]

    def truth() -> Truth:
        def joint(u: np.ndarray) -> np.ndarray:  # logit of p
            p = 1 / (1 + np.exp(-u))
            prior = -a * np.logaddexp(0, -u) - b * np.logaddexp(0, u) - betaln(a, b)
            return prior + np.log(p * q + (1 - p) * (1 - q))

        u, weight, log_z = line(joint, np.array([-60.0]), np.array([60.0]))
        m, s = beta_projected(
            -np.sum(weight * np.logaddexp(0, -u), axis=1), -np.sum(weight * np.logaddexp(0, u), axis=1)
        )
        one = a / (a + b) * q / (a / (a + b) * q + b / (a + b) * (1 - q))
        return Truth({"p": m[0]}, {"p": s[0]}, {"s": one}, log_evidence=float(log_z[0]))

    return lines, truth


SINGLE = [truncation, comparison, two_inputs, likelihood, choice, mean_and_precision, compound, hidden_category]


def single(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One of the above."""
    lines, truth = SINGLE[rng.integers(len(SINGLE))](rng)
    settings = {"schedule": "sequential"} if rng.random() < 0.1 else {}
    return World(kind, seed, "\n".join(["m = hg.Model()", *lines]), "projected", truth, settings)


def conjugate(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Textbook pairs with many observations, some missing: EP is exact."""
    n, form = _n(rng), int(rng.integers(4))
    missing = rng.random(n) < 0.2
    if form == 0:  # counts, some entries of an array of rates
        k = int(rng.integers(1, 4))
        a, b = rounded(rng.uniform(0.5, 9), 2), rounded(10 ** rng.uniform(-2, 2), 2)
        which = rng.integers(0, k, n)
        y = np.where(missing, np.nan, rng.poisson(rng.gamma(a, 1 / b, k)[which]))
        lines = [f'x = m.gamma("x", {a}, {b}, size={k})', f'm.poisson("y", x[{literal(which)}], observed={literal(y)})']
        total, count = (np.bincount(which[~missing], w, k) for w in (y[~missing], np.ones((~missing).sum())))
        shape, rate = a + total, b + count
        each = a * np.log(b) - gammaln(a) + gammaln(shape) - shape * np.log(rate)
        z = float(each.sum() - gammaln(y[~missing] + 1).sum())
        truth = Truth({"x": shape / rate}, {"x": np.sqrt(shape) / rate}, log_evidence=z)
    elif form == 1:  # successes
        a, b = (rounded(v, 2) for v in rng.uniform(0.3, 6, 2))
        trials = rng.integers(1, 40, n)
        y = np.where(missing, np.nan, rng.binomial(trials, rng.beta(a, b)))
        lines = [f'x = m.beta("x", {a}, {b})', f'm.binomial("y", {literal(trials)}, x, observed={literal(y)})']
        k, l = np.nansum(y), np.nansum(trials - y)
        choose = -np.log(trials + 1) - betaln(trials - y + 1, y + 1)
        s, t = a + k, b + l
        z = float(betaln(s, t) - betaln(a, b) + np.nansum(choose))
        truth = Truth({"x": s / (s + t)}, {"x": np.sqrt(s * t / (s + t + 1)) / (s + t)}, log_evidence=z)
    elif form == 2:  # categories
        c = rounded(rng.uniform(0.3, 5, int(rng.integers(2, 5))), 2)
        y = np.where(missing, np.nan, rng.integers(0, len(c), n))
        lines = [f'x = m.dirichlet("x", {literal(c)})', f'm.categorical("y", x, size={n}, observed={literal(y)})']
        post = c + np.bincount(y[~missing].astype(int), minlength=len(c))
        t = post.sum()
        z = float(gammaln(c.sum()) - gammaln(t) + (gammaln(post) - gammaln(c)).sum())
        truth = Truth({"x": post / t}, {"x": np.sqrt(post * (t - post) / (t + 1)) / t}, log_evidence=z)
    else:  # the precision of values around a known mean
        a, b, mu = rounded(rng.uniform(0.5, 9), 2), rounded(10 ** rng.uniform(-2, 2), 2), rounded(rng.normal(0, 3))
        y = rounded(mu + rng.normal(0, np.sqrt(b / a), n))
        y = np.where(missing, np.nan, y)
        lines = [f'x = m.gamma("x", {a}, {b})', f'm.gaussian("y", {mu}, precision=x, observed={literal(y)})']
        shape, rate = a + (~missing).sum() / 2, b + 0.5 * np.nansum((y - mu) ** 2)
        z = (
            a * np.log(b)
            - gammaln(a)
            + gammaln(shape)
            - shape * np.log(rate)
            - 0.5 * (~missing).sum() * np.log(2 * np.pi)
        )
        truth = Truth({"x": shape / rate}, {"x": np.sqrt(shape) / rate}, log_evidence=float(z))
    return World(kind, seed, "\n".join(["m = hg.Model()", *lines]), "exact", lambda: truth)
