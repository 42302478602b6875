"""Bernoulli, Categorical and Dirichlet against enumeration and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.special import logsumexp

from heliograph.errors import ContradictionError, ImproperError, ModelError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet


# ---- two values, K values: enumeration --------------------------------------------------------------------------------------
def test_bernoulli_is_what_enumeration_says():
    p, q = np.array([0.2, 0.9, 1e-9]), np.array([0.5, 0.3, 0.2])
    a, b = Bernoulli(p), Bernoulli(q)
    np.testing.assert_allclose(a.p, p, rtol=1e-15)
    np.testing.assert_allclose((a * b).p, p * q / (p * q + (1 - p) * (1 - q)), rtol=1e-14)
    np.testing.assert_allclose(a.kl(b), p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)), rtol=1e-13)
    np.testing.assert_allclose(a.entropy(), -p * np.log(p) - (1 - p) * np.log1p(-p), rtol=1e-14)
    np.testing.assert_allclose(a.variance, p * (1 - p), rtol=1e-14)
    np.testing.assert_allclose(np.exp(a.log_density(1)) + np.exp(a.log_density(0)), 1.0, rtol=1e-15)
    np.testing.assert_allclose(a.log_normaliser(), np.log1p(p / (1 - p)), rtol=1e-14)
    np.testing.assert_array_equal(a.log_density(2), -np.inf)
    assert float(Bernoulli.uniform().log_normaliser()) == pytest.approx(np.log(2))


def test_bernoulli_log_odds_go_where_probabilities_cannot():
    a = Bernoulli.from_log_odds([800.0, -800.0, np.inf, -np.inf])
    np.testing.assert_array_equal(a.is_point, [False, False, True, True])
    np.testing.assert_array_equal(a.point[2:], [1.0, 0.0])
    np.testing.assert_array_equal(a.log_odds, [800.0, -800.0, np.inf, -np.inf])
    np.testing.assert_array_equal(a.log_density(1), [0.0, -800.0, 0.0, -np.inf])
    np.testing.assert_allclose(a[:2].kl(a[1::-1]), 800.0)
    assert Bernoulli([0.0, 1.0]).is_point.all()
    with pytest.raises(ContradictionError):
        Bernoulli(0.0) * Bernoulli(1.0)
    with pytest.raises(ModelError):
        Bernoulli.from_log_odds(np.nan)


def test_divergence_from_certainty_is_minus_the_log_probability():
    b = Bernoulli([0.25, 0.25, 1.0, 0.0])
    a = Bernoulli.point_mass([1.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(a.kl(b), [np.log(4), -np.log(0.75), 0.0, np.inf])
    np.testing.assert_array_equal(b[:2].kl(a[:2]), np.inf)
    k = Categorical([[0.25, 0.75, 0.0]] * 2)
    np.testing.assert_allclose(Categorical.point_mass([0, 2], 3).kl(k), [np.log(4), np.inf])


def test_categorical_is_what_enumeration_says():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), (2, 5))
    a, b = Categorical(p), Categorical(q)
    np.testing.assert_allclose(a.p, p, rtol=1e-14)
    np.testing.assert_allclose((a * b).p, p * q / (p * q).sum(-1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(a.kl(b), (p * np.log(p / q)).sum(-1), rtol=1e-12)
    np.testing.assert_allclose(a.entropy(), -(p * np.log(p)).sum(-1), rtol=1e-13)
    np.testing.assert_allclose((a * b).log_normaliser(), np.log((p * q).sum(-1)), rtol=1e-12)
    np.testing.assert_allclose((a * b).log_normaliser(), logsumexp((a * b).naturals[0], axis=-1), rtol=1e-14)
    for k in range(4):
        np.testing.assert_allclose(a.log_density(k), np.log(p[:, k]), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(a.log_density(4), -np.inf)
    assert float(Categorical.uniform((), 4).log_normaliser()) == pytest.approx(np.log(4))


def test_impossible_categories_stay_impossible():
    a = Categorical([0.5, 0.5, 0.0, 0.0])
    b = Categorical([0.0, 0.4, 0.4, 0.2])
    product = a * b
    assert product.is_point and product.point == 1  # one category left: certainty
    wide = Categorical([0.25] * 4)
    np.testing.assert_allclose((a * wide).p, [0.5, 0.5, 0, 0])
    np.testing.assert_allclose(((a * wide) / a).p, [0.5, 0.5, 0, 0])  # 0 / 0 stays 0
    np.testing.assert_allclose((a**0.5).p, [0.5, 0.5, 0, 0])
    np.testing.assert_allclose((a**0).p, 0.25)
    np.testing.assert_allclose(a.kl(wide), np.log(2))
    np.testing.assert_array_equal(wide.kl(a), np.inf)
    np.testing.assert_allclose(a.entropy(), np.log(2))
    np.testing.assert_array_equal(a.log_density([0, 2]), [np.log(0.5), -np.inf])
    with pytest.raises(ContradictionError):
        a * Categorical([0.0, 0.0, 0.5, 0.5])
    with pytest.raises(ContradictionError):
        a * Categorical.point_mass(2, 4)
    with pytest.raises(ImproperError):
        wide / a
    with pytest.raises(ImproperError):
        a**-1


def test_a_certain_category_divides_out_of_a_mixed_plate():
    certain = Categorical.point_mass([0, np.nan, 2], 3)
    soft = Categorical([[0.2, 0.3, 0.5]] * 3)
    product = certain * soft
    np.testing.assert_array_equal(product.is_point, [True, False, True])
    back = product / certain
    np.testing.assert_array_equal(back.is_point, False)
    np.testing.assert_allclose(back.p[1], [0.2, 0.3, 0.5])
    assert back.is_uniform[0]


# ---- Dirichlet -------------------------------------------------------------------------------------------------------------
def test_dirichlet_is_scipys():
    a = np.array([0.7, 2.5, 4.0])
    d, reference = Dirichlet(a), scipy.stats.dirichlet(a)
    np.testing.assert_allclose(d.mean, reference.mean(), rtol=1e-14)
    np.testing.assert_allclose(d.variance, reference.var(), rtol=1e-14)
    np.testing.assert_allclose(d.entropy(), reference.entropy(), rtol=1e-13)
    x = np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(d.log_density(x), reference.logpdf(x), rtol=1e-13)
    np.testing.assert_allclose(Dirichlet.uniform((), 4).log_normaliser(), -np.log(6.0), rtol=1e-13)


def test_dirichlet_of_two_categories_is_beta():
    rng = np.random.default_rng(1)
    a, b, c, d = 10.0 ** rng.uniform(-2, 4, (4, 50))
    two, beta = Dirichlet(np.stack([a, b], -1)), Beta(a, b)
    other_two, other_beta = Dirichlet(np.stack([c, d], -1)), Beta(c, d)
    np.testing.assert_allclose(two.mean[:, 0], beta.mean, rtol=1e-14)
    np.testing.assert_allclose(two.variance[:, 0], beta.variance, rtol=1e-13)
    # parameters up to 1e4 make both sums of numbers of that size
    np.testing.assert_allclose(two.kl(other_two), beta.kl(other_beta), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(two.log_normaliser(), beta.log_normaliser(), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(two.entropy(), beta.entropy(), rtol=1e-12)
    np.testing.assert_allclose(two.expected_statistics()[0], np.stack(beta.expected_statistics(), -1), rtol=1e-13)


def test_dirichlet_divergence_is_that_of_its_components_one_by_one():
    """A Dirichlet is a chain of Betas (each share of what is left): its KL is the sum of theirs."""
    a, c = np.array([0.7, 2.5, 4.0]), np.array([1.5, 1.0, 0.8])
    first = Beta(a[0], a[1] + a[2]).kl(Beta(c[0], c[1] + c[2]))
    second = Beta(a[1], a[2]).kl(Beta(c[1], c[2]))
    np.testing.assert_allclose(Dirichlet(a).kl(Dirichlet(c)), first + second, rtol=1e-12)


def test_dirichlet_draws_of_tiny_concentrations_do_not_vanish():
    x = Dirichlet([1e-4, 1e-4, 1e-4]).sample(np.random.default_rng(2), 200)
    np.testing.assert_allclose(x.sum(-1), 1.0, rtol=1e-12)
    assert (np.sort(x, axis=-1)[:, -1] > 0.99).mean() > 0.95  # nearly always a corner, each as likely
    assert set(x.argmax(-1)) == {0, 1, 2}
