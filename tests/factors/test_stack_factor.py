"""Scalars side by side as one vector, against the dense joint Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from heliograph.errors import UnsupportedError
from heliograph.factors import Stack
from heliograph.families import Gaussian, MultivariateGaussian


def world(k=3):
    rng = np.random.default_rng(0)
    root = rng.standard_normal((k, k))
    means, variances = rng.standard_normal(k), rng.uniform(0.2, 2.0, k)
    out_mean, out_covariance = rng.standard_normal(k), root @ root.T + 0.2 * np.eye(k)
    incoming = {f"x{i}": Gaussian(means[i], variances[i]) for i in range(k)}
    return (
        {**incoming, "out": MultivariateGaussian(out_mean, out_covariance)},
        means,
        variances,
        out_mean,
        out_covariance,
    )


@pytest.mark.parametrize("k", [1, 2, 4])
def test_beliefs_are_marginals_of_the_dense_joint(k):
    incoming, means, variances, out_mean, out_covariance = world(k)
    precision = np.linalg.inv(out_covariance) + np.diag(1 / variances)
    covariance = np.linalg.inv(precision)
    mean = covariance @ (np.linalg.solve(out_covariance, out_mean) + means / variances)
    f = Stack(k)
    for i in range(k):
        belief = f.belief(f"x{i}", incoming)
        np.testing.assert_allclose([belief.mean, belief.variance], [mean[i], covariance[i, i]], rtol=1e-10)
    belief = f.belief("out", incoming)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(belief.covariance, covariance, rtol=1e-9, atol=1e-12)
    expected = multivariate_normal.logpdf(out_mean, means, out_covariance + np.diag(variances))
    np.testing.assert_allclose(f.log_z(incoming), expected, rtol=1e-11)


def test_the_message_to_a_scalar_is_the_vectors_marginal_when_the_others_are_unknown():
    incoming, _, _, out_mean, out_covariance = world()
    vague = {**incoming, "x0": Gaussian.uniform(), "x2": Gaussian.uniform()}
    sent = Stack(3).message("x1", vague)
    np.testing.assert_allclose([sent.mean, sent.variance], [out_mean[1], out_covariance[1, 1]], rtol=1e-10)


def test_a_known_scalar_conditions_the_others():
    incoming, _, _, out_mean, out_covariance = world()
    at = Stack(3).message("x1", {**incoming, "x0": Gaussian.point_mass(0.7)})
    near = Stack(3).message("x1", {**incoming, "x0": Gaussian(0.7, 1e-12)})
    np.testing.assert_allclose(at.naturals, near.naturals, rtol=1e-9)
    both = Stack(3).message("x1", {**incoming, "x0": Gaussian.point_mass(0.7), "x2": Gaussian.point_mass(-0.2)})
    rest = [0, 2]
    gain = out_covariance[1, rest] @ np.linalg.inv(out_covariance[np.ix_(rest, rest)])
    np.testing.assert_allclose(both.mean, out_mean[1] + gain @ (np.array([0.7, -0.2]) - out_mean[rest]), rtol=1e-10)


def test_a_known_vector_gives_known_scalars_and_all_known_scalars_a_known_vector():
    incoming, *_ = world()
    fixed = {**incoming, "out": MultivariateGaussian.point_mass([1.0, 2.0, 3.0])}
    assert [float(Stack(3).message(f"x{i}", fixed).point) for i in range(3)] == [1.0, 2.0, 3.0]
    points = {**incoming, **{f"x{i}": Gaussian.point_mass(float(i)) for i in range(3)}}
    np.testing.assert_array_equal(Stack(3).message("out", points).point, [0.0, 1.0, 2.0])
    with pytest.raises(UnsupportedError, match="some entries"):
        Stack(3).message("out", {**points, "x0": Gaussian(0.0, 1.0)})


def test_a_uniform_vector_says_nothing():
    incoming, *_ = world()
    uniform = {**incoming, "out": MultivariateGaussian.uniform((), 3)}
    for i in range(3):
        assert Stack(3).message(f"x{i}", uniform).is_uniform


def test_an_improper_vector_that_the_scalars_do_not_mend_gives_a_uniform_message():
    incoming, *_ = world(2)
    precision = np.array([[1.0, 0.5], [0.5, -9.0]])
    wild = MultivariateGaussian.from_naturals((np.zeros(2), precision))
    assert Stack(2).message("x0", {**incoming, "x1": Gaussian(0.0, 1.0), "out": wild}).is_uniform
    mended = Stack(2).message("x0", {**incoming, "x1": Gaussian(0.0, 0.1), "out": wild})
    np.testing.assert_allclose(mended.precision, 1.0 - 0.25 / (10.0 - 9.0), rtol=1e-12)
