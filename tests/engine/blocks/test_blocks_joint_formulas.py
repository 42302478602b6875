"""Products, maxima and switches of numbers that are dependent already: one site of two or three numbers, against grids."""

import numpy as np
import pytest
from by_grid import agree, grid
from by_hand_vectors import expectation_propagation
from scipy.special import expit, logsumexp

import heliograph as hg
from heliograph.engine.forms.conditioning import ConditionedForm
from heliograph.engine.forms.product import JointProduct
from heliograph.factors import Product
from heliograph.factors.integrals.joint_product import free_product, product_triple
from heliograph.families import Gaussian, MultivariateGaussian


def pair(model):
    """Two dependent unknowns, as a model and on a grid."""
    eps, log_weight = grid(2)
    a = 0.5 + 1.2 * eps[:, 0]
    b = -0.3 + 0.7 * a + 0.8 * eps[:, 1]
    first = model.gaussian("a", 0.5, variance=1.44)
    second = model.gaussian("b", -0.3 + 0.7 * first, variance=0.64)
    return (first, second), (a, b), log_weight


def log_normal(x, variance):
    return -0.5 * x**2 / variance - 0.5 * np.log(2 * np.pi * variance)


def moments(a, b, log_weight):
    total = logsumexp(log_weight)
    w = np.exp(log_weight - total)
    points = np.stack([a, b], axis=1)
    mean = w @ points
    return mean, np.sqrt(w @ (points - mean) ** 2), total


@pytest.mark.parametrize("noise", [0.5, 0.02])
@pytest.mark.parametrize("with_a", [True, False])
def test_a_product_of_dependent_numbers_with_gaussian_noise_is_exact(with_a, noise):
    model = hg.Model()
    (a, b), (x, y), log_weight = pair(model)
    # with a beside it, the product is in the block of its factors; by itself it is not
    model.gaussian("seen", a * b + a if with_a else a * b, variance=noise, observed=1.3)
    posterior = model.infer()
    mean, sd, log_evidence = moments(x, y, log_weight + log_normal(1.3 - x * y - with_a * x, noise))
    agree(posterior, (a, b), mean, sd, z=1e-4, ratio=1e-4)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-4)


def test_several_products_of_one_pair_count_together():
    rng = np.random.default_rng(0)
    eps, log_weight = grid(2)
    x = 2.0 + 0.5 * eps[:, 0]
    y = 0.4 + 0.5 * x + 0.4 * eps[:, 1]
    model = hg.Model()
    a = model.gaussian("a", 2.0, variance=0.25)
    b = model.gaussian("b", 0.4 + 0.5 * a, variance=0.16)
    c = rng.uniform(0.5, 1.5, 4)
    noisy = model.gaussian("noisy", a * c, variance=0.04)  # four numbers that all depend on a, and so on b
    seen = 2.0 * 1.7 * c + np.array([0.3, -0.4, 0.2, 0.5])
    model.gaussian("seen", noisy * b, variance=0.3, observed=seen)
    posterior = model.infer()
    # given a and b, what is seen is N(a c b, 0.04 b^2 + 0.3)
    for k in range(4):
        log_weight = log_weight + log_normal(seen[k] - x * y * c[k], 0.04 * y**2 + 0.3)
    mean, sd, log_evidence = moments(x, y, log_weight)
    agree(posterior, (a, b), mean, sd, z=0.02, ratio=0.03)  # EP's own error
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=0.03)
    # and the fixed point itself, over a, b and the four deviations
    rows, likelihoods = [], []
    for k in range(4):
        row = np.zeros((2, 6))
        row[0, 0], row[0, 2 + k], row[1, 1] = c[k], 1.0, 1.0
        rows.append(row)
        likelihoods.append(lambda z, k=k: log_normal(seen[k] - z[:, 0] * z[:, 1], 0.3))
    prior = np.diag([0.25, 0.0, 0.04, 0.04, 0.04, 0.04])
    prior[0, 1] = prior[1, 0] = 0.125
    prior[1, 1] = 0.0625 + 0.16
    start = np.array([2.0, 1.4, 0, 0, 0, 0])
    mean, covariance, log_evidence = expectation_propagation(start, prior, rows, likelihoods)
    agree(posterior, (a, b), mean[:2], np.sqrt(np.diag(covariance)[:2]), z=1e-3, ratio=1e-3)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-3)


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_the_larger_of_two_dependent_numbers(noise):
    model = hg.Model()
    (a, b), (x, y), log_weight = pair(model)
    model.gaussian("seen", model.maximum(a, b), variance=noise, observed=0.9)
    posterior = model.infer()
    mean, sd, log_evidence = moments(x, y, log_weight + log_normal(0.9 - np.maximum(x, y), noise))
    agree(posterior, (a, b), mean, sd, z=2e-3, ratio=2e-3)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=2e-3)


def test_a_switch_between_two_dependent_numbers():
    model = hg.Model()
    (a, b), (x, y), log_weight = pair(model)
    which = model.bernoulli("which", 0.3)
    model.gaussian("seen", model.select(which, a, b), variance=0.2, observed=-0.4)
    posterior = model.infer()
    both = np.log(0.3) + log_normal(-0.4 - x, 0.2), np.log(0.7) + log_normal(-0.4 - y, 0.2)
    mean, sd, log_evidence = moments(x, y, log_weight + np.logaddexp(*both))
    agree(posterior, (a, b), mean, sd, z=1e-4, ratio=1e-4)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-4)
    odds = logsumexp(log_weight + both[0]) - logsumexp(log_weight + both[1])
    assert float(posterior[which].mean) == pytest.approx(expit(odds), abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_moments_of_a_product_agree_with_a_fine_integral_over_b(seed):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((3, 3))
    covariance = half @ half.T + 0.01 * np.eye(3)
    mean = rng.standard_normal(3)
    found = product_triple(mean[None], covariance[None])
    # density of (a, b) on a fine grid; the product is put in
    line = np.linspace(-14.0, 14.0, 901)
    a, b = np.meshgrid(mean[0] + line * half[0].std() * 2, mean[1] + line * half[1].std() * 2, indexing="ij")
    gap = np.stack([a - mean[0], b - mean[1], a * b - mean[2]], axis=-1)
    log_p = -0.5 * np.einsum("...i,ij,...j->...", gap, np.linalg.inv(covariance), gap)
    log_p -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    w = np.exp(log_p - log_p.max())
    cell = (a[1, 0] - a[0, 0]) * (b[0, 1] - b[0, 0])
    assert found.log_z[0] == pytest.approx(log_p.max() + np.log(w.sum() * cell), abs=1e-5)
    w /= w.sum()
    x = np.stack([a, b, a * b])
    first = (w * x).sum(axis=(1, 2))
    second = np.einsum("ij,kij,lij->kl", w, x - first[:, None, None], x - first[:, None, None])
    sd = np.sqrt(np.diag(second))
    np.testing.assert_allclose((found.mean[0] - first) / sd, 0.0, atol=1e-4)
    np.testing.assert_allclose((found.covariance[0] - second) / np.outer(sd, sd), 0.0, atol=1e-3)


def test_moments_of_a_product_of_which_nothing_is_known():
    mean, covariance = np.array([[1.0, -2.0]]), np.array([[[1.0, 0.5], [0.5, 2.0]]])
    found = free_product(mean, covariance)
    x, w = np.polynomial.hermite_e.hermegauss(12)
    e = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    w = np.outer(w, w).reshape(-1) / w.sum() ** 2
    points = mean[0] + e @ np.linalg.cholesky(covariance[0]).T
    points = np.column_stack([points, points.prod(axis=1)])
    first = w @ points
    np.testing.assert_allclose(found.mean[0], first, rtol=1e-10)
    np.testing.assert_allclose(found.covariance[0], (points - first).T @ ((points - first) * w[:, None]), rtol=1e-10)


def test_two_ways_to_the_same_message_agree():
    # without correlation a joint form says what the factor itself says of each number, and both forms agree
    rng = np.random.default_rng(3)
    mean, sd = rng.standard_normal((5, 2)), rng.uniform(0.3, 2.0, (5, 2))
    out = Gaussian.from_mean_variance(rng.standard_normal(5), rng.uniform(0.1, 2.0, 5))
    apart = {"a": Gaussian.from_mean_variance(mean[:, 0], sd[:, 0] ** 2)}
    apart |= {"b": Gaussian.from_mean_variance(mean[:, 1], sd[:, 1] ** 2), "out": out}
    joint = {"a+b": MultivariateGaussian(mean, sd[:, :, None] ** 2 * np.eye(2)), "out": out}
    own, forms = Product(), (JointProduct(("a", "b")), ConditionedForm(Product(), ("a", "b")))
    for form in forms:
        np.testing.assert_allclose(form.log_z(joint), own.log_z(apart), atol=1e-8)
        belief = form.belief("a+b", joint)
        for k, port in enumerate(("a", "b")):
            expected = own.belief(port, apart)
            np.testing.assert_allclose(belief.mean[:, k], expected.mean, atol=1e-7)
            np.testing.assert_allclose(belief.covariance[:, k, k], expected.variance, rtol=1e-6)
        sent, expected = form.message("out", joint), own.message("out", apart)
        np.testing.assert_allclose(sent.naturals[1], expected.naturals[1], rtol=1e-5, atol=1e-7)
    both = [form.belief("a+b", joint).covariance for form in forms]
    np.testing.assert_allclose(both[0], both[1], atol=1e-6)
