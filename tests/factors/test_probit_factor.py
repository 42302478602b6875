"""The probit likelihood against plain quadrature, its limits and its tails."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import norm
from wild_messages import wild_bernoullis, wild_gaussians

from heliograph.factors import Positive, ProbitBernoulli
from heliograph.families import Bernoulli, Gaussian


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


CAVITIES = [(0.0, 2.0), (1.0, 0.5), (-2.0, 0.01), (-9.0, 0.1), (10.0, 0.5), (-300.0, 1e4), (3.0, 40.0), (0.4, 1e3)]


@pytest.mark.parametrize("m,v", CAVITIES)
@pytest.mark.parametrize(
    "p,power", [(1.0, 1.0), (0.0, 1.0), (0.3, 1.0), (0.9999, 1.0), (1.0, 0.5), (0.3, 0.4), (0.0, 1.7)]
)
def test_belief_and_evidence_are_those_of_plain_quadrature(m, v, p, power):
    def log_f(z):
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log(p) + power * log_ndtr(z), np.log(1 - p) + power * log_ndtr(-z))

    incoming = {"z": Gaussian(m, v), "y": Bernoulli(p)}
    log_z, mean, variance = by_quadrature(m, v, log_f)
    belief = ProbitBernoulli().belief("z", incoming, power)
    # the reference sums 3e4 rounded numbers: good to some 1e-12
    assert abs(belief.mean - mean) < 1e-10 * max(abs(mean), np.sqrt(variance))
    assert belief.variance == pytest.approx(variance, rel=1e-10)
    assert ProbitBernoulli().log_z(incoming, power) == pytest.approx(log_z, rel=1e-11, abs=1e-10)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_a_cavity_that_narrows_to_a_point_sends_the_message_of_the_point(power):
    factor, y = ProbitBernoulli(), Bernoulli.point_mass(0.0)
    for x in (-3.0, 0.0, 1.0, 8.0):
        hazard = np.exp(norm.logpdf(x) - log_ndtr(-x))
        bend = power * hazard * (hazard - x)
        at_point = factor.message("z", {"z": Gaussian.point_mass(x), "y": y}, power)
        np.testing.assert_allclose(at_point.naturals, [-power * hazard + x * bend, bend], rtol=1e-10)
        for v in (1e-8, 1e-16, 1e-29):
            near = factor.message("z", {"z": Gaussian(x, v), "y": y}, power)
            np.testing.assert_allclose(near.naturals, at_point.naturals, rtol=1e-12 + 100 * v)


@pytest.mark.parametrize("sigmas", [50.0, 500.0, 5e6])
def test_far_against_the_label_nothing_is_lost(sigmas):
    # there Phi(z) is exp(-z^2 / 2) / |z|: a Gaussian of variance 1 times the cavity, up to terms of 1 / mean^2
    v = 1.0
    m = -sigmas * np.sqrt(1 + v)
    belief = ProbitBernoulli().belief("z", {"z": Gaussian(m, v), "y": Bernoulli.point_mass(1.0)})
    assert belief.mean == pytest.approx(m / 2, rel=3 / sigmas**2 + 1e-14)
    assert belief.variance == pytest.approx(0.5, rel=3 / sigmas**2 + 1e-14)
    log_z = ProbitBernoulli().log_z({"z": Gaussian(m, v), "y": Bernoulli.point_mass(1.0)})
    assert log_z == pytest.approx(log_ndtr(-sigmas), rel=1e-14)


def test_it_is_a_positive_sum_of_z_and_unit_noise():
    rng = np.random.default_rng(0)
    m, v, y = rng.normal(size=40) * 3, np.exp(rng.normal(size=40)), Bernoulli(rng.random(40))
    step = Positive().message("y", {"x": Gaussian(m, 1 + v), "y": y})
    np.testing.assert_allclose(ProbitBernoulli().message("y", {"z": Gaussian(m, v), "y": y}).log_odds, step.log_odds)


def test_a_fair_label_or_an_improper_cavity_gets_the_uniform_message():
    assert ProbitBernoulli().message("z", {"z": Gaussian(1.0, 0.5), "y": Bernoulli(0.5)}).is_uniform
    for z in (Gaussian.uniform(), Gaussian.from_naturals((np.array(1.0), np.array(-0.5)))):
        assert ProbitBernoulli().message("z", {"z": z, "y": Bernoulli(1.0)}).is_uniform
        assert ProbitBernoulli().message("y", {"z": z, "y": Bernoulli(1.0)}).is_uniform
        assert ProbitBernoulli().log_z({"z": z, "y": Bernoulli(1.0)}) == np.inf


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_message_gives_nan_or_a_warning(seed):
    rng, n = np.random.default_rng(seed), 12
    incoming = {"z": wild_gaussians(rng, n), "y": wild_bernoullis(rng, n)}
    for to in ("z", "y"):
        for power in (1.0, 0.5):
            assert np.isfinite(ProbitBernoulli().message(to, incoming, power).naturals).all()
            assert not np.isnan(ProbitBernoulli().log_z(incoming, power)).any()
