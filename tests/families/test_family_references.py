"""Every family against an independent reference: SciPy's distributions, quadrature, enumeration, exact numbers.

Numbers called exact were computed with mpmath at 80 digits from the definitions.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit, logsumexp

from heliograph.errors import ContradictionError, ImproperError, ModelError
from heliograph.families import Bernoulli, Beta, Categorical, Dirichlet, Gamma, Gaussian, MultivariateGaussian

CONTINUOUS = [
    (Gaussian(0.7, 2.3), Gaussian(-0.4, 0.9), scipy.stats.norm(0.7, np.sqrt(2.3)), (-np.inf, np.inf)),
    (Gamma(2.7, 1.3), Gamma(1.4, 3.1), scipy.stats.gamma(2.7, scale=1 / 1.3), (0, np.inf)),
    (Gamma(0.4, 0.2), Gamma(1.9, 0.3), scipy.stats.gamma(0.4, scale=5), (0, np.inf)),
    (Beta(2.7, 1.3), Beta(1.4, 3.1), scipy.stats.beta(2.7, 1.3), (0, 1)),
    (Beta(0.6, 0.8), Beta(2.0, 1.5), scipy.stats.beta(0.6, 0.8), (0, 1)),
]
continuous = pytest.mark.parametrize("a, b, reference, domain", CONTINUOUS, ids=lambda x: repr(x)[:30])


# ---- one dimension ------------------------------------------------------------------------------------------------------
@continuous
def test_moments_density_and_entropy_are_scipys(a, b, reference, domain):
    np.testing.assert_allclose(a.mean, reference.mean(), rtol=1e-13)
    np.testing.assert_allclose(a.variance, reference.var(), rtol=1e-13)
    np.testing.assert_allclose(a.entropy(), reference.entropy(), rtol=1e-12)
    x = reference.ppf([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
    np.testing.assert_allclose(a.log_density(x), reference.logpdf(x), rtol=1e-11, atol=1e-12)


def nodes(a):
    """Values and weights of the trapezoid rule on the chart, where these densities fall off exponentially."""
    z = {"identity": np.linspace(-30, 30, 4001), "log": np.linspace(-95, 8, 8001), "logit": np.linspace(-80, 36, 8001)}
    z = z[a.chart]
    x, slope = {
        "identity": lambda: (z, np.ones_like(z)),
        "log": lambda: (np.exp(z), np.exp(z)),
        "logit": lambda: (expit(z), expit(z) * expit(-z)),
    }[a.chart]()
    return x, slope * (z[1] - z[0])


STATISTICS = {
    Gaussian: lambda x: (x, x**2),
    Gamma: lambda x: (x, np.log(x)),
    Beta: lambda x: (np.log(x), np.log1p(-x)),
}


@continuous
def test_the_density_integrates_to_one_and_gives_the_statistics(a, b, reference, domain):
    x, weight = nodes(a)
    weight = weight * np.exp(a.log_density(x))
    # 1e-9: the chart is cut where exp(-0.4 z) and 1 - p round away
    np.testing.assert_allclose(weight.sum(), 1.0, rtol=1e-9)
    for got, statistic in zip(a.expected_statistics(), STATISTICS[type(a)](x), strict=True):
        np.testing.assert_allclose(got, (weight * statistic).sum(), rtol=1e-9)
    np.testing.assert_allclose(a.kl(b), (weight * (a.log_density(x) - b.log_density(x))).sum(), rtol=1e-9)


@continuous
def test_the_log_normaliser_is_the_integral_of_the_unnormalised_density(a, b, reference, domain):
    x, weight = nodes(a)
    first, second = STATISTICS[type(a)](x)
    if isinstance(a, Gaussian):
        second = -second / 2
    elif isinstance(a, Gamma):
        first, second = second, -first
    total = (weight * np.exp(a.naturals[0] * first + a.naturals[1] * second)).sum()
    np.testing.assert_allclose(a.log_normaliser(), np.log(total), atol=1e-9)


@continuous
def test_the_divergence_has_its_direction(a, b, reference, domain):
    """KL(a || b), not KL(b || a): they differ here, and the quadrature above tells which is which."""
    assert abs(float(a.kl(b) - b.kl(a))) > 0.01


@continuous
def test_chart_moments_are_those_of_the_transformed_variable(a, b, reference, domain):
    chart = {"identity": lambda x: x, "log": np.log, "logit": lambda x: np.log(x) - np.log1p(-x)}[a.chart]
    x, weight = nodes(a)
    weight, z = weight * np.exp(a.log_density(x)), chart(x)
    mean, variance = a.chart_moments()
    np.testing.assert_allclose(mean, (weight * z).sum(), rtol=1e-8)
    np.testing.assert_allclose(variance, (weight * (z - mean) ** 2).sum(), rtol=1e-8)


# ---- large parameters: where the textbook forms lose everything -----------------------------------------------------------
def test_divergences_of_large_parameters_keep_their_digits():
    # (members, exact KL); the textbook form of the first subtracts numbers of size 1e9
    gammas = [
        ((1e8, 3.0, 100000100.0, 3.0), 0.000049999983583341500828),
        ((1e8, 1e8, 1e8, 100000001.0), 4.9999999666666669167e-9),
        ((2.5, 1.0, 1.5, 4.0), 5.718249990857242877),
    ]
    for (s1, r1, s2, r2), exact in gammas:
        np.testing.assert_allclose(Gamma(s1, r1).kl(Gamma(s2, r2)), exact, rtol=1e-12)
    betas = [
        ((1e8, 1e8, 100000100.0, 1e8), 0.000024999987687507146558),
        ((2.5, 1.0, 1.5, 4.0), 3.2705709124885766933),
        ((3e7, 10.0, 3e7, 10.001), 5.2581309631617873465e-8),
    ]
    for (a1, b1, a2, b2), exact in betas:
        # b = 10 sits where Binet's remainder is read to 1e-14: a KL of 5e-8 keeps 6 digits of it
        np.testing.assert_allclose(Beta(a1, b1).kl(Beta(a2, b2)), exact, rtol=1e-12, atol=1e-14)
        both = Dirichlet([a1, b1]).kl(Dirichlet([a2, b2]))
        np.testing.assert_allclose(both, exact, rtol=1e-12, atol=1e-14)
    # tiny parameters are stored to 1e-10
    np.testing.assert_allclose(Gamma(1e-6, 1.0).kl(Gamma(2e-6, 5.0)), 0.30685360056505228781, rtol=1e-9)
    np.testing.assert_allclose(Beta(1e-6, 1e8).kl(Beta(2e-6, 1e8)), 0.30685281944087715601, rtol=1e-9)


def test_entropies_of_large_and_tiny_parameters_keep_their_digits():
    assert float(Gamma(1e8, 2.0).entropy()) == pytest.approx(9.9361317212875768268, rel=1e-14)
    assert float(Gamma(3.0, 2.0).entropy()) == pytest.approx(1.1544313298030657212, rel=1e-14)
    assert float(Gamma(1e-6, 2.0).entropy()) == pytest.approx(-999986.45484964261041, rel=1e-9)
    for (a, b), exact in [((1e8, 3e7), -8.7869346456699026939), ((3.0, 2.0), -0.23490664978800031023)]:
        assert float(Beta(a, b).entropy()) == pytest.approx(exact, rel=1e-13)
        assert float(Dirichlet([a, b]).entropy()) == pytest.approx(exact, rel=1e-13)
    assert float(Beta(1e8, 1e-3).entropy()) == pytest.approx(-1011.0874982134619812, rel=1e-12)


def test_densities_of_large_and_tiny_parameters_keep_their_digits():
    assert float(Gamma(1e8, 2.0).log_density(50005000.0)) == pytest.approx(-9.9361983896210434934, rel=1e-12)
    assert float(Gamma(1e-6, 2.0).log_density(1e-300)) == pytest.approx(676.95932783508355581, rel=1e-9)
    beta = Beta(25000000.0, 75000000.0)
    np.testing.assert_allclose(beta.log_density(0.25), 9.1283900519462346563, rtol=1e-14)
    # x = 0.2501 is itself known to 1e-17, at a slope of 5e4
    np.testing.assert_allclose(beta.log_density(0.2501), 6.4619307156805396521, rtol=1e-11)
    np.testing.assert_allclose(Beta(1e-6, 2.0).log_density(1e-250), 561.83018804427339829, rtol=1e-9)
    both = Dirichlet([25000000.0, 75000000.0]).log_density([0.2501, 1 - 0.2501])
    np.testing.assert_allclose(both, 6.4619307156805396521, rtol=1e-11)


def test_a_gaussian_far_from_nought_keeps_the_digits_of_its_density():
    a = Gaussian(1e6, 1e-6)
    np.testing.assert_allclose(a.log_density(1e6 + 1e-3), scipy.stats.norm(0, 1e-3).logpdf(1e-3), rtol=1e-6)
    np.testing.assert_allclose(a.kl(Gaussian(1e6, 1e-6 * 1.01)), 0.5 * (1 / 1.01 - 1 + np.log(1.01)), rtol=1e-9)


# ---- the edges of the support -------------------------------------------------------------------------------------------
def test_densities_at_the_edge_of_the_support():
    inf = np.inf
    np.testing.assert_array_equal(Gamma([0.5, 1.0, 2.0], 3.0).log_density(0.0), [inf, np.log(3.0), -inf])
    np.testing.assert_array_equal(Gamma(2.0, 1.0).log_density([-1.0, inf, np.nan]), [-inf, -inf, -inf])
    np.testing.assert_allclose(Beta([0.5, 1.0, 2.0], 3.0).log_density(0.0), [inf, np.log(3.0), -inf], rtol=1e-14)
    np.testing.assert_allclose(Beta(3.0, [0.5, 1.0, 2.0]).log_density(1.0), [inf, np.log(3.0), -inf], rtol=1e-14)
    np.testing.assert_array_equal(Beta(2.0, 2.0).log_density([-0.1, 1.1, np.nan]), -inf)
    np.testing.assert_array_equal(Beta.uniform().log_density([0.0, 0.5, 1.0]), 0.0)
    np.testing.assert_array_equal(Gamma.uniform().log_density([0.0, 2.0]), 0.0)
    three = Dirichlet([[2.0, 0.5, 1.0], [1.0, 0.5, 1.0], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(three.log_density([0.0, 0.0, 1.0]), [-inf, inf, np.log(2.0)])
    np.testing.assert_array_equal(three.log_density([0.5, 0.6, 0.7]), -inf)


def test_beta_point_masses_may_lie_on_the_border():
    p = Beta.point_mass([0.0, 1.0, 0.25])
    np.testing.assert_array_equal(p.expected_statistics()[0], [-np.inf, 0.0, np.log(0.25)])
    np.testing.assert_array_equal(p.chart_moments()[0], [-np.inf, np.inf, np.log(0.25) - np.log(0.75)])
    np.testing.assert_array_equal(p.a, np.inf)


# ---- limits -------------------------------------------------------------------------------------------------------------
def test_a_narrow_member_tends_to_the_point_mass_and_a_flat_one_to_uniform():
    x = 0.3
    for v in (1e-6, 1e-10):
        for family, point in ((Gaussian, x), (Gamma, x), (Beta, x)):
            a = family.from_mean_variance(point, v)
            np.testing.assert_allclose(a.mean, point, rtol=1e-12)
            other = family.from_mean_variance(0.4, 0.01)
            np.testing.assert_allclose((a * other).mean, point, atol=20 * v)
    flat = Gaussian(5.0, 1e12) * Gaussian(1.0, 2.0)
    np.testing.assert_allclose([flat.mean, flat.variance], [1.0, 2.0], rtol=1e-9)
    assert Gaussian(5.0, np.inf).is_uniform and Gaussian(5.0, precision=0.0).is_uniform
    assert Gaussian(5.0, 0.0).is_point and Gaussian(5.0, precision=np.inf).is_point


def test_statistics_of_a_narrow_gaussian_round_to_a_point_mass():
    a = Gaussian(1e8, 1e-6)
    back = Gaussian.from_statistics(*a.expected_statistics())
    assert back.is_point and back.mean == 1e8
    with pytest.raises(ModelError):
        Gaussian.from_statistics(1.0, 0.9)


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
