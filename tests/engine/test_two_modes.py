"""A black box whose tilted distribution is wider than its cavity: its message is improper, and right."""

import numpy as np
import pytest

import heliograph as hg


@hg.factor(output=hg.Gaussian)
def square(z):
    return z**2


@pytest.mark.parametrize(("operator", "oracle"), [("ask", "quadrature"), ("ask", None), ("learned", None)])
def test_a_belief_of_two_modes_is_as_wide_as_the_truth(operator, oracle):
    mean, seen = np.array([0.1, 0.5, 1.0]), np.array([4.0, 1.0, 0.2])
    model = hg.Model()
    x = model.gaussian("x", mean, variance=0.25)
    model.gaussian("y", square(x), variance=0.1, observed=seen)
    belief = model.infer(operator=operator, oracle=oracle)[x]
    grid = np.linspace(-6, 6, 20001)[:, None]
    log_weight = -0.5 * (grid - mean) ** 2 / 0.25 - 0.5 * (seen - grid**2) ** 2 / 0.1
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    truth = (weight * grid).sum(axis=0)
    variance = (weight * (grid - truth) ** 2).sum(axis=0)
    assert variance[0] > 8 * 0.25  # wider than the prior
    assert np.all(np.abs(belief.mean - truth) < 0.01 * np.sqrt(variance))  # KL 1e-3 allows 0.045 of a deviation
    assert np.allclose(belief.variance, variance, rtol=0.02)
