"""The evidence where a factor fixes a variable: rows of zeros, sums of known values, exact observations of expressions."""

import warnings

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp
from scipy.stats import binom, multivariate_normal, norm

import heliograph as hg


def test_a_row_of_zeros_and_a_shift():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(1), covariance=np.eye(1))
    z = np.array([[0.0], [1.0]]) @ w
    model.gaussian("y", z + np.array([2.0, 0.0]), variance=1.0, observed=[3.0, 1.0])
    assert model.infer().log_evidence == pytest.approx(norm.logpdf(3, 2, 1) + norm.logpdf(1, 0, np.sqrt(2)), abs=1e-10)


def test_a_row_of_zeros_and_a_scale():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(1), covariance=np.eye(1))
    z = np.array([[0.0], [1.0]]) @ w
    model.gaussian("y", z * np.array([3.0, 2.0]) + 1.0, variance=1.0, observed=[3.0, 1.0])
    assert model.infer().log_evidence == pytest.approx(norm.logpdf(3, 1, 1) + norm.logpdf(1, 1, np.sqrt(5)), abs=1e-10)


def test_a_known_value_in_sums_and_products():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, observed=2.0)
    a = model.gaussian("a", 0.0, variance=1.0)
    model.gaussian("y", x + 1.0, variance=1.0, observed=[1.0, 2.0])
    model.gaussian("u", x * a, variance=1.0, observed=3.0)
    truth = norm.logpdf(2) + norm.logpdf([1, 2], 3, 1).sum() + norm.logpdf(3, 0, np.sqrt(5))
    assert model.infer().log_evidence == pytest.approx(truth, abs=1e-10)


def test_an_exact_observation_of_an_expression():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    model.observe(model.exp(x), 2.0)
    model.gaussian("y", x * 2.0, variance=1.0, observed=1.0)
    log2 = np.log(2.0)
    truth = norm.logpdf(log2) - log2 + norm.logpdf(1.0, 2 * log2, 1.0)  # the density of exp(x) at 2
    assert model.infer().log_evidence == pytest.approx(truth, abs=1e-10)


@pytest.mark.parametrize(("sd", "far"), [(1.0, 0.0), (1e-6, 1.0), (1e-6, 1e3), (1e-3, 1e6)])
def test_nothing_large_cancels_where_data_are_narrow_and_far_from_zero(sd, far):
    """The log normaliser of each message is about (far / sd)^2, up to 1e18 here; the sum of all is about 40."""
    rng = np.random.default_rng(0)
    y = far + sd * rng.standard_normal(3)
    model = hg.Model()
    a = model.gaussian("a", 0.0, variance=1e12, size=3)
    model.gaussian("y", a, variance=sd**2, observed=y)
    assert model.infer().log_evidence == pytest.approx(norm.logpdf(y, 0, np.sqrt(1e12 + sd**2)).sum(), abs=1e-8)

    x = rng.standard_normal((6, 2))
    y = x @ np.array([1.0, 2.0]) + far + sd * rng.standard_normal(6)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.gaussian("y", x @ w + far, variance=sd**2, observed=y)
    q, r = np.linalg.qr(x, mode="complete")  # the part of y that w reaches, and the rest
    reached, rest = q[:, :2].T @ (y - far), q[:, 2:].T @ (y - far)
    truth = multivariate_normal.logpdf(reached, np.zeros(2), r[:2] @ r[:2].T + sd**2 * np.eye(2))
    truth += norm.logpdf(rest, 0, sd).sum()
    assert model.infer().log_evidence == pytest.approx(truth, abs=1e-5)


def test_an_evidence_that_doubles_cannot_hold_is_said_to_be_lost():
    model = hg.Model()
    a = model.gaussian("a", 0.0, variance=1.0)
    model.gaussian("y", a, variance=1e-200, observed=1.0)
    with pytest.warns(hg.AccuracyWarning, match="lost to rounding"):
        assert np.isnan(model.infer().log_evidence)


@pytest.mark.parametrize("bound", [5.0, 1e3, 9502.0, 1e5, 1e7, 1e8, 1e10])
def test_the_evidence_of_a_bound_in_the_far_tail(bound):
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0)
    model.constrain(x > bound)
    assert model.infer().log_evidence == pytest.approx(log_ndtr(-bound), rel=1e-13)


@pytest.mark.parametrize(("full", "n"), [(False, 3), (True, 3), (True, 20)])
def test_a_component_that_never_succeeds_is_impossible_also_where_all_trials_succeeded(full, n):
    """Occupancy of sites: 4 of 4 under a probability of 0 was -4e300 and not -inf, in which the evidence drowned: 0.0."""
    y = np.resize([0.0, 1.0, 4.0 if full else 3.0], n)
    model = hg.Model()
    p = model.beta("p", 1.0, 1.0)
    z = model.bernoulli("z", 0.6, size=n)
    model.mixture("y", z, lambda k: model.binomial("y", 4, p) if k else model.binomial("y", 4, 0.0), observed=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hg.AccuracyWarning)  # overlapping components
        found = model.infer().log_evidence
    at = (np.arange(2000) + 0.5) / 2000
    never = np.where(y == 0, 0.0, -np.inf)
    rows = np.logaddexp(np.log(0.6) + binom.logpmf(y, 4, at[:, None]), np.log(0.4) + never).sum(axis=1)
    assert found == pytest.approx(logsumexp(rows) - np.log(2000), abs=2e-3)


def test_terms_that_cancel_beyond_double_precision_are_said():
    model = hg.Model()
    rate = model.gamma("rate", 1e18, 1e18)
    model.poisson("y", rate, observed=3.0)
    with pytest.warns(hg.AccuracyWarning, match="lost to rounding"):
        assert np.isnan(model.infer().log_evidence)
