"""Questions in vain: a run that cannot settle says so after few of them."""

import warnings

import numpy as np

import heliograph as hg


def test_a_regression_seen_only_by_its_size_stops_asking_and_says_that_it_does_not_settle():
    @hg.factor(output=hg.Gaussian)
    def size(z):
        return np.abs(z)

    rng = np.random.default_rng([5, 1])  # w and -w are equally good, and the run begins half-way between them
    x, w = rng.standard_normal((60, 4)), rng.standard_normal(4)
    model = hg.Model()
    weights = model.gaussian("w", np.zeros(4), covariance=np.eye(4))
    model.gaussian("y", size(x @ weights), variance=0.09, observed=np.abs(x @ w) + 0.3 * rng.standard_normal(60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = model.infer(seed=1, progress=False)
    assert not posterior.converged
    assert "does not settle" in posterior.status
    assert posterior.trace.n_asked < 500  # two hundred sweeps asked five times as often


def test_a_prior_that_prefers_one_solution_settles_it():
    @hg.factor(output=hg.Gaussian)
    def size(z):
        return np.abs(z)

    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((40, 2)), np.array([1.5, -0.7])
    x[:, 0] = np.abs(x[:, 0]) + 2.0  # every row has the sign of the first coefficient
    model = hg.Model()
    weights = model.gaussian("w", [1.0, 0.0], covariance=0.5 * np.eye(2))
    model.gaussian("y", size(x @ weights), variance=0.09, observed=np.abs(x @ w) + 0.3 * rng.standard_normal(40))
    posterior = model.infer(seed=1, progress=False)
    assert posterior.converged
    assert np.abs(posterior["w"].mean - w).max() < 0.3
