"""The posterior of up to a dozen unknowns by annealing: particles that go from a broad density to the posterior in small steps.

Sequential Monte Carlo (Del Moral, Doucet, Jasra 2006): the ratio of the two is raised to a power that grows from 0 to 1, as fast as
the particles' weights allow; at every power they are drawn again by weight and moved by random walks that leave it invariant. The
mean weights multiply to the evidence. Two runs, of which each must confirm the other, or nothing is claimed.

Half of the broad density is the prior. The other half lies around scouts, which climbed to the posterior from far beyond the prior:
events cut the space into regions, and one in the prior's tail may hold all of the posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

__all__ = ["Particles", "annealed"]

_PARTICLES, _MOVES, _KEPT, _MOST = 2500, 6, 0.6, 60
_SCOUTS, _CLIMB, _AROUND, _DOF = 60, 300, 0.1, 5.0
_AGREE = 0.08  # of an sd, of its logarithm, and twice that in nats: two runs that differ by more claim nothing

LogDensity = Callable[[np.ndarray], np.ndarray]  # (S, d) -> (S,)


class Particles(NamedTuple):
    """Equally weighted points of the posterior, and the log evidence."""

    x: np.ndarray  # (S, d)
    log_evidence: float


def annealed(
    rng: np.random.Generator, draw: Callable[[np.random.Generator, int], np.ndarray], log_prior: LogDensity,
    log_likelihood: LogDensity,
) -> Particles | None:  # fmt: skip
    """Both runs together; None where they do not agree, or do not end."""
    one, two = (_run(rng, *_broad(rng, draw, log_prior, log_likelihood)) for _ in range(2))
    if one is None or two is None or abs(one.log_evidence - two.log_evidence) > 2 * _AGREE:
        return None
    x = np.concatenate([one.x, two.x])
    sd = x.std(axis=0)
    gap = np.abs(one.x.mean(axis=0) - two.x.mean(axis=0)) / sd
    spread = np.abs(np.log(one.x.std(axis=0) / two.x.std(axis=0)))
    if max(gap.max(), spread.max()) > 2 * _AGREE:
        return None
    return Particles(x, float(np.logaddexp(one.log_evidence, two.log_evidence) - np.log(2.0)))


def _broad(
    rng: np.random.Generator, draw: Callable[[np.random.Generator, int], np.ndarray], log_prior: LogDensity,
    log_likelihood: LogDensity,
) -> tuple[Callable[[np.random.Generator, int], np.ndarray], LogDensity, LogDensity]:  # fmt: skip
    """The density to begin with, as draws and as a function, and what the posterior is beyond it."""
    x = draw(rng, 50 * _SCOUTS)
    mean, sd = x.mean(axis=0), x.std(axis=0)
    far = np.concatenate([mean + width * (x - mean) for width in (1.0, 2.0, 4.0)])

    def log_joint(x: np.ndarray) -> np.ndarray:
        total = log_prior(x) + log_likelihood(x)
        return np.where(np.isnan(total), -np.inf, total)

    height = log_joint(far)
    possible = np.flatnonzero(np.isfinite(height))
    at = rng.choice(possible if len(possible) else len(far), _SCOUTS)
    scouts, height = far[at], height[at]
    for _ in range(_CLIMB):
        new = scouts + 10 ** rng.uniform(-3, 0.3, (_SCOUTS, 1)) * sd * rng.standard_normal(scouts.shape)
        new_height = log_joint(new)
        taken = new_height > height + np.log(rng.random(_SCOUTS))
        scouts, height = np.where(taken[:, None], new, scouts), np.where(taken, new_height, height)
    width, d = _AROUND * sd, x.shape[1]
    constant = (
        gammaln((_DOF + d) / 2)
        - gammaln(_DOF / 2)
        - d / 2 * np.log(_DOF * np.pi)
        - np.log(width).sum()
        - np.log(_SCOUTS)
    )

    def draw_both(rng: np.random.Generator, n: int) -> np.ndarray:
        tail = np.sqrt(rng.chisquare(_DOF, (n // 2, 1)) / _DOF)
        near = scouts[rng.integers(_SCOUTS, size=n // 2)] + width * rng.standard_normal((n // 2, d)) / tail
        return rng.permutation(np.concatenate([near, draw(rng, n - n // 2)]))

    def log_both(x: np.ndarray) -> np.ndarray:
        far = np.stack([np.sum(((x - c) / width) ** 2, axis=1) for c in scouts])
        near = constant + logsumexp(-(_DOF + d) / 2 * np.log1p(far / _DOF), axis=0)
        return np.logaddexp(near, log_prior(x)) - np.log(2.0)

    return draw_both, log_both, lambda x: log_joint(x) - log_both(x)


def _run(
    rng: np.random.Generator, draw: Callable[[np.random.Generator, int], np.ndarray], log_prior: LogDensity,
    log_likelihood: LogDensity,
) -> Particles | None:  # fmt: skip
    x = draw(rng, 10 * _PARTICLES)  # many at first: an event may leave few of them
    said = _known(log_likelihood(x))
    power, log_evidence, scale = 0.0, 0.0, 1.0
    for _ in range(_MOST):
        step = _step(said, 1.0 - power)
        log_w = np.where(np.isfinite(said), step * said, -np.inf)
        log_evidence += float(logsumexp(log_w) - np.log(len(log_w)))
        power += step
        weight = np.exp(log_w - logsumexp(log_w))
        if not np.isfinite(log_evidence) or 1.0 / np.sum(weight**2) < 0.1 * _PARTICLES:
            return None
        at = np.searchsorted(np.cumsum(weight), (np.arange(_PARTICLES) + rng.random()) / _PARTICLES)
        at = np.minimum(at, len(weight) - 1)
        x, said = x[at], said[at]
        x, said, scale = _moved(rng, x, said, power, scale, log_prior, log_likelihood)
        if power >= 1.0:
            x, said, _ = _moved(rng, x, said, power, scale, log_prior, log_likelihood)
            return Particles(x, log_evidence)
    return None


def _known(said: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(said), -np.inf, said)


def _step(said: np.ndarray, most: float) -> float:
    """How far the power may grow until a share of the draws that are possible counts."""

    def effective(step: float) -> float:
        log_w = step * said[np.isfinite(said)]
        return float(np.exp(2 * logsumexp(log_w) - logsumexp(2 * log_w))) / max(len(log_w), 1)

    if not np.isfinite(said).any() or effective(most) > _KEPT:
        return most
    low, high = 0.0, most
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) > _KEPT else (low, middle)
    return high


def _moved(
    rng: np.random.Generator, x: np.ndarray, said: np.ndarray, power: float, scale: float, log_prior: LogDensity,
    log_likelihood: LogDensity,
) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
    """Random walks of several widths, with differences of two other particles in every other step, as modes may be far apart."""
    n, d = x.shape
    before = log_prior(x)
    for k in range(_MOVES):
        lower = np.linalg.cholesky(np.cov(x.T).reshape(d, d) + 1e-14 * np.eye(d))
        if k % 2:
            i, j = rng.integers(n, size=(2, n))
            jump = (2.38 / np.sqrt(2 * d) * rng.choice([0.4, 1.0], n))[:, None] * (x[i] - x[j])
            jump += 1e-2 * rng.standard_normal((n, d)) @ lower.T
        else:
            width = scale * 2.38 / np.sqrt(d) * np.exp(rng.normal(0, 0.5, n))
            jump = width[:, None] * (rng.standard_normal((n, d)) @ lower.T)
        new = x + jump
        with np.errstate(all="ignore"):
            after, new_said = log_prior(new), _known(log_likelihood(new))
            ratio = after - before + power * (new_said - said)
        taken = np.log(rng.random(n)) < np.where(np.isfinite(new_said), ratio, -np.inf)
        x, before, said = (
            np.where(taken[:, None], new, x),
            np.where(taken, after, before),
            np.where(taken, new_said, said),
        )
        if not k % 2:
            scale = float(np.clip(scale * np.exp(taken.mean() - 0.25), 0.05, 3.0))
    return x, said, scale
