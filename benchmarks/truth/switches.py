"""Discrete beside continuous: gates over parts of a model, switches between unknowns, components of any likelihood.

One or two unknown numbers; the truth sums over the discrete values and integrates over the numbers on grids.
"""

from __future__ import annotations

import re

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from benchmarks.truth.effects import LIKELIHOODS
from benchmarks.truth.grids import line, moments, plane
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["gates", "switches"]


def gates(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A switch of two or three values, each with statements of its own about one unknown, and one statement for all."""
    k, mean, sd = int(rng.integers(2, 4)), float(rounded(rng.normal(), 2)), float(rng.choice([0.3, 1.0, 2.0]))
    p = rounded(rng.dirichlet(np.ones(k)), 2)
    p[-1] = np.round(1.0 - p[:-1].sum(), 6)
    if p.min() <= 0:
        p = np.array([0.5, 0.5]) if k == 2 else np.array([0.3, 0.3, 0.4])
    a0, s0 = rng.normal(mean, sd), int(rng.integers(k))
    lines = ["m = hg.Model()", f'a = m.gaussian("a", {mean}, sd={sd})']
    lines.append(f's = m.categorical("s", {literal(p)})' if k > 2 else f's = m.bernoulli("s", {p[1]})')
    said = []
    common, log_common = _statement(rng, "a", 1.0, 0.0, a0, 1, "common")
    for value in range(k):
        c, d, n = float(rounded(rng.normal(), 2)), float(rounded(rng.normal(), 2)), int(rng.choice([1, 3, 6]))
        text, log_density = _statement(rng, "a", c, d, a0 if value == s0 else rng.normal(mean, sd), n, "y")
        lines += [f"with m.when(s == {value}):", *("    " + t for t in text.split("\n"))]
        said.append(log_density)
    lines += common.split("\n")

    def truth() -> Truth:
        low, high = np.array([mean - 9 * sd]), np.array([mean + 9 * sd])
        log_z, first, second = [], [], []
        for value in range(k):

            def joint(a: np.ndarray, value: int = value) -> np.ndarray:
                return stats.norm.logpdf(a, mean, sd) + log_common(a[0])[None] + said[value](a[0])[None]

            x, weight, z = line(joint, low, high)
            m, s = moments(x, weight)
            log_z.append(float(z[0]) + np.log(p[value]))
            first.append(m[0])
            second.append(s[0] ** 2 + m[0] ** 2)
        share = np.exp(np.array(log_z) - logsumexp(log_z))
        m = share @ first
        found = share if k > 2 else share[1]
        return Truth(
            {"a": m}, {"a": np.sqrt(share @ second - m**2)}, {"s": found}, log_evidence=float(logsumexp(log_z))
        )

    return World(kind, seed, "\n".join(lines), "switches", truth)


def _statement(rng: np.random.Generator, name: str, c: float, d: float, at: float, n: int, data: str):
    """Lines that say something of ``c * name + d``, and its log density at values (S,)."""
    z = c * at + d + np.zeros(n)
    chosen = LIKELIHOODS[rng.integers(len(LIKELIHOODS))](rng, np.clip(z, -4.0, 4.0))
    text = re.sub(r"\bz\b", f"z_{data}", chosen.line).replace('"y"', f'"{data}"')
    text = f"z_{data} = {c} * {name} + {d} + np.zeros({n})\n{text}"
    return text, lambda a: chosen.log_density(np.repeat((c * a + d)[:, None], n, axis=1)).sum(axis=1)


def switches(rng: np.random.Generator, kind: str, seed: int) -> World:
    """Rows that are about one of two unknowns: by `select`, or by components of a mixture with any likelihood."""
    n, form = int(rng.choice([1, 2, 4, 8])), int(rng.integers(2))
    mean, sd = rounded(rng.normal(0, 1, 2), 2), np.array([rng.choice([0.3, 1.0, 2.0]) for _ in range(2)])
    p = rounded(rng.uniform(0.1, 0.9, n), 2) if rng.random() < 0.5 else np.full(n, rounded(rng.uniform(0.1, 0.9), 2))
    ab = mean + sd * rng.standard_normal(2)
    on = rng.random(n) < p
    lines = ["m = hg.Model()", *(f'{k} = m.gaussian("{k}", {u}, sd={s})' for k, u, s in zip("ab", mean, sd, strict=True)),
             f's = m.bernoulli("s", {literal(p)})']  # fmt: skip
    make = (
        LIKELIHOODS[rng.integers(len(LIKELIHOODS))] if form == 0 else LIKELIHOODS[int(rng.choice([0, 2, 3, 4, 5, 7]))]
    )
    chosen = make(rng, np.clip(np.where(on, ab[0] if form == 0 else ab[1], ab[1] if form == 0 else ab[0]), -4, 4))
    if form == 0:
        lines += [f"z = m.select(s, a + np.zeros({n}), b + np.zeros({n}))", chosen.line]
    else:  # component 1 is of b
        text = chosen.line.replace(", z,", ", z[k],").replace("=z,", "=z[k],")
        text, _, data = text[:-1].partition(", observed=")
        lines += ["z = [a, b]", f'm.mixture("y", s, lambda k: {text}), observed={data})']

    def truth() -> Truth:
        def rows(v: np.ndarray) -> np.ndarray:
            shape = v.shape
            return chosen.log_density(np.repeat(v.reshape(-1, 1), n, axis=1)).T.reshape(n, *shape)

        def both(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            with np.errstate(divide="ignore"):
                one, two = (
                    np.log(p)[:, None, None] + rows(a if form == 0 else b),
                    np.log1p(-p)[:, None, None] + rows(b if form == 0 else a),
                )
            return one, two

        def joint(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            one, two = both(a, b)
            prior = stats.norm.logpdf(a, mean[0], sd[0]) + stats.norm.logpdf(b, mean[1], sd[1])
            return prior + np.logaddexp(one, two).sum(axis=0)

        a, b, weight, log_z = plane(joint, tuple(mean - 9 * sd), tuple(mean + 9 * sd), 301)
        one, two = both(a[:, None], b[None, :])
        gap = np.clip(two - one, -700, 700)
        labels = (weight / (1 + np.exp(gap))).sum(axis=(1, 2))
        (m1, s1), (m2, s2) = moments(a, weight.sum(axis=1)), moments(b, weight.sum(axis=0))
        return Truth({"a": m1, "b": m2}, {"a": s1, "b": s2}, {"s": labels}, log_evidence=log_z)

    return World(kind, seed, "\n".join(lines), "switches", truth)
