"""Squares and magnitudes against a fine grid, alone and in models, with two modes and one, near and far from the fold."""

import numpy as np
import pytest
from scipy.stats import norm

import heliograph as hg
from heliograph.errors import ContradictionError
from heliograph.factors import AbsoluteValue, Square
from heliograph.families import Gaussian

FUNCTIONS = {"square": (Square(), np.square), "magnitude": (AbsoluteValue(), np.abs)}


def on_a_grid(g, x, out):
    """Log Z, and mean and variance of x and of g(x)."""
    at = np.linspace(-12.0, 12.0, 1_200_001)
    p = norm.pdf(at, *x) * norm.pdf(g(at), *out)
    z = p.sum() * (at[1] - at[0])
    p /= p.sum()
    moments = [(p @ v, p @ v**2 - (p @ v) ** 2) for v in (at, g(at))]
    return np.log(z), *moments


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", [(0.0, 1.0), (0.4, 2.0), (-3.0, 0.5), (1e-3, 0.1)])
@pytest.mark.parametrize("out", [(2.0, 0.3), (0.01, 1.0), (-1.0, 0.7), (1.0, 0.02)])
def test_all_directions_have_the_moments_of_a_fine_grid(name, x, out):
    factor, g = FUNCTIONS[name]
    incoming = {"x": Gaussian(x[0], x[1] ** 2), "out": Gaussian(out[0], out[1] ** 2)}
    log_z, *moments = on_a_grid(g, x, out)
    np.testing.assert_allclose(factor.log_z(incoming), log_z, atol=1e-8)
    for to, (mean, variance) in zip(("x", "out"), moments, strict=True):
        belief = factor.belief(to, incoming)
        np.testing.assert_allclose(belief.mean, mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(belief.variance, variance, rtol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_known_value_leaves_two_points(name):
    factor, g = FUNCTIONS[name]
    m, sd, r = 0.3, 1.1, 1.7
    incoming = {"x": Gaussian(m, sd**2), "out": Gaussian.point_mass(g(np.array(r)))}
    p, q = norm.pdf(r, m, sd), norm.pdf(-r, m, sd)
    belief = factor.belief("x", incoming)
    np.testing.assert_allclose(belief.mean, r * (p - q) / (p + q), rtol=1e-12)
    np.testing.assert_allclose(belief.variance, r**2 * 4 * p * q / (p + q) ** 2, rtol=1e-12)
    slope = 2 * r if name == "square" else 1.0
    np.testing.assert_allclose(factor.log_z(incoming), np.log((p + q) / slope), rtol=1e-12)
    with pytest.raises(ContradictionError, match="negative"):
        factor.message("x", {**incoming, "out": Gaussian.point_mass(np.array(-1.0))})


@pytest.mark.parametrize(
    "write", [lambda x: x**2, np.square, abs, np.abs, lambda x: 2 * abs(x) - 1, lambda x: 1 - x**2]
)
def test_a_model_with_one_unknown_is_exact(write):
    observed, sd = [1.2, 0.7], 0.4
    model = hg.Model()
    x = model.gaussian("x", 0.5, sd=1.0)
    model.gaussian("y", write(x), sd=sd, observed=observed)
    posterior = model.infer()
    at = np.linspace(-9.0, 9.0, 400_001)
    p = norm.pdf(at, 0.5, 1.0) * np.prod([norm.pdf(y, write(at), sd) for y in observed], axis=0)
    evidence = np.log(p.sum() * (at[1] - at[0]))
    p /= p.sum()
    assert posterior.converged
    np.testing.assert_allclose(posterior[x].mean, p @ at, atol=1e-8)
    np.testing.assert_allclose(posterior[x].variance, p @ at**2 - (p @ at) ** 2, rtol=1e-8)
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=1e-7)


def test_a_magnitude_above_a_bound_is_the_event_outside_the_interval():
    model = hg.Model()
    x = model.gaussian("x", 0.3, sd=1.0)
    model.constrain(abs(x) > 1.0)
    at = np.linspace(-9.0, 9.0, 1_800_001)
    p = norm.pdf(at, 0.3, 1.0) * (np.abs(at) > 1.0)
    p /= p.sum()
    belief = model.infer()[x]
    np.testing.assert_allclose(belief.mean, p @ at, atol=1e-5)
    np.testing.assert_allclose(belief.variance, p @ at**2 - (p @ at) ** 2, atol=1e-5)
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    assert (w**2).shape == abs(w).shape == (3,)
    assert (abs(w) + abs(w)[0]).shape == (3,)
