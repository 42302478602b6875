"""Ridge regression: closed-form leave-one-out and evidence against brute force."""

import numpy as np
import pytest

from heliograph.errors import ModelError
from heliograph.regression import bayesian_linear, ridge


def problem(n, d, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    x = np.sqrt(2 / d) * np.cos(z @ rng.normal(size=(2, d)) + rng.uniform(0, 2 * np.pi, d))
    return x, np.stack([np.sin(z[:, 0]), 3 * z[:, 1]], axis=1) + 0.01 * rng.normal(size=(n, 2))


SIZES = [(40, 10), (20, 20), (25, 60)]


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("strength", [1e-6, 1e-3, 1.0])
def test_weights_are_the_normal_equations(n, d, strength):
    x, y = problem(n, d)
    dense = np.linalg.solve(x.T @ x + strength * np.eye(d), x.T @ y)
    np.testing.assert_allclose(ridge.fit(x, y, strength), dense, atol=1e-7 * np.abs(dense).max())


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("strength", [1e-6, 1e-3, 1.0])
def test_leave_one_out_equals_leaving_each_row_out(n, d, strength):
    x, y = problem(n, d)
    closed = ridge.leave_one_out(ridge.spectrum(x, y), strength)
    for i in range(n):
        rest = np.arange(n) != i
        brute = y[i] - x[i] @ ridge.fit(x[rest], y[rest], strength)
        np.testing.assert_allclose(closed[i], brute, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_the_profiled_evidence_is_the_largest_of_bayesian_regression_at_that_ratio(n, d):
    x, y = problem(n, d)
    best = ridge.profiled_evidence(ridge.spectrum(x, y), 1e-3)
    for q in range(2):
        noises = np.geomspace(1e-8, 1e2, 2001)
        found = max(
            float(bayesian_linear.log_evidence(bayesian_linear.fit(x, y[:, q], s / 1e-3, s))[0]) for s in noises[::200]
        )
        assert found <= best[q] + 1e-9
    noise = np.mean(y * (y - x @ np.linalg.solve(x.T @ x + 1e-3 * np.eye(d), x.T @ y)), axis=0)
    at = [
        float(bayesian_linear.log_evidence(bayesian_linear.fit(x, y[:, q], noise[q] / 1e-3, noise[q]))[0])
        for q in (0, 1)
    ]
    np.testing.assert_allclose(at, best, rtol=1e-8)


@pytest.mark.parametrize("criterion", ["leave-one-out", "evidence"])
def test_selection_finds_the_map_and_the_ridge_that_made_the_targets(criterion):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 1))
    centres = np.linspace(-3, 3, 30)

    def bumps(width):
        return lambda rows: np.exp(-0.5 * ((rows - centres) / width) ** 2)

    maps = [bumps(w) for w in (0.01, 0.7, 100.0)]
    y = np.sin(3 * z) + 0.05 * rng.normal(size=(200, 1))
    chosen = ridge.select(maps, z, y, (1e-12, 1e-2, 1e4), criterion)
    assert chosen.index == 1
    assert chosen.ridge == 1e-2
    assert chosen.scores.shape == (3, 3)


def test_selection_does_not_depend_on_the_units_of_an_output():
    x, y = problem(60, 15)
    maps = [lambda rows: rows, lambda rows: rows**2]
    a = ridge.select(maps, x, y)
    b = ridge.select(maps, x, y * np.array([1.0, 1e6]))
    assert (a.index, a.ridge) == (b.index, b.ridge)


def test_an_unknown_criterion_is_refused():
    with pytest.raises(ModelError, match="leave-one-out"):
        ridge.select([], None, np.zeros((2, 1)), criterion="luck")
