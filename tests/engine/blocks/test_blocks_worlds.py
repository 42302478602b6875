"""Whole models with sites on correlated expressions, against importance sampling and EP by hand."""

import numpy as np
import pytest
from by_hand_ep import expectation_propagation
from by_importance import importance
from scipy.special import gammaln, log_ndtr, ndtr

import heliograph as hg


def sds(belief):
    return np.sqrt(np.asarray(belief.variance))


def near(belief, mean, sd, z=0.02, ratio=0.02):
    assert (np.abs(belief.mean - mean) <= z * sd).all(), (belief.mean, mean, sd)
    assert (np.abs(sds(belief) / sd - 1) <= ratio).all(), sds(belief) / sd


# ---- TrueSkill --------------------------------------------------------------------------------------------------
def league(n_players, n_games, seed):
    rng = np.random.default_rng(seed)
    skill = rng.normal(25, 8, n_players)
    first = rng.integers(0, n_players, n_games)
    second = (first + rng.integers(1, n_players, n_games)) % n_players
    wins = rng.random(n_games) < ndtr((skill[first] - skill[second]) / (4 * np.sqrt(2)))
    return np.where(wins, first, second), np.where(wins, second, first)


def trueskill(winner, loser, n_players):
    model = hg.Model()
    skill = model.gaussian("skill", 25.0, variance=64.0, size=n_players)
    a = model.gaussian("of winner", skill[winner], variance=16.0)
    b = model.gaussian("of loser", skill[loser], variance=16.0)
    model.constrain(a > b)
    return model, skill


def probit_slopes(z):
    r = np.exp(-0.5 * z**2 - log_ndtr(z)) / np.sqrt(2 * np.pi)
    return r, -r * (r + z)


def game_rows(winner, loser, n_players):
    rows = np.zeros((len(winner), n_players))
    rows[np.arange(len(winner)), winner], rows[np.arange(len(winner)), loser] = 1.0, -1.0
    return rows / np.sqrt(32.0)


@pytest.mark.parametrize("seed", [0, 10])
def test_five_players_and_sixty_games_have_the_sds_of_importance_sampling(seed):
    winner, loser = league(5, 60, seed)
    assert (
        min(np.bincount(side, minlength=5).min() for side in (winner, loser)) >= 3
    )  # one who never lost has a skewed posterior, which EP narrows
    model, skill = trueskill(winner, loser, 5)
    posterior = model.infer()
    rng, rows = np.random.default_rng(10 + seed), game_rows(winner, loser, 5)
    mean, sd, log_total = importance(rng, np.full(5, 25.0), 64 * np.eye(5), rows, log_ndtr, probit_slopes, 100_000)
    assert posterior.converged and posterior.n_sweeps <= 12
    near(posterior[skill], mean, sd)
    assert posterior.log_evidence == pytest.approx(log_total, abs=0.05)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_league_is_the_fixed_point_of_ep_by_hand(seed):
    winner, loser = league(5, 30, seed)
    model, skill = trueskill(winner, loser, 5)
    posterior = model.infer(tolerance=1e-6)
    rows = game_rows(winner, loser, 5)
    mean, covariance = expectation_propagation(np.full(5, 25.0), 64 * np.eye(5), rows, [log_ndtr] * 30)
    near(posterior[skill], mean, np.sqrt(np.diag(covariance)), z=1e-4, ratio=1e-4)
    np.testing.assert_allclose(posterior.covariance(skill, skill), covariance, rtol=1e-3)


def test_games_in_another_order_give_the_same_league():
    winner, loser = league(8, 40, 3)
    order = np.random.default_rng(0).permutation(40)
    (one, skill), (two, other) = trueskill(winner, loser, 8), trueskill(winner[order], loser[order], 8)
    p, q = one.infer(), two.infer()
    np.testing.assert_allclose(p[skill].mean, q[other].mean, rtol=1e-8)
    np.testing.assert_allclose(p[skill].variance, q[other].variance, rtol=1e-8)
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=1e-7)


def test_the_sequential_schedule_has_the_same_fixed_point():
    model, skill = trueskill(*league(5, 25, 4), 5)
    p, q = (model.infer(schedule=s, tolerance=1e-7) for s in ("parallel", "sequential"))
    assert p.converged and q.converged
    np.testing.assert_allclose(p[skill].mean, q[skill].mean, rtol=1e-5)
    np.testing.assert_allclose(p[skill].variance, q[skill].variance, rtol=1e-4)
    assert p.log_evidence == pytest.approx(q.log_evidence, abs=1e-4)


# ---- counts and labels with random effects ----------------------------------------------------------------------
def poisson_slopes(y):
    return lambda z: (y - np.exp(z), -np.exp(z))


@pytest.mark.parametrize("seed", [0, 1])
def test_poisson_random_effects(seed):
    rng = np.random.default_rng(seed)
    groups, n = 10, 60
    g, x = rng.integers(0, groups, n), rng.normal(size=n)
    y = rng.poisson(np.exp(1.0 + 0.3 * x + 0.6 * rng.normal(size=groups)[g]))
    model = hg.Model()
    intercept, slope = model.gaussian("intercept", 0.0, variance=10.0), model.gaussian("slope", 0.0, variance=1.0)
    effect = model.gaussian("effect", 0.0, variance=0.36, size=groups)
    model.poisson("y", log_rate=intercept + slope * x + effect[g], observed=y)
    posterior = model.infer()
    rows = np.c_[np.ones(n), x, np.eye(groups)[g]]
    prior = np.diag([10.0, 1.0] + [0.36] * groups)
    mean, sd, log_total = importance(
        np.random.default_rng(5),
        np.zeros(groups + 2),
        prior,
        rows,
        lambda z: y * z - np.exp(z) - gammaln(y + 1),
        poisson_slopes(y),
        100_000,
    )
    assert posterior.converged
    near(posterior[intercept], mean[0], sd[0])
    near(posterior[slope], mean[1], sd[1])
    near(posterior[effect], mean[2:], sd[2:])
    assert posterior.log_evidence == pytest.approx(log_total, abs=0.1)
    assert sds(posterior[intercept]) > 0.15  # factorised messages say about half of that


def test_a_gaussian_process_with_labels_is_the_fixed_point_of_ep_by_hand():
    rng = np.random.default_rng(2)
    n = 25
    t = np.sort(rng.uniform(0, 5, n))
    kernel = 2 * np.exp(-0.5 * (t[:, None] - t) ** 2) + 1e-4 * np.eye(n)
    y = (rng.random(n) < ndtr(np.sin(2 * t))).astype(float)
    model = hg.Model()
    f = model.gaussian("f", np.zeros(n), covariance=kernel)
    model.bernoulli("y", probit=np.eye(n) @ f, observed=y)
    posterior = model.infer(tolerance=1e-5)
    mean, covariance = expectation_propagation(
        np.zeros(n), kernel, np.eye(n), [lambda z, s=s: log_ndtr(s * z) for s in 2 * y - 1]
    )
    assert posterior.converged
    sd = np.sqrt(np.diag(covariance))
    near(posterior[f], mean, sd, z=1e-3, ratio=1e-3)
    assert np.abs(posterior[f].covariance - covariance).max() < 1e-3 * sd.max() ** 2


def test_a_random_walk_with_counts_is_the_fixed_point_of_ep_by_hand():
    rng = np.random.default_rng(6)
    n = 30
    y = rng.poisson(np.exp(1 + np.cumsum(rng.normal(0, 0.3, n))))
    model = hg.Model()
    xs = [model.gaussian("x0", 1.0, variance=1.0)]
    for k in range(1, n):
        xs.append(model.gaussian(f"x{k}", xs[-1], variance=0.09))
    for k in range(n):
        model.poisson(f"y{k}", log_rate=xs[k], observed=y[k])
    posterior = model.infer(tolerance=1e-5)
    assert posterior.converged and posterior.n_sweeps <= 15  # and not as many as the chain is long
    covariance = 1.0 + 0.09 * np.minimum.outer(np.arange(n), np.arange(n))
    mean, covariance = expectation_propagation(
        np.ones(n), covariance, np.eye(n), [lambda z, k=k: k * z - np.exp(z) for k in y]
    )
    sd = np.sqrt(np.diag(covariance))
    for k in range(n):
        near(posterior[xs[k]], mean[k], sd[k], z=1e-3, ratio=1e-3)
