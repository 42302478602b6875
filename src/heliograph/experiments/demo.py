"""The demonstration's problems: related logistic regressions and a small league of players."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from heliograph.engine import Model
from heliograph.families import Gaussian

__all__ = ["League", "Regression", "play_league", "solve_regressions"]


class Regression(NamedTuple):
    """One solved logistic regression."""

    problem: int
    n_sweeps: int
    seconds: float
    error: float  # root mean square distance of the posterior mean from the weights that made the data
    sd: float  # root mean posterior variance: what that distance should be
    log_evidence: float


class League(NamedTuple):
    """Skills inferred from games."""

    true: np.ndarray  # (players,)
    skill: Gaussian  # (players,)
    n_games: int
    n_sweeps: int
    seconds: float
    log_evidence: float


def solve_regressions(
    seed: int, n_problems: int, n: int = 300, d: int = 20, tell: Callable[[str], None] = lambda text: None
) -> list[Regression]:
    """Logistic regressions with weights of their own, each solved from the prior N(0, I)."""
    rng = np.random.default_rng(seed)
    done = []
    for k in range(n_problems):
        truth = rng.standard_normal(d)
        x = rng.standard_normal((n, d))
        y = (rng.random(n) < 1 / (1 + np.exp(-x @ truth))).astype(float)
        start = time.perf_counter()
        model = Model()
        w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
        model.bernoulli("y", logit=x @ w, observed=y)
        posterior = model.infer(progress=False)
        seconds = time.perf_counter() - start
        belief = posterior[w]
        error = float(np.sqrt(np.mean((belief.mean - truth) ** 2)))
        sd = float(np.sqrt(np.mean(belief.variance)))
        done.append(Regression(k + 1, posterior.n_sweeps, seconds, error, sd, posterior.log_evidence))
        tell(f"logistic regression {k + 1} of {n_problems}")
    return done


def play_league(seed: int, n_players: int = 12, n_games: int = 120) -> League:
    """TrueSkill: whoever plays better wins; a game's performance is the skill plus noise."""
    mu, sigma, beta = 25.0, 25 / 3, 25 / 6
    rng = np.random.default_rng(seed)
    true = rng.normal(mu, sigma, n_players)
    pairs = np.array([rng.choice(n_players, 2, replace=False) for _ in range(n_games)])
    shown = true[pairs] + beta * rng.standard_normal(pairs.shape)
    order = np.argsort(-shown, axis=1)
    winner, loser = np.take_along_axis(pairs, order, axis=1).T
    start = time.perf_counter()
    model = Model()
    skill = model.gaussian("skill", mu, variance=sigma**2, size=n_players)
    better = model.gaussian("winner's performance", skill[winner], variance=beta**2)
    worse = model.gaussian("loser's performance", skill[loser], variance=beta**2)
    model.constrain(better > worse)
    posterior = model.infer(progress=False)
    seconds = time.perf_counter() - start
    belief = posterior[skill]
    assert isinstance(belief, Gaussian)
    return League(true, belief, n_games, posterior.n_sweeps, seconds, posterior.log_evidence)
