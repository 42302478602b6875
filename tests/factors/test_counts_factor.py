"""Likelihoods of counts: conjugate updates, evidence against scipy's mass functions and quadrature, large counts."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import digamma, gammaln, polygamma
from scipy.stats import betabinom, binom, nbinom, poisson
from wild_messages import wild_gaussians

from heliograph.factors import BernoulliBeta, Binomial, Poisson, PoissonLog
from heliograph.families import Bernoulli, Beta, Gamma, Gaussian


def test_a_known_label_counts_one():
    for y, naturals in ((1.0, [1.0, 0.0]), (0.0, [0.0, 1.0])):
        for p in (Beta(3.0, 2.0), Beta.uniform(), Beta.from_naturals((np.array(-3.0), np.array(0.5)))):
            sent = BernoulliBeta().message("p", {"p": p, "y": Bernoulli(y)})
            np.testing.assert_array_equal(sent.naturals, naturals)
            half = BernoulliBeta().message("p", {"p": p, "y": Bernoulli(y)}, 0.5)
            np.testing.assert_array_equal(half.naturals, np.multiply(naturals, 0.5))


@pytest.mark.parametrize("a,b", [(3.0, 2.0), (0.5, 0.5), (500.0, 2.0), (1.0, 40.0), (1e5, 3e4)])
@pytest.mark.parametrize("y", [0.2, 0.9, 0.999999])
@pytest.mark.parametrize("power", [1.0, 0.6])
def test_a_soft_label_mixes_two_betas(a, b, y, power):
    incoming = {"p": Beta(a, b), "y": Bernoulli(y)}
    yes = y * np.exp(Beta(a + power, b).log_normaliser() - Beta(a, b).log_normaliser())
    no = (1 - y) * np.exp(Beta(a, b + power).log_normaliser() - Beta(a, b).log_normaliser())
    parts = [np.array(Beta(a + power, b).expected_statistics()), np.array(Beta(a, b + power).expected_statistics())]
    logs = (yes * parts[0] + no * parts[1]) / (yes + no)
    belief = BernoulliBeta().belief("p", incoming, power)
    # log B(a, b) of the largest pair is 7e4, and its rounding moves the weights
    np.testing.assert_allclose(belief.expected_statistics(), logs, rtol=1e-10)
    assert BernoulliBeta().log_z(incoming, power) == pytest.approx(np.log(yes + no), abs=1e-9)
    odds = BernoulliBeta().message("y", incoming, power).log_odds
    assert odds == pytest.approx(np.log(yes / y) - np.log(no / (1 - y)), abs=1e-9)


def test_an_unknown_label_says_nothing_and_a_beta_predicts_its_mean():
    assert BernoulliBeta().message("p", {"p": Beta(3.0, 2.0), "y": Bernoulli.uniform()}).is_uniform
    assert BernoulliBeta().message("y", {"p": Beta(3.0, 2.0), "y": Bernoulli.uniform()}).p == pytest.approx(0.6)
    assert BernoulliBeta().message("y", {"p": Beta.point_mass(0.3), "y": Bernoulli.uniform()}).p == pytest.approx(0.3)
    assert BernoulliBeta().log_z({"p": Beta.point_mass(1.0), "y": Bernoulli(3e-5)}) == pytest.approx(np.log(3e-5))
    improper = Beta.from_naturals((np.array(-2.0), np.array(0.5)))
    assert BernoulliBeta().message("p", {"p": improper, "y": Bernoulli(0.3)}).is_uniform
    assert BernoulliBeta().message("y", {"p": improper, "y": Bernoulli(0.3)}).is_uniform


def test_conjugate_messages_read_the_data_alone():
    assert BernoulliBeta().depends("p", frozenset(["y"])) == {"y"}
    assert BernoulliBeta().depends("p", frozenset()) == {"p", "y"}
    assert Binomial().depends("p", frozenset()) == {"n", "count"}
    assert Poisson().depends("rate", frozenset()) == {"count"}


@pytest.mark.parametrize("n,k", [(5, 0), (5, 5), (10, 3), (1000, 1), (1000, 400)])
@pytest.mark.parametrize("a,b", [(0.5, 0.5), (1.0, 1.0), (20.0, 3.0), (0.1, 7.0)])
def test_binomial_evidence_is_the_beta_binomial(n, k, a, b):
    incoming = {"p": Beta(a, b), "n": n, "count": k}
    np.testing.assert_array_equal(Binomial().message("p", incoming).naturals, [k, n - k])
    # scipy subtracts log gamma functions of a thousand
    assert Binomial().log_z(incoming) == pytest.approx(betabinom.logpmf(k, n, a, b), rel=1e-11, abs=1e-11)
    assert Binomial().log_z({**incoming, "p": Beta.point_mass(0.3)}) == pytest.approx(
        binom.logpmf(k, n, 0.3), rel=1e-11
    )


def test_binomial_evidence_of_a_million_trials_is_exact():
    # under Beta(1, 1) every count is equally likely, and Beta(2, 1) weighs it with 2 (k + 1) / (n + 2)
    n = 10**6
    for k in (0, 1, 499_999, n):
        assert Binomial().log_z({"p": Beta(1.0, 1.0), "n": n, "count": k}) == pytest.approx(-np.log(n + 1), rel=1e-14)
        expected = np.log(2 * (k + 1) / ((n + 1) * (n + 2)))
        assert Binomial().log_z({"p": Beta(2.0, 1.0), "n": n, "count": k}) == pytest.approx(expected, rel=1e-13)
    # and for whole a, b the ratio of factorials itself
    a, b, n, k = 1000, 3000, 2000, 700
    ratio = Fraction(comb(n, k) * factorial(a + k - 1) * factorial(b + n - k - 1) * factorial(a + b - 1))
    ratio /= factorial(a + b + n - 1) * factorial(a - 1) * factorial(b - 1)
    exact = float(np.log(float(ratio)))
    assert Binomial().log_z({"p": Beta(a, b), "n": n, "count": k}) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("k", [0, 1, 7, 300])
@pytest.mark.parametrize("s,r", [(2.0, 1.0), (0.5, 0.01), (200.0, 1.0), (3.0, 50.0)])
def test_poisson_evidence_is_the_negative_binomial(k, s, r):
    incoming = {"rate": Gamma(s, r), "count": k}
    np.testing.assert_array_equal(Poisson().message("rate", incoming).naturals, [k, 1.0])
    assert Poisson().log_z(incoming) == pytest.approx(nbinom.logpmf(k, s, r / (1 + r)), rel=1e-11, abs=1e-12)
    assert Poisson().log_z({"rate": Gamma.point_mass(2.5), "count": k}) == pytest.approx(
        poisson.logpmf(k, 2.5), rel=1e-12
    )
    power = 0.5
    log_z = (
        gammaln(s + power * k)
        - gammaln(s)
        - power * gammaln(k + 1)
        + s * np.log(r)
        - (s + power * k) * np.log(r + power)
    )
    assert Poisson().log_z(incoming, power) == pytest.approx(log_z, rel=1e-11, abs=1e-12)


def test_poisson_evidence_of_a_million_events_keeps_its_digits():
    # Gamma(1, r): a geometric distribution, log r - (k + 1) log(1 + r)
    k, r = 10**6, 1e-6
    assert Poisson().log_z({"rate": Gamma(1.0, r), "count": k}) == pytest.approx(
        np.log(r) - (k + 1) * np.log1p(r), rel=1e-13
    )
    # at its own rate, Stirling: -log(2 pi k) / 2 - 1 / (12 k)
    at = Poisson().log_z({"rate": Gamma.point_mass(1e6), "count": k})
    assert at == pytest.approx(-0.5 * np.log(2 * np.pi * k) - 1 / (12 * k), rel=1e-15)


def test_a_missing_count_says_nothing():
    missing = np.array([np.nan, 2.0])
    rate = Gamma(np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    assert Poisson().message("rate", {"rate": rate, "count": missing}).is_uniform.tolist() == [True, False]
    assert Poisson().log_z({"rate": rate, "count": missing})[0] == 0.0
    p = Beta(np.array([2.0, 2.0]), np.array([1.0, 1.0]))
    assert Binomial().message("p", {"p": p, "n": np.array([3.0, 3.0]), "count": missing}).is_uniform[0]
    assert Binomial().log_z({"p": p, "n": np.array([3.0, 3.0]), "count": missing})[0] == 0.0
    z = Gaussian(np.zeros(2), np.ones(2))
    assert PoissonLog().message("z", {"z": z, "count": missing}).is_uniform.tolist() == [True, False]
    assert PoissonLog().log_z({"z": z, "count": missing})[0] == 0.0


@pytest.mark.parametrize("k", [0, 1, 5, 100, 10_000])
@pytest.mark.parametrize("m,v", [(0.0, 1.0), (1.4, 0.02), (-20.0, 4.0), (3.0, 1e4)])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_poisson_of_a_log_rate_is_that_of_plain_quadrature(k, m, v, power):
    sd = np.sqrt(v)
    log_f = lambda z: power * (k * z - np.exp(np.minimum(z, 300)) - gammaln(k + 1))  # noqa: E731
    coarse = np.concatenate([np.linspace(m - 60 * sd, min(m + 60 * sd, 300), 12001), np.linspace(-60, 60, 12001)])
    height = log_f(coarse) - 0.5 * (coarse - m) ** 2 / v
    inside = coarse[height > height.max() - 50]
    z = np.linspace(inside.min() - 0.02, inside.max() + 0.02, 60001)
    log_t = log_f(z) - 0.5 * (z - m) ** 2 / v
    t = np.exp(log_t - log_t.max())
    total = np.trapezoid(t, z)
    mean = np.trapezoid(z * t, z) / total
    variance = np.trapezoid((z - mean) ** 2 * t, z) / total
    incoming = {"z": Gaussian(m, v), "count": k}
    belief = PoissonLog().belief("z", incoming, power)
    # k z and log k! of the largest count are 1e5, and the reference subtracts them
    assert abs(belief.mean - mean) < 1e-9 * max(abs(mean), np.sqrt(variance))
    assert belief.variance == pytest.approx(variance, rel=1e-8)
    log_z = np.log(total) + log_t.max() - 0.5 * np.log(2 * np.pi * v)
    assert PoissonLog().log_z(incoming, power) == pytest.approx(log_z, rel=1e-9)


def test_poisson_of_a_log_rate_at_a_million_events():
    # Laplace is exact to 1 / k there: precision k + 1 / v, and the rate k
    k, v = 10**6, 1.0
    belief = PoissonLog().belief("z", {"z": Gaussian(13.0, v), "count": k})
    assert belief.variance == pytest.approx(1 / (k + 1), rel=1e-5)
    gamma = Gamma(float(k), 1.0).chart_moments()  # under a flat cavity
    flat = PoissonLog().belief("z", {"z": Gaussian(13.0, 1e16), "count": k})
    assert flat.mean == pytest.approx(gamma[0], rel=1e-14)
    assert flat.variance == pytest.approx(gamma[1], rel=1e-11)


def test_the_limits_of_a_log_rate():
    for x in (-2.0, 0.0, 3.0):
        bend = np.exp(x)
        expected = [2 - bend + x * bend, bend]
        at = PoissonLog().message("z", {"z": Gaussian.point_mass(x), "count": 2})
        np.testing.assert_allclose(at.naturals, expected, rtol=1e-14)
        near = PoissonLog().message("z", {"z": Gaussian(x, 1e-20), "count": 2})
        np.testing.assert_allclose(near.naturals, expected, rtol=1e-12)
        assert PoissonLog().log_z({"z": Gaussian.point_mass(x), "count": 2}) == pytest.approx(
            poisson.logpmf(2, np.exp(x))
        )
    uniform = PoissonLog().belief("z", {"z": Gaussian.uniform(), "count": 4})
    assert (float(uniform.mean), float(uniform.variance)) == pytest.approx((digamma(4), float(polygamma(1, 4))))
    assert PoissonLog().message("z", {"z": Gaussian.uniform(), "count": 0}).is_uniform
    wild = Gaussian.from_naturals((np.array(0.5), np.array(-1.0)))
    assert PoissonLog().message("z", {"z": wild, "count": 4}).is_uniform


def test_evidence_under_improper_messages_is_that_of_the_plain_exponential():
    rate = Gamma.from_naturals((np.array(-1.5), np.array(-0.25)))
    direct = quad(lambda x: x**1.5 * np.exp(-0.75 * x) / 6, 0, np.inf, epsabs=0, epsrel=1e-10)[0]
    assert Poisson().log_z({"rate": rate, "count": 3}) == pytest.approx(np.log(direct), rel=1e-8)
    assert Poisson().log_z({"rate": rate, "count": 0}) == np.inf
    p = Beta.from_naturals((np.array(-1.5), np.array(1.0)))
    direct = quad(lambda x: 6 * x**0.5 * (1 - x) ** 3, 0, 1, epsabs=0, epsrel=1e-10)[0]
    assert Binomial().log_z({"p": p, "n": 4, "count": 2}) == pytest.approx(np.log(direct), rel=1e-8)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_message_gives_nan_or_a_warning(seed):
    rng, n = np.random.default_rng(seed), 12
    count = rng.choice([np.nan, 0, 1, 7, 1000, 1e6], n)
    for power in (1.0, 0.5):
        incoming = {"z": wild_gaussians(rng, n), "count": count}
        assert np.isfinite(PoissonLog().message("z", incoming, power).naturals).all()
        assert not np.isnan(PoissonLog().log_z(incoming, power)).any()
        naturals = rng.choice([1, 1, 1, -1], (2, n)) * np.exp(rng.uniform(-8, 12, (2, n)))
        rate, p = Gamma.from_naturals((naturals[0] - 1, naturals[1])), Beta.from_naturals(tuple(naturals - 1))
        assert not np.isnan(Poisson().log_z({"rate": rate, "count": count}, power)).any()
        assert not np.isnan(Binomial().log_z({"p": p, "count": count, "n": 1e6}, power)).any()
        y = Bernoulli.from_log_odds(rng.choice([-np.inf, -800, -1, 0, 2, np.inf], n))
        assert not np.isnan(BernoulliBeta().log_z({"p": p, "y": y}, power)).any()
        assert np.isfinite(BernoulliBeta().message("p", {"p": p, "y": y}, power).naturals).all()
