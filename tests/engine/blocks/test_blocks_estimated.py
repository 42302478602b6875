"""Blocks beyond their budget: conjugate gradients, and messages or probes, in place of a joint solve, and what is said of it."""

import re
import warnings

import numpy as np
import pytest
from vector_factors import Noise, attach

import heliograph as hg

TINY = 1e-6  # seconds: nothing is affordable
BY_MESSAGES = r"joint, standard deviations within (\d\.\d) % of exact ones in a sample"


def league(n_players=300, n_games=3000, seed=0):
    rng = np.random.default_rng(seed)
    skill = rng.standard_normal(n_players)
    a = rng.integers(n_players, size=n_games)
    b = (a + rng.integers(1, n_players, size=n_games)) % n_players
    won = skill[a] + rng.standard_normal(n_games) > skill[b]
    model = hg.Model()
    s = model.gaussian("skill", np.zeros(n_players), variance=1.0)
    gap = s[np.where(won, a, b)] - s[np.where(won, b, a)]
    model.bernoulli("y", probit=gap, observed=np.ones(n_games))
    return model, s


def said_by(function):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = function()
    return result, [str(w.message) for w in said]


def test_a_league_beyond_its_budget_is_estimated_and_says_so():
    model, s = league()
    exact = model.infer()
    estimated, said = said_by(lambda: model.infer(budget=TINY))
    (one,) = said
    assert "'skill' are jointly Gaussian, but a joint solve takes" in one
    assert "conjugate gradients" in one and "2%" in one and "6%" in one and "no evidence" in one
    assert exact.structure == {"skill": "joint"}
    assert re.fullmatch(BY_MESSAGES, estimated.structure["skill"])
    assert estimated.converged
    sd = np.sqrt(exact[s].variance)
    assert np.abs((estimated[s].mean - exact[s].mean) / sd).max() < 0.02
    assert np.abs(np.sqrt(estimated[s].variance) / sd - 1).max() < 0.02


def test_the_error_that_is_said_of_messages_is_the_largest_there_is():
    model, s = league(200, 1500, seed=5)  # all 200 standard deviations are in the sample of 256
    estimated, _ = said_by(lambda: model.infer(budget=TINY))
    covariance = np.array(estimated.covariance(s, s))  # by single solves: exact for these messages
    realised = np.abs(np.sqrt(estimated[s].variance / np.diag(covariance)) - 1).max()
    said = float(re.fullmatch(BY_MESSAGES, estimated.structure["skill"]).group(1))
    assert said == pytest.approx(100 * realised, abs=0.05 + 1e-3)  # rounded to a tenth of a per cent


def torus(side=18, seed=6):
    """Values on a torus that are smooth and hardly known: messages that come back around its loops count many times."""
    rng = np.random.default_rng(seed)
    at = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate([np.stack([at, np.roll(at, 1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
    model = hg.Model()
    x = model.gaussian("x", np.zeros(side * side), variance=100.0)
    model.gaussian("step", x[pairs[:, 0]] - x[pairs[:, 1]], variance=1.0, observed=np.zeros(len(pairs)))
    seen = rng.choice(side * side, 40, replace=False)
    model.bernoulli("y", probit=x[seen], observed=rng.integers(2, size=40))
    return model, x


def test_messages_that_a_check_finds_wrong_give_way_to_probes():
    model, x = torus()
    exact = model.infer()
    estimated, _ = said_by(lambda: model.infer(budget=TINY))
    factorised, _ = said_by(lambda: model.infer(structure="factorised"))
    sd = np.sqrt(exact[x].variance)
    assert np.abs(np.sqrt(factorised[x].variance) / sd - 1).max() > 0.1  # what messages would have said
    assert "standard error" in estimated.structure["x"] and estimated.converged
    assert np.abs(np.sqrt(estimated[x].variance) / sd - 1).max() < 0.2
    assert abs(np.mean(np.sqrt(estimated[x].variance) / sd) - 1) < 0.03


def test_there_is_no_evidence_and_a_warning_says_why():
    model, _ = league(300, 1500)
    posterior, _ = said_by(lambda: model.infer(budget=TINY))
    value, said = said_by(lambda: posterior.log_evidence)
    assert np.isnan(value)
    assert len(said) == 1 and "no log evidence" in said[0] and "budget=" in said[0]


def test_structure_joint_refuses_what_is_beyond_the_budget():
    model, _ = league(300, 1500)
    with pytest.raises(hg.UnsupportedError, match="jointly Gaussian, but a joint solve takes"):
        model.infer(structure="joint", budget=TINY)


@pytest.mark.parametrize("budget", [0.0, -1.0, np.nan, np.inf, "much", True, None])
def test_a_budget_is_a_positive_number(budget):
    model, _ = league(5, 5)
    with pytest.raises(hg.ModelError, match="budget must be a positive number"):
        model.infer(budget=budget)


def test_covariances_and_draws_of_an_estimated_block_are_those_of_the_joint_one():
    rng = np.random.default_rng(1)
    model = hg.Model()
    n = 300
    x = model.gaussian("x", np.zeros(n), variance=1.0)
    i, j = rng.integers(n, size=(2, 900))
    j = np.where(i == j, (j + 1) % n, j)
    y = rng.standard_normal(900)
    model.gaussian("y", x[i] - 0.5 * x[j], variance=0.5, observed=y)
    posterior, _ = said_by(lambda: model.infer(budget=TINY))
    assert re.fullmatch(BY_MESSAGES, posterior.structure["x"])
    rows = np.zeros((900, n))
    rows[np.arange(900), i] = 1.0
    rows[np.arange(900), j] = -0.5
    covariance = np.linalg.inv(np.eye(n) + rows.T @ rows / 0.5)
    mean = covariance @ rows.T @ y / 0.5
    np.testing.assert_allclose(posterior[x].mean, mean, atol=1e-8)
    np.testing.assert_allclose(posterior.covariance(x[:5], x[3:9]), covariance[:5, 3:9], atol=1e-8)
    some = x[0] + 2.0 * x[7]
    expected = covariance[0, 0] + 4 * covariance[7, 7] + 4 * covariance[0, 7]
    assert float(posterior[some].variance) == pytest.approx(expected, rel=1e-8)
    draws = posterior.sample(4000, seed=2)["x"]
    gap = np.cov(draws.T) - covariance
    assert np.abs(draws.mean(axis=0) - mean).max() < 5 * np.sqrt(np.diag(covariance).max() / 4000)
    assert np.abs(gap).max() < 6 * np.diag(covariance).max() / np.sqrt(4000)
    again = posterior.sample(4000, seed=2)["x"]
    np.testing.assert_array_equal(draws, again)


def test_sites_on_vectors_of_an_estimated_block():
    rng = np.random.default_rng(3)
    n_groups, n, q = 150, 600, 3
    group = rng.integers(n_groups, size=n)
    other = (group + rng.integers(1, n_groups, size=n)) % n_groups
    model = hg.Model()
    a = model.gaussian("a", np.zeros((n_groups, q)), variance=1.0)
    y = rng.standard_normal((n, q))
    noise = np.broadcast_to(np.eye(q) + 0.4, (n, q, q))
    attach(model, Noise(), model.stack(a[group] - a[other]), y=y, R=noise)
    exact = model.infer()
    estimated, _ = said_by(lambda: model.infer(budget=TINY))
    assert "standard error" in estimated.structure["a"]
    sd = np.sqrt(exact[a].variance)
    assert np.abs((estimated[a].mean - exact[a].mean) / sd).max() < 1e-6
    assert np.abs(np.sqrt(estimated[a].variance) / sd - 1).max() < 0.08


def test_many_private_numbers_of_an_estimated_block_are_read_off_the_messages():
    rng = np.random.default_rng(4)
    n_players, n_games = 300, 2500
    a = rng.integers(n_players, size=n_games)
    b = (a + rng.integers(1, n_players, size=n_games)) % n_players
    model = hg.Model()
    s = model.gaussian("skill", np.zeros(n_players), variance=1.0)
    shown = [model.gaussian(name, s[k], variance=1.0) for name, k in (("winner", a), ("loser", b))]
    model.constrain(shown[0] > shown[1])
    exact = model.infer()
    estimated, _ = said_by(lambda: model.infer(budget=TINY))
    assert re.fullmatch(BY_MESSAGES, estimated.structure["winner"])
    for variable in (s, *shown):
        sd = np.sqrt(exact[variable].variance)
        ratio = np.sqrt(estimated[variable].variance) / sd
        assert np.abs((estimated[variable].mean - exact[variable].mean) / sd).max() < 0.02
        assert np.abs(ratio - 1).max() < 0.04 and abs(ratio.mean() - 1) < 0.01
    estimated, _ = said_by(lambda: estimated.summary())
    assert "winner" in estimated


def test_many_sums_that_no_message_speaks_of_are_read_off_probes():
    model, s = league(300, 3000, seed=7)
    rng = np.random.default_rng(8)
    exact, _ = said_by(lambda: model.infer())
    estimated, _ = said_by(lambda: model.infer(budget=TINY))
    i, j, k = rng.integers(300, size=(3, 2100))
    three = s[i] + s[j] - 2.0 * s[k]
    ratio = np.sqrt(estimated[three].variance / exact[three].variance)
    assert np.abs(ratio - 1).max() < 0.3 and abs(ratio.mean() - 1) < 0.02  # 128 probes: 6 % each
