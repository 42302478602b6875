"""The larger of two Gaussians: closed form against a grid, tails, ties of point masses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from heliograph.errors import ContradictionError
from heliograph.factors import Maximum
from heliograph.families import Gaussian


def by_branches(a: Gaussian, b: Gaussian, out: Gaussian) -> dict:
    """Moments by one-dimensional sums in each branch, weights from scipy's normal."""
    x = np.linspace(-60, 60, 240_001)
    step = x[1] - x[0]
    moments: dict = {}
    log_w = []
    for one, other in ((a, b), (b, a)):
        log_w.append(one.log_density(x) + out.log_density(x) + norm.logcdf(x, other.mean, np.sqrt(other.variance)))
    top = max(w.max() for w in log_w)
    w_a, w_b = (np.exp(w - top) for w in log_w)
    total = w_a.sum() + w_b.sum()
    # given b = x is the larger, a is cut off above at x
    t = (x - a.mean) / np.sqrt(a.variance)
    hazard = np.exp(norm.logpdf(t) - norm.logcdf(t))
    cut_mean = a.mean - np.sqrt(a.variance) * hazard
    cut_second = a.variance * (1 - t * hazard - hazard**2) + cut_mean**2
    mean_out = ((w_a + w_b) * x).sum() / total
    moments["out"] = mean_out, ((w_a + w_b) * (x - mean_out) ** 2).sum() / total
    mean_a = (w_a * x + w_b * cut_mean).sum() / total
    moments["a"] = mean_a, (w_a * x**2 + w_b * cut_second).sum() / total - mean_a**2
    moments["log_z"] = np.log(total * step) + top
    return moments


@pytest.mark.parametrize(
    "a,b,out",
    [
        (Gaussian(0.0, 1.0), Gaussian(2.0, 3.0), Gaussian(4.0, 5.0)),
        (Gaussian(0.0, 1.0), Gaussian(0.5, 0.2), Gaussian(0.0, 0.1)),
        (Gaussian(1.0, 2.0), Gaussian(0.0, 5.0), Gaussian(0.0, 1e6)),
        (Gaussian(0.0, 1.0), Gaussian(8.0, 1.0), Gaussian(0.0, 1.0)),
        (Gaussian(5.0, 1.0), Gaussian(-5.0, 1.0), Gaussian(4.0, 1.0)),
    ],
)
def test_beliefs_and_evidence_match_sums_over_the_branches(a, b, out):
    incoming = {"a": a, "b": b, "out": out}
    expected = by_branches(a, b, out)
    for port in ("a", "out"):
        belief = Maximum().belief(port, incoming)
        np.testing.assert_allclose(belief.mean, expected[port][0], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(belief.variance, expected[port][1], rtol=1e-8)
    np.testing.assert_allclose(Maximum().log_z(incoming), expected["log_z"], rtol=1e-11)
    swapped = Maximum().belief("b", {"a": b, "b": a, "out": out})
    np.testing.assert_array_equal(swapped.naturals, Maximum().belief("a", incoming).naturals)


def test_two_standard_gaussians_have_the_textbook_maximum():
    incoming = {"a": Gaussian(0.0, 1.0), "b": Gaussian(0.0, 1.0), "out": Gaussian.uniform()}
    sent = Maximum().message("out", incoming)
    np.testing.assert_allclose([sent.mean, sent.variance], [1 / np.sqrt(np.pi), 1 - 1 / np.pi], rtol=1e-14)
    assert np.allclose(Maximum().message("a", incoming).naturals, 0, atol=1e-15)
    np.testing.assert_allclose(Maximum().log_z(incoming), 0.0, atol=1e-15)


@pytest.mark.parametrize("gap", [8.0, 50.0, 1e4])
def test_far_tails_are_equalities(gap):
    a, b, out = Gaussian(gap, 1.0), Gaussian(-gap, 1.0), Gaussian(gap - 1.0, 2.0)
    incoming = {"a": a, "b": b, "out": out}
    np.testing.assert_allclose(Maximum().message("out", incoming).naturals, a.naturals, rtol=1e-9)
    np.testing.assert_allclose(Maximum().message("a", incoming).naturals, out.naturals, rtol=1e-9)
    assert np.allclose(Maximum().message("b", incoming).naturals, 0.0, atol=1e-9)


def test_a_maximum_fifty_deviations_below_both_cuts_each_off_sharply():
    # both must lie below -50: each is an exponential of rate near 50, one of them at the top
    incoming = {"a": Gaussian(0.0, 1.0), "b": Gaussian(0.0, 1.0), "out": Gaussian.point_mass(-50.0)}
    belief = Maximum().belief("a", incoming)
    np.testing.assert_allclose(belief.mean, -50 - 0.5 / 50, rtol=1e-5)
    mills = 1 / 50 - 1 / 50**3 + 3 / 50**5
    expected = np.log(2) + norm.logpdf(-50.0) + norm.logpdf(-50.0) + np.log(mills)
    np.testing.assert_allclose(Maximum().log_z(incoming), expected, rtol=1e-9)


def test_a_known_maximum_is_the_limit_of_a_narrow_one():
    a, b = Gaussian(0.0, 1.0), Gaussian(2.0, 3.0)
    at = Maximum().belief("a", {"a": a, "b": b, "out": Gaussian.point_mass(1.0)})
    near = Maximum().belief("a", {"a": a, "b": b, "out": Gaussian(1.0, 1e-12)})
    np.testing.assert_allclose([at.mean, at.variance], [near.mean, near.variance], rtol=1e-6)


def test_point_masses_decide():
    p = Gaussian.point_mass
    g = Gaussian(0.0, 1.0)
    assert Maximum().message("out", {"a": p(1.0), "b": p(3.0), "out": Gaussian.uniform()}).point == 3.0
    # a lies below the maximum, so b is it
    assert Maximum().message("b", {"a": p(1.0), "b": g, "out": p(3.0)}).point == 3.0
    # a is the maximum: b is only known to lie below
    below = Maximum().belief("b", {"a": p(0.0), "b": g, "out": p(0.0)})
    np.testing.assert_allclose([below.mean, below.variance], [-np.sqrt(2 / np.pi), 1 - 2 / np.pi], rtol=1e-13)
    with pytest.raises(ContradictionError):
        Maximum().message("b", {"a": p(4.0), "b": g, "out": p(3.0)})


def test_a_uniform_or_improper_side_gives_uniform_messages():
    g, wild = Gaussian(0.0, 1.0), Gaussian.from_naturals((np.array(0.0), np.array(-0.1)))
    for a in (Gaussian.uniform(), wild):
        assert Maximum().message("out", {"a": a, "b": g, "out": g}).is_uniform
        assert Maximum().log_z({"a": a, "b": g, "out": g}) == np.inf
    # an improper out that both sides make proper is integrated
    z = Maximum().log_z({"a": g, "b": g, "out": wild})
    x = np.linspace(-30, 30, 60_001)
    expected = (2 * norm.pdf(x) * norm.cdf(x) * np.exp(0.05 * x**2)).sum() * (x[1] - x[0])
    np.testing.assert_allclose(z, np.log(expected), rtol=1e-10)


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e60])
def test_a_side_that_is_nearly_surely_the_larger_sends_numbers_in_any_unit(unit):
    # one side known, and so far above the other that what is left of its variance is near the smallest number there is
    known = np.linspace(6.3, 7.3, 2001)
    incoming = {
        "a": Gaussian(np.full(2001, 4.18 * unit), np.full(2001, 4.8e-3 * unit**2)),
        "b": Gaussian.point_mass(known * unit),
        "out": Gaussian(np.full(2001, 4.18 * unit), np.full(2001, 0.09 * unit**2)),
    }
    belief = Maximum().belief("out", incoming)
    assert np.allclose(belief.mean, known * unit, rtol=1e-12)
