"""Pointwise likelihoods of observed outputs of black boxes: against quadrature."""

import numpy as np
from scipy import stats

import heliograph as hg


@hg.factor(output=hg.Bernoulli)
def label(z, rng):
    return rng.random(np.shape(z)) < 1 / (1 + np.exp(-z))


@hg.factor(output=hg.Gaussian)
def cube(z):
    return z**3 + z


def test_observed_labels_of_a_noisy_function_have_their_likelihood():
    model = hg.Model()
    z = model.gaussian("z", [0.0, 1.0], sd=1.0)
    out = label(z)
    model.observe(out, [1.0, 0.0])
    posterior = model.infer()
    found = posterior.log_likelihood(pointwise=True)[out.name]
    x, belief = np.linspace(-9, 9, 4001), posterior[z]
    for k, sign in enumerate((1, -1)):
        p = stats.norm.pdf(x, belief.mean[k], belief.sd[k]) / (1 + np.exp(-sign * x))
        np.testing.assert_allclose(found[k], np.log(np.trapezoid(p, x)), atol=0.03)  # the oracle draws
    np.testing.assert_allclose(posterior.log_likelihood(), found.sum())


def test_an_exact_output_of_a_deterministic_function_has_no_density_given_its_inputs():
    model = hg.Model()
    z = model.gaussian("z", [0.0, 1.0], sd=1.0)
    model.gaussian("u", z, sd=0.5, observed=[0.3, 0.8])
    out = cube(z, observed=[0.1, 2.0])
    posterior = model.infer()
    found = posterior.log_likelihood(pointwise=True)
    assert np.isnan(found[out.name]).all()
    np.testing.assert_allclose(posterior.log_likelihood(), found["u"].sum())
