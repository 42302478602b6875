"""Numbers far from one: tails, units, priors that say nothing, rows that no other row resembles."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, log_ndtr

from benchmarks.truth.grids import ep, line, moments, plane
from benchmarks.truth.single import Parts
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["extreme"]


def tail(rng: np.random.Generator) -> Parts:
    """A Gaussian that must exceed a bound up to 1e10 sds away: mean - c and sd tend to sd^2 / c."""
    sd = float(10.0 ** rng.integers(-3, 4))
    a = rounded(10 ** rng.uniform(1, 10), 4)  # the bound in sds
    c = rounded(a * sd, 6)
    lines = [f'x = m.gaussian("x", 0.0, variance={sd**2})', f"m.constrain(x > {c})"]

    def truth() -> Truth:
        t = c / sd
        if t < 1e4:
            u, w, _ = line(lambda u: -t * u - 0.5 * u**2, np.zeros(1), np.full(1, 45 / t))  # x = c + u, in sds
            m, s = (v[0] for v in moments(u, w))
        else:  # the series of the hazard: exponential with rate t, and 1 / t^2 of it
            m, s = 1 / t - 2 / t**3, 1 / t - 3 / t**3
        if t > 1e6:  # the excess is below what float64 keeps of the mean itself: only the sd can be compared to it
            return Truth(log_evidence=float(log_ndtr(-t)))
        return Truth({"x": np.float64(c + sd * m)}, {"x": np.float64(sd * s)}, log_evidence=float(log_ndtr(-t)))

    return lines, truth


def units(rng: np.random.Generator) -> Parts:
    """A product or a maximum in units from 1e-100 to 1e100: the answer of the same model in units of one, scaled."""
    times = rng.random() < 0.6
    i, j = (int(e) for e in rng.integers(-100, 101, 2))
    while times and abs(i + j) > 120:  # variances beyond 1e-250 and 1e250 are near the end of float64 itself
        i, j = (int(e) for e in rng.integers(-100, 101, 2))
    k, l = 10.0**i, 10.0 ** (j if times else i)
    ma, mb = rounded(rng.normal(0, 1.5)), rounded(rng.normal(0, 1.5))
    va, vb, v = (rounded(10 ** rng.uniform(-1, 0.5), 2) for _ in range(3))
    y = rounded(rng.normal(0, 2))
    unit = k * l if times else k
    lines = [f'a = m.gaussian("a", {ma * k!r}, variance={va * k**2!r})', f'b = m.gaussian("b", {mb * l!r}, variance={vb * l**2!r})',
             f'm.gaussian("y", {"a * b" if times else "m.maximum(a, b)"}, '
             f'variance={v * unit**2!r}, observed={y * unit!r})']  # fmt: skip
    f = (lambda a, b: a * b) if times else np.maximum

    def truth() -> Truth:
        def joint(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            q = (a - ma) ** 2 / va + (b - mb) ** 2 / vb + (y - f(a, b)) ** 2 / v
            return -0.5 * q - 0.5 * np.log((2 * np.pi) ** 3 * va * vb * v)

        sa, sb = 10 * np.sqrt(va), 10 * np.sqrt(vb)
        a, b, weight, log_z = plane(joint, (ma - sa, mb - sb), (ma + sa, mb + sb), 801)
        (m1, s1), (m2, s2) = moments(a, weight.sum(axis=1)), moments(b, weight.sum(axis=0))
        return Truth({"a": m1 * k, "b": m2 * l}, {"a": s1 * k, "b": s2 * l}, log_evidence=log_z - np.log(unit))

    return lines, truth


def vague(rng: np.random.Generator) -> Parts:
    """Regression with a prior variance of 1e6 to 1e40: our own EP, or the least-squares answer for Gaussian data."""
    n, d = int(rng.choice([5, 12, 40])), int(rng.integers(1, 3))
    x = rounded(rng.standard_normal((n, d)), 3)
    w = rng.standard_normal(d)
    z = x @ w
    form = int(rng.integers(3))
    variance = float(10.0 ** rng.integers(6, 41 if form == 0 else 13))
    prior = f'w = m.gaussian("w", np.zeros({d}), covariance={variance} * np.eye({d}))'
    if form == 0:
        y = rounded(z + rng.standard_normal(n))

        def dense() -> Truth:
            covariance = np.linalg.inv(x.T @ x + np.eye(d) / variance)
            return Truth({"w": covariance @ x.T @ y}, {"w": np.sqrt(np.diag(covariance))}, covariance={"w": covariance})

        return [prior, f'm.gaussian("y", {literal(x)} @ w, variance=1.0, observed={literal(y)})'], dense
    if form == 1:
        y = rng.poisson(np.exp(z + 1))
        said = f'm.poisson("y", log_rate={literal(x)} @ w + 1.0, observed={literal(y)})'
        like = lambda z: y[:, None] * (z + 1) - np.exp(z + 1) - gammaln(y + 1)[:, None]  # noqa: E731
    else:
        y = (np.arange(n) % 2).astype(int)  # labels that no line separates
        x = rounded(np.repeat(x[: n // 2 + 1], 2, axis=0)[:n] + 0.05 * rng.standard_normal((n, d)), 3)
        said = f'm.bernoulli("y", logit={literal(x)} @ w, observed={literal(y)})'
        sign = np.where(y == 1, 1.0, -1.0)[:, None]
        like = lambda z: -np.logaddexp(0, -sign * z)  # noqa: E731

    def own() -> Truth:
        # a prior variance above 1e6 changes nothing that float64 would show here, and the grid can still see the data under 1e6
        m, belief, _, settled = ep(like, x, np.zeros(d), min(variance, 1e6) * np.eye(d), 0.3)
        return Truth({"w": m}, {"w": np.sqrt(np.diag(belief))}) if settled else Truth()

    return [prior, said], own


def outlier(rng: np.random.Generator) -> Parts:
    """A plate of which one row is far from all others: rows are on their own, so the others must not notice."""
    n = int(rng.choice([2, 5, 21]))
    far = float(10.0 ** rng.integers(2, 7)) * rng.choice([-1, 1])
    mean = rounded(rng.standard_normal(n))
    v = rounded(10 ** rng.uniform(-1, 0.5), 2)
    y = rounded(mean + rng.standard_normal(n))
    i = int(rng.integers(n))
    form = int(rng.integers(3))
    if form == 0:
        y[i] = rounded(far)
        lines = [f'x = m.gaussian("x", {literal(mean)}, variance=1.0)', f't = m.gamma("t", 3.0, 2.0, size={n})',
                 f'm.gaussian("y", x, precision=t, observed={literal(y)})']  # fmt: skip

        def truth() -> Truth:
            m, s = np.zeros(n), np.ones(n)
            for j in range(n):

                def student(x: np.ndarray, j: int = j) -> np.ndarray:
                    return -0.5 * (x - mean[j]) ** 2 - 3.5 * np.log(2.0 + 0.5 * (y[j] - x) ** 2)

                nodes, weight, _ = line(student, np.array([mean[j] - 12.0]), np.array([mean[j] + 12.0]))
                m[j], s[j] = (float(q[0]) for q in moments(nodes, weight))
            return Truth({"x": m}, {"x": s})

        return lines, truth
    if form == 1:
        mean[i] = rounded(far)
        lines = [f'x = m.gaussian("x", {literal(mean)}, variance={v})', "m.constrain(x > 0.0)"]

        def cut() -> Truth:
            sd = np.sqrt(v)
            low = np.zeros(n)
            high = np.maximum(mean, 0) + np.where(
                mean > 0, 12 * sd, np.minimum(12 * sd, 45 * v / np.maximum(-mean, 1e-9))
            )
            at = mean[:, None]
            start = np.maximum(mean - 12 * sd, low)
            x, w, _ = line(lambda x: -0.5 * (x - at) ** 2 / v, start, high)
            m, s = moments(x, w)
            z = float(log_ndtr(mean / sd).sum())
            return Truth({"x": m}, {"x": s}, log_evidence=z)

        return lines, cut
    mean[i] = rounded(np.clip(far, -1e4, 600.0))
    k = rng.poisson(np.exp(np.minimum(mean, 3)))
    k[i] = 3
    lines = [
        f'x = m.gaussian("x", {literal(mean)}, variance={v})',
        f'm.poisson("y", log_rate=x, observed={literal(k)})',
    ]

    def counts() -> Truth:
        # the mode of k x - e^x - (x - mean)^2 / 2v lies where (x - mean) / v = k - e^x, between these bounds
        low, high = (
            np.minimum(mean, np.log(k + 1e-9)) - 12 * np.sqrt(v),
            np.maximum(mean + k * v, np.log(k + 1)) + 12 * np.sqrt(v),
        )
        high = np.where(mean > 30, np.log(np.maximum(mean / v + k, 1.0)) + 5, high)
        low = np.where(mean > 30, np.minimum(low, 0.0), low)
        at, c = mean[:, None], k[:, None]
        x, w, _ = line(lambda x: c * x - np.exp(x) - 0.5 * (x - at) ** 2 / v, low, high, 20001)
        m, s = moments(x, w)
        return Truth({"x": m}, {"x": s})

    return lines, counts


EXTREME = [tail, units, vague, outlier]


def extreme(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One of the above."""
    lines, truth = EXTREME[rng.integers(len(EXTREME))](rng)
    return World(kind, seed, "\n".join(["m = hg.Model()", *lines]), "projected", truth)
