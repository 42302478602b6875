"""Functions of functions of one unknown, and what is said of their values: chains that EP follows with a Gaussian at every link."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.truth.effects import LIKELIHOODS
from benchmarks.truth.grids import line, moments
from benchmarks.truth.world import Truth, World, literal, rounded

__all__ = ["function_chain"]

Function = Callable[[np.ndarray], np.ndarray]


class _Link(NamedTuple):
    source: str  # of z
    value: Function


def function_chain(rng: np.random.Generator, kind: str, seed: int) -> World:
    """One to twenty unknowns by themselves, one to three links, and an event or one of the likelihoods of their values."""
    n = int(rng.choice([1, 1, 1, 2, 5, 20]))
    mean, sd = rounded(rng.normal(0, 1, n), 2), float(rng.choice([0.3, 1.0, 2.0]))
    links = [_link(rng) for _ in range(int(rng.integers(1, 4)))]
    at = _through(links, mean + sd * rng.standard_normal(n))
    lines = ["m = hg.Model()", f'a = m.gaussian("a", {literal(mean)}, sd={sd})', "z = a", *(k.source for k in links)]
    if rng.random() < 0.25:
        low = rounded(at - rng.exponential(1.0, n), 3)
        lines.append(f"m.constrain(z > {literal(low)})")
        log_density: Function = lambda z: np.where(z > low, 0.0, -np.inf)  # noqa: E731
    else:
        chosen = LIKELIHOODS[rng.integers(len(LIKELIHOODS))](rng, np.clip(at, -4.0, 4.0))
        lines.append(re.sub(r"\s+", " ", chosen.line))
        log_density = chosen.log_density

    def truth() -> Truth:
        def log_joint(x: np.ndarray) -> np.ndarray:
            return stats.norm.logpdf(x, mean[:, None], sd) + log_density(_through(links, x).T).T

        x, weight, log_z = line(log_joint, mean - 9 * sd, mean + 9 * sd)
        m, s = moments(x, weight)
        return Truth({"a": m}, {"a": s}, log_evidence=float(log_z.sum()))

    return World(kind, seed, "\n".join(lines), "functions", truth)


def _through(links: list[_Link], z: np.ndarray) -> np.ndarray:
    for link in links:
        z = link.value(z)
    return z


def _link(rng: np.random.Generator) -> _Link:
    c = float(rounded(rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 2.0), 2))
    form = int(rng.integers(5))
    if form == 0:
        return _Link("z = abs(z)", np.abs)
    if form == 1:
        return _Link("z = z ** 2", np.square)
    if form == 2:
        return _Link(f"z = m.maximum(z, {c})", lambda z: np.maximum(z, c))
    if form == 3:
        return _Link(f"z = {c} * z", lambda z: c * z)
    return _Link(f"z = z + {c}", lambda z: z + c)
