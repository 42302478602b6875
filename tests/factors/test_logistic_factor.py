"""The logistic factors against plain quadrature, their closed forms, their limits, and each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit, polygamma, psi
from wild_messages import wild_bernoullis, wild_gaussians

from heliograph.factors import Logistic, LogisticBernoulli
from heliograph.factors.integrals.label import LIMITS, label_log_z, label_site
from heliograph.factors.integrals.logistic import logistic_gap, logistic_tilt
from heliograph.factors.integrals.tilt import gaussian_site
from heliograph.families import Bernoulli, Beta, Gaussian


def by_quadrature(m, v, log_f):
    """log Z, mean and variance of N(m, v) f by thirty thousand points around the highest of a coarse grid."""
    sd = np.sqrt(v)
    coarse = np.concatenate([np.linspace(m - 60 * sd, m + 60 * sd, 6001), np.linspace(-60, 60, 1201)])
    height = log_f(coarse) - 0.5 * (coarse - m) ** 2 / v
    inside = coarse[height > height.max() - 45]
    step = max(0.1, 0.02 * sd)
    z = np.linspace(inside.min() - step, inside.max() + step, 30001)
    log_t = log_f(z) - 0.5 * (z - m) ** 2 / v
    t = np.exp(log_t - log_t.max())
    total = np.trapezoid(t, z)
    mean = np.trapezoid((z - m) * t, z) / total
    variance = np.trapezoid((z - m - mean) ** 2 * t, z) / total
    return np.log(total) + log_t.max() - 0.5 * np.log(2 * np.pi * v), m + mean, variance


def check_gaussian(belief, mean, variance, tolerance=1e-10):
    # the reference sums 3e4 rounded numbers: good to some 1e-12
    assert abs(belief.mean - mean) <= tolerance * max(abs(mean), np.sqrt(variance))
    assert belief.variance == pytest.approx(variance, rel=tolerance)


CAVITIES = [(0.0, 2.0), (-1.0, 1.0), (3.0, 0.3), (-6.0, 4.0), (2.0, 0.004), (10.0, 20.0), (-20.0, 50.0), (1.0, 300.0)]


@pytest.mark.parametrize("m,v", CAVITIES)
@pytest.mark.parametrize("label", [0, 1])
def test_the_belief_of_a_label_is_that_of_plain_quadrature(m, v, label):
    incoming = {"z": Gaussian(m, v), "y": Bernoulli.point_mass(label)}
    log_z, mean, variance = by_quadrature(m, v, lambda z: log_expit(z if label else -z))
    check_gaussian(LogisticBernoulli().belief("z", incoming), mean, variance)
    assert LogisticBernoulli().log_z(incoming) == pytest.approx(log_z, abs=1e-10)


@pytest.mark.parametrize("m,v", CAVITIES)
@pytest.mark.parametrize("p", [0.02, 0.6, 0.999])
def test_a_soft_label_mixes_both(m, v, p):
    incoming = {"z": Gaussian(m, v), "y": Bernoulli(p)}
    log_f = lambda z: np.logaddexp(np.log(p) + log_expit(z), np.log1p(-p) + log_expit(-z))  # noqa: E731
    log_z, mean, variance = by_quadrature(m, v, log_f)
    check_gaussian(LogisticBernoulli().belief("z", incoming), mean, variance)
    assert LogisticBernoulli().log_z(incoming) == pytest.approx(log_z, abs=1e-10)
    to_y = LogisticBernoulli().message("y", incoming)
    yes = by_quadrature(m, v, log_expit)[0]
    assert log_expit(to_y.log_odds) == pytest.approx(yes, rel=1e-9)


def test_an_unknown_or_fair_label_says_exactly_nothing():
    z = Gaussian([0.3, 5.0], [2.0, 1e6])
    for y in (Bernoulli([0.5, 0.5]), Bernoulli.point_mass([np.nan, np.nan])):
        message = LogisticBernoulli().message("z", {"z": z, "y": y})
        assert message.is_uniform.all()


def test_missing_labels_leave_the_others_alone():
    z, y = Gaussian([0.3, 0.3, 0.3], [2.0, 2.0, 2.0]), Bernoulli.point_mass([1.0, np.nan, 0.0])
    message = LogisticBernoulli().message("z", {"z": z, "y": y})
    whole = LogisticBernoulli().message("z", {"z": z, "y": Bernoulli.point_mass([1.0, 1.0, 0.0])})
    assert message.is_uniform.tolist() == [False, True, False]
    np.testing.assert_allclose(message[::2].naturals, whole[::2].naturals, rtol=1e-12)


def test_the_fast_rules_agree_with_panels_in_every_class_of_variance():
    rng = np.random.default_rng(0)
    for low, high in zip([1e-9, *LIMITS[:-1]], LIMITS, strict=True):
        v = rng.uniform(low, high, 500)
        m = np.where(rng.random(500) < 0.5, rng.normal(size=500) * 3, rng.uniform(-1.6, 1.6, 500) * v)
        m = np.where(rng.random(500) < 0.1, 50 * np.sqrt(v) * rng.choice([-1, 1], 500), m)
        label = rng.choice([-1.0, 1.0], 500)
        tilt = logistic_tilt(m, v, (label > 0) * 1.0, (label < 0) * 1.0)
        shift, precision = label_site(m, v, label)
        belief = Gaussian.from_naturals((shift + m / v, precision + 1 / v))
        # the trapezoid rule is made for 1e-14, of which the second moment loses two digits
        np.testing.assert_allclose(belief.variance, tilt.ratio * v, rtol=2e-11)
        assert (np.abs(belief.mean - tilt.mean) / np.maximum(np.abs(tilt.mean), np.sqrt(v))).max() < 5e-12
        np.testing.assert_allclose(label_log_z(m, v, label), tilt.log_z, rtol=1e-11, atol=1e-11)


def test_blocks_and_classes_put_every_row_back_in_its_place():
    rng = np.random.default_rng(1)
    n = 9000  # more than two blocks, all classes mixed
    v, m, label = np.exp(rng.uniform(-12, 5, n)), rng.normal(size=n) * 3, rng.choice([-1.0, 1.0], n)
    shift, precision = label_site(m, v, label)
    some = rng.integers(0, n, 40)
    alone = [label_site(m[i : i + 1], v[i : i + 1], label[i : i + 1]) for i in some]
    np.testing.assert_allclose(shift[some], np.ravel([a[0] for a in alone]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(precision[some], np.ravel([a[1] for a in alone]), rtol=1e-8, atol=1e-10)
    assert (precision >= 0).all()  # log-concave: never improper


@pytest.mark.parametrize("x", [-30.0, -1.0, 0.0, 1.0, 5.0])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_a_cavity_that_narrows_to_a_point_sends_the_message_of_the_point(x, power):
    factor, y = LogisticBernoulli(), Bernoulli.point_mass(1.0)
    p = expit(x)
    precision = power * p * (1 - p)
    shift = power * expit(-x) + x * precision
    at_point = factor.message("z", {"z": Gaussian.point_mass(x), "y": y}, power)
    np.testing.assert_allclose([at_point.shift, at_point.naturals[1]], [shift, precision], rtol=1e-14, atol=1e-15)
    for v in (1e-8, 1e-12, 1e-20, 1e-29):
        near = factor.message("z", {"z": Gaussian(x, v), "y": y}, power)
        # of first order in v, and nothing is lost by subtracting two beliefs of precision 1 / v
        assert near.shift == pytest.approx(shift, abs=2 * v + 1e-14)
        assert near.naturals[1] == pytest.approx(precision, abs=2 * v + 1e-14)


@pytest.mark.parametrize("m,v", [(805.0, 512.0), (1573.0, 1024.0), (133.0, 64.0), (5e4, 1e4)])
def test_far_against_the_label_the_sigmoid_is_an_exponential(m, v):
    belief = LogisticBernoulli().belief("z", {"z": Gaussian(m, v), "y": Bernoulli.point_mass(0.0)})
    check_gaussian(belief, m - v, v, 1e-12)
    log_z = LogisticBernoulli().log_z({"z": Gaussian(m, v), "y": Bernoulli.point_mass(0.0)})
    assert log_z == pytest.approx(-m + v / 2, rel=1e-14)


def test_under_a_very_wide_cavity_the_sigmoid_is_a_step():
    v = 1e20
    belief = LogisticBernoulli().belief("z", {"z": Gaussian(0.0, v), "y": Bernoulli.point_mass(1.0)})
    # half normal; the step is soft over a width of 1 in 1e10
    check_gaussian(belief, np.sqrt(2 * v / np.pi), v * (1 - 2 / np.pi), 1e-9)
    to_y = LogisticBernoulli().message("y", {"z": Gaussian(1.0, v), "y": Bernoulli.uniform()})
    assert to_y.p - 0.5 == pytest.approx(1 / np.sqrt(2 * np.pi * v), rel=1e-5)


def test_the_message_is_the_derivative_of_the_evidence():
    h, factor = 1e-5, LogisticBernoulli()
    for m, v in CAVITIES:
        log_z = [factor.log_z({"z": Gaussian(m + d, v), "y": Bernoulli.point_mass(1.0)}) for d in (-h, h)]
        belief = factor.belief("z", {"z": Gaussian(m, v), "y": Bernoulli.point_mass(1.0)})
        assert (log_z[1] - log_z[0]) / (2 * h) == pytest.approx((belief.mean - m) / v, abs=1e-8)  # rounding / h


@pytest.mark.parametrize("power", [0.3, 0.5, 2.0])
def test_powers_of_the_likelihood(power):
    for m, v in CAVITIES:
        incoming = {"z": Gaussian(m, v), "y": Bernoulli.point_mass(0.0)}
        log_z, mean, variance = by_quadrature(m, v, lambda z: power * log_expit(-z))
        message = LogisticBernoulli().message("z", incoming, power)
        check_gaussian(message * incoming["z"], mean, variance)
        assert LogisticBernoulli().log_z(incoming, power) == pytest.approx(log_z, abs=1e-10)


@pytest.mark.parametrize(
    "a,b", [(3.0, 2.0), (100.0, 1.0), (0.5, 500.0), (0.9, 0.1), (0.3, 0.4), (1.9, 1.1), (4e3, 9e3)]
)
@pytest.mark.parametrize("m,v", [(0.5, 2.0), (-3.0, 25.0), (4.0, 0.01), (0.0, 100.0)])
def test_both_beliefs_of_the_logistic_node_are_those_of_plain_quadrature(a, b, m, v):
    incoming = {"z": Gaussian(m, v), "p": Beta(a, b)}
    log_f = lambda z: (a - 1) * log_expit(z) + (b - 1) * log_expit(-z)  # noqa: E731
    log_z, mean, variance = by_quadrature(m, v, log_f)
    check_gaussian(Logistic().belief("z", incoming), mean, variance)
    log_norm = incoming["p"].log_normaliser()
    # rounding of log B(a, b), which is several thousand for the largest pair
    assert Logistic().log_z(incoming) == pytest.approx(log_z - log_norm, abs=1e-10 + 1e-14 * abs(log_norm))
    logs = Logistic().belief("p", incoming).expected_statistics()
    reach = 14 * np.sqrt(variance) + 2 * v * (a + b < 2)  # with a + b < 2 there is another hill
    z = np.linspace(mean - reach, mean + reach, 100001)
    w = log_f(z) - 0.5 * (z - m) ** 2 / v
    w = np.exp(w - w.max())
    w /= w.sum()
    np.testing.assert_allclose(logs, [w @ log_expit(z), w @ log_expit(-z)], rtol=1e-8)


def test_a_beta_with_a_plus_b_of_two_only_moves_the_cavity():
    message = Logistic().message("z", {"z": Gaussian(1.2, 2.5), "p": Beta(0.2, 1.8)})
    np.testing.assert_allclose(message.naturals, [-0.8, 0.0], atol=1e-15)


def test_a_beta_with_a_plus_b_of_one_makes_two_gaussians():
    # (2 cosh(z / 2)) exp((a - b) z / 2) = exp(a z) + exp(-b z) for a + b = 1, here with powers less one
    m, v, a, b = 0.4, 30.0, 0.7, 0.3
    means = np.array([m + v * (a - 1), m - v * (b - 1)])
    weights = np.exp([m * (a - 1) + v * (a - 1) ** 2 / 2, -m * (b - 1) + v * (b - 1) ** 2 / 2])
    log_z = np.log(weights.sum())
    weights /= weights.sum()
    mean = weights @ means
    variance = v + weights @ (means - mean) ** 2
    incoming = {"z": Gaussian(m, v), "p": Beta(a, b)}
    check_gaussian(Logistic().belief("z", incoming), mean, variance, 1e-13)
    assert Logistic().log_z(incoming) == pytest.approx(log_z - Beta(a, b).log_normaliser(), abs=1e-13)


def test_what_an_observed_bernoulli_sends_makes_a_label():
    rng = np.random.default_rng(2)
    z, y = Gaussian(rng.normal(size=50) * 3, np.exp(rng.normal(size=50) * 3)), (rng.random(50) < 0.5) * 1.0
    node = {"z": z, "p": Beta(1.0 + y, 2.0 - y)}
    label = {"z": z, "y": Bernoulli.point_mass(y)}
    np.testing.assert_allclose(
        Logistic().message("z", node).naturals, LogisticBernoulli().message("z", label).naturals, rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(Logistic().log_z(node), LogisticBernoulli().log_z(label) + np.log(2), rtol=1e-11)


@pytest.mark.parametrize("a,b", [(3.0, 2.0), (200.0, 7.5), (1.5, 1.2)])
def test_under_a_uniform_cavity_the_logit_of_a_beta_is_left(a, b):
    incoming = {"z": Gaussian.uniform(), "p": Beta(a, b)}
    belief = Logistic().belief("z", incoming)
    assert belief.mean == pytest.approx(psi(a - 1) - psi(b - 1), rel=1e-14)
    assert belief.variance == pytest.approx(polygamma(1, a - 1) + polygamma(1, b - 1), rel=1e-13)
    np.testing.assert_allclose(Logistic().belief("p", incoming).naturals, [a - 2, b - 2], rtol=1e-14)
    # and a very wide cavity tends to it
    wide = Logistic().belief("z", {"z": Gaussian(0.0, 1e12), "p": Beta(a, b)})
    check_gaussian(wide, belief.mean, belief.variance, 1e-9)


def test_what_cannot_be_normalised_is_answered_with_the_uniform_message():
    for z in (Gaussian.uniform(), Gaussian.from_naturals((np.array(0.5), np.array(-0.1)))):
        assert LogisticBernoulli().message("z", {"z": z, "y": Bernoulli.point_mass(1.0)}).is_uniform
        assert Logistic().message("z", {"z": z, "p": Beta(0.5, 3.0)}).is_uniform
        assert Logistic().message("p", {"z": z, "p": Beta(0.5, 3.0)}).is_uniform
    # an exponential cavity that falls more slowly than the label rises is a Beta on the logit's axis
    z = Gaussian.from_naturals((np.array(-0.25), np.array(0.0)))
    message = LogisticBernoulli().message("z", {"z": z, "y": Bernoulli.point_mass(1.0)})
    belief = message * z
    assert belief.mean == pytest.approx(psi(0.75) - psi(0.25), rel=1e-13)


def test_point_masses_pass_through_the_node():
    assert Logistic().message("p", {"z": Gaussian.point_mass(1.0), "p": Beta(2.0, 3.0)}).point == expit(1.0)
    to_z = Logistic().message("z", {"z": Gaussian(0.0, 1.0), "p": Beta.point_mass(0.8)})
    assert to_z.point == pytest.approx(np.log(4.0), rel=1e-15)
    log_z = Logistic().log_z({"z": Gaussian(0.0, 1.0), "p": Beta.point_mass(0.8)})
    assert log_z == pytest.approx(Gaussian(0.0, 1.0).log_density(np.log(4.0)) - np.log(0.16), rel=1e-14)
    at = Logistic().log_z({"z": Gaussian.point_mass(1.0), "p": Beta(2.0, 3.0)})
    assert at == pytest.approx(Beta(2.0, 3.0).log_density(expit(1.0)), rel=1e-13)


def test_a_narrow_cavity_gives_p_a_narrow_beta_without_losing_digits():
    v = 1e-18
    belief = Logistic().belief("p", {"z": Gaussian(0.7, v), "p": Beta.uniform()})
    # of a narrow Beta, logit has mean log(a / b) and variance 1/a + 1/b
    assert np.log(belief.a / belief.b) == pytest.approx(0.7, rel=1e-12)
    assert 1 / belief.a + 1 / belief.b == pytest.approx(v, rel=1e-8)


def test_the_gap_reaches_for_a_mean_far_from_the_peak():
    # log(1 - p) is -exp(z) here: its mean exp(m + v / 2) lies at the end of the window of N(m, v)
    mean, gap = logistic_gap(np.array([-300.0]), np.array([100.0]), np.zeros(1), np.zeros(1))
    assert mean[0] == pytest.approx(-300.0)
    assert np.log(gap[0]) == pytest.approx(-300.0 + 50.0, abs=1e-9)


def test_the_site_is_the_quotient_of_belief_and_cavity():
    rng = np.random.default_rng(3)
    m, v = rng.normal(size=30), np.exp(rng.normal(size=30) * 2)
    tilt = logistic_tilt(m, v, rng.uniform(0.2, 9, 30), rng.uniform(0.2, 9, 30))
    shift, precision = gaussian_site(m, v, tilt)
    belief = Gaussian(tilt.mean, tilt.ratio * v) / Gaussian(m, v)
    np.testing.assert_allclose([shift, precision], belief.naturals, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(tilt.ratio, 1 + v * tilt.bend, rtol=1e-9)
    np.testing.assert_allclose(tilt.mean, m + v * tilt.slope, rtol=1e-9, atol=1e-11)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_message_gives_nan_or_a_warning(seed):
    rng, n = np.random.default_rng(seed), 12
    z, y = wild_gaussians(rng, n), wild_bernoullis(rng, n)
    a, b = (rng.choice([1, 1, 1, -1], n) * np.exp(rng.uniform(-8, 12, n)) for _ in range(2))
    node = {"z": z, "p": Beta.from_naturals((a - 1, b - 1))}
    for factor, incoming in ((LogisticBernoulli(), {"z": z, "y": y}), (Logistic(), node)):
        for to in factor.ports:
            for power in (1.0, 0.5) if factor.powers else (1.0,):
                assert np.isfinite(factor.message(to, incoming, power).naturals).all()
                assert not np.isnan(factor.log_z(incoming, power)).any()
