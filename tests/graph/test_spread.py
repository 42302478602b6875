"""The width of a Gaussian may be written in four ways, which mean the same, and a wrong one is refused in a sentence."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import HeliographError, ModelError


def posterior_of(**spread):
    model = hg.Model()
    mean = model.gaussian("mean", 1.0, variance=4.0)
    model.gaussian("y", mean, observed=[2.0, 3.5], **spread)
    return model.infer()


@pytest.mark.parametrize("spread", [{"sd": 0.5}, {"precision": 4.0}, {"sd": np.array([0.5, 0.5])}])
def test_sd_precision_and_variance_say_the_same(spread):
    got, want = posterior_of(**spread), posterior_of(variance=0.25)
    np.testing.assert_allclose(got["mean"].mean, want["mean"].mean, rtol=1e-14)
    np.testing.assert_allclose(got["mean"].variance, want["mean"].variance, rtol=1e-14)
    np.testing.assert_allclose(got.log_evidence, want.log_evidence, rtol=1e-14)


def test_a_fixed_prior_takes_a_standard_deviation():
    model = hg.Model()
    x = model.gaussian("x", [0.0, 1.0], sd=[0.1, 20.0])
    posterior = model.infer()
    np.testing.assert_allclose(posterior[x].variance, [0.01, 400.0])


def test_components_of_a_mixture_take_standard_deviations():
    def evidence(**spread):
        model = hg.Model()
        means = model.gaussian("means", [-2.0, 2.0], variance=0.01)
        s = model.bernoulli("s", 0.3)
        model.mixture("y", s, means, observed=1.0, **spread)
        return model.infer().log_evidence

    np.testing.assert_allclose(evidence(sd=[0.5, 2.0]), evidence(variance=[0.25, 4.0]), rtol=1e-14)


@pytest.mark.parametrize(
    ("spread", "words"),
    [
        ({}, "none was given"),
        ({"sd": 1.0, "variance": 1.0}, "variance= and sd= were given"),
        ({"sd": 0.0}, "its sd must be greater than 0"),
        ({"sd": -1.0}, "its sd must be greater than 0"),
        ({"sd": 1e200}, "too small or too large"),
        ({"sd": 1e-200}, "too small or too large"),
        ({"sd": np.eye(2)}, "covariance=S @ S"),
        ({"precision": -np.eye(2)}, "positive definite"),
        ({"variance": np.eye(2)}, "covariance=the matrix"),
    ],
)
def test_a_wrong_width_is_named_with_its_remedy(spread, words):
    with pytest.raises(ModelError, match="'x'") as error:
        hg.Model().gaussian("x", [0.0, 1.0], **spread)
    assert words in str(error.value)


def test_a_random_sd_without_a_factor_is_refused():
    model = hg.Model()
    z = model.gaussian("z", 1.0, sd=1.0)
    with pytest.raises(HeliographError, match="random sd"):
        model.gaussian("x", 0.0, sd=z)
