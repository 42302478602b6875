"""The posterior of yesterday as the prior of today: exact where nothing is lost, and said where correlations are."""

import warnings

import numpy as np
import pytest

import heliograph as hg
from heliograph.errors import AccuracyWarning, ModelError


def _sum(rows, prior=None):
    y = np.array([0.3, -0.2, 0.8, 0.1, 0.5, 0.9, -0.4, 0.2, 0.6, 0.0])[rows]
    model = hg.Model()
    a, b = (model.gaussian(k, 0.0, sd=1.0) if prior is None else model.variable(k, prior[k]) for k in ("a", "b"))
    model.gaussian("y", a + b, sd=0.5, observed=y)
    return model.infer()


def _quiet(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


def test_correlated_unknowns_taken_as_priors_are_said_to_be_independent():
    today = _sum(slice(0, 5))
    with pytest.warns(AccuracyWarning, match="'a' and 'b' would be independent.*-0.95"):
        tomorrow = _sum(slice(5, 10), today.as_prior())
    assert tomorrow["a"].sd < 0.8 * _sum(slice(0, 10))["a"].sd  # this is what would be silently wrong


def test_one_of_them_alone_is_its_own_belief():
    prior = _sum(slice(0, 5)).as_prior()
    assert _quiet(lambda: prior["a"]).sd == pytest.approx(0.7157, abs=1e-3)


def test_all_at_once_and_from_a_file(tmp_path):
    posterior = _sum(slice(0, 5))
    posterior.save(tmp_path / "p.hg")
    for read in (posterior, hg.load_posterior(tmp_path / "p.hg")):
        with pytest.warns(AccuracyWarning, match="independent"):
            dict(read.as_prior().items())
        with pytest.warns(AccuracyWarning, match="independent"):
            list(read.as_prior().values())


def test_entries_of_an_array_of_scalars_lose_their_correlation_and_vectors_do_not():
    model = hg.Model()
    u = model.gaussian("u", 0.0, sd=1.0, size=3)
    w = model.gaussian("w", np.zeros((2, 3)), covariance=np.eye(3))
    model.gaussian("y", u.sum(), sd=0.1, observed=1.0)
    model.gaussian("z", np.ones((1, 3)) @ w[0], sd=0.1, observed=[1.0])
    prior = model.infer().as_prior()
    _quiet(lambda: prior["w"])
    with pytest.warns(AccuracyWarning, match="entries of 'u'"):
        prior["u"]


def test_over_hyper_parameters_and_under_gates():
    model = hg.Model()
    h, a, b = model.half_normal("h", 1.0), model.gaussian("a", 0.0, sd=1.0), model.gaussian("b", 0.0, sd=1.0)
    model.gaussian("y", a + b, sd=h, observed=[0.2, 0.3, 0.1])
    with pytest.warns(AccuracyWarning, match="independent"):
        dict(model.infer().as_prior().items())
    model = hg.Model()
    s, a = model.bernoulli("s", 0.5), model.gaussian("a", 0.0, sd=2.0)
    with model.when(s):
        model.gaussian("y", a, sd=1.0, observed=[2.0, 3.0])
    with model.when(~s):
        model.gaussian("y", -a, sd=1.0, observed=[2.0, 3.0])
    posterior = model.infer()
    prior = posterior.as_prior()
    _quiet(lambda: prior["s"])
    with pytest.warns(AccuracyWarning, match="'s' and 'a'"):
        prior["a"]
    with pytest.raises(ModelError, match="two Gaussian variables or expressions, not 'a'"):
        posterior.covariance("a", "a")


def test_ten_days_of_exact_models_are_all_data_at_once_evidence_included():
    rng = np.random.default_rng(0)
    X, y, counts, heads = (
        rng.standard_normal((40, 3)),
        rng.standard_normal(40),
        rng.poisson(3.0, 40),
        rng.random(40) < 0.3,
    )

    def day(rows, prior):
        model = hg.Model()
        w = model.gaussian("w", np.zeros(3), covariance=np.eye(3)) if prior is None else model.variable("w", prior["w"])
        g = model.gamma("g", 2.0, 1.0) if prior is None else model.variable("g", prior["g"])
        p = model.beta("p", 1.0, 2.0) if prior is None else model.variable("p", prior["p"])
        model.gaussian("y", X[rows] @ w, sd=0.7, observed=y[rows])
        model.poisson("c", g, observed=counts[rows])
        model.bernoulli("h", p, observed=heads[rows])
        return model.infer()

    found, log_evidence = None, 0.0
    for k in range(10):
        found = day(slice(4 * k, 4 * k + 4), None if found is None else found.as_prior())
        log_evidence += found.log_evidence
    whole = day(slice(0, 40), None)
    for name in ("w", "g", "p"):
        np.testing.assert_allclose(found[name].mean, whole[name].mean, rtol=1e-7)
        np.testing.assert_allclose(found[name].variance, whole[name].variance, rtol=1e-7)
    np.testing.assert_allclose(found["w"].covariance, whole["w"].covariance, rtol=1e-7)
    assert log_evidence == pytest.approx(whole.log_evidence, abs=1e-7)
