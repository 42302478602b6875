"""Parallel and sequential schedules reach the same posterior; damping and power change the way, not the end."""

import numpy as np
import pytest

import heliograph as hg


def _regression(kind, seed, n, d, separable=False):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    score = x @ rng.standard_normal(d)
    y = score > 0 if separable else rng.random(n) < 1 / (1 + np.exp(-score))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=np.eye(d))
    model.bernoulli("y", observed=y, **{kind: x @ w})
    return model, w


PROBLEMS = [(60, 5, False), (40, 3, False), (10, 20, False), (8, 8, False), (50, 4, True), (12, 30, True)]


@pytest.mark.parametrize("kind", ["logit", "probit"])
@pytest.mark.parametrize(("n", "d", "separable"), PROBLEMS, ids=lambda v: str(v))
def test_both_schedules_reach_the_same_posterior(kind, n, d, separable):
    model, w = _regression(kind, n + d, n, d, separable)
    a = model.infer(schedule="parallel", tolerance=1e-9)
    b = model.infer(schedule="sequential", tolerance=1e-9)
    assert a.converged and b.converged
    assert np.abs(a[w].mean - b[w].mean).max() < 1e-6
    assert np.abs(a[w].covariance - b[w].covariance).max() < 1e-6
    assert a.log_evidence == pytest.approx(b.log_evidence, abs=1e-6)


@pytest.mark.parametrize("settings", [{"damping": 0.5}, {"damping": 0.8}, {"improper": "skip"}, {"improper": "allow"}])
def test_damping_and_policy_do_not_move_the_fixed_point(settings):
    model, w = _regression("logit", 3, 50, 4)
    plain = model.infer(tolerance=1e-10)
    other = model.infer(tolerance=1e-10, **settings)
    assert other.converged
    assert np.abs(plain[w].mean - other[w].mean).max() < 1e-6


def test_power_ep_with_a_small_power_tends_to_the_variational_posterior_and_differs_from_ep():
    model, w = _regression("logit", 4, 50, 4)
    ep, half = model.infer(tolerance=1e-9), model.infer(power=0.5, tolerance=1e-9)
    assert half.converged
    gap = np.abs(ep[w].mean - half[w].mean).max()
    assert 1e-6 < abs(ep.log_evidence - half.log_evidence) < 0.5
    assert 1e-6 < gap < 0.05  # another fixed point, close by


def test_a_league_has_one_fixed_point_in_both_schedules():
    rng = np.random.default_rng(6)
    pairs = np.array([rng.choice(4, 2, replace=False) for _ in range(15)])
    model = hg.Model()
    skill = model.gaussian("skill", 25.0, variance=69.0, size=4)
    a = model.gaussian("a", skill[pairs[:, 0]], variance=17.0)
    b = model.gaussian("b", skill[pairs[:, 1]], variance=17.0)
    model.constrain(a > b)
    one, two = (model.infer(schedule=s, tolerance=1e-11, max_sweeps=500) for s in ("parallel", "sequential"))
    assert one.converged and two.converged
    assert np.abs(one[skill].mean - two[skill].mean).max() < 1e-5
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-5)


def test_the_same_seed_gives_the_same_bits():
    model, w = _regression("probit", 7, 30, 3)
    a, b = model.infer(seed=5), model.infer(seed=5)
    assert np.array_equal(a[w].mean, b[w].mean) and a.log_evidence == b.log_evidence


def test_power_ep_of_gaussian_factors_is_exact_in_posterior_and_evidence():
    rng = np.random.default_rng(8)
    x, y = rng.standard_normal((12, 2)), rng.standard_normal(12)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.gaussian("y", x @ w, variance=0.5, observed=y)
    plain, power = model.infer(), model.infer(power=0.5)
    assert np.allclose(plain[w].mean, power[w].mean, atol=1e-9)
    assert power.log_evidence == pytest.approx(plain.log_evidence, abs=1e-8)
