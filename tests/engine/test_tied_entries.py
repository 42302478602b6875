"""Entries that messages tie to one another settle at one rate: which are tied, and what is still to come for them."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr

import heliograph as hg
from heliograph.engine import tied_entries as module
from heliograph.engine.compiled import compile_model
from heliograph.engine.convergence import still_to_go
from heliograph.engine.tied_entries import tied_entries


def league(n_players, n_games, seed, n_divisions=1):
    """A model of players and games; of several divisions, each plays within itself, except for one game in a hundred."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(25, 8, n_players)
    size = n_players // n_divisions
    first = rng.integers(0, n_players, n_games)
    second = first - first % size + (first + rng.integers(1, size, n_games)) % size
    if n_divisions > 1:
        away = rng.random(n_games) < 0.01
        second[away] = (first[away] + rng.integers(size, n_players - size, away.sum())) % n_players
    wins = rng.random(n_games) < ndtr((skill[first] - skill[second]) / (4 * np.sqrt(2)))
    model = hg.Model()
    skills = model.gaussian("skill", 25.0, variance=64.0, size=n_players)
    a = model.gaussian("of winner", skills[np.where(wins, first, second)], variance=16.0)
    b = model.gaussian("of loser", skills[np.where(wins, second, first)], variance=16.0)
    model.constrain(a > b)
    return model


def factorised(model, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.infer(structure="factorised", **settings)


@pytest.mark.parametrize(
    ("n_players", "n_games", "n_divisions", "most"), [(100, 1000, 1, 24), (1000, 10_000, 1, 20), (200, 4000, 10, 40)]
)
def test_a_league_ends_in_time_and_nothing_is_still_to_come(n_players, n_games, n_divisions, most):
    """All players' common level is pinned by priors alone, and moves at a tenth of a sweep's change and a rate of .92."""
    for seed in range(3):
        model = league(n_players, n_games, seed, n_divisions)
        found, exact = factorised(model, max_sweeps=100), factorised(model, max_sweeps=200, tolerance=1e-13)
        assert found.converged and found.n_sweeps <= most
        for name in ("skill", "of winner", "of loser"):
            assert exact[name].kl(found[name]).max() < 1e-5


def test_entries_are_tied_by_elements_that_touch_them_unless_they_were_seen(monkeypatch):
    monkeypatch.setattr(module, "_MANY", 2)
    model = hg.Model()
    observed = np.full(6, np.nan)
    observed[2] = 0.0  # the third player is known, and ties nobody to anybody
    skill = model.gaussian("skill", 0.0, variance=1.0, size=6, observed=observed)
    first, second = np.array([0, 1, 4, 5]), np.array([1, 2, 2, 3])
    a = model.gaussian("a", skill[first], variance=1.0)
    b = model.gaussian("b", skill[second], variance=1.0)
    model.constrain(a > b)
    compiled = compile_model(model.graph.snapshot(), "factorised")
    every = range(len(compiled.graph.plates))
    watched = [n for n in compiled.graph.nodes if n.name in ("skill", "a", "b")]
    of_skill, of_a, of_b = tied_entries(compiled.graph, every, watched)

    def sets(labels):
        return {tuple(np.flatnonzero(labels == k).tolist()) for k in labels}

    assert sets(of_skill) == {(0, 1), (2,), (3, 5), (4,)}
    assert sets(of_a) == sets(of_b) == {(0, 1), (2,), (3,)}


def test_few_entries_are_judged_one_by_one():
    model = league(20, 60, 0)
    compiled = compile_model(model.graph.snapshot(), "factorised")
    assert tied_entries(compiled.graph, range(len(compiled.graph.plates)), compiled.watched()) == [None] * 3


def moves(rng, n, drift, rate, wild, fast):
    """Beliefs after three sweeps that share a slow drift under larger moves of their own; and how far the drift still goes."""
    own = wild * rng.standard_normal(n)
    means = np.cumsum([np.zeros(n), drift + own, rate * drift + fast * own], axis=0)
    return [[hg.Gaussian(m, 1.0)] for m in means[::-1]], 0.5 * (drift * rate**2 / (1 - rate)) ** 2


def test_one_entry_of_many_that_passes_through_its_rest_is_no_alarm_and_a_shared_drift_is_one():
    rng = np.random.default_rng(0)
    n = 10_000
    together = [np.zeros(n, dtype=int)]
    beliefs, _ = moves(rng, n, 0.0, 0.5, 1e-4, 0.3)
    new, old, older = (b.mean.copy() for (b,) in beliefs)
    old[0] = older[0] + 0.45 * (new - older)[0]  # of one entry, the last move is longer than the one before
    beliefs[1] = [hg.Gaussian(old, 1.0)]
    assert still_to_go(*beliefs) > 1e-3
    assert still_to_go(*beliefs, together) < 1e-7
    beliefs, ahead = moves(rng, n, 1e-4, 0.95, 5e-4, 0.3)
    assert ahead / 1.5 < still_to_go(*beliefs, together) < 4 * ahead
    each = np.arange(n) % 2  # two leagues that do not meet: one drifts, the other goes the other way
    mirrored = [[hg.Gaussian(np.where(each == 1, -b.mean, b.mean), 1.0)] for (b,) in beliefs]
    assert still_to_go(*mirrored, [each]) > ahead / 1.5 > 3 * still_to_go(*mirrored, together)
