"""Random hidden chains, with known tables against a loop of forward and backward sums, with unknown ones against all paths."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.special import gammaln

from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["discrete_chain", "unknown_tables"]

_STEP = 'lambda before: m.categorical("x", {}, given=before)'


def _rows(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    table = rounded(rng.dirichlet(np.full(k, rng.choice([0.3, 1.0])), n), 3)
    table[np.arange(n), table.argmax(axis=1)] += 1.0 - table.sum(axis=1)
    return table


def discrete_chain(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A chain of 1 to 60 states with known tables and data with gaps."""
    n, k, v = int(rng.integers(1, 61)), int(rng.integers(2, 5)), int(rng.integers(2, 5))
    first, step, out = _rows(rng, 1, k)[0], _rows(rng, k, k), _rows(rng, k, v)
    state, y = rng.choice(k, p=first / first.sum()), []
    for _ in range(n):
        y.append(float(rng.choice(v, p=out[state] / out[state].sum())) if rng.random() < 0.8 else np.nan)
        state = rng.choice(k, p=step[state] / step[state].sum())
    seen = np.array(y)
    lines = [
        "m = hg.Model()",
        f"x = m.chain('x', {n}, hg.Categorical({literal(first)}), {_STEP.format(literal(step))})",
    ]
    lines.append(f"m.categorical('y', {literal(out)}, given=x, observed={literal(seen)})")

    def truth() -> Truth:
        like = np.stack([np.ones(k) if np.isnan(s) else out[:, int(s)] for s in seen])
        forward, log_z = [], 0.0
        for t in range(n):
            now = (first if t == 0 else forward[-1] @ step) * like[t]
            log_z += np.log(now.sum())
            forward.append(now / now.sum())
        backward = [np.ones(k)]
        for t in range(n - 1, 0, -1):
            now = step @ (like[t] * backward[-1])
            backward.append(now / now.sum())
        p = np.array(forward) * np.array(backward[::-1])
        return Truth(probability={"x": p / p.sum(axis=1, keepdims=True)}, log_evidence=float(log_z))

    return World(kind, seed, "\n".join(lines), "exact discrete", truth)


def unknown_tables(rng: np.random.Generator, kind: str, seed: int) -> World:
    """A chain of up to nine states whose steps and outputs have Dirichlet rows that differ."""
    n, k, v = int(rng.integers(2, 10)), 2, int(rng.integers(2, 4))
    a, b = rounded(rng.uniform(0.5, 5.0, (k, k)), 2), rounded(rng.uniform(0.5, 5.0, (k, v)), 2)
    seen = rng.integers(0, v, n)
    lines = ["m = hg.Model()", f"s = m.dirichlet('s', {literal(a)})", f"o = m.dirichlet('o', {literal(b)})"]
    lines.append(f"x = m.chain('x', {n}, hg.Categorical([0.5, 0.5]), {_STEP.format('s')})")
    lines.append(f"m.categorical('y', o, given=x, observed={literal(seen)})")

    def truth() -> Truth:
        total, p = 0.0, np.zeros((n, k))
        for c in itertools.product(range(k), repeat=n):
            ca, cb = np.zeros(a.shape), np.zeros(b.shape)
            np.add.at(ca, (c[:-1], c[1:]), 1)
            np.add.at(cb, (list(c), seen), 1)
            w = 0.5 * np.exp(_log_draws(ca, a) + _log_draws(cb, b))
            total += w
            p[np.arange(n), list(c)] += w
        return Truth(probability={"x": p / total}, log_evidence=float(np.log(total)))

    return World(kind, seed, "\n".join(lines), "unknown tables", truth)


def _log_draws(count: np.ndarray, a: np.ndarray) -> float:
    """``log`` of the probability of draws with these counts from Dirichlet rows."""
    return float((gammaln(a.sum(1)) - gammaln((a + count).sum(1)) + (gammaln(a + count) - gammaln(a)).sum(1)).sum())
