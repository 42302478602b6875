"""Products of a matrix and a vector that are known exactly: conditioned on, and never ignored."""

import numpy as np
import pytest

import heliograph as hg

X = np.array([[1.0, 2.0, 0.5], [1.0, -1.0, 0.3]])
Y = np.array([1.0, 2.0])
PRIOR = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 1.5]])


@hg.factor(output=hg.Gaussian)
def sinh(z):
    return np.sinh(z)


def conditioned(y):
    """Mean and covariance of N(0, PRIOR) given X w = y."""
    gain = PRIOR @ X.T @ np.linalg.inv(X @ PRIOR @ X.T)
    return gain @ y, PRIOR - gain @ X @ PRIOR


@pytest.mark.parametrize("structure", ["auto", "joint", "factorised"])
@pytest.mark.parametrize("through", [False, True])
def test_a_vector_is_conditioned_on_products_that_are_observed(structure, through):
    model = hg.Model()
    w = model.gaussian("w", np.zeros(3), covariance=PRIOR)
    model.observe(sinh(X @ w) if through else X @ w, Y)
    posterior = model.infer(structure=structure, seed=0)
    mean, covariance = conditioned(np.arcsinh(Y) if through else Y)
    np.testing.assert_allclose(posterior[w].mean, mean, atol=1e-6)
    np.testing.assert_allclose(posterior[w].covariance, covariance, atol=1e-6)


def test_a_vector_of_which_every_product_is_known_is_a_point():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.observe(np.array([[1.0, 1.0], [1.0, -1.0]]) @ w, np.array([3.0, 1.0]))
    np.testing.assert_allclose(model.infer()[w].mean, [2.0, 1.0], atol=1e-9)
