"""A Gaussian of two numbers under an interval with logistic noise: against plain grids, and its limits."""

import numpy as np
import pytest
from scipy.special import expit

from heliograph.factors import BetweenCuts
from heliograph.families import MultivariateGaussian


def on_a_grid(m, v, n=1001, reach=9.0):
    """Evidence, mean and covariance under sigmoid(a) - sigmoid(-b), cut at a + b > 0, by the rectangle rule."""
    t = np.linspace(-reach, reach, n)
    t = np.stack(np.meshgrid(t, t, indexing="ij")).reshape(2, -1)
    x = m[:, None] + np.linalg.cholesky(v) @ t
    width = np.maximum(x.sum(axis=0), 0.0)
    p = np.exp(-0.5 * (t**2).sum(axis=0)) / (2 * np.pi) * expit(x[0]) * expit(x[1]) * -np.expm1(-width)
    z = p.sum() * (2 * reach / (n - 1)) ** 2
    mean = x @ p / p.sum()
    return np.log(z), mean, (x - mean[:, None]) * p @ (x - mean[:, None]).T / p.sum()


@pytest.mark.parametrize(
    ("m", "v"),
    [
        ([1.0, 2.0], [[0.5, -0.3], [-0.3, 0.8]]),
        ([-3.0, 1.5], [[4.0, 3.0], [3.0, 6.0]]),
        ([4.0, -3.5], [[1.0, -0.98], [-0.98, 1.0]]),  # a score known badly between cuts known well
        ([-0.4, 0.1], [[0.05, 0.01], [0.01, 0.05]]),  # cuts that are out of order on average
        ([0.0, 30.0], [[30.0, -5.0], [-5.0, 20.0]]),
    ],
)
def test_moments_are_those_of_a_grid(m, v):
    cavity = MultivariateGaussian(np.array([m]), np.array([v]))
    log_z, mean, covariance = on_a_grid(np.array(m), np.array(v))
    f = BetweenCuts()
    belief = f.belief("ends", {"ends": cavity})
    assert f.log_z({"ends": cavity})[0] == pytest.approx(log_z, abs=1e-5)
    np.testing.assert_allclose(belief.mean[0], mean, atol=1e-5)
    np.testing.assert_allclose(belief.covariance[0], covariance, atol=2e-5)


def test_the_two_ends_may_change_places():
    rng = np.random.default_rng(0)
    m, root = rng.standard_normal((50, 2)), rng.standard_normal((50, 2, 2))
    v = root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(2)
    one = BetweenCuts().message("ends", {"ends": MultivariateGaussian(m, v)})
    other = BetweenCuts().message("ends", {"ends": MultivariateGaussian(m[:, ::-1], v[:, ::-1, ::-1])})
    np.testing.assert_allclose(one.naturals[0], other.naturals[0][:, ::-1], rtol=1e-9, atol=1e-9)


def test_a_point_mass_is_the_limit_of_narrow_messages():
    m = np.array([[1.0, 0.5], [-2.0, 2.3], [6.0, 3.0]])
    f = BetweenCuts()
    at = {"ends": MultivariateGaussian.point_mass(m)}
    near = {"ends": MultivariateGaussian(m, 1e-7 * np.eye(2)[None])}
    np.testing.assert_allclose(f.log_z(at), np.log(expit(m[:, 0]) - expit(-m[:, 1])), rtol=1e-12)
    np.testing.assert_allclose(f.log_z(near), f.log_z(at), atol=1e-5)
    for a, b in zip(f.message("ends", near).naturals, f.message("ends", at).naturals, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_the_message_is_the_slope_of_the_evidence():
    """The mean moves by the covariance times the gradient of log Z: both are integrals of their own."""
    m, v, h = np.array([0.3, -0.2]), np.array([[0.9, 0.2], [0.2, 0.4]]), 1e-4
    f = BetweenCuts()
    log_z = [
        [f.log_z({"ends": MultivariateGaussian((m + s * h * e)[None], v[None])})[0] for s in (1, -1)] for e in np.eye(2)
    ]
    slope = np.array([up - down for up, down in log_z]) / (2 * h)
    belief = f.belief("ends", {"ends": MultivariateGaussian(m[None], v[None])})
    np.testing.assert_allclose(belief.mean[0], m + v @ slope, atol=1e-6)
