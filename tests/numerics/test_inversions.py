"""From expected statistics back to parameters: exact over 1e-6 .. 1e8, and nothing hangs or warns beyond.

Reference numbers were computed with mpmath at 80 digits from the definitions, for the double nearest to each parameter.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import digamma, log_expit, logsumexp, polygamma

from heliograph.families import Beta, Dirichlet, Gamma
from heliograph.numerics import gamma_function
from heliograph.numerics import inverse_dirichlet as dirichlet_module
from heliograph.numerics import inverse_logit_moments as logit_module
from heliograph.numerics.excess import log_excess
from heliograph.numerics.inverse_digamma import inverse_digamma, inverse_digamma_gap, inverse_trigamma
from heliograph.numerics.inverse_dirichlet import dirichlet_centre, inverse_dirichlet
from heliograph.numerics.inverse_logit_moments import inverse_logit_moments

#    x, log x - psi(x), psi'(x), x psi'(x) - 1, log Gamma(x) without Stirling's terms
SPECIAL = np.array(
    [
        (1e-6, 999986.76170346204965, 1000000000001.6450222, 999999.00000164497691, 5.9888309840731798623),
        (1e-3, 993.66781665282814262, 1000001.6425331958273, 999.00164253319584816, 2.5422704679670945415),
        (0.5, 1.27036284546147817, 4.9348022005446793094, 1.4674011002723396547, 0.15342640972002734529),
        (1.4616, 0.37956283233289025596, 0.96770071146508354512, 0.41439135987736611951, 0.056217468959305762594),
        (3, 0.175827953569642552, 0.39493406684822643647, 0.18480220054467930942, 0.027677925684998339149),
        (9.75, 0.052157749965179796636, 0.10800324333663185456, 0.053031622532160581963, 0.0085440205058485877043),
        (10.25, 0.049572914897693215731, 0.1024745215179918668, 0.050363845559416634694, 0.0081275088233059995857),
        (1e3, 0.00050008333332500000397, 0.0010005001666666333334, 0.00050016666663333335714, 0.000083333330555556349),
        (1e8, 5.0000000083333333333e-9, 1.0000000050000000167e-8, 5.0000000166666666667e-9, 8.3333333333333333056e-10),
    ]
)
#    a, b, E log p, E log(1 - p), gap, mean of the logit, its variance
BETA = np.array(
    [
        (1e-6, 1e-6, -500000.00000164495309, -500000.00000164495309, 499999.30685446439314, 0.0, 2000000000003.2900443),
        (1e-6, 1e8, -1000018.9978947589663, -1.0000000049999949714e-14, 1.0000000049999949714e-14,
         -1000018.9978947589663, 1000000000001.6450222),
        (1e-3, 0.2, -995.31267429583641277, -0.026142260618321123945, 0.026142260618321123945,
         -995.28653203521809165, 1000027.9099104012511),
        (0.5, 3, -3.0666666666666666667, -0.18037230554677604783, 0.12609006946395063991,
         -2.8862943611198906188, 5.3297362673929057459),
        (1, 1, -1.0, -1.0, 0.30685281944005469058, 0.0, 3.2898681336964528729),
        (2.5, 40, -3.0345365958548504299, -0.061365862465250491199, 0.011489717871119636092,
         -2.9731707333895999387, 0.51567285994152589313),
        (30, 1e4, -5.8288478969934465576, -0.0029956585361220305791, 0.000049713365706057013723,
         -5.825852238457324527, 0.03399506535790661088),
        (1e8, 1e8, -0.69314718305994531567, -0.69314718305994531567, 2.50000000625e-9, 0.0, 2.0000000100000000333e-8),
        (1e8, 3e5, -0.0029955089947536134576, -5.8121401609763735584, 4.9850435179303654983e-9,
         5.8091446519816199449, 3.3433388889450617286e-6),
    ]
)  # fmt: skip
GRID = np.array([*(10.0 ** np.arange(-6, 9)), 0.5, 3.0, 30.0])


def relative(got, true):
    return np.abs(np.asarray(got) / true - 1.0)


def test_the_special_functions_keep_their_digits_from_1e_6_to_1e8():
    x, gap, trigamma, excess, binet = SPECIAL.T
    assert relative(gamma_function.trigamma(x), trigamma).max() < 1e-15
    # below 10 these are differences of numbers 50 (gap, excess) and 2,000 (binet) times as large
    assert relative(gamma_function.digamma_gap(x), gap).max() < 1e-14
    assert relative(gamma_function.trigamma_excess(x), excess).max() < 1e-14
    assert relative(gamma_function.binet(x), binet).max() < 1e-12
    first, second = gamma_function.trigammas(x)
    np.testing.assert_array_equal(first, gamma_function.trigamma(x))
    np.testing.assert_allclose(second, -polygamma(2, x), rtol=1e-14)


def test_excess_is_exact_near_nought_and_far_from_it():
    d = np.array([-1 + 1e-9, -0.5, -0.0401, -0.0399, -1e-9, 0.0, 1e-13, 0.0399, 0.0401, 1.0, 1e9])
    true = [float(sum((-x) ** k / k for k in range(2, 60))) if abs(x) < 0.1 else x - np.log1p(x) for x in d]
    np.testing.assert_allclose(log_excess(d), true, rtol=1e-13)
    # a ratio so small that subtracting 1 loses it
    np.testing.assert_allclose(log_excess(np.array(-1.0), np.array(1e-30)), -1 - np.log(1e-30), rtol=1e-15)


def test_a_gamma_shape_comes_back_from_its_gap_to_rounding():
    assert relative(inverse_digamma_gap(SPECIAL[:, 1]), SPECIAL[:, 0]).max() < 1e-14
    x = 10.0 ** np.linspace(-8, 12, 2001)
    # just below 10 the gap is a difference of numbers 50 times as large, there and back
    assert relative(inverse_digamma_gap(gamma_function.digamma_gap(x)), x).max() < 3e-14


def test_trigamma_and_digamma_are_inverted_to_rounding():
    assert relative(inverse_trigamma(SPECIAL[:, 2]), SPECIAL[:, 0]).max() < 1e-15
    x = 10.0 ** np.linspace(-8, 12, 2001)
    assert relative(inverse_trigamma(polygamma(1, x)), x).max() < 2e-14  # 2e-14: SciPy's own rounding
    # psi(1e8) = 18.4 knows its argument to 18.4 eps: 4e-15
    x = 10.0 ** np.linspace(-8, 8, 2001)
    assert relative(inverse_digamma(digamma(x)), x).max() < 2e-14


def test_a_beta_comes_back_from_its_mean_logit_and_gap_to_rounding():
    a, b, _, _, gap, mean, _ = BETA.T
    got = inverse_dirichlet(np.stack([log_expit(mean), log_expit(-mean)], axis=-1), gap)
    # parameters near 0 are known through 1 / a: rounding of the mean logit is 1e-16 / a of the other parameter
    tolerance = 1e-13 + 1e-15 / np.minimum(a, b)
    assert (relative(got, BETA[:, :2]).max(axis=-1) < tolerance).all()


def test_every_pair_of_beta_parameters_comes_back():
    ab = np.array(list(itertools.product(GRID, GRID)))
    log_centre, gap = dirichlet_centre(ab)
    error = relative(inverse_dirichlet(log_centre, gap), ab).max(axis=-1)
    assert (error < 1e-13 + 1e-15 / ab.min(axis=-1)).all()


def test_the_split_statistics_are_those_of_the_definition():
    ab = BETA[:, :2]
    log_centre, gap = dirichlet_centre(ab)
    np.testing.assert_allclose(gap, BETA[:, 4], rtol=1e-10)  # eps / a where one is 1e-6 and the other large
    np.testing.assert_allclose(gap[3:], BETA[3:, 4], rtol=2e-14)
    np.testing.assert_allclose(log_centre - gap[:, None], BETA[:, 2:4], rtol=1e-14, atol=1e-23)
    np.testing.assert_allclose(Beta(*ab.T).chart_moments()[0], BETA[:, 5], rtol=1e-10, atol=1e-9)


def test_expected_statistics_keep_their_digits():
    a, b, first, second, *_ = BETA.T
    got = Beta(a, b).expected_statistics()
    # 1 + (1e-6 - 1) is 1e-6 only to 1e-10 of itself: that is what a stored natural parameter knows
    tolerance = 2e-14 + 3e-16 / np.minimum(a, b)
    assert (relative(got[0], first) < tolerance).all()
    assert (relative(got[1], second) < tolerance).all()


@pytest.mark.parametrize("n_categories", [2, 3, 5, 20])
def test_concentrations_of_many_categories_come_back(n_categories):
    rng = np.random.default_rng(n_categories)
    for low, high in [(-6, 8), (-1, 2), (0, 8), (-6, 0)]:
        a = 10.0 ** rng.uniform(low, high, (300, n_categories))
        error = relative(inverse_dirichlet(*dirichlet_centre(a)), a).max(axis=-1)
        assert (error < 1e-12 + 2e-15 / a.min(axis=-1)).all()


def test_the_bracketed_search_agrees_with_newton():
    """It answers for whatever Newton leaves over; here it answers for all."""
    rng = np.random.default_rng(0)
    a = 10.0 ** rng.uniform(-4, 6, (200, 3))
    log_centre, gap = dirichlet_centre(a)
    assert relative(dirichlet_module._bracket_total(log_centre, gap[:, None]), a).max() < 1e-9
    a, b = np.sort(10.0 ** rng.uniform(-4, 6, (2, 200)), axis=0)
    mean, variance = digamma(a) - digamma(b), polygamma(1, a) + polygamma(1, b)
    assert relative(logit_module._bracket_moments(mean, variance), [a, b]).max() < 1e-9
    newton, settled = logit_module._newton_moments(mean, variance)
    assert settled.all() and relative(newton, [a, b]).max() < 1e-9


def test_newton_needs_no_help_in_ordinary_ranges():
    rng = np.random.default_rng(1)
    for n_categories in (2, 3, 10):
        log_centre, gap = dirichlet_centre(10.0 ** rng.uniform(-2, 5, (2000, n_categories)))
        assert dirichlet_module._newton_total(log_centre, gap[:, None])[1].all()
    # and hardly any over the whole range: the start is right where both are large, one is, or none is
    log_centre, gap = dirichlet_centre(10.0 ** rng.uniform(-6, 8, (2000, 2)))
    assert dirichlet_module._newton_total(log_centre, gap[:, None])[1].mean() > 0.99


def test_what_newton_leaves_over_is_found_by_the_bracket(monkeypatch):
    monkeypatch.setattr(dirichlet_module, "NEWTON_STEPS", 1)
    monkeypatch.setattr(logit_module, "NEWTON_STEPS", 1)
    a = np.array([[0.3, 2.0], [50.0, 7.0]])
    np.testing.assert_allclose(inverse_dirichlet(*dirichlet_centre(a)), a, rtol=1e-12)
    mean, variance = digamma(a[:, 0]) - digamma(a[:, 1]), polygamma(1, a).sum(axis=1)
    np.testing.assert_allclose(np.stack(inverse_logit_moments(mean, variance), axis=1), a, rtol=1e-12)


def test_a_beta_comes_back_from_the_moments_of_its_logit():
    a, b, *_, mean, variance = BETA.T
    got = np.stack(inverse_logit_moments(mean, variance), axis=-1)
    # psi(a) = -1 / a carries the other parameter only to 1e-16 / a
    assert (relative(got, BETA[:, :2]).max(axis=-1) < 1e-13 + 1e-15 / np.minimum(a, b)).all()
    ab = np.array(list(itertools.product(GRID, GRID)))
    mean, variance = digamma(ab[:, 0]) - digamma(ab[:, 1]), polygamma(1, ab).sum(axis=-1)
    got = np.stack(inverse_logit_moments(mean, variance), axis=-1)
    # psi of 1e8 is 18, so the mean logit knows large parameters to 40 eps
    assert (relative(got, ab).max(axis=-1) < 1e-13 + 1e-15 / ab.min(axis=-1)).all()


# ---- the families' own projections over the whole range -----------------------------------------------------------------
def test_gamma_projection_is_the_identity_from_1e_6_to_1e8():
    shape, rate = (x.ravel() for x in np.meshgrid(GRID, GRID))
    a = Gamma(shape, rate)
    back = Gamma.from_statistics(*a.expected_statistics())
    # the shape is read from log E x - E log x = about 1 / (2 shape), a difference of two logarithms of size L, known
    # to eps L: relative eps L 2 shape. Below 1 the stored natural parameter shape - 1 knows it to eps / shape.
    size = np.maximum(1.0, np.abs(np.log(shape / rate)))
    tolerance = 4e-16 * (10 + 4 * shape * size + 1 / shape)
    assert (relative(back.shape_parameter, shape) < tolerance).all()
    assert (relative(back.rate, rate) < tolerance).all()
    np.testing.assert_allclose(back.mean, a.mean, rtol=1e-9 / 3)
    # with the gap supplied apart nothing is lost
    better = Gamma.from_mean_and_log_gap(a.mean, a.log_gap())
    tolerance = 2e-14 + 3e-16 / shape
    assert (relative(better.shape_parameter, shape) < tolerance).all()
    assert (relative(better.rate, rate) < tolerance).all()


def test_beta_projection_is_the_identity_from_1e_6_to_1e8():
    a, b = (x.ravel() for x in np.meshgrid(GRID, GRID))
    m = Beta(a, b)
    back = Beta.from_statistics(*m.expected_statistics())
    low, high = np.minimum(a, b), np.maximum(a, b)
    # the total is read from -log(exp(E log p) + exp(E log(1 - p))), near a / b or 1 / (2 a): a difference of numbers of
    # the size of the larger E log, at most 1, so relative eps times the smaller parameter (but where both are large)
    # (2 eps over the smaller parameter on some builds of SciPy, whose digamma is right to a few eps)
    tolerance = 1e-15 * (100 + 10 * low + 3 / low) + 1e-15 * low * np.minimum(high / low, 10)
    assert (relative(back.a, a) < tolerance).all()
    assert (relative(back.b, b) < tolerance).all()
    better = Beta.from_mean_logit_and_gap(m.chart_moments()[0], dirichlet_centre(np.stack([a, b], axis=-1))[1])
    tolerance = 1e-13 + 3e-15 / low
    assert (relative(better.a, a) < tolerance).all()
    assert (relative(better.b, b) < tolerance).all()


def test_dirichlet_projection_is_the_identity_from_1e_6_to_1e8():
    rng = np.random.default_rng(2)
    a = 10.0 ** rng.uniform(-6, 8, (500, 4))
    m = Dirichlet(a)
    back = Dirichlet.from_statistics(*m.expected_statistics())
    low = np.sort(a, axis=-1)
    # as for Beta, with the sum of all but the largest in the place of the smaller parameter
    tolerance = 1e-15 * (100 + 100 * low[:, :-1].sum(axis=-1) + 2 / low[:, 0])
    assert (relative(back.concentration, a).max(axis=-1) < tolerance).all()
    better = Dirichlet.from_log_centre_and_gap(*dirichlet_centre(a))
    assert (relative(better.concentration, a).max(axis=-1) < 1e-12 + 2e-15 / low[:, 0]).all()


def test_charts_are_the_identity_from_1e_6_to_1e8():
    a, b = (x.ravel() for x in np.meshgrid(GRID, GRID))
    back = Beta.from_chart_moments(*Beta(a, b).chart_moments())
    tolerance = 1e-13 + 1e-15 / np.minimum(a, b)
    assert (relative(back.a, a) < tolerance).all() and (relative(back.b, b) < tolerance).all()
    keep = a >= 3e-3  # a Gamma of smaller shape has log x far below the logarithm of any double's rate
    back = Gamma.from_chart_moments(*Gamma(a[keep], b[keep]).chart_moments())
    assert (relative(back.shape_parameter, a[keep]) < 1e-14 + 3e-16 / a[keep]).all()
    assert (relative(back.rate, b[keep]) < 1e-13 + 2e-15 / a[keep]).all()


# ---- no warning, no hanging ---------------------------------------------------------------------------------------------
def test_no_number_makes_an_inversion_warn_or_hang():
    rng = np.random.default_rng(3)
    n = 300
    signs = rng.choice([-1.0, 1.0], n)
    wide, other = 10.0 ** rng.uniform(-300, 300, (2, n))
    z = signs * 10.0 ** rng.uniform(-8, 8, n)
    shares = np.log(rng.dirichlet([0.3, 0.3, 0.3], n) + 1e-30)
    with np.errstate(all="raise", under="ignore"):
        for got in (
            inverse_digamma_gap(wide),
            inverse_trigamma(wide),
            inverse_digamma(z),
            inverse_digamma(-wide),
        ):
            assert (got >= 0).all() and np.isfinite(got).all()
        for m in (
            Gamma.from_mean_and_log_gap(np.clip(other, 1e-150, 1e150), np.clip(wide, 1e-150, None)),
            Gamma.from_chart_moments(np.clip(z, -600, 600), wide),
            Beta.from_mean_logit_and_gap(z, wide),
            Beta.from_mean_logit_and_gap(z, 10.0 ** rng.uniform(-20, 10, n)),
            Beta.from_chart_moments(z, wide),
            Dirichlet.from_log_centre_and_gap(shares - logsumexp(shares, axis=-1, keepdims=True), wide),
        ):
            assert m.proper.all()
            assert all(np.isfinite(x).all() for x in m.naturals)


def test_statistics_at_their_limit_are_point_masses():
    assert Gamma.from_statistics(2.0, np.log(2.0)).is_point
    assert Gamma.from_mean_and_log_gap([2.0, 2.0], [0.0, 0.5]).is_point.tolist() == [True, False]
    beta = Beta.from_statistics(np.log(0.25), np.log(0.75))
    assert beta.is_point
    np.testing.assert_allclose(beta.mean, 0.25, rtol=1e-15)
    dirichlet = Dirichlet.from_statistics(np.log([[0.2, 0.3, 0.5], [0.1, 0.1, 0.1]]))
    assert dirichlet.is_point.tolist() == [True, False]
    np.testing.assert_allclose(dirichlet.mean[0], [0.2, 0.3, 0.5], rtol=1e-15)
    np.testing.assert_allclose(dirichlet.expected_statistics()[0][1], np.log(0.1), rtol=1e-12)
