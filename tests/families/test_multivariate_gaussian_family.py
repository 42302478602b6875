"""Gaussian vectors against SciPy, textbook formulas and matrices whose inverse is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from heliograph.errors import ModelError
from heliograph.families import Beta, Gamma, Gaussian, MultivariateGaussian, factored_gaussian


# ---- several dimensions -----------------------------------------------------------------------------------------------------
def covariance(rng, shape, d):
    root = rng.normal(size=(*shape, d, d))
    return root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(d)


@pytest.mark.parametrize("shape", [(), (1,), (7,)])
def test_multivariate_gaussian_is_scipys(shape):
    rng = np.random.default_rng(3)
    mean, cov = rng.normal(size=(*shape, 4)), covariance(rng, shape, 4)
    a = MultivariateGaussian(mean, cov)
    np.testing.assert_allclose(a.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(a.covariance, cov, rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(a.covariance, np.swapaxes(a.covariance, -1, -2))
    half = a.whitener()
    np.testing.assert_allclose(np.swapaxes(half, -1, -2) @ half, a.covariance, rtol=1e-12, atol=1e-13)
    x = rng.normal(size=(*shape, 4))
    for i in np.ndindex(shape):
        reference = scipy.stats.multivariate_normal(mean[i], cov[i])
        np.testing.assert_allclose(a.log_density(x)[i], reference.logpdf(x[i]), rtol=1e-10)
        np.testing.assert_allclose(a.entropy()[i], reference.entropy(), rtol=1e-12)
    same = MultivariateGaussian(mean, precision=np.linalg.inv(cov))
    np.testing.assert_allclose(same.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(same.covariance, cov, rtol=1e-9, atol=1e-11)


def test_multivariate_divergence_is_the_textbook_formula():
    rng = np.random.default_rng(4)
    m1, m2, c1, c2 = (
        rng.normal(size=(5, 3)),
        rng.normal(size=(5, 3)),
        covariance(rng, (5,), 3),
        covariance(rng, (5,), 3),
    )
    got = MultivariateGaussian(m1, c1).kl(MultivariateGaussian(m2, c2))
    for i in range(5):
        inverse, gap = np.linalg.inv(c2[i]), m2[i] - m1[i]
        log_ratio = np.linalg.slogdet(c2[i])[1] - np.linalg.slogdet(c1[i])[1]
        true = 0.5 * (np.trace(inverse @ c1[i]) + gap @ inverse @ gap - 3 + log_ratio)
        np.testing.assert_allclose(got[i], true, rtol=1e-10)


def test_one_dimension_of_the_multivariate_is_the_gaussian():
    mean, variance = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    one = MultivariateGaussian(mean[:, None], variance[:, None, None])
    plain = Gaussian(mean, variance)
    for quantity in ("entropy", "log_normaliser"):
        np.testing.assert_allclose(getattr(one, quantity)(), getattr(plain, quantity)(), rtol=1e-13)
    np.testing.assert_allclose(one.log_density([[0.3], [0.4]]), plain.log_density([0.3, 0.4]), rtol=1e-13)
    np.testing.assert_allclose(one.kl(one[::-1]), plain.kl(plain[::-1]), rtol=1e-13)


def test_marginals_are_parts_of_mean_and_covariance():
    rng = np.random.default_rng(5)
    cov = covariance(rng, (3,), 4)
    a = MultivariateGaussian(rng.normal(size=(3, 4)), cov)
    one = a.marginal(2)
    assert isinstance(one, Gaussian)
    np.testing.assert_allclose([one.mean, one.variance], [a.mean[:, 2], a.variance[:, 2]], rtol=1e-12)
    two = a.marginal([3, 1])
    assert isinstance(two, MultivariateGaussian)
    np.testing.assert_allclose(two.mean, a.mean[:, [3, 1]], rtol=1e-9)
    np.testing.assert_allclose(two.covariance, a.covariance[:, [3, 1]][:, :, [3, 1]], rtol=1e-9)
    np.testing.assert_allclose(a.marginal(slice(1, 3)).mean, a.mean[:, 1:3], rtol=1e-9)
    point = MultivariateGaussian.point_mass([1.0, 2.0])
    assert point.marginal(1).is_point and point.marginal(1).mean == 2.0
    assert point.marginal([1, 0]).is_point and point.marginal([1, 0]).mean.tolist() == [2.0, 1.0]
    assert MultivariateGaussian.uniform((), 3).marginal(0).is_uniform
    assert MultivariateGaussian.uniform((2,), 3).marginal([0, 2]).is_uniform.all()


def test_each_entry_of_a_plate_is_proper_or_not_by_itself():
    good, bad, flat = np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((2, 2))
    edge = np.array([[1.0, 1.0], [1.0, 1.0]])  # singular
    plate = MultivariateGaussian.from_naturals((np.ones((4, 2)), np.stack([good, bad, flat, edge])))
    np.testing.assert_array_equal(plate.proper, [True, False, False, False])
    np.testing.assert_allclose(plate.mean[0], 1.0)
    assert np.isnan(plate.mean[1:]).all()
    np.testing.assert_array_equal(plate.variance[1], np.inf)
    np.testing.assert_array_equal(plate.log_normaliser()[1:], 0.0)
    # read as exp(shift'x - x' precision x / 2)
    np.testing.assert_allclose(plate.log_density([1.0, 2.0])[1], 3.0 - 0.5 * (1 + 4 + 2 * 4))
    for i in range(4):
        assert plate[i].proper == plate.proper[i]


def test_an_ill_conditioned_precision_still_gives_its_covariance():
    """The Hilbert matrix of order 6, condition 1.5e7, whose inverse is known in integers."""
    d = 6
    i = np.arange(1, d + 1)
    hilbert = 1.0 / (i[:, None] + i - 1)
    exact = np.round(np.linalg.inv(hilbert))
    a = MultivariateGaussian(np.zeros(d), precision=hilbert)
    np.testing.assert_allclose(a.covariance, exact, rtol=1e-8)  # condition times eps: 3e-9
    np.testing.assert_allclose(MultivariateGaussian(np.zeros(d), hilbert).precision, exact, rtol=1e-8)


def test_a_covariance_that_is_not_one_is_refused_with_the_reason():
    with pytest.raises(ModelError, match="symmetric"):
        MultivariateGaussian([0.0, 0.0], [[1.0, 0.1], [0.2, 1.0]])
    with pytest.raises(ModelError, match=r"positive definite.*eigenvalue is -1"):
        MultivariateGaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ModelError, match="not finite"):
        MultivariateGaussian([0.0, 0.0], precision=[[1.0, np.inf], [np.inf, 1.0]])
    with pytest.raises(ModelError, match="shape"):
        MultivariateGaussian([0.0, 0.0], np.eye(3))
    # rounding of an honest computation is forgiven, and tidied
    cov = np.array([[1.0, 0.3 + 1e-12], [0.3, 1.0]])
    a = MultivariateGaussian([0.0, 0.0], cov)
    np.testing.assert_array_equal(a.precision, a.precision.T)


def test_no_information_and_certainty_have_their_moments():
    flat = MultivariateGaussian.uniform((2,), 3)
    assert np.isnan(flat.mean).all() and (flat.variance == np.inf).all() and not flat.proper.any()
    p = MultivariateGaussian.point_mass([1.0, 2.0])
    np.testing.assert_array_equal(p.covariance, 0.0)
    np.testing.assert_array_equal(np.diagonal(p.precision), np.inf)
    assert (p.precision[0, 1] == 0.0) and p.proper
    np.testing.assert_array_equal((p * MultivariateGaussian([0.0, 0.0], np.eye(2))).mean, [1.0, 2.0])
    assert np.isnan(Gaussian.uniform().mean) and Gaussian.uniform().variance == np.inf
    assert np.isnan(Gamma.uniform().mean) and Gamma.uniform().variance == np.inf
    assert Beta.uniform().mean == 0.5 and Beta.uniform().proper
    assert Gaussian(1.0, 0.0).precision == np.inf and Gamma.point_mass(2.0).rate == np.inf


def test_a_vector_with_known_factors_is_the_one_that_is_factored_anew():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(5, 5))
    precision, shift = a @ a.T + np.eye(5), rng.normal(size=5)
    upper = np.linalg.cholesky(precision).T
    given = factored_gaussian(shift, precision, upper, np.linalg.inv(upper), np.linalg.solve(precision, shift))
    anew = MultivariateGaussian.from_naturals((shift[None], precision[None]))
    other = MultivariateGaussian(np.ones((1, 5)), covariance=np.eye(5)[None])
    assert given.proper.all() and given.shape == anew.shape
    for read in (
        lambda m: m.mean,
        lambda m: m.covariance,
        lambda m: m.log_normaliser(),
        lambda m: m.entropy(),
        lambda m: m.kl(other),
        lambda m: other.kl(m),
        lambda m: m.log_density(np.ones(5)),
    ):
        np.testing.assert_allclose(read(given), read(anew), rtol=1e-11, atol=1e-12)  # rounding of two factorisations


def test_a_message_made_of_a_covariance_keeps_a_root_of_it_in_any_shape_and_no_other_message_has_one():
    rng = np.random.default_rng(5)
    spread = covariance(rng, (6,), 4)
    message = MultivariateGaussian(rng.normal(size=(6, 4)), spread).reshape(2, 3)
    root, inverse = message.root
    assert root @ np.swapaxes(root, -1, -2) == pytest.approx(spread.reshape(2, 3, 4, 4), rel=1e-12)
    assert inverse @ root == pytest.approx(np.broadcast_to(np.eye(4), (2, 3, 4, 4)), abs=1e-12)
    assert message.proper.all() and message.proper.shape == (2, 3)
    assert (message * message).root is None and (message**-1.0).root is None and message[0].root is None
    assert not (message**-1.0).proper.any()


def test_a_message_made_of_a_precision_is_not_changed_with_the_array_that_it_was_made_of():
    precision = covariance(np.random.default_rng(6), (), 3)
    message = MultivariateGaussian(np.zeros(3), precision=precision)
    before = message.precision.copy()
    precision *= 2.0
    assert np.array_equal(message.precision, before)
    assert message.cholesky()[1] == pytest.approx(np.linalg.cholesky(before), rel=1e-12)


def test_kl_of_many_numbers_is_that_of_each():
    rng = np.random.default_rng(7)
    n = 20_000
    a, b = (Gaussian(rng.normal(size=n), rng.uniform(0.5, 2.0, n)) for _ in range(2))
    truth = 0.5 * (a.variance / b.variance - 1 - np.log(a.variance / b.variance) + (a.mean - b.mean) ** 2 / b.variance)
    assert a.kl(b) == pytest.approx(truth, rel=1e-9, abs=1e-13)
    improper = Gaussian.from_naturals((b.naturals[0], np.where(np.arange(n) == 9, -1.0, b.naturals[1])))
    assert np.isposinf(a.kl(improper)[9]) and a.kl(improper)[8] == a.kl(b)[8]
