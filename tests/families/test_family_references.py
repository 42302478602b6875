"""Every family against an independent reference: SciPy's distributions, quadrature, enumeration, exact numbers.

Numbers called exact were computed with mpmath at 80 digits from the definitions.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit

from heliograph.errors import ModelError
from heliograph.families import Beta, Dirichlet, Gamma, Gaussian

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
    below = Gaussian.from_statistics(0.1, np.nextafter(0.1**2, 0.0))  # a variance of -2e-18: rounding, not an error
    assert below.is_point and below.mean == 0.1
    with pytest.raises(ModelError):
        Gaussian.from_statistics(1.0, 0.9)
