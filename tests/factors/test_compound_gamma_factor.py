"""The compound Gamma factor against plain quadrature on the log axis, the beta prime, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, gammaln, hyperu, psi

from heliograph.factors import CompoundGamma
from heliograph.families import Gamma


@pytest.mark.parametrize("s", [0.1, 0.5, 1.0, 5.0, 200.0, 1e4])
@pytest.mark.parametrize("r", [1e-3, 0.1, 5.0, 200.0, 1e4])
@pytest.mark.parametrize("power", [1.0, 0.5])
def test_the_belief_matches_the_mean_and_the_mean_log(s, r, power):
    x = (
        np.linspace(-60 / s - 60, 60, 200001)
        if s < 30
        else np.log(s / r) + np.linspace(-2, 2, 200001) * 20 / np.sqrt(s)
    )
    log_t = s * x - r * np.exp(x) - 2 * power * np.log1p(np.exp(x)) + s * np.log(r) - gammaln(s)
    if s >= 30:  # the factor moves the peak: make sure that it is held
        assert log_t[0] < log_t.max() - 50 > log_t[-1]
    t = np.exp(log_t - log_t.max())
    total = np.trapezoid(t, x)
    mean, mean_log = np.trapezoid(np.exp(x) * t, x) / total, np.trapezoid(x * t, x) / total
    belief = CompoundGamma().belief("tau", {"tau": Gamma(s, r)}, power)
    np.testing.assert_allclose(belief.expected_statistics(), [mean, mean_log], rtol=1e-8, atol=1e-9)
    log_z = np.log(total) + log_t.max()
    # log gamma and s log r of the largest shape are 1e5, and the reference subtracts them
    assert CompoundGamma().log_z({"tau": Gamma(s, r)}, power) == pytest.approx(log_z, rel=1e-8, abs=1e-9)


def test_the_evidence_is_tricomis_function():
    for s, r in ((0.5, 0.3), (3.0, 2.0), (1.5, 8.0)):
        expected = s * np.log(r) + np.log(hyperu(s, s - 1, r))
        assert CompoundGamma().log_z({"tau": Gamma(s, r)}) == pytest.approx(expected, rel=1e-9)  # as good as scipy's is


def test_a_factor_that_hardly_matters_still_speaks_clearly():
    # far below 1, log f is -2 tau + tau^2: to first order a rate of 2, whatever is divided out
    sent = CompoundGamma().message("tau", {"tau": Gamma(100.0, 1e8)})
    assert sent.rate == pytest.approx(2.0, rel=1e-5)


def test_narrow_messages_tend_to_the_point_mass():
    for x in (0.05, 1.0, 30.0):
        at = CompoundGamma().message("tau", {"tau": Gamma.point_mass(x)})
        s = 1e6
        near = CompoundGamma().message("tau", {"tau": Gamma(s, s / x)})
        # of first order in 1 / s; the belief's own shape leaves 1e6 times rounding
        np.testing.assert_allclose(near.naturals, at.naturals, rtol=1e-4, atol=1e-8)
        assert CompoundGamma().log_z({"tau": Gamma.point_mass(x)}) == pytest.approx(-2 * np.log1p(x))
        assert CompoundGamma().belief("tau", {"tau": Gamma.point_mass(x)}).point == x


def test_of_rate_zero_the_beta_prime_is_left():
    s = 0.4
    flat = Gamma.from_naturals((np.array(s - 1.0), np.array(0.0)))
    belief = CompoundGamma().belief("tau", {"tau": flat})
    expected = [s / (1 - s), psi(s) - psi(2 - s)]
    np.testing.assert_allclose(belief.expected_statistics(), expected, rtol=1e-12)
    near = CompoundGamma().belief("tau", {"tau": Gamma(s, 1e-30)})
    np.testing.assert_allclose(near.expected_statistics(), expected, rtol=1e-9)
    assert CompoundGamma().log_z({"tau": flat}) == pytest.approx(betaln(s, 2 - s), rel=1e-13)


def test_what_has_no_mean_or_no_integral_gets_the_uniform_message():
    for naturals in ((0.0, 0.0), (0.5, 0.0), (-2.0, 1.0), (1.0, -1.0)):
        tau = Gamma.from_naturals((np.array(naturals[0]), np.array(naturals[1])))
        assert CompoundGamma().message("tau", {"tau": tau}).is_uniform
    assert CompoundGamma().log_z({"tau": Gamma.uniform()}) == pytest.approx(0.0, abs=1e-14)
    assert CompoundGamma().log_z({"tau": Gamma.from_naturals((np.array(1.0), np.array(-1.0)))}) == np.inf


@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_message_gives_nan_or_a_warning(seed):
    rng, n = np.random.default_rng(seed), 12
    naturals = rng.choice([1, 1, 1, -1], (2, n)) * np.exp(rng.uniform(-12, 14, (2, n)))
    tau = Gamma.from_naturals((naturals[0] - 1, naturals[1] * (rng.random(n) > 0.1)))
    for power in (1.0, 0.5):
        assert np.isfinite(CompoundGamma().message("tau", {"tau": tau}, power).naturals).all()
        assert not np.isnan(CompoundGamma().log_z({"tau": tau}, power)).any()
