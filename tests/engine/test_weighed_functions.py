"""The look that a settled run takes at itself follows functions through: black boxes, censored values, the other sign."""

import re
import warnings

import numpy as np
import pytest
from scipy import stats

import heliograph as hg
from heliograph.errors import AccuracyWarning

X = np.linspace(-8.0, 8.0, 32_001)


def _moments(log_density):
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ X
    return mean, np.sqrt(weight @ (X - mean) ** 2)


def _said(model, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = model.infer(**settings)
    assert posterior.converged
    return posterior, [str(w.message) for w in caught if issubclass(w.category, AccuracyWarning)]


def _ratio(text):
    return float(re.search(r"standard deviation is ([\d.e+-]+) times", text).group(1))


def test_the_other_sign_is_looked_at_where_a_number_is_in_no_block():
    """Two modes, of which the run finds one; the censored values are in a block, the number is not."""
    y, cut = np.array([0.02, 0.5, -0.19, 1.56]), np.array([True, True, False, True])
    model = hg.Model()
    a = model.gaussian("a", -0.43, sd=1.0)
    model.gaussian("y", (a * np.ones(4)) ** 2, sd=0.3, observed=y, censored=cut)
    posterior, said = _said(model, schedule="sequential")
    rows = np.where(cut, stats.norm.logsf(y, X[:, None] ** 2, 0.3), stats.norm.logpdf(y, X[:, None] ** 2, 0.3))
    mean, sd = _moments(stats.norm.logpdf(X, -0.43, 1.0) + rows.sum(axis=1))
    assert abs(mean - posterior[a].mean) > 3 * posterior[a].sd
    assert said and _ratio(said[0]) == pytest.approx(sd / posterior[a].sd, rel=0.1)


def test_black_boxes_are_evaluated_by_a_run_that_asked_about_them():
    """Four sites of one function; messages in its place would have one mode, that of the belief."""
    scales, y = np.array([1.0, 0.8, 1.2, 0.9]), np.array([1.5, 1.1, 1.9, 1.3])

    @hg.factor(output=hg.Gaussian)
    def bump(z):
        return z**2

    model = hg.Model()
    a = model.gaussian("a", 0.5, sd=1.0)
    model.gaussian("y", bump(a * scales), sd=0.5, observed=y)
    model.bernoulli("label", logit=0.5 * a, observed=[1, 0])
    posterior, said = _said(model)
    log_density = stats.norm.logpdf(X, 0.5, 1.0) - np.logaddexp(0, -0.5 * X) - np.logaddexp(0, 0.5 * X)
    log_density += stats.norm.logpdf(y, (scales * X[:, None]) ** 2, 0.5).sum(axis=1)
    _, sd = _moments(log_density)
    assert abs(np.log(sd / posterior[a].sd)) > 0.2
    assert said and _ratio(said[0]) == pytest.approx(sd / posterior[a].sd, rel=0.1)


def test_a_function_that_raises_where_no_run_would_ask_makes_no_run_fail():
    @hg.factor(output=hg.Gaussian)
    def narrow(z):
        if np.abs(z).max() > 60.0:
            raise ValueError("too far")
        return np.tanh(z)

    model = hg.Model()
    a = model.gaussian("a", 0.0, sd=1.0)
    model.gaussian("y", narrow(a * np.array([1.0, 0.5])), sd=0.2, observed=[0.5, 0.3])
    model.bernoulli("label", logit=10.0 * a, observed=[1, 1])
    assert _said(model)[0].converged


def test_a_magnitude_is_an_argument_of_a_black_box_as_any_variable():
    @hg.factor(output=hg.Gaussian)
    def bent(z, v):
        return np.arctan(z) + v

    def run(magnitude):
        model = hg.Model()
        a = model.gaussian("a", 0.3, sd=1.0, size=2)
        model.gaussian("y", bent(magnitude(a), v=magnitude(2.0 * a)), sd=0.3, observed=[1.5, 0.7])
        return _said(model)[0]["a"].mean

    np.testing.assert_allclose(run(abs), run(lambda z: abs(z) + 0.0), rtol=1e-6)
