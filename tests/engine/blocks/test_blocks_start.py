"""Where a run with blocks begins: labels by the thousand under a broad prior need no more sweeps than a handful."""

import numpy as np
import pytest

import heliograph as hg


def regression(n, d, prior, link, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    z = x @ (1.5 * rng.standard_normal(d) / np.sqrt(d))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(d), covariance=prior * np.eye(d))
    if link == "log_rate":
        model.poisson("y", log_rate=x @ w, observed=rng.poisson(np.exp(0.5 * z)))
    else:
        model.bernoulli("y", **{link: x @ w}, observed=rng.random(n) < 1 / (1 + np.exp(-z)))
    return model, w


@pytest.mark.parametrize("link", ["logit", "probit", "log_rate"])
@pytest.mark.parametrize(("n", "d", "prior"), [(1000, 20, 100.0), (1000, 100, 100.0), (5000, 50, 10.0)])
def test_ten_sweeps_are_enough_whatever_the_prior(n, d, prior, link):
    model, _ = regression(n, d, prior, link, seed=1)
    posterior = model.infer()
    assert posterior.converged and posterior.n_sweeps <= 10  # from uniform sites: 60 and more, or no end


def test_the_start_does_not_decide_where_a_run_ends():
    model, w = regression(1000, 20, 1.0, "logit", seed=2)
    near = model.infer(tolerance=1e-8)[w]
    far = model.infer(tolerance=1e-8, structure="factorised")[w]  # which starts from uniform messages
    np.testing.assert_allclose(near.mean, far.mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(near.covariance, far.covariance, rtol=1e-5, atol=1e-9)
