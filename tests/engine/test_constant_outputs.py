"""Rows in which a black box is constant: the first point of a curve that begins at 0. The truth comes from a grid."""

import numpy as np
import pytest
from scipy.stats import gamma, norm

import heliograph as hg


@hg.factor(output=hg.Gaussian)
def wave(w, x):
    return np.sin(w * x)


@pytest.mark.parametrize("operator", ["learned", "ask"])
def test_a_curve_that_begins_at_a_known_value_is_fitted_with_unknown_noise(operator):
    rng = np.random.default_rng(16)
    x = np.linspace(0, 2, 20)  # sin(w 0) = 0, whatever w is
    y = np.sin(1.3 * x) + rng.normal(0, 0.2, 20)
    model = hg.Model()
    w, t = model.gaussian("w", 1.0, sd=0.5), model.gamma("t", 2.0, rate=0.1)
    model.gaussian("y", wave(w, x=x), precision=t, observed=y)
    wave.forget()
    posterior = model.infer(operator=operator)
    a, b = np.linspace(-1, 3, 801)[:, None], np.linspace(0.01, 120, 1201)[None]
    log_p = norm.logpdf(a, 1, 0.5) + gamma.logpdf(b, 2, scale=10)
    for one, two in zip(x, y, strict=True):
        log_p = log_p + norm.logpdf(two, np.sin(a * one), b**-0.5)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    for name, v in (("w", a), ("t", b)):
        mean = float((p * v).sum())
        sd = float(np.sqrt((p * (v - mean) ** 2).sum()))
        assert abs(posterior[name].mean - mean) < 0.05 * sd
        assert abs(posterior[name].sd / sd - 1) < 0.06
    assert posterior.converged


def test_an_output_that_is_constant_everywhere_says_nothing_of_its_input():
    model = hg.Model()
    w = model.gaussian("w", 1.0, sd=0.5)
    out = wave(w, x=np.zeros(3))
    model.gaussian("y", out, sd=1.0, observed=[0.1, -0.3, 2.0])
    posterior = model.infer()
    assert posterior.converged
    np.testing.assert_allclose([posterior["w"].mean, posterior["w"].sd], [1.0, 0.5], rtol=1e-6)
    np.testing.assert_allclose(posterior[out].mean, 0.0, atol=1e-9)
    np.testing.assert_allclose(posterior.log_evidence, norm.logpdf([0.1, -0.3, 2.0]).sum(), rtol=1e-6)
