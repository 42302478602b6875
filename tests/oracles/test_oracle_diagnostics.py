"""Effective sample size and Pareto k: free of scale, and right on distributions whose tail is known."""

import numpy as np
import pytest
from scipy.stats import genpareto

from heliograph.oracles.importance.diagnostics import (
    effective_sample_size,
    fit_generalised_pareto,
    pareto_k,
    tail_length,
)


@pytest.mark.parametrize("shift", [-1e5, -460.0, 0.0, 460.0, 1e5])
def test_neither_depends_on_the_scale_of_the_weights(shift):
    log_w = np.random.default_rng(0).standard_normal((3, 2000))
    np.testing.assert_allclose(effective_sample_size(log_w + shift), effective_sample_size(log_w), rtol=1e-9)
    m = tail_length(2000)
    tail = np.sort(log_w, axis=1)[:, -m - 1 :]
    # 1e-6: at an offset of 1e5 a log weight has eleven digits left
    np.testing.assert_allclose(pareto_k(tail + shift), pareto_k(tail), rtol=1e-6, atol=1e-6)


def test_effective_sample_size_at_its_ends():
    log_w = np.full((3, 10), -np.inf)
    log_w[1, 4] = -3.0
    log_w[2] = 7.0
    np.testing.assert_allclose(effective_sample_size(log_w), [0, 1, 10])


@pytest.mark.parametrize("k", [-0.4, -0.1, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5])
def test_the_fit_finds_the_shape_of_generalised_pareto_draws(k):
    rng = np.random.default_rng(1)
    x = np.sort(genpareto.rvs(k, scale=2.0, size=(40, 1000), random_state=rng), axis=1)
    shape, scale = fit_generalised_pareto(x)
    # the asymptotic standard error of k is (1 + k) / sqrt(n) for k > -1/2; the mean of 40 has 1/sqrt(40) of it
    error = (1 + k) / np.sqrt(1000)
    assert abs(shape.mean() - k) < 4 * error / np.sqrt(40) + 0.01
    assert 0.7 < shape.std() / error < 1.4
    assert abs(scale.mean() / 2 - 1) < 0.05


def test_the_fit_does_not_depend_on_the_unit():
    x = np.sort(genpareto.rvs(0.5, size=(4, 500), random_state=np.random.default_rng(2)), axis=1)
    k, scale = fit_generalised_pareto(x)
    k2, scale2 = fit_generalised_pareto(x * 1e-40)
    np.testing.assert_allclose(k2, k, rtol=1e-10)
    np.testing.assert_allclose(scale2, scale * 1e-40, rtol=1e-10)


def test_many_rows_are_fitted_as_one_by_one():
    x = np.sort(genpareto.rvs(0.3, size=(700, 300), random_state=np.random.default_rng(3)), axis=1)
    together = fit_generalised_pareto(x)[0]
    np.testing.assert_array_equal(
        together[[0, 350, 699]], [fit_generalised_pareto(x[i : i + 1])[0][0] for i in (0, 350, 699)]
    )


def test_weights_of_a_proposal_too_narrow_are_found_out():
    rng = np.random.default_rng(4)
    m = tail_length(20_000)

    def k_of(sd):  # target N(0, 1), proposal N(0, sd^2): the weights' tail has k = 1 - sd^2 for sd < 1
        x = sd * rng.standard_normal((20, 20_000))
        log_w = -0.5 * x**2 + 0.5 * (x / sd) ** 2
        return pareto_k(np.sort(log_w, axis=1)[:, -m - 1 :])

    assert (k_of(0.4) > 0.55).all()
    assert k_of(0.4).mean() > 0.7
    assert (k_of(1.5) < 0).all()


def test_equal_weights_and_no_weights_have_no_tail():
    tail = np.stack([np.zeros(50), np.full(50, -np.inf), np.r_[np.full(48, -np.inf), 0.0, 0.0]])
    np.testing.assert_array_equal(pareto_k(tail), [-1, -1, -1])
