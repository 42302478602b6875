"""A Gamma with a fixed shape and a known or unknown rate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import psi
from scipy.stats import gamma

from heliograph.factors import GammaRate
from heliograph.families import Gamma


def by_grid(x: Gamma, s: float, rate: Gamma, power: float = 1.0) -> dict:
    """Tilted statistics on a grid in (log x, log rate), the trapezoid rule with f itself at the nodes."""
    u = np.linspace(-28, 9, 1481)
    xs, rs = np.exp(u)[:, None], np.exp(u)[None, :]
    log_w = power * (s * np.log(rs) + (s - 1) * np.log(xs) - rs * xs - float(np.log(gamma_function(s))))
    log_w = log_w + x.log_density(xs) + u[:, None] + rate.log_density(rs) + u[None, :]
    w = np.exp(log_w - log_w.max())
    z = w.sum()
    return {
        "log_z": np.log(z * (u[1] - u[0]) ** 2) + log_w.max(),
        "x": ((w * xs).sum() / z, (w * u[:, None]).sum() / z),
        "rate": ((w * rs).sum() / z, (w * u[None, :]).sum() / z),
    }


def gamma_function(s: float) -> float:
    from scipy.special import gamma as function

    return function(s)


@pytest.mark.parametrize("power", [1.0, 0.5])
@pytest.mark.parametrize(
    "x,s,rate",
    [
        (Gamma(2.0, 1.0), 1.5, Gamma(3.0, 2.0)),
        (Gamma(5.0, 6.0), 2.5, Gamma(0.9, 4.0)),
        (Gamma(3.0, 1.0), 10.0, Gamma(20.0, 10.0)),
        (Gamma(1.2, 0.1), 0.9, Gamma(1.5, 1.0)),
    ],
)
def test_beliefs_and_evidence_match_a_grid(x, s, rate, power):
    expected = by_grid(x, s, rate, power)
    incoming = {"x": x, "shape": s, "rate": rate}
    for port in ("x", "rate"):
        statistics = GammaRate().belief(port, incoming, power).expected_statistics()
        np.testing.assert_allclose(statistics, expected[port], rtol=1e-8, atol=1e-9)  # the grid's own error
    np.testing.assert_allclose(GammaRate().log_z(incoming, power), expected["log_z"], rtol=1e-9)


def test_known_ends_give_conjugate_messages():
    f = GammaRate()
    for own in (Gamma(3.0, 4.0), Gamma.uniform(), Gamma(1e7, 1.0)):
        sent = f.message("rate", {"x": np.array(0.7), "shape": 2.5, "rate": own})
        np.testing.assert_allclose([sent.shape_parameter, sent.rate], [3.5, 0.7], rtol=1e-15)
        sent = f.message("x", {"x": own, "shape": 2.5, "rate": np.array(4.0)})
        np.testing.assert_allclose([sent.shape_parameter, sent.rate], [2.5, 4.0], rtol=1e-15)
    both = f.log_z({"x": np.array(0.7), "shape": 2.5, "rate": np.array(4.0)})
    np.testing.assert_allclose(both, gamma.logpdf(0.7, 2.5, scale=0.25), rtol=1e-13)


def test_a_sharp_rate_tends_to_a_known_one():
    x = Gamma(2.0, 1.0)
    near = GammaRate().belief("x", {"x": x, "shape": 2.5, "rate": Gamma(4e10, 1e10)})
    at = GammaRate().belief("x", {"x": x, "shape": 2.5, "rate": np.array(4.0)})
    np.testing.assert_allclose([near.shape_parameter, near.rate], [at.shape_parameter, at.rate], rtol=1e-8)


def test_an_unknown_x_leaves_the_rate_alone_and_takes_the_compound_gamma():
    incoming = {"x": Gamma.uniform(), "shape": 2.0, "rate": Gamma(3.0, 5.0)}
    assert GammaRate().message("rate", incoming).is_uniform
    sent = GammaRate().message("x", incoming)
    mean, mean_log = sent.expected_statistics()
    np.testing.assert_allclose(mean, 2.0 * 5.0 / 2.0, rtol=1e-11)  # shape E 1 / rate
    np.testing.assert_allclose(mean_log, psi(2.0) - psi(3.0) + np.log(5.0), rtol=1e-10)
    np.testing.assert_allclose(GammaRate().log_z(incoming), 0.0, atol=1e-12)
    # a rate that may be near 0 leaves x without a mean
    assert GammaRate().message("x", {**incoming, "rate": Gamma(0.9, 5.0)}).is_uniform


def test_a_uniform_rate_sends_the_power_law_whatever_x_is():
    # the integral over the rate of r^s x^(s-1) exp(-r x) / Gamma(s) is s / x^2
    for x in (Gamma(7.0, 2.0), Gamma.uniform()):
        sent = GammaRate().message("x", {"x": x, "shape": 2.0, "rate": Gamma.uniform()})
        np.testing.assert_allclose(sent.naturals, (-2.0, 0.0))


def test_large_shapes_keep_their_digits():
    incoming = {"x": Gamma(1e7, 1e7), "shape": 1e6, "rate": Gamma(1e7, 10.0)}
    belief = GammaRate().belief("rate", incoming)
    # both sides are sharp, so the mode of the joint is the mean to about 1e-7
    np.testing.assert_allclose(belief.mean, 1e6, rtol=1e-3)
    assert belief.shape_parameter > 1e7


def test_evidence_keeps_its_digits_for_large_shapes():
    # a rate known to 1e-5 of itself is a known rate, to about 1e-10 of a nat times the shape
    for x in (Gamma.point_mass(2.01), Gamma(1e10, 1e10 / 2.01)):
        near = GammaRate().log_z({"x": x, "shape": 1e3, "rate": Gamma(1e10, 2e7)})
        at = GammaRate().log_z({"x": x, "shape": 1e3, "rate": np.array(500.0)})
        np.testing.assert_allclose(near, at, atol=1e-6)


def test_messages_of_negative_rate_give_uniform_ones():
    wild = Gamma.from_naturals((np.array(1.0), np.array(-0.5)))
    incoming = {"x": wild, "shape": 2.0, "rate": Gamma(3.0, 5.0)}
    assert GammaRate().message("rate", incoming).is_uniform
    assert GammaRate().log_z(incoming) == np.inf
