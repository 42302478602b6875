"""A Gaussian number times a Gamma one, against grids."""

import numpy as np
import pytest
from scipy.stats import gamma, norm

import heliograph as hg
from heliograph.factors import ScaledGaussian
from heliograph.families import Gamma, Gaussian


@pytest.mark.parametrize("shape,rate", [(0.4, 1.0), (3.0, 2.0), (200.0, 50.0)])
@pytest.mark.parametrize("x", [(0.0, 1.0), (2.0, 0.3), (-1.0, 2.0)])
@pytest.mark.parametrize("out", [(1.5, 0.5), (-4.0, 0.1), (0.0, 3.0)])
def test_all_directions_have_the_moments_of_a_fine_grid(shape, rate, x, out):
    u = np.linspace(np.log(shape / rate) - 40.0 / min(shape, 4.0), np.log(shape / rate) + 6.0, 100_001)
    s = np.exp(u)  # given the scale all is Gaussian
    total = out[1] ** 2 + s**2 * x[1] ** 2
    p = gamma.pdf(s, shape, scale=1 / rate) * s * norm.pdf(out[0], s * x[0], np.sqrt(total))
    log_z = np.log(p.sum() * (u[1] - u[0]))
    p /= p.sum()
    miss = (out[0] - s * x[0]) / total
    x_mean, x_variance = x[0] + s * x[1] ** 2 * miss, x[1] ** 2 * out[1] ** 2 / total
    incoming = {"scale": Gamma(shape, rate), "x": Gaussian(x[0], x[1] ** 2), "out": Gaussian(out[0], out[1] ** 2)}
    factor = ScaledGaussian()
    np.testing.assert_allclose(factor.log_z(incoming), log_z, atol=1e-7)
    mean, mean_log = factor.belief("scale", incoming).expected_statistics()
    np.testing.assert_allclose(mean, p @ s, rtol=1e-6)
    np.testing.assert_allclose(mean_log, p @ u, rtol=1e-6, atol=1e-6)
    belief = factor.belief("x", incoming)
    np.testing.assert_allclose(belief.mean, p @ x_mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(belief.variance, p @ (x_variance + x_mean**2) - (p @ x_mean) ** 2, rtol=1e-6)
    first, second = s * x_mean, s**2 * (x_variance + x_mean**2)
    belief = factor.belief("out", incoming)
    np.testing.assert_allclose(belief.mean, p @ first, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(belief.variance, p @ second - (p @ first) ** 2, rtol=1e-5)


@pytest.mark.parametrize("write", [lambda s, x: s * x, lambda s, x: x * s])
def test_one_product_with_noise_is_exact(write):
    model = hg.Model()
    s, x = model.gamma("s", 3.0, 2.0), model.gaussian("x", 0.5, sd=1.0)
    model.gaussian("y", write(s, x), sd=0.3, observed=2.0)
    posterior = model.infer()
    a, b = np.meshgrid(np.linspace(1e-3, 16.0, 4001), np.linspace(-8.0, 8.0, 2001), indexing="ij")
    p = gamma.pdf(a, 3.0, scale=0.5) * norm.pdf(b, 0.5, 1.0) * norm.pdf(2.0, a * b, 0.3)
    evidence = np.log(p.sum() * (a[1, 0] - a[0, 0]) * (b[0, 1] - b[0, 0]))
    p /= p.sum()
    mean = (p * b).sum()
    np.testing.assert_allclose(posterior.log_evidence, evidence, atol=1e-4)
    np.testing.assert_allclose(posterior[s].mean, (p * a).sum(), rtol=1e-4)
    np.testing.assert_allclose(posterior[x].mean, mean, rtol=1e-4)
    np.testing.assert_allclose(posterior[x].variance, (p * b**2).sum() - mean**2, rtol=1e-3)


def test_a_common_scale_of_many_effects_is_that_of_a_grid():
    y = np.random.default_rng(4).normal(0.0, np.sqrt(1.5**2 + 0.5**2), 40)
    model = hg.Model()
    s = model.gamma("s", 2.0, 1.0)
    effect = model.gaussian("effect", 0.0, sd=1.0, size=40)
    model.gaussian("y", s * effect, sd=0.5, observed=y)
    posterior = model.infer()
    at = np.linspace(1e-3, 8.0, 20_001)
    log_p = gamma.logpdf(at, 2.0) + norm.logpdf(y[:, None], 0.0, np.sqrt(at**2 + 0.25)).sum(axis=0)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean, sd = p @ at, np.sqrt(p @ at**2 - (p @ at) ** 2)
    assert posterior.converged
    np.testing.assert_allclose(posterior[s].mean, mean, atol=0.05 * sd)
    np.testing.assert_allclose(posterior[s].sd, sd, rtol=0.05)


def test_a_number_that_is_exactly_0_stays_0_and_a_product_of_0_says_nothing():
    zero, free = Gaussian.point_mass(np.zeros(1)), Gaussian.uniform((1,))
    sent = ScaledGaussian().message("out", {"scale": Gamma(np.array([2.0]), 1.0), "x": zero, "out": free})
    assert sent.is_point.all() and float(sent.mean[0]) == 0.0
    incoming = {"scale": Gamma(np.array([1.1]), 0.3), "x": Gaussian(np.array([15.0]), 45.0), "out": zero}
    assert all(ScaledGaussian().message(to, incoming).is_uniform.all() for to in ("scale", "x"))
    assert np.isposinf(ScaledGaussian().log_z(incoming)).all()
