"""The sparse system gives what the dense one gives; small models would never meet it, so it is forced on them."""

import numpy as np
import pytest
from dense_world import check
from test_blocks_linear import MODELS, repeated
from test_blocks_statements import STATEMENTS
from test_blocks_worlds import league, trueskill

import heliograph as hg
from heliograph.engine.blocks.dense import DenseSystem
from heliograph.engine.blocks.sparse import SparseSystem


def use_sparse(monkeypatch):
    def sparse(known, rows, n_sites, vectors=(), limits=None):
        return SparseSystem(known, rows, n_sites, vectors)

    monkeypatch.setattr("heliograph.engine.blocks.plate.system_for", sparse)


def use_dense(monkeypatch):
    def dense(known, rows, n_sites, vectors=(), limits=None):
        return DenseSystem(known, rows, n_sites, vectors)

    monkeypatch.setattr("heliograph.engine.blocks.plate.system_for", dense)


@pytest.mark.parametrize("write", [*MODELS, *STATEMENTS], ids=lambda f: f.__name__)
def test_linear_models_are_exact(write, monkeypatch):
    use_sparse(monkeypatch)
    check(write, 11, structure="joint", cross=write in MODELS and write is not repeated)


def numbers(model, variables):
    posterior = model.infer(tolerance=1e-6)
    assert posterior.converged
    found = [np.atleast_1d(f(posterior[v])) for v in variables for f in (lambda b: b.mean, lambda b: b.variance)]
    return np.concatenate([*(x.reshape(-1) for x in found), [posterior.log_evidence]])


def mixed_labels():
    """Groups with labels and counts, a vector of coefficients, and a Gamma precision of the groups."""
    rng = np.random.default_rng(3)
    n, groups = 120, 15
    g, x = rng.integers(0, groups, n), rng.normal(size=(n, 3))
    model = hg.Model()
    tau = model.gamma("tau", 5.0, 4.0)
    centre = model.gaussian("centre", 0.0, variance=4.0)
    effect = model.gaussian("effect", centre, precision=tau, size=groups)
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    z = effect[g] + x @ w
    model.bernoulli("label", logit=z[:80], observed=(rng.random(80) < 0.6).astype(float))
    model.poisson("count", log_rate=0.3 * z[80:], observed=rng.poisson(1.0, 40))
    return model, [centre, effect, w, tau]


def games():
    model, skill = trueskill(*league(12, 60, 0), 12)
    return model, [skill]


def vector_sites():
    """A tracker whose states are the inputs of labels."""
    rng = np.random.default_rng(4)
    step = np.array([[1.0, 0.5], [0.0, 0.9]])
    model = hg.Model()
    states = [model.gaussian("s0", np.zeros(2), covariance=np.eye(2))]
    for t in range(1, 8):
        states.append(model.gaussian(f"s{t}", model.stack(step @ states[-1]), covariance=0.2 * np.eye(2)))
        look = rng.normal(size=(4, 2))
        model.bernoulli(f"y{t}", probit=look @ states[-1], observed=rng.integers(0, 2, 4).astype(float))
    return model, states


@pytest.mark.parametrize("make", [mixed_labels, games, vector_sites], ids=lambda f: f.__name__)
def test_models_with_sites_have_one_answer(make, monkeypatch):
    use_dense(monkeypatch)
    expected = numbers(*make())
    use_sparse(monkeypatch)
    np.testing.assert_allclose(numbers(*make()), expected, rtol=1e-5, atol=1e-7)


def test_a_model_of_two_thousand_groups_is_that_of_each_group_given_what_they_share():
    """Random intercepts: by hand, each group is integrated out and two numbers are left."""
    rng = np.random.default_rng(0)
    groups, n = 2000, 6000
    g, x = np.r_[np.arange(groups), rng.integers(0, groups, n - groups)], rng.normal(2, 1, n)
    y = 1.0 + 0.5 * x + rng.normal(size=groups)[g] + 0.7 * rng.normal(size=n)
    model = hg.Model()
    centre, slope = model.gaussian("centre", 0.0, variance=10.0), model.gaussian("slope", 0.0, variance=10.0)
    effect = model.gaussian("effect", 0.0, variance=1.0, size=groups)
    model.gaussian("y", centre + slope * x + effect[g], variance=0.49, observed=y)
    posterior = model.infer()
    shared = np.c_[np.ones(n), x]
    in_group = 1.0 + np.bincount(g, minlength=groups) / 0.49  # precision of an effect
    of_group = np.stack([np.bincount(g, shared[:, k], groups) for k in (0, 1)], axis=1) / 0.49
    sum_y = np.bincount(g, y, groups) / 0.49
    precision = np.eye(2) / 10 + shared.T @ shared / 0.49 - (of_group.T / in_group) @ of_group
    mean = np.linalg.solve(precision, shared.T @ y / 0.49 - of_group.T @ (sum_y / in_group))
    covariance = np.linalg.inv(precision)
    for k, v in enumerate((centre, slope)):
        assert float(posterior[v].mean) == pytest.approx(mean[k], rel=1e-8)
        assert float(posterior[v].variance) == pytest.approx(covariance[k, k], rel=1e-8)
    np.testing.assert_allclose(posterior.covariance(centre.reshape(1), slope)[0], covariance[0, 1], rtol=1e-7)
    gain = of_group / in_group[:, None]
    np.testing.assert_allclose(posterior[effect].mean, sum_y / in_group - gain @ mean, rtol=1e-8, atol=1e-9)
    variance = 1 / in_group + np.einsum("ij,jk,ik->i", gain, covariance, gain)
    np.testing.assert_allclose(posterior[effect].variance, variance, rtol=1e-8)


def test_a_long_chain_is_that_of_a_kalman_smoother():
    rng = np.random.default_rng(1)
    n, drift, noise = 3000, 0.05, 0.8
    y = np.cumsum(rng.normal(0, drift**0.5, n)) + rng.normal(0, noise**0.5, n)
    y[rng.random(n) < 0.2] = np.nan
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=np.r_[1.0, np.full(n - 1, 1e8)])  # the steps carry the information
    model.gaussian("step", x[1:] - x[:-1], variance=drift, observed=np.zeros(n - 1))
    model.gaussian("y", x, variance=noise, observed=y)
    posterior = model.infer()
    m, v = np.empty(n), np.empty(n)  # filtered
    ahead_m, ahead_v = 0.0, 1.0
    for t in range(n):
        if np.isnan(y[t]):
            m[t], v[t] = ahead_m, ahead_v
        else:
            gain = ahead_v / (ahead_v + noise)
            m[t], v[t] = ahead_m + gain * (y[t] - ahead_m), (1 - gain) * ahead_v
        ahead_m, ahead_v = m[t], v[t] + drift
    for t in range(n - 2, -1, -1):
        back = v[t] / (v[t] + drift)
        m[t], v[t] = m[t] + back * (m[t + 1] - m[t]), v[t] + back**2 * (v[t + 1] - v[t] - drift)
    np.testing.assert_allclose(posterior[x].mean, m, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(posterior[x].variance, v, rtol=1e-6)
