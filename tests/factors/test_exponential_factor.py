"""The exp factor against plain quadrature, log-normal and log-gamma closed forms, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, polygamma, psi
from wild_messages import wild_gaussians

from heliograph.factors import Exp
from heliograph.families import Gamma, Gaussian


def by_quadrature(m, v, s, r):
    """log Z, E z, var z, E exp(z) of N(z; m, v) Gamma(exp(z); s, r) by sixty thousand points."""
    sd = np.sqrt(v)
    log_f = lambda z: (s - 1) * z - r * np.exp(z) + s * np.log(r) - gammaln(s)  # noqa: E731
    coarse = np.concatenate([np.linspace(m - 60 * sd, min(m + 60 * sd, 300), 12001), np.linspace(-60, 60, 2401)])
    height = log_f(coarse) - 0.5 * (coarse - m) ** 2 / v
    inside = coarse[height > height.max() - 60]
    step = max(0.1, 0.02 * sd)
    z = np.linspace(inside.min() - step, min(inside.max() + step, 300), 60001)
    log_t = log_f(z) - 0.5 * (z - m) ** 2 / v
    t = np.exp(log_t - log_t.max())
    total = np.trapezoid(t, z)
    t /= total
    mean = np.trapezoid(z * t, z)
    log_z = np.log(total) + log_t.max() - 0.5 * np.log(2 * np.pi * v)
    return log_z, mean, np.trapezoid((z - mean) ** 2 * t, z), np.trapezoid(np.exp(z) * t, z)


@pytest.mark.parametrize("m,v", [(0.0, 1.0), (-4.0, 1.0), (3.0, 0.01), (0.0, 100.0), (10.0, 1.0), (1.0, 3e3)])
@pytest.mark.parametrize("s,r", [(1.0, 1.0), (5.0, 5.0), (0.5, 3.0), (200.0, 10.0), (3.0, 1e-3), (10.0, 1e4)])
def test_both_beliefs_are_those_of_plain_quadrature(m, v, s, r):
    incoming = {"z": Gaussian(m, v), "out": Gamma(s, r)}
    log_z, mean, variance, mean_exp = by_quadrature(m, v, s, r)
    z, out = Exp().belief("z", incoming), Exp().belief("out", incoming)
    # the reference sums 6e4 rounded numbers: good to some 1e-12
    assert abs(z.mean - mean) < 1e-10 * max(abs(mean), np.sqrt(variance))
    assert z.variance == pytest.approx(variance, rel=1e-9)
    np.testing.assert_allclose(out.expected_statistics(), [mean_exp, mean], rtol=1e-9, atol=1e-10)
    assert Exp().log_z(incoming) == pytest.approx(log_z, rel=1e-10, abs=1e-10)


def test_of_an_unknown_out_the_belief_is_the_projected_log_normal():
    m, v = 0.3, 0.8
    incoming = {"z": Gaussian(m, v), "out": Gamma.uniform()}
    np.testing.assert_allclose(Exp().belief("out", incoming).expected_statistics(), [np.exp(m + v / 2), m], rtol=1e-12)
    assert Exp().message("z", incoming).is_uniform
    assert Exp().log_z(incoming) == pytest.approx(0.0, abs=1e-13)


def test_a_gamma_of_rate_zero_only_moves_the_cavity():
    out = Gamma.from_naturals((np.array(2.5), np.array(0.0)))
    np.testing.assert_allclose(
        Exp().message("z", {"z": Gaussian(1.0, 3.0), "out": out}).naturals, [2.5, 0.0], atol=1e-14
    )


@pytest.mark.parametrize("s,r", [(3.0, 2.0), (50.0, 0.1)])
def test_under_a_uniform_cavity_the_log_of_a_gamma_is_left(s, r):
    belief = Exp().belief("z", {"z": Gaussian.uniform(), "out": Gamma(s, r)})
    assert belief.mean == pytest.approx(psi(s - 1) - np.log(r), rel=1e-13)
    assert belief.variance == pytest.approx(polygamma(1, s - 1), rel=1e-13)
    out = Exp().belief("out", {"z": Gaussian.uniform(), "out": Gamma(s, r)})
    np.testing.assert_allclose([out.shape_parameter, out.rate], [s - 1, r], rtol=1e-14)
    wide = Exp().belief("z", {"z": Gaussian(0.0, 1e12), "out": Gamma(s, r)})
    assert wide.mean == pytest.approx(float(belief.mean), rel=1e-10)


def test_a_cavity_that_narrows_to_a_point_sends_the_message_of_the_point():
    s, r = 4.0, 0.7
    for x in (-3.0, 0.0, 2.0):
        bend = r * np.exp(x)
        expected = [(s - 1) - bend + x * bend, bend]
        at_point = Exp().message("z", {"z": Gaussian.point_mass(x), "out": Gamma(s, r)})
        np.testing.assert_allclose(at_point.naturals, expected, rtol=1e-14)
        for v in (1e-8, 1e-16, 1e-29):
            near = Exp().message("z", {"z": Gaussian(x, v), "out": Gamma(s, r)})
            np.testing.assert_allclose(near.naturals, expected, rtol=1e-13 + 10 * v)


def test_a_narrow_cavity_gives_out_a_narrow_gamma_without_losing_digits():
    v = 1e-16
    belief = Exp().belief("out", {"z": Gaussian(0.7, v), "out": Gamma.uniform()})
    assert belief.shape_parameter == pytest.approx(1 / v, rel=1e-10)  # variance of log x is 1 / shape
    assert belief.mean == pytest.approx(np.exp(0.7), rel=1e-14)


def test_point_masses_pass_through():
    to_z = Exp().message("z", {"z": Gaussian(-3.0, 0.5), "out": Gamma.point_mass(40.0)})
    assert to_z.point == np.log(40.0)
    log_z = Exp().log_z({"z": Gaussian(-3.0, 0.5), "out": Gamma.point_mass(40.0)})
    assert log_z == pytest.approx(Gaussian(-3.0, 0.5).log_density(np.log(40.0)) - np.log(40.0), rel=1e-14)
    to_out = Exp().message("out", {"z": Gaussian.point_mass(1.5), "out": Gamma(2.0, 1.0)})
    assert to_out.point == np.exp(1.5)
    at = Exp().log_z({"z": Gaussian.point_mass(1.5), "out": Gamma(2.0, 1.0)})
    assert at == pytest.approx(Gamma(2.0, 1.0).log_density(np.exp(1.5)), rel=1e-13)


def test_what_cannot_be_normalised_is_answered_with_the_uniform_message():
    wild = Gaussian.from_naturals((np.array(0.5), np.array(-0.1)))
    growing = Gamma.from_naturals((np.array(1.0), np.array(-1.0)))
    for z, out in ((wild, Gamma(2.0, 1.0)), (Gaussian(0.0, 1.0), growing), (Gaussian.uniform(), Gamma(0.5, 1.0))):
        incoming = {"z": z, "out": out}
        assert Exp().message("z", incoming).is_uniform
        assert Exp().message("out", incoming).is_uniform
        assert Exp().log_z(incoming) == np.inf


def test_a_mean_that_no_float_holds_is_held_at_the_border_and_warns_nobody():
    for m, v in ((0.0, 1e4), (-1e4, 1.0), (1e4, 1e-8)):
        belief = Exp().belief("out", {"z": Gaussian(m, v), "out": Gamma.uniform()})
        assert np.isfinite(belief.naturals).all()
        assert belief.proper


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_message_gives_nan_or_a_warning(seed):
    rng, n = np.random.default_rng(seed), 12
    shape, rate = rng.choice([1, 1, 1, -1], n) * np.exp(rng.uniform(-8, 14, n)), np.exp(rng.uniform(-14, 14, n))
    out = Gamma.from_naturals((shape - 1, rate * rng.choice([1, 1, 1, 0, -1], n)))
    incoming = {"z": wild_gaussians(rng, n), "out": out}
    for to in ("z", "out"):
        assert np.isfinite(Exp().message(to, incoming).naturals).all()
    assert not np.isnan(Exp().log_z(incoming)).any()
