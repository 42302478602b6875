"""`model.chain` against dense algebra and against the same model written entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import ModelError, UnsupportedError


def dense_gaussian(precision, shift):
    covariance = np.linalg.inv(precision)
    return covariance @ shift, np.diag(covariance)


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_a_local_level_equals_the_dense_posterior(n):
    rng = np.random.default_rng(n)
    y = rng.standard_normal(n).cumsum()
    model = hg.Model()
    x = model.chain("x", n, hg.Gaussian(1.0, 4.0), lambda b: model.gaussian("x", 0.9 * b, variance=0.5))
    model.gaussian("y", x, variance=2.0, observed=y)
    a = np.eye(n) - 0.9 * np.eye(n, k=-1)
    d = np.diag(np.r_[0.25, np.full(n - 1, 2.0)])
    shift = y / 2.0 + a.T @ d @ np.r_[1.0, np.zeros(n - 1)]
    mean, variance = dense_gaussian(a.T @ d @ a + np.eye(n) / 2.0, shift)
    posterior = model.infer()
    np.testing.assert_allclose(posterior[x].mean, mean, rtol=1e-9)
    np.testing.assert_allclose(posterior[x].variance, variance, rtol=1e-9)


def test_an_autoregression_of_order_two_looks_back_twice():
    rng = np.random.default_rng(0)
    n = 30
    y = rng.standard_normal(n)
    model = hg.Model()
    x = model.chain(
        "x",
        n,
        hg.Gaussian(np.zeros(2), np.ones(2)),
        lambda one, two: model.gaussian("x", 0.5 * one - 0.3 * two, variance=0.1),
    )
    model.gaussian("y", x, variance=0.2, observed=y)
    a = np.eye(n) - 0.5 * np.eye(n, k=-1) + 0.3 * np.eye(n, k=-2)
    a[1, 0] = 0.0
    d = np.diag(np.r_[1.0, 1.0, np.full(n - 2, 10.0)])
    mean, variance = dense_gaussian(a.T @ d @ a + 5.0 * np.eye(n), 5.0 * y)
    posterior = model.infer()
    np.testing.assert_allclose(posterior[x].mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(posterior[x].variance, variance, rtol=1e-9)


def test_a_plate_of_chains_equals_each_of_them():
    rng = np.random.default_rng(0)
    y = rng.standard_normal((6, 3))
    model = hg.Model()
    x = model.chain("x", 6, hg.Gaussian(np.zeros(3), np.ones(3)), lambda b: model.gaussian("x", b, variance=0.5))
    model.gaussian("y", x, variance=1.0, observed=y)
    posterior = model.infer()
    for k in range(3):
        alone = hg.Model()
        z = alone.chain("z", 6, hg.Gaussian(0.0, 1.0), lambda b, alone=alone: alone.gaussian("z", b, variance=0.5))
        alone.gaussian("y", z, variance=1.0, observed=y[:, k])
        np.testing.assert_allclose(posterior[x].mean[:, k], alone.infer()[z].mean, rtol=1e-9)


def test_a_step_may_use_other_variables_and_black_box_data():
    model = hg.Model()
    drift = model.gaussian("drift", 0.0, variance=1.0)
    x = model.chain(
        "x", 4, lambda: model.gaussian("x", drift, variance=1.0), lambda b: model.gaussian("x", b + drift, variance=1.0)
    )
    model.gaussian("y", x[3], variance=1.0, observed=8.0)
    # x3 = 4 drift + four unit noises; y = x3 + noise
    posterior = model.infer()
    assert posterior[drift].mean == pytest.approx(4 * 8.0 / (16 + 4 + 1), rel=1e-10)


def test_a_chain_that_is_written_wrongly_is_told_what_to_write():
    model = hg.Model()
    with pytest.raises(ModelError, match=r"model\.gaussian\('x', before"):
        model.chain("x", 3, hg.Gaussian(0.0, 1.0), lambda b: b + 1.0)
    with pytest.raises(ModelError, match="at least 2"):
        model.chain("x", 1, hg.Gaussian(np.zeros(2), np.ones(2)), lambda a, b: model.gaussian("x", a, variance=1.0))
    with pytest.raises(ModelError, match="as many along its"):
        model.chain("x", 3, hg.Gaussian(0.0, 1.0), lambda a, b: model.gaussian("x", a - b, variance=1.0))
    with pytest.raises(UnsupportedError, match="its start is Gaussian, but its step makes Bernoulli"):
        model.chain("x", 3, hg.Gaussian(0.0, 1.0), lambda b: model.bernoulli("x", probit=b))
    with pytest.raises(ModelError, match="its start is a message"):
        model.chain("x", 3, 0.0, lambda b: model.gaussian("x", b, variance=1.0))
    with pytest.raises(ModelError, match="must take the entry before"):
        model.chain("x", 3, hg.Gaussian(0.0, 1.0), lambda: None)
    with pytest.raises(ModelError, match=r"observed= to model\.chain"):
        model.chain("x", 3, hg.Gaussian(0.0, 1.0), lambda b: model.gaussian("x", b, variance=1.0, observed=[1.0, 2.0]))
    # nothing of these is left behind
    model.chain("x", 3, hg.Gaussian(0.0, 1.0), lambda b: model.gaussian("x", b, variance=1.0))
    assert [n.name for n in model.graph.nodes] == ["x"]


def test_a_chain_of_many_entries_is_a_few_plates():
    model = hg.Model()
    model.chain("x", 100_000, hg.Categorical([0.5, 0.5]), lambda b: model.categorical("x", np.eye(2), given=b))
    assert len(model.graph.nodes) == 1 and len(model.graph.plates) == 2


def test_a_chain_is_written_anew_with_other_observed_values():
    model = hg.Model()
    x = model.chain("x", 5, hg.Gaussian(0.0, 1.0), lambda b: model.gaussian("x", b, variance=0.5))
    model.gaussian("y", x, variance=1.0, observed=np.arange(5.0))
    first = model.infer()[x].mean
    model.observe(y=np.zeros(5))
    np.testing.assert_allclose(model.infer()[x].mean, 0.0, atol=1e-12)
    model.observe(y=np.arange(5.0))
    np.testing.assert_allclose(model.infer()[x].mean, first, rtol=1e-12)
