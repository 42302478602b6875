"""Worlds where EP is exact: the posterior and the evidence are known by other means."""

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln
from scipy.stats import multivariate_normal

import heliograph as hg


def _chain(rng, n):
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=100.0, size=n)
    seen = rng.standard_normal(n)
    model.gaussian("y", x, variance=0.5, observed=seen)
    model.gaussian("step", x[1:] - x[:-1], variance=0.1, observed=np.zeros(n - 1))
    steps = np.diff(np.eye(n), axis=0)
    precision = np.eye(n) / 100 + np.eye(n) / 0.5 + steps.T @ steps / 0.1
    return model, x, precision, seen / 0.5


def test_a_gaussian_chain_of_1000_steps_equals_the_dense_joint_posterior_in_five_sequential_sweeps():
    model, x, precision, shift = _chain(np.random.default_rng(0), 1000)
    posterior = model.infer(schedule="sequential", max_sweeps=5)
    covariance = np.linalg.inv(precision)
    assert posterior.converged and posterior.n_sweeps <= 5
    assert np.abs(posterior[x].mean - covariance @ shift).max() < 1e-8
    assert np.abs(posterior[x].variance - np.diag(covariance)).max() < 1e-8


def test_a_chain_of_separate_variables_is_exact_after_one_pass():
    rng = np.random.default_rng(1)
    n, model, seen = 40, hg.Model(), rng.standard_normal(40)
    xs = [model.gaussian("x0", 0.0, variance=1.0)]
    for t in range(1, n):
        xs.append(model.gaussian(f"x{t}", xs[-1] * 0.9, variance=0.2))
    for t, x in enumerate(xs):
        model.gaussian(f"y{t}", x, variance=0.5, observed=seen[t])
    posterior = model.infer()
    assert posterior.n_sweeps == 0  # a tree of exact factors: nothing is on a cycle
    a = np.eye(n) - 0.9 * np.eye(n, k=-1)
    prior = np.linalg.inv(a.T @ np.diag([1.0] + [1 / 0.2] * (n - 1)) @ a)
    covariance = np.linalg.inv(np.linalg.inv(prior) + np.eye(n) / 0.5)
    mean = covariance @ (seen / 0.5)
    assert np.allclose([posterior[x].mean for x in xs], mean, rtol=0, atol=1e-10)
    assert np.allclose([posterior[x].variance for x in xs], np.diag(covariance), rtol=1e-10)
    exact = multivariate_normal.logpdf(seen, np.zeros(n), prior + 0.5 * np.eye(n))
    assert posterior.log_evidence == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("kind", ["dense", "sparse", "scalars"])
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_linear_regression_equals_the_dense_solve(kind, schedule):
    rng = np.random.default_rng(2)
    n, d = 30, 4
    x, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    model = hg.Model()
    if kind == "scalars":
        w = model.gaussian("w", 0.0, variance=2.0, size=d)
    else:
        w = model.gaussian("w", np.zeros(d), covariance=2 * np.eye(d))
    z = (scipy.sparse.csr_array(x) if kind == "sparse" else x) @ w
    model.gaussian("y", z, variance=0.3, observed=y)
    posterior = model.infer(schedule=schedule, tolerance=1e-9)
    covariance = np.linalg.inv(np.eye(d) / 2 + x.T @ x / 0.3)
    belief = posterior[w]
    assert np.allclose(belief.mean, covariance @ x.T @ y / 0.3, atol=1e-9)
    assert np.allclose(belief.variance, np.diag(covariance), rtol=1e-9)
    exact = multivariate_normal.logpdf(y, np.zeros(n), 2 * x @ x.T + 0.3 * np.eye(n))
    assert posterior.log_evidence == pytest.approx(exact, abs=1e-7)


def test_missing_observations_are_predicted():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((6, 2)), rng.standard_normal(6)
    y[[1, 4]] = np.nan
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    seen = model.gaussian("y", x @ w, variance=0.3, observed=y)
    posterior = model.infer()
    ok = ~np.isnan(y)
    covariance = np.linalg.inv(np.eye(2) + x[ok].T @ x[ok] / 0.3)
    mean = covariance @ x[ok].T @ y[ok] / 0.3
    belief = posterior[seen]
    assert np.allclose(belief.mean[~ok], x[~ok] @ mean)
    assert np.allclose(belief.variance[~ok], np.einsum("ij,jk,ik->i", x[~ok], covariance, x[~ok]) + 0.3)
    assert np.array_equal(belief.mean[ok], y[ok]) and (belief.variance[ok] == 0).all()
    exact = multivariate_normal.logpdf(y[ok], np.zeros(4), x[ok] @ x[ok].T + 0.3 * np.eye(4))
    assert posterior.log_evidence == pytest.approx(exact, abs=1e-9)


def test_repeated_entries_add_up_and_masked_arrays_count_as_missing():
    model = hg.Model()
    skill = model.gaussian("skill", 0.0, variance=1.0, size=3)
    who = np.array([0, 0, 2, 0])
    seen = np.ma.masked_array([1.0, 2.0, 3.0, 99.0], mask=[0, 0, 0, 1])
    model.gaussian("shown", skill[who], variance=0.5, observed=seen)
    belief = model.infer()[skill]
    assert np.allclose(belief.precision, [1 + 2 / 0.5, 1.0, 1 + 1 / 0.5])
    assert np.allclose(belief.shift, [(1 + 2) / 0.5, 0.0, 3 / 0.5])


def test_a_posterior_is_the_prior_of_the_next_batch():
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((20, 3)), rng.standard_normal(20)

    def regress(prior, rows):
        model = hg.Model()
        w = model.gaussian("w", prior) if prior is not None else model.gaussian("w", np.zeros(3), covariance=np.eye(3))
        model.gaussian("y", x[rows] @ w, variance=1.0, observed=y[rows])
        return model.infer()

    first = regress(None, slice(0, 8))
    second = regress(first.as_prior()["w"], slice(8, 20))
    whole = regress(None, slice(0, 20))
    assert np.allclose(second["w"].covariance, whole["w"].covariance)
    assert first.log_evidence + second.log_evidence == pytest.approx(whole.log_evidence, abs=1e-9)


def test_a_clinical_trial_s_evidence_is_a_ratio_of_beta_functions():
    treated, control = np.array([1, 0, 1, 1, 1]), np.array([0, 0, 1, 0, 0])

    def evidence(effective):
        model = hg.Model()
        a = model.beta("treated", 1.0, 1.0)
        b = model.beta("control", 1.0, 1.0) if effective else a
        model.bernoulli("t", a, observed=treated)
        model.bernoulli("c", b, observed=control)
        posterior = model.infer()
        return posterior, posterior.log_evidence

    posterior, with_effect = evidence(True)
    _, without = evidence(False)
    assert with_effect == pytest.approx(betaln(5, 2) + betaln(2, 5), abs=1e-10)
    assert without == pytest.approx(betaln(6, 6), abs=1e-10)
    assert posterior["treated"].a == pytest.approx(5) and posterior["treated"].b == pytest.approx(2)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_a_random_discrete_tree_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    parents = [None] + [int(rng.integers(0, t)) for t in range(1, n)]
    tables = [rng.dirichlet(np.ones(k), size=None if p is None else k) for p in parents]
    soft = rng.dirichlet(np.ones(k), size=n)
    seen = int(rng.integers(0, n)) if rng.random() < 0.5 else None
    value = int(rng.integers(0, k))
    model, xs = hg.Model(), []
    for t in range(n):
        observed = value if t == seen else None
        given_ = None if parents[t] is None else xs[parents[t]]
        xs.append(model.categorical(f"x{t}", tables[t], given=given_, observed=observed))
        if t != seen:
            model.attach(xs[t], hg.Categorical(soft[t]))
    posterior = model.infer()
    joint = np.zeros((k,) * n)
    for state in itertools.product(range(k), repeat=n):
        p = 1.0
        for t, x in enumerate(state):
            p *= tables[t][x] if parents[t] is None else tables[t][state[parents[t]], x]
            p *= (x == value) if t == seen else soft[t, x]
        joint[state] = p
    assert posterior.log_evidence == pytest.approx(np.log(joint.sum()), abs=1e-9)
    for t in range(n):
        marginal = joint.sum(axis=tuple(a for a in range(n) if a != t)) / joint.sum()
        assert np.allclose(posterior[xs[t]].p, marginal, atol=1e-10)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_a_random_gaussian_tree_equals_the_dense_solve(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    scale, noise = rng.uniform(0.3, 2.0, n) * rng.choice([-1, 1], n), rng.uniform(0.1, 3.0, n)
    offset = rng.standard_normal(n)
    parents = [None] + [int(rng.integers(0, t)) for t in range(1, n)]
    model, xs = hg.Model(), []
    a, b = np.eye(n), np.zeros(n)
    for t, p in enumerate(parents):
        mean = offset[t] if p is None else xs[p] * scale[t] + offset[t]
        xs.append(model.gaussian(f"x{t}", mean, variance=noise[t]))
        b[t] = offset[t]
        if p is not None:
            a[t, p] = -scale[t]
    seen = rng.standard_normal(n)
    for t in range(n):
        model.gaussian(f"y{t}", xs[t], variance=0.7, observed=seen[t])
    posterior = model.infer()
    root = np.linalg.inv(a)
    mean, prior = root @ b, root @ np.diag(noise) @ root.T
    gain = prior @ np.linalg.inv(prior + 0.7 * np.eye(n))
    assert np.allclose([posterior[x].mean for x in xs], mean + gain @ (seen - mean), atol=1e-8)
    assert np.allclose([posterior[x].variance for x in xs], np.diag(prior - gain @ prior), rtol=1e-8)
    exact = multivariate_normal.logpdf(seen, mean, prior + 0.7 * np.eye(n))
    assert posterior.log_evidence == pytest.approx(exact, abs=1e-7)
