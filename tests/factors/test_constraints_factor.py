"""The constraints against truncated normal distributions, far tails, slivers and improper cavities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm, truncnorm
from wild_messages import wild_bernoullis, wild_gaussians

from heliograph.factors import Between, Positive
from heliograph.families import Bernoulli, Gaussian
from heliograph.numerics.truncated_normal import interval, soft_step, tail


def moments(m, v, weight, edges):
    """log Z, mean and variance of N(m, v) times a function that is constant between the edges, by scipy."""
    sd = np.sqrt(v)
    edges = [-np.inf, *edges, np.inf]
    mass, first, second = 0.0, 0.0, 0.0
    for a, b, w in zip(edges[:-1], edges[1:], weight, strict=True):
        x = truncnorm((a - m) / sd, (b - m) / sd, m, sd)
        p = w * (norm.cdf((b - m) / sd) - norm.cdf((a - m) / sd))
        mass += p
        if p:
            first += p * x.mean()
            second += p * (x.var() + x.mean() ** 2)
    mean = first / mass
    return np.log(mass), mean, second / mass - mean**2


@pytest.mark.parametrize("m,v", [(0.0, 1.0), (0.7, 2.0), (-1.5, 0.4), (2.0, 1.0), (-30.0, 400.0)])
@pytest.mark.parametrize("p", [0.0, 0.2, 0.9, 1.0])
def test_beliefs_are_those_of_truncated_normals(m, v, p):
    x, y = Gaussian(m, v), Bernoulli(p)
    for factor, weight, edges, data in (
        (Positive(), [1 - p, p], [0.0], {}),
        (Between(), [1 - p, p, 1 - p], [-1.0, 2.5], {"lower": -1.0, "upper": 2.5}),
    ):
        incoming = {"x": x, "y": y, **data}
        log_z, mean, variance = moments(m, v, weight, edges)
        belief = factor.belief("x", incoming)
        # scipy's truncnorm and the plain second moment are good to some 1e-11
        assert belief.mean == pytest.approx(mean, rel=1e-9, abs=1e-9)
        assert belief.variance == pytest.approx(variance, rel=1e-8)
        assert factor.log_z(incoming) == pytest.approx(log_z, abs=1e-12)
        yes = moments(m, v, [0, 1, 0][: len(weight)], edges)[0]
        assert factor.message("y", incoming).p == pytest.approx(np.exp(yes), rel=1e-10)


@pytest.mark.parametrize("t", [-1e8, -1e3, -50.0, -8.0, -2.0001, -1.9999, 0.0, 3.0, 8.0, 37.0])
def test_a_tail_keeps_its_digits_on_both_sides(t):
    one = tail(np.array([t]))
    if t < -20:
        # Mills' expansion: mean 1/x (1 - 2/x^2 + 10/x^4), variance 1/x^2 (1 - 6/x^2 + 50/x^4)
        x = -t
        assert one.mean[0] == pytest.approx((1 - 2 / x**2 + 10 / x**4) / x, rel=100 / x**6 + 1e-15)
        assert one.variance[0] == pytest.approx((1 - 6 / x**2 + 50 / x**4) / x**2, rel=1000 / x**6 + 1e-15)
    else:
        density = lambda u: np.exp(-0.5 * (u - t) ** 2 - (log_ndtr(t) + 0.5 * np.log(2 * np.pi)))  # noqa: E731
        end = max(t, 0) + 9
        mean = quad(lambda u: u * density(u), 0, end, epsabs=0, epsrel=1e-12, limit=200)[0]
        variance = quad(lambda u: (u - mean) ** 2 * density(u), 0, end, epsabs=0, epsrel=1e-11, limit=200)[0]
        assert one.mean[0] == pytest.approx(mean, rel=1e-11)
        assert one.variance[0] == pytest.approx(variance, rel=1e-10)


def test_fifty_sigma_against_the_constraint_leaves_an_exponential():
    belief = Positive().belief("x", {"x": Gaussian(4000.0, 1e4), "y": Bernoulli(0.0)})
    assert belief.mean == pytest.approx(-100 * tail(np.array([-40.0])).mean[0], rel=1e-13)
    far = Positive().belief("x", {"x": Gaussian(-1e9, 1.0), "y": Bernoulli(1.0)})
    # the belief's own precision is 1e18, of which the cavity's shift of 1e9 hides nothing
    assert far.mean == pytest.approx(1e-9, rel=1e-12)
    assert far.variance == pytest.approx(1e-18, rel=1e-12)


def test_far_on_the_right_side_the_message_is_exactly_uniform():
    for m, v, y in ((400.0, 11.0, 1.0), (-400.0, 11.0, 0.0), (1e8, 1.0, 1.0)):
        assert Positive().message("x", {"x": Gaussian(m, v), "y": Bernoulli(y)}).is_uniform
        assert Positive().log_z({"x": Gaussian(m, v), "y": Bernoulli(y)}) == 0.0
    bounds = {"lower": 0.0, "upper": 1.0}
    assert Between().message("x", {"x": Gaussian(0.3, 1e-5), "y": Bernoulli(1.0), **bounds}).is_uniform


def test_a_fair_coin_says_nothing():
    assert Positive().message("x", {"x": Gaussian(0.3, 2.0), "y": Bernoulli(0.5)}).is_uniform
    sent = Between().message("x", {"x": Gaussian(0.3, 2.0), "y": Bernoulli(0.5), "lower": -1.0, "upper": 1.0})
    assert sent.is_uniform


def test_a_nearly_certain_label_against_the_evidence_is_no_cancellation():
    # p = 1 - exp(-40): where P(x > 0) is exp(-53) the other side still wins, and its variance is the cavity's
    step = soft_step(np.array([-10.0]), np.array([40.0]))
    odds = np.exp(40 + log_ndtr(-10.0) - log_ndtr(10.0))
    assert step.mean[0] == pytest.approx(-10 / (1 + odds), rel=1e-6)
    assert step.variance[0] == pytest.approx(1 - step.loss[0], rel=1e-12)
    # and where the label wins all the same, a thousand deviations out, what is left is its own narrow tail
    step, cut = soft_step(np.array([-1e3]), np.array([1e9])), tail(np.array([-1e3]))
    assert step.mean[0] == pytest.approx(cut.mean[0], rel=1e-14)
    assert step.variance[0] == pytest.approx(cut.variance[0], rel=1e-14)


@pytest.mark.parametrize("width", [1e-9, 1e-3, 0.5])
@pytest.mark.parametrize("middle", [0.0, 3.0, 40.0, -1e4])
def test_a_sliver_is_a_piece_of_an_exponential(width, middle):
    # the density exp(-middle d - d^2 / 2) over the sliver, in units in which nothing is small
    mean = middle + width * 0.5
    d, w = np.polynomial.legendre.leggauss(60)
    d = 0.5 * width * (d + 1) if middle >= 0 else 0.5 * width * (d - 1)
    edge = middle if middle >= 0 else middle + width
    log_t = -edge * d - 0.5 * d * d
    keep = log_t > log_t.max() - 60
    if abs(middle) * width > 30:  # all of it within 60 / |edge| of the edge
        reach = 60 / abs(edge)
        d, w = np.polynomial.legendre.leggauss(60)
        d = 0.5 * reach * (d + 1) * np.sign(edge)
        log_t, keep = -edge * d - 0.5 * d * d, np.ones(60, bool)
    t = w[keep] * np.exp(log_t[keep] - log_t.max())
    mean = edge + t @ d[keep] / t.sum()
    variance = t @ (d[keep] - t @ d[keep] / t.sum()) ** 2 / t.sum()
    one = np.ones(1)
    cut = interval(middle * one, (middle + width) * one, 0.0 * one, one)
    assert cut.mean[0] - edge == pytest.approx(mean - edge, rel=1e-9, abs=1e-15 * abs(edge))
    assert cut.variance[0] == pytest.approx(variance, rel=1e-11)
    belief = Between().belief(
        "x", {"x": Gaussian(0.0, 1.0), "lower": middle, "upper": middle + width, "y": Bernoulli(1.0)}
    )
    assert belief.variance == pytest.approx(variance, rel=1e-10)
    assert abs(belief.mean - mean) < 1e-10 * max(abs(mean), np.sqrt(variance))


def test_between_finite_bounds_a_uniform_cavity_is_a_uniform_belief():
    uniform = Between().belief("x", {"x": Gaussian.uniform(), "lower": 1.0, "upper": 3.0, "y": Bernoulli(1.0)})
    assert (float(uniform.mean), float(uniform.variance)) == pytest.approx((2.0, 1 / 3), rel=1e-14)


@pytest.mark.parametrize(
    "shift,precision", [(2.0, 0.0), (-3.0, 0.0), (0.5, -1.0), (2.0, -0.8), (30.0, -20.0), (1.0, -900.0)]
)
def test_between_finite_bounds_an_improper_cavity_is_cut_like_any_other(shift, precision):
    t = lambda x: np.exp(shift * (x - 3) - 0.5 * precision * (x * x - 9))  # noqa: E731
    total, first = (quad(lambda x, k=k: x**k * t(x), 1, 3, epsabs=0, epsrel=1e-12)[0] for k in (0, 1))
    mean = first / total
    variance = quad(lambda x: (x - mean) ** 2 * t(x), 1, 3, epsabs=0, epsrel=1e-12)[0] / total
    x = Gaussian.from_naturals((np.array(shift), np.array(precision)))
    incoming = {"x": x, "lower": 1.0, "upper": 3.0, "y": Bernoulli(1.0)}
    belief = Between().belief("x", incoming)
    assert belief.mean == pytest.approx(mean, rel=1e-10)
    assert belief.variance == pytest.approx(variance, rel=1e-9)
    log_z = np.log(total) + 3 * shift - 4.5 * precision  # as exp(shift x - precision x^2 / 2), not normalised
    assert Between().log_z(incoming) == pytest.approx(log_z, rel=1e-11)


def test_an_exponential_cavity_that_falls_on_the_allowed_side_is_answered():
    x = Gaussian.from_naturals((np.array(-2.0), np.array(0.0)))
    belief = Positive().belief("x", {"x": x, "y": Bernoulli(1.0)})
    assert (float(belief.mean), float(belief.variance)) == pytest.approx((0.5, 0.25))
    assert Positive().log_z({"x": x, "y": Bernoulli(1.0)}) == pytest.approx(np.log(0.5))
    for y in (0.0, 0.3):
        assert Positive().message("x", {"x": x, "y": Bernoulli(y)}).is_uniform
    half_open = {"x": x, "lower": 1.0, "upper": np.inf, "y": Bernoulli(1.0)}
    assert float(Between().belief("x", half_open).mean) == pytest.approx(1.5)


def test_other_improper_cavities_get_the_uniform_message():
    for x in (Gaussian.uniform(), Gaussian.from_naturals((np.array(0.5), np.array(-1.0)))):
        assert Positive().message("x", {"x": x, "y": Bernoulli(1.0)}).is_uniform
        assert Positive().message("y", {"x": x, "y": Bernoulli(1.0)}).is_uniform
        assert Positive().log_z({"x": x, "y": Bernoulli(1.0)}) == np.inf
        bounds = {"lower": 0.0, "upper": 1.0}
        assert Between().message("x", {"x": x, "y": Bernoulli(0.0), **bounds}).is_uniform


def test_infinite_bounds_are_no_bounds():
    rng = np.random.default_rng(0)
    x, y = Gaussian(rng.normal(size=20) * 3, np.exp(rng.normal(size=20))), Bernoulli(rng.random(20))
    one_sided = Between().message("x", {"x": x, "y": y, "lower": 0.0, "upper": np.inf})
    np.testing.assert_allclose(
        one_sided.naturals, Positive().message("x", {"x": x, "y": y}).naturals, rtol=1e-9, atol=1e-12
    )
    none = Between().message("x", {"x": x, "y": y, "lower": -np.inf, "upper": np.inf})
    np.testing.assert_allclose(none.naturals, 0.0, atol=1e-300)


def test_point_masses():
    for value, holds in ((0.5, True), (2.0, False)):
        x, bounds = Gaussian.point_mass(value), {"lower": 0.0, "upper": 1.0}
        y = Between().message("y", {"x": x, "y": Bernoulli(0.3), **bounds})
        assert y.point == float(holds)
        assert Between().message("x", {"x": x, "y": Bernoulli(0.3), **bounds}).is_uniform
        expected = np.log(0.3 if holds else 0.7)
        assert Between().log_z({"x": x, "y": Bernoulli(0.3), **bounds}) == pytest.approx(expected)
    assert Positive().message("y", {"x": Gaussian.point_mass(-1.0), "y": Bernoulli(0.5)}).point == 0.0
    assert Positive().log_z({"x": Gaussian.point_mass(-1.0), "y": Bernoulli(0.25)}) == pytest.approx(np.log(0.75))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_message_gives_nan_or_a_warning(seed):
    rng, n = np.random.default_rng(seed), 12
    incoming = {"x": wild_gaussians(rng, n), "y": wild_bernoullis(rng, n)}
    lower = rng.normal(size=n) * rng.choice([1, 1e6], n)
    upper = np.where(rng.random(n) < 0.1, np.inf, lower + np.exp(rng.uniform(-12, 12, n)))
    bounds = {"lower": np.where(rng.random(n) < 0.1, -np.inf, lower), "upper": upper}
    for factor, data in ((Positive(), {}), (Between(), bounds)):
        for to in ("x", "y"):
            assert np.isfinite(factor.message(to, {**incoming, **data}).naturals).all()
            assert not np.isnan(factor.log_z({**incoming, **data})).any()


def test_a_plate_of_known_signs_is_answered_as_its_rows_are_one_by_one_in_the_general_way():
    t = np.r_[-1e8, -40.0, np.linspace(-6.0, 6.0, 9001), 40.0]  # more rows than are taken at a time
    sign, sd = np.where(np.arange(t.size) % 3, 1.0, -1.0), np.geomspace(1e-3, 1e3, t.size)
    x, y = Gaussian(sign * t * sd, sd**2), Bernoulli((sign + 1.0) / 2.0)
    whole = Positive().message("x", {"x": x, "y": y})
    general = Positive().message("x", {"x": x.reshape(-1, 1), "y": y.reshape(-1, 1)})
    assert whole.precision == pytest.approx(general.precision.ravel(), rel=1e-12)
    assert whole.shift == pytest.approx(general.shift.ravel(), rel=1e-11)


def test_a_long_plate_of_comparisons_with_rows_far_out_is_answered_like_short_ones():
    rng = np.random.default_rng(3)
    n = 9000
    x, label = Gaussian(rng.normal(0.0, 2.0, n), rng.uniform(0.5, 2.0, n)), rng.random(n) < 0.5
    whole = Positive().message("x", {"x": x, "y": Bernoulli(label * 1.0)})
    some = np.argsort(np.where(label, x.mean, -x.mean))[:: n // 60]  # from far on the wrong side on
    for k in some:
        alone = Positive().belief("x", {"x": x[k], "y": Bernoulli(label[k] * 1.0)})  # one number goes another way
        assert (x * whole)[k].mean == pytest.approx(alone.mean, rel=1e-11, abs=1e-12)
        assert (x * whole)[k].variance == pytest.approx(alone.variance, rel=1e-11)
