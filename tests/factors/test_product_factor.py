"""The product of two Gaussians against sums over a fine grid in the plane, its limits and its symmetries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from heliograph.errors import ContradictionError
from heliograph.factors import Product
from heliograph.families import Gaussian


def by_grid(a: Gaussian, b: Gaussian, out: Gaussian) -> dict:
    """Moments of the tilted distribution on a grid in (a, b); the trapezoid rule converges geometrically here."""
    x = np.linspace(a.mean - 11 * np.sqrt(a.variance), a.mean + 11 * np.sqrt(a.variance), 1501)
    y = np.linspace(b.mean - 11 * np.sqrt(b.variance), b.mean + 11 * np.sqrt(b.variance), 1501)
    log_w = a.log_density(x)[:, None] + b.log_density(y) + out.log_density(x[:, None] * y)
    w = np.exp(log_w - log_w.max())
    z = w.sum()
    moments = {}
    for port, value in (("a", x[:, None]), ("b", y[None, :]), ("out", x[:, None] * y)):
        mean = (w * value).sum() / z
        moments[port] = mean, (w * (value - mean) ** 2).sum() / z
    moments["log_z"] = np.log(z * (x[1] - x[0]) * (y[1] - y[0])) + log_w.max()
    return moments


@pytest.mark.parametrize(
    "a,b,out",
    [
        (Gaussian(1.0, 2.0), Gaussian(3.0, 4.0), Gaussian(5.0, 6.0)),
        (Gaussian(0.0, 4.0), Gaussian(0.0, 4.0), Gaussian(4.0, 0.5)),  # two modes
        (Gaussian(0.1, 1.0), Gaussian(0.0, 2.0), Gaussian(-3.0, 0.3)),
        (Gaussian(4.0, 1.0), Gaussian(4.0, 1.0), Gaussian(-20.0, 4.0)),  # in conflict
        (Gaussian(2.0, 0.1), Gaussian(-1.0, 0.2), Gaussian(0.0, 50.0)),
    ],
)
def test_beliefs_and_evidence_match_a_grid(a, b, out):
    incoming = {"a": a, "b": b, "out": out}
    expected = by_grid(a, b, out)
    for port in ("a", "b", "out"):
        belief = Product().belief(port, incoming)
        mean, variance = expected[port]
        np.testing.assert_allclose(belief.mean, mean, rtol=1e-9, atol=1e-9 * np.sqrt(variance))
        np.testing.assert_allclose(belief.variance, variance, rtol=1e-9)
    np.testing.assert_allclose(Product().log_z(incoming), expected["log_z"], rtol=1e-10)


def test_integrating_over_either_side_gives_the_same():
    rng = np.random.default_rng(0)
    n = 200
    a, b, out = (Gaussian(rng.standard_normal(n) * 10, 10 ** rng.uniform(-5, 4, n)) for _ in range(3))
    p = Product()
    np.testing.assert_allclose(p.log_z({"a": a, "b": b, "out": out}), p.log_z({"a": b, "b": a, "out": out}), rtol=1e-10)
    one, other = p.belief("out", {"a": a, "b": b, "out": out}), p.belief("out", {"a": b, "b": a, "out": out})
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-9)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-9 * np.max(np.sqrt(one.variance)), rtol=1e-9)


def test_forwards_to_a_uniform_out_is_closed_form():
    incoming = {"a": Gaussian(2.0, 4.0), "b": Gaussian(3.0, 5.0), "out": Gaussian.uniform()}
    sent = Product().message("out", incoming)
    np.testing.assert_allclose([sent.mean, sent.variance], [6.0, 76.0], rtol=1e-14)
    assert Product().message("a", incoming).is_uniform
    assert Product().log_z(incoming) == 0.0
    near = Product().message("out", {**incoming, "out": Gaussian(0.0, 1e14)})
    np.testing.assert_allclose([near.mean, near.variance], [6.0, 76.0], rtol=1e-9)


def test_a_known_side_is_a_fixed_scale():
    incoming = {"a": Gaussian.point_mass(2.0), "b": Gaussian(1.0, 1.0), "out": Gaussian(0.0, 0.5)}
    p = Product()
    forward, back = p.message("out", incoming), p.message("b", incoming)
    np.testing.assert_allclose([forward.mean, forward.variance], [2.0, 4.0], rtol=1e-14)
    np.testing.assert_allclose([back.mean, back.variance], [0.0, 0.125], atol=1e-15)
    np.testing.assert_allclose(p.log_z(incoming), norm.logpdf(0.0, 2.0, np.sqrt(4.5)), rtol=1e-14)
    near = {**incoming, "a": Gaussian(2.0, 1e-12)}
    np.testing.assert_allclose(p.message("b", near).precision, back.precision, rtol=1e-8)
    np.testing.assert_allclose(p.log_z(near), p.log_z(incoming), rtol=1e-10)


def test_point_masses_divide_and_zero_says_nothing():
    two, six = Gaussian.point_mass(2.0), Gaussian.point_mass(6.0)
    assert Product().message("b", {"a": two, "b": Gaussian.uniform(), "out": six}).point == 3.0
    zero = {"a": Gaussian.point_mass(0.0), "b": Gaussian(1.0, 1.0), "out": Gaussian(1.0, 2.0)}
    assert Product().message("b", zero).is_uniform
    assert Product().message("out", zero).point == 0.0
    with pytest.raises(ContradictionError):
        Product().message("b", {**zero, "out": six})


def test_an_observed_product_is_the_limit_of_a_narrow_one():
    a, b = Gaussian(2.0, 1.0), Gaussian(1.0, 0.5)
    at = {"a": a, "b": b, "out": Gaussian.point_mass(3.0)}
    near = {"a": a, "b": b, "out": Gaussian(3.0, 1e-10)}
    for port in ("a", "b"):
        one, other = Product().belief(port, at), Product().belief(port, near)
        np.testing.assert_allclose([one.mean, one.variance], [other.mean, other.variance], rtol=1e-8)
    np.testing.assert_allclose(Product().log_z(at), Product().log_z(near), rtol=1e-8)


def test_where_nothing_can_be_normalised_the_message_is_uniform():
    g, u = Gaussian(1.0, 1.0), Gaussian.uniform()
    wild = Gaussian.from_naturals((np.array(0.2), np.array(-0.3)))
    for incoming in (
        {"a": g, "b": u, "out": g},
        {"a": g, "b": wild, "out": g},
        {"a": g, "b": g, "out": wild},
        {"a": g, "b": g, "out": Gaussian.point_mass(0.0)},
    ):
        assert Product().message("a", incoming).is_uniform
        assert Product().log_z(incoming) == np.inf


def test_the_message_of_a_vague_product_keeps_its_digits():
    # b given, the message to a has precision m_b^2 / v_out to first order in 1 / v_out
    incoming = {"a": Gaussian(1.0, 1e-6), "b": Gaussian(2.0, 1e-8), "out": Gaussian(3.0, 1e12)}
    sent = Product().message("a", incoming)
    np.testing.assert_allclose(sent.precision, 4e-12, rtol=1e-7)
    np.testing.assert_allclose(sent.shift, 6e-12, rtol=1e-7)
