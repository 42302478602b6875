"""The laws that every family of the room obeys, whatever it is: found by listing, put through each in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from family_members import FAMILIES, VECTOR, assert_same, draw, event, every_family, few, points, seeds, values
from hypothesis import given
from hypothesis import strategies as st

from heliograph.errors import ContradictionError, ImproperError


# ---- the algebra ----------------------------------------------------------------------------------------------------
@every_family
@few
@given(seed=seeds)
def test_dividing_takes_back_a_product(family, seed):
    rng = np.random.default_rng(seed)
    a, b = draw(family, rng), draw(family, rng)
    assert_same((a * b) / b, a)


@every_family
@few
@given(seed=seeds)
def test_the_order_of_a_product_does_not_matter(family, seed):
    rng = np.random.default_rng(seed)
    a, b, c = (draw(family, rng) for _ in range(3))
    assert_same(a * b, b * a)
    assert_same((a * b) * c, a * (b * c))


@every_family
@few
@given(seed=seeds)
def test_uniform_is_neutral(family, seed):
    rng = np.random.default_rng(seed)
    a = draw(family, rng)
    one = family.uniform(a.shape, *event(family))
    assert one.is_uniform.all()
    assert_same(a * one, a, 0.0)
    assert_same(a / one, a, 0.0)
    assert (a / a).is_uniform.all()
    assert_same(a.as_uniform(), one, 0.0)


@every_family
@few
@given(seed=seeds, exponent=st.floats(-3, 3))
def test_powers_are_repeated_products(family, seed, exponent):
    rng = np.random.default_rng(seed)
    a = draw(family, rng)
    assert_same(a**2, a * a)
    assert_same(a**0, a.as_uniform())
    assert_same(a**exponent * a ** (1 - exponent), a)
    per_entry = np.array([exponent, 0.0, 1.0, 2.0])
    for i, e in enumerate(per_entry):
        assert_same((a**per_entry)[i], a[i] ** e)


@every_family
def test_a_product_with_another_family_is_refused(family):
    rng = np.random.default_rng(0)
    other = next(f for f in FAMILIES if f is not family)
    with pytest.raises(TypeError):
        draw(family, rng) * draw(other, rng)
    with pytest.raises(TypeError):
        draw(family, rng) / draw(other, rng)


@every_family
def test_a_product_broadcasts_over_plates_as_arrays_do(family):
    rng = np.random.default_rng(1)
    a, b = draw(family, rng, (3, 1)), draw(family, rng, (4,))
    product = a * b
    assert product.shape == (3, 4)
    assert_same(product[2, 1], a[2, 0] * b[1])


# ---- point masses ---------------------------------------------------------------------------------------------------
@every_family
@few
@given(seed=seeds)
def test_a_point_mass_wins_every_product(family, seed):
    rng = np.random.default_rng(seed)
    x = values(family, rng)
    p, a = points(family, x), draw(family, rng)
    assert p.is_point.all() and p.proper.all() and not p.is_uniform.any()
    assert_same(p * a, p, 0.0)
    assert_same(a * p, p, 0.0)
    assert_same(p * p, p, 0.0)
    assert_same(p / a, p, 0.0)
    assert_same(p**0.5, p, 0.0)
    assert (p / p).is_uniform.all() and not (p / p).is_point.any()
    assert (p**0).is_uniform.all()


@every_family
def test_point_masses_that_disagree_are_a_contradiction(family):
    rng = np.random.default_rng(2)
    x = values(family, rng, (30,))
    y = x[::-1].copy()
    with pytest.raises(ContradictionError, match=family.__name__):
        points(family, x) * points(family, y)
    with pytest.raises(ImproperError):
        points(family, x) / points(family, y)


@every_family
def test_dividing_by_a_point_mass_needs_the_same_point_mass(family):
    rng = np.random.default_rng(3)
    p, a = points(family, values(family, rng)), draw(family, rng)
    with pytest.raises(ImproperError):
        a / p
    with pytest.raises(ImproperError):
        p**-1


@every_family
@few
@given(seed=seeds)
def test_a_plate_may_mix_point_masses_with_others(family, seed):
    rng = np.random.default_rng(seed)
    x, a, b = values(family, rng), draw(family, rng), draw(family, rng)
    missing = np.array([True, False, True, False])
    x = np.where(missing.reshape(-1, *[1] * (x.ndim - 1)), np.nan, x)
    p = points(family, x)
    np.testing.assert_array_equal(p.is_point, ~missing)
    assert p.is_uniform[missing].all()
    product = a * p
    assert_same(product[missing], a[missing], 0.0)
    assert_same(product[~missing], p[~missing], 0.0)
    assert product[missing].point is None  # nothing left of the point masses in a plate that has none
    assert_same((product * b) / b, product)
    np.testing.assert_allclose(product[missing].mean, a[missing].mean)
    assert np.isfinite(product.mean).all() and np.isfinite(product.variance).all()
    assert (product.variance[~missing] == 0).all()


@every_family
def test_point_masses_everywhere_unknown_are_uniform(family):
    x = values(family, np.random.default_rng(4)) * np.nan
    p = points(family, x)
    assert p.point is None and p.is_uniform.all()


@every_family
def test_a_point_mass_has_its_value_as_mean_and_no_spread(family):
    rng = np.random.default_rng(5)
    x = values(family, rng)
    p = points(family, x)
    if family.__name__ == "Categorical":
        np.testing.assert_array_equal(p.mean.argmax(-1), x)
    else:
        np.testing.assert_array_equal(p.mean, x)
    np.testing.assert_array_equal(p.variance, np.zeros(p.mean.shape))
    np.testing.assert_array_equal(p.log_normaliser(), 0.0)
    np.testing.assert_array_equal(p.log_density(x), 0.0)
    assert (p.entropy() == (0.0 if family.__name__ in ("Bernoulli", "Categorical") else -np.inf)).all()
    np.testing.assert_array_equal(p.sample(rng, 3), np.stack([x] * 3))


# ---- projection -----------------------------------------------------------------------------------------------------
@every_family
@few
@given(seed=seeds)
def test_projecting_its_own_statistics_gives_it_back(family, seed):
    a = draw(family, np.random.default_rng(seed))
    # parameters up to 1e2: the statistics hold them to 1e2 * 1e-16 relative, twice for the square; see the wide test
    assert_same(family.from_statistics(*a.expected_statistics()), a, 1e-9)
    assert len(a.expected_statistics()) == len(a.naturals) == len(family.statistics)


@every_family
@few
@given(seed=seeds)
def test_chart_moments_give_it_back(family, seed):
    a = draw(family, np.random.default_rng(seed))
    if family.__name__ == "MultivariateGaussian":
        back = family.from_chart_moments(a.mean, a.covariance)
    else:
        back = family.from_chart_moments(*a.chart_moments())
    assert_same(back, a, 1e-10)


@every_family
@few
@given(seed=seeds)
def test_mean_and_variance_match_when_asked_for_by_name(family, seed):
    a = draw(family, np.random.default_rng(seed))
    b = family.from_mean_variance(a.mean, a.variance)
    np.testing.assert_allclose(b.mean, a.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(b.variance, a.variance, rtol=1e-9, atol=1e-12)


@every_family
def test_the_projection_minimises_the_divergence_from_a_mixture(family):
    """``KL(mixture || q)`` is least at the projection: no small step in any natural parameter lowers it."""
    rng = np.random.default_rng(6)
    a, b = draw(family, rng, ()), draw(family, rng, ())
    statistics = [0.5 * (x + y) for x, y in zip(a.expected_statistics(), b.expected_statistics(), strict=True)]
    q = family.from_statistics(*statistics)

    def cross_entropy(member: Any) -> float:
        # the part of KL(mixture || member) that depends on the member, through KL(a || .) and KL(b || .)
        return float(0.5 * (a.kl(member) + b.kl(member)))

    least = cross_entropy(q)
    for k, natural in enumerate(q.naturals):
        for i in np.ndindex(np.shape(natural)):
            for step in (1e-3, -1e-3):
                moved = [np.array(x, dtype=float) for x in q.naturals]
                moved[k][i] += step
                if k == 1 and len(i) == 2:  # a precision stays symmetric
                    moved[k][i[::-1]] = moved[k][i]
                assert cross_entropy(family.from_naturals(tuple(moved))) >= least - 1e-13


# ---- divergence, entropy, density ---------------------------------------------------------------------------------------
@every_family
@few
@given(seed=seeds)
def test_divergence_is_nought_from_itself_and_positive_from_others(family, seed):
    rng = np.random.default_rng(seed)
    a, b = draw(family, rng), draw(family, rng)
    np.testing.assert_allclose(a.kl(a), 0.0, atol=2e-14)  # rounding of a trace and a log determinant
    assert (a.kl(b) >= 0).all() and np.isfinite(a.kl(b)).all()
    x = values(family, rng)
    p = points(family, x)
    np.testing.assert_array_equal(p.kl(p), 0.0)
    one = a.as_uniform()
    assert (one.kl(one) == 0).all()
    if family.__name__ not in ("Bernoulli", "Categorical"):
        assert (p.kl(a) == np.inf).all()
    assert (a.kl(p) == np.inf).all()


@every_family
@few
@given(seed=seeds)
def test_divergence_is_the_gap_of_the_log_normaliser(family, seed):
    """KL(a || b) = log Z_b - log Z_a + (theta_a - theta_b) . E_a statistics: the definition, and its direction."""
    rng = np.random.default_rng(seed)
    a, b = draw(family, rng), draw(family, rng)
    kl = b.log_normaliser() - a.log_normaliser()
    for x, y, t, rank, name in zip(
        a.naturals, b.naturals, a.expected_statistics(), family.ranks, family.statistics, strict=True
    ):
        dot = ((x - y) * t).sum(axis=tuple(range(-rank, 0))) if rank else (x - y) * t
        kl = kl + dot * {"x^2": -0.5, "x x'": -0.5}.get(name, 1.0)
    if family.__name__ == "Gamma":  # stored statistics are log x and -x; expected ones are given as E x, E log x
        mean, mean_log = a.expected_statistics()
        kl = b.log_normaliser() - a.log_normaliser()
        kl = kl + (a.naturals[0] - b.naturals[0]) * mean_log - (a.naturals[1] - b.naturals[1]) * mean
    # absolute 1e-9: this textbook form subtracts numbers up to 1e4
    np.testing.assert_allclose(a.kl(b), kl, rtol=1e-9, atol=1e-9)


@every_family
def test_entropy_and_divergence_are_averages_of_log_densities(family):
    rng = np.random.default_rng(7)
    a, b = draw(family, rng, (5,)), draw(family, rng, (5,))
    n = 20_000
    x = a.sample(rng, n)
    log_a, log_b = a.log_density(x), b.log_density(x)
    six_errors = 6 * log_a.std(axis=0) / np.sqrt(n) + 1e-12
    assert (np.abs(-log_a.mean(axis=0) - a.entropy()) < six_errors).all()
    six_errors = 6 * (log_a - log_b).std(axis=0) / np.sqrt(n) + 1e-12
    assert (np.abs((log_a - log_b).mean(axis=0) - a.kl(b)) < six_errors).all()


@every_family
def test_draws_have_the_stated_moments(family):
    rng = np.random.default_rng(8)
    a, n = draw(family, rng, (5,)), 20_000
    x = a.sample(rng, n)
    assert x.shape[:2] == (n, 5)
    assert a.sample(rng, (2, 3)).shape[:3] == (2, 3, 5)
    assert a.sample(rng).shape == x.shape[1:]
    one_hot = family.__name__ == "Categorical"
    y = (x[..., None] == np.arange(VECTOR)).astype(float) if one_hot else x
    six_errors = 6 * np.sqrt(a.variance / n)
    assert (np.abs(y.mean(axis=0) - a.mean) < six_errors).all()
    fourth = ((y - a.mean) ** 4).mean(axis=0)
    assert (np.abs(((y - a.mean) ** 2).mean(axis=0) - a.variance) < 6 * np.sqrt(fourth / n)).all()


@every_family
def test_the_same_seed_draws_the_same_bits(family):
    a = draw(family, np.random.default_rng(9))
    x, y = (a.sample(np.random.default_rng(1), 5) for _ in range(2))
    np.testing.assert_array_equal(x, y)


@every_family
@few
@given(seed=seeds)
def test_the_density_is_the_exponential_of_naturals_and_statistics(family, seed):
    rng = np.random.default_rng(seed)
    a, b = draw(family, rng), draw(family, rng)
    x = values(family, rng)
    product = a * b
    # the product's density is that of its factors up to one constant, which the log normalisers give
    constant = product.log_normaliser() - a.log_normaliser() - b.log_normaliser()
    # 1e-8: at draws of the other members log densities reach 1e4 and more
    scale = 1e-12 * (np.abs(a.log_density(x)) + np.abs(b.log_density(x)) + np.abs(constant) + 1)
    assert (np.abs(a.log_density(x) + b.log_density(x) - product.log_density(x) - constant) <= 1e3 * scale).all()
    flat = a.as_uniform()
    if not flat.proper.any():
        np.testing.assert_array_equal(flat.log_density(x), 0.0)
    np.testing.assert_allclose(flat.log_density(x), -flat.log_normaliser(), atol=1e-12)


# ---- improper values --------------------------------------------------------------------------------------------------
@every_family
def test_a_quotient_may_be_improper_and_says_so(family):
    rng = np.random.default_rng(10)
    a = draw(family, rng)
    bad = a.as_uniform() / a**5
    assert_same(bad * a**6, a, 1e-10)
    if family.__name__ in ("Bernoulli", "Categorical"):
        assert bad.proper.all()
        return
    if family.__name__ in ("Beta", "Dirichlet", "Gamma"):
        bad = a.from_naturals(tuple(np.full_like(n, -1.5) for n in a.naturals))
    assert not bad.proper.any()
    np.testing.assert_array_equal(bad.log_normaliser(), 0.0)
    assert np.isnan(bad.entropy()).all()
    assert not np.isfinite(a.kl(bad)).any() and not np.isfinite(bad.kl(a)).any()
    assert "improper" in repr(bad)
    with pytest.raises(ImproperError, match=family.__name__):
        bad.sample(rng)
    for got in (bad.mean, bad.variance, *bad.expected_statistics(), *bad.chart_moments()):
        assert np.shape(got)[: bad.ndim] == bad.shape
    x = values(family, rng)
    assert np.isfinite(bad.log_density(x)).all()
