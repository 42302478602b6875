"""Closed-form characteristic functions against quadrature of the density."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, polygamma

from heliograph.errors import UnsupportedError
from heliograph.families import Bernoulli, Beta, Categorical, Gamma, Gaussian
from heliograph.kernels import embed
from heliograph.kernels.characteristic import characteristic

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def panels(low, high, n=400):
    """Nodes and weights of a composite Gauss-Legendre rule."""
    edges = np.linspace(low, high, n + 1)
    half = np.diff(edges) / 2
    x = (edges[:-1] + half)[:, None] + half[:, None] * NODES
    return x.ravel(), (half[:, None] * WEIGHTS).ravel()


def transform(x, log_density, weights, t):
    p = np.exp(log_density - log_density.max()) * weights
    return np.exp(1j * np.outer(t, x)) @ (p / p.sum())


def frequencies(sd):
    """From 0 to where the function is about 1e-8, both signs."""
    return np.linspace(-6.0, 6.0, 13) / sd


@pytest.mark.parametrize(("mean", "variance"), [(0.3, 2.0), (-50.0, 1e-4), (1e3, 1e6)])
def test_gaussian(mean, variance):
    sd = np.sqrt(variance)
    x, w = panels(mean - 12 * sd, mean + 12 * sd)
    t = frequencies(sd)
    expected = transform(x, stats.norm(mean, sd).logpdf(x), w, t)
    # the phase t m is 6e4 in the second case, exact to 1e-11
    np.testing.assert_allclose(characteristic(Gaussian([mean], [variance]), t)[0], expected, atol=1e-10)


GAMMAS = [(0.3, 2.0), (1.0, 1.0), (2.5, 1e-2), (51.0, 1e5), (19.9, 1.0), (20.1, 1.0), (3e4, 1.0)]


@pytest.mark.parametrize(("shape", "rate"), GAMMAS)
def test_log_of_a_gamma(shape, rate):
    # u = log x has log density shape u - rate exp(u), written around log(shape / rate) so that nothing cancels
    sd = float(np.sqrt(polygamma(1, shape)))
    d, w = panels(-max(40 * sd, 40 / shape), 12 * sd, n=4000)
    log_density = shape * (d - np.expm1(d))
    t = frequencies(sd)
    expected = transform(d, log_density, w, t) * np.exp(1j * t * np.log(shape / rate))
    np.testing.assert_allclose(characteristic(Gamma([shape], [rate]), t, "chart")[0], expected, atol=1e-10)


@pytest.mark.parametrize(("shape", "rate"), GAMMAS)
def test_gamma_on_its_own_axis(shape, rate):
    sd = np.sqrt(shape) / rate
    spread = float(np.sqrt(polygamma(1, shape)))
    d, w = panels(-max(40 * spread, 40 / shape), min(12 * spread, 6.0), n=4000)
    t = frequencies(sd)
    expected = transform(np.exp(d) * shape / rate, shape * (d - np.expm1(d)), w, t)
    np.testing.assert_allclose(characteristic(Gamma([shape], [rate]), t)[0], expected, atol=1e-10)


BETAS = [(0.3, 0.4), (1.0, 2.0), (1.0, 1.0), (500.0, 3.0), (0.7, 40.0), (3e3, 2e3), (2e9, 3e9)]


def logit_density(a, b, u):
    """Of the logit, relative to its mode so that nothing cancels."""
    mode = np.log(a / b)
    d = u - mode
    return -a * np.log1p(expit(-mode) * np.expm1(-d)) - b * np.log1p(expit(mode) * np.expm1(d))


def logit_panels(a, b):
    sd = float(np.sqrt(polygamma(1, a) + polygamma(1, b)))
    mode = np.log(a / b)
    return panels(mode - min(max(12 * sd, 40 / a), 600), mode + min(max(12 * sd, 40 / b), 600), n=2000), sd


@pytest.mark.parametrize(("a", "b"), BETAS)
def test_logit_of_a_beta(a, b):
    (u, w), sd = logit_panels(a, b)
    t = frequencies(sd)
    expected = transform(u, logit_density(a, b, u), w, t)
    np.testing.assert_allclose(characteristic(Beta([a], [b]), t, "chart")[0], expected, atol=1e-10)


@pytest.mark.parametrize(("a", "b"), BETAS)
def test_beta_on_its_own_axis_where_the_library_function_fails(a, b):
    (u, w), _ = logit_panels(a, b)
    t = frequencies(np.sqrt(a * b / (a + b + 1)) / (a + b))
    t = np.append(t, 3 * t[-1])
    expected = transform(expit(u), logit_density(a, b, u), w, t)
    np.testing.assert_allclose(characteristic(Beta([a], [b]), t)[0], expected, atol=1e-10)


def test_bernoulli_is_a_sum_of_two_terms():
    t = np.linspace(-4, 4, 9)
    np.testing.assert_allclose(characteristic(Bernoulli([0.3]), t)[0], 0.7 + 0.3 * np.exp(1j * t), atol=1e-15)


@pytest.mark.parametrize(
    ("message", "axis", "location"),
    [
        (Gaussian([1.5], [0.0]), "identity", 1.5),
        (Gamma.point_mass(np.array([2.0])), "identity", 2.0),
        (Gamma.point_mass(np.array([2.0])), "chart", np.log(2.0)),
        (Beta.point_mass(np.array([0.2])), "identity", 0.2),
        (Beta.point_mass(np.array([0.2])), "chart", np.log(0.25)),
        (Bernoulli.point_mass(np.array([1.0])), "identity", 1.0),
    ],
)
def test_a_point_mass_is_a_pure_phase(message, axis, location):
    t = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(characteristic(message, t, axis)[0], np.exp(1j * t * location), atol=1e-14)


def test_a_narrow_message_tends_to_the_point_mass():
    t = np.linspace(-3, 3, 7)
    for axis in ("identity", "chart"):
        narrow = characteristic(Gamma([2e10], [1e10]), t, axis)
        np.testing.assert_allclose(narrow, characteristic(Gamma.point_mass(np.array([2.0])), t, axis), atol=1e-8)
        narrow = characteristic(Beta([2e9], [8e9]), t, axis)
        np.testing.assert_allclose(narrow, characteristic(Beta.point_mass(np.array([0.2])), t, axis), atol=1e-8)


def test_a_point_mass_at_the_border_of_the_support_stays_finite_on_the_chart():
    message = Beta.point_mass(np.array([0.0, 1.0]))
    assert np.isfinite(characteristic(message, np.array([0.5]), "chart")).all()
    assert np.isfinite(embed([message], "chart").mean).all()


def test_a_plate_is_its_rows_one_by_one():
    t = np.linspace(-3, 3, 7)
    plate = Beta([1.0, 2.0, 1.0, 5.0], [2.0, 1.0, 2.0, 0.5])
    whole = characteristic(plate, t)
    for i in range(4):
        np.testing.assert_allclose(characteristic(plate[i : i + 1], t)[0], whole[i], atol=1e-13)


def test_a_family_without_a_closed_form_says_what_to_do():
    with pytest.raises(UnsupportedError, match="how='moments'"):
        characteristic(Categorical(np.array([[0.2, 0.8]])), np.zeros(1))
