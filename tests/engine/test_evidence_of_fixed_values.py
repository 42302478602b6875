"""The evidence where a factor fixes a variable: rows of zeros, sums of known values, exact observations of expressions."""

import numpy as np
import pytest
from scipy.stats import norm

import heliograph as hg


def test_a_row_of_zeros_and_a_shift():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(1), covariance=np.eye(1))
    z = np.array([[0.0], [1.0]]) @ w
    model.gaussian("y", z + np.array([2.0, 0.0]), variance=1.0, observed=[3.0, 1.0])
    assert model.infer().log_evidence == pytest.approx(norm.logpdf(3, 2, 1) + norm.logpdf(1, 0, np.sqrt(2)), abs=1e-10)


def test_a_row_of_zeros_and_a_scale():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(1), covariance=np.eye(1))
    z = np.array([[0.0], [1.0]]) @ w
    model.gaussian("y", z * np.array([3.0, 2.0]) + 1.0, variance=1.0, observed=[3.0, 1.0])
    assert model.infer().log_evidence == pytest.approx(norm.logpdf(3, 1, 1) + norm.logpdf(1, 1, np.sqrt(5)), abs=1e-10)


def test_a_known_value_in_sums_and_products():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, observed=2.0)
    a = model.gaussian("a", 0.0, variance=1.0)
    model.gaussian("y", x + 1.0, variance=1.0, observed=[1.0, 2.0])
    model.gaussian("u", x * a, variance=1.0, observed=3.0)
    truth = norm.logpdf(2) + norm.logpdf([1, 2], 3, 1).sum() + norm.logpdf(3, 0, np.sqrt(5))
    assert model.infer().log_evidence == pytest.approx(truth, abs=1e-10)


def test_an_exact_observation_of_an_expression():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    model.observe(model.exp(x), 2.0)
    model.gaussian("y", x * 2.0, variance=1.0, observed=1.0)
    log2 = np.log(2.0)
    truth = norm.logpdf(log2) - log2 + norm.logpdf(1.0, 2 * log2, 1.0)  # the density of exp(x) at 2
    assert model.infer().log_evidence == pytest.approx(truth, abs=1e-10)
