"""The start on arrays: its sweeps are those of a run, whatever its likelihoods can say, and a run goes on where they cannot."""

import numpy as np
import pytest
from scipy.special import expit

import heliograph as hg
from heliograph.factors import BinomialLogit, LogisticBernoulli, NegativeBinomial, ProbitBernoulli
from heliograph.families import Bernoulli, Gaussian

N, D = 400, 10


def labels(seed, n=N, d=D):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    return x, (rng.random(n) < expit(x @ rng.standard_normal(d))).astype(float)


def regression(seed, y=None, prior=10.0):
    x, seen = labels(seed)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(D), covariance=prior * np.eye(D))
    model.bernoulli("y", logit=x @ w, observed=seen if y is None else y)
    return model, w


def stepped(model):
    """The last step of a run every sweep of which is shown, so that none is made on arrays."""
    for step in hg.steps(model):
        last = step
    return last.posterior


def check_same(posterior, other, w, sds=1e-5):
    a, b = posterior[w], other[w]
    sd = np.sqrt(np.diagonal(b.covariance))
    assert np.abs((a.mean - b.mean) / sd).max() < sds
    np.testing.assert_allclose(np.sqrt(np.diagonal(a.covariance)), sd, rtol=sds)


@pytest.mark.parametrize("seed", range(3))
def test_sweeps_on_arrays_are_those_of_the_run(seed):
    model, w = regression(seed)
    posterior, shown = model.infer(), stepped(model)
    assert posterior.converged
    assert posterior.n_sweeps == shown.n_sweeps
    np.testing.assert_allclose(posterior.trace.changes, shown.trace.changes, rtol=1e-3)
    assert posterior.trace.total("n_messages") == shown.trace.total("n_messages")
    check_same(posterior, shown, w, 1e-8)  # their last sweeps are by the same, exact messages
    assert posterior.log_evidence == pytest.approx(shown.log_evidence, abs=1e-8)


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("most", range(1, 5))
def test_a_run_ends_where_its_rule_says_so_in_the_middle_of_its_start(most):
    model, w = regression(0)
    posterior = model.infer(max_sweeps=most)
    assert posterior.n_sweeps == most
    assert not posterior.converged
    sd = np.sqrt(np.diagonal(posterior[w].covariance))
    gap = np.abs((posterior[w].mean - model.infer()[w].mean) / sd).max()
    assert gap < 3.0 * np.sqrt(posterior.trace.changes[-1])  # the state that is shown is that of the sweep


@pytest.mark.parametrize("how", ["nothing", "NaN", "improper"])
@pytest.mark.parametrize("after", [0, 5, 7])
def test_a_run_goes_on_where_a_likelihood_has_no_rough_message(monkeypatch, how, after):
    model, w = regression(1)
    exact, rough, calls = model.infer(), LogisticBernoulli.rough_site, []

    def failing(self, incoming, m, v):
        calls.append(1)
        if len(calls) <= after:
            return rough(self, incoming, m, v)
        if how == "nothing":
            return None
        shift, tau = rough(self, incoming, m, v)
        return (np.full_like(shift, np.nan), tau) if how == "NaN" else (shift, tau - 2.0 * tau.max())

    monkeypatch.setattr(LogisticBernoulli, "rough_site", failing)
    posterior = model.infer()
    assert len(calls) > after
    assert posterior.converged
    assert posterior.n_sweeps <= exact.n_sweeps + 8
    check_same(posterior, exact, w, 1e-4)


def test_a_missing_label_says_nothing():
    x, y = labels(2)
    y[::7] = np.nan
    posterior = regression(2, y)[0].infer()
    seen = ~np.isnan(y)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(D), covariance=10.0 * np.eye(D))
    model.bernoulli("y", logit=x[seen] @ w, observed=y[seen])
    assert posterior.converged
    fewer = model.infer()[w]
    np.testing.assert_allclose(posterior["w"].mean, fewer.mean, rtol=1e-4, atol=1e-5)


def test_likelihoods_of_several_kinds_meet_in_one_start():
    rng = np.random.default_rng(3)
    x, y = labels(3)
    more = rng.standard_normal((100, D))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(D), covariance=np.eye(D))
    model.bernoulli("y", logit=x @ w, observed=y)
    model.binomial("count", 20, logit=more @ w, observed=rng.binomial(20, expit(more @ np.ones(D))))
    posterior = model.infer()
    assert posterior.converged
    check_same(posterior, stepped(model), w)


CASES = {
    "logit": (LogisticBernoulli(), {"y": Bernoulli.point_mass(np.array([1.0, 0.0, 1.0]))}),
    "probit": (ProbitBernoulli(), {"y": Bernoulli.point_mass(np.array([1.0, 0.0, 1.0]))}),
    "binomial": (BinomialLogit(), {"n": np.full(3, 9.0), "count": np.array([0.0, 4.0, 9.0])}),
    "negative binomial": (NegativeBinomial(), {"dispersion": np.full(3, 2.5), "count": np.array([0.0, 4.0, 9.0])}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_message_to_a_point_has_the_slope_and_the_curvature_there(case):
    factor, given = CASES[case]
    assert factor.smooth
    z, h = np.array([-1.3, 0.4, 2.0]), 1e-3

    def log_f(at):
        return factor.log_z({"z": Gaussian.point_mass(at), **given})

    shift, tau = factor.message("z", {"z": Gaussian.point_mass(z), **given}).naturals
    slope = (log_f(z + h) - log_f(z - h)) / (2 * h)  # errors of the order of h^2, and of rounding over h^2
    bend = (log_f(z + h) - 2 * log_f(z) + log_f(z - h)) / h**2
    np.testing.assert_allclose(shift - tau * z, slope, atol=1e-5)
    np.testing.assert_allclose(-tau, bend, atol=1e-5)


def test_a_rough_message_is_nearly_the_message():
    rng = np.random.default_rng(5)
    m, v = rng.normal(0.0, 3.0, 200), np.exp(rng.uniform(-7.0, 3.0, 200))
    given = {"y": Bernoulli.point_mass((rng.random(200) < 0.5).astype(float))}
    exact = LogisticBernoulli().message("z", {"z": Gaussian(m, v), **given}).naturals
    rough = LogisticBernoulli().rough_site(given, m, v)
    for a, b in zip(rough, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)  # nine digits, of which moments lose two
