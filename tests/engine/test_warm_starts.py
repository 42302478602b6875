"""Runs that begin with the messages of an earlier one: the same answer, in fewer sweeps."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import ModelError


def _logistic(rng, n, d=10):
    X = rng.standard_normal((n, d))
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ np.linspace(-1, 1, d)))) * 1.0


def _model(X, y):
    model = hg.Model()
    w = model.gaussian("w", np.zeros(X.shape[1]), covariance=10 * np.eye(X.shape[1]))
    model.bernoulli("y", logit=model.data("X", X) @ w, observed=y)
    return model, w


@pytest.mark.parametrize("seed", range(3))
def test_one_percent_of_new_rows_take_at_most_three_sweeps(seed: int) -> None:
    X, y = _logistic(np.random.default_rng(seed), 1010)
    model, w = _model(X[:1000], y[:1000])
    first = model.infer()
    model.observe(X=X, y=y)
    cold, warm = model.infer(), model.infer(start=first)
    assert warm.converged
    assert warm.n_sweeps <= 3
    assert warm.n_sweeps < cold.n_sweeps
    assert float(cold[w].kl(warm[w])) < 1e-7
    assert warm.log_evidence == pytest.approx(cold.log_evidence, abs=1e-5)


def test_the_same_data_need_next_to_nothing() -> None:
    model, w = _model(*_logistic(np.random.default_rng(5), 500))
    first = model.infer()
    again = model.infer(start=first)
    assert again.n_sweeps <= 3
    assert float(first[w].kl(again[w])) < 1e-8


@pytest.mark.parametrize("n", [1, 7, 400])
def test_a_start_that_does_not_fit_changes_no_answer(n: int) -> None:
    rng = np.random.default_rng(6)
    model, w = _model(*_logistic(rng, 300))
    first = model.infer()
    X, y = _logistic(rng, n)
    model.observe(X=X, y=1 - y)
    warm, cold = model.infer(start=first), model.infer()
    assert warm.converged == cold.converged
    assert float(cold[w].kl(warm[w])) < 1e-6


def test_counts_games_and_precisions_start_warm_too() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.integers(0, 10, (2, 200))
    b = np.where(a == b, (b + 1) % 10, b)
    model = hg.Model()
    skill = model.gaussian("skill", 25.0, variance=60.0, size=10)
    noise = model.gamma("noise", 2.0, 2.0)
    model.constrain(model.gaussian("lead", skill[a] - skill[b], variance=40.0) > 0.5)
    model.gaussian("y", skill[a], precision=noise, observed=25 + rng.standard_normal(200))
    model.poisson("k", log_rate=0.05 * skill[b], observed=rng.poisson(3.0, 200))
    first = model.infer(max_sweeps=400)
    again = model.infer(start=first, max_sweeps=400)
    assert again.n_sweeps <= max(3, first.n_sweeps // 2)
    assert float(np.max(first[skill].kl(again[skill]))) < 1e-6


def test_what_is_no_posterior_is_refused() -> None:
    model, _ = _model(*_logistic(np.random.default_rng(8), 10))
    for wrong in (3, "p", model):
        with pytest.raises(ModelError, match="start must be a posterior"):
            model.infer(start=wrong)
