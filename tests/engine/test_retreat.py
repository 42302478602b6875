"""A sweep that breaks a belief is undone as far back as it takes: to where the run was calm, not to where it was thrown."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.pace import Retreat
from heliograph.families import Gaussian

NODES = np.arange(-8.5, 8.75, 0.5)


def saturating(seed, n, d=5):
    """Data, and the coefficients that they are of: ``y = tanh(X @ w)`` with noise of variance 1/4."""
    rng = np.random.default_rng([seed, n, d])
    truth, x = 1.5 / np.sqrt(d) * rng.standard_normal(d), rng.standard_normal((n, d))
    return x, np.tanh(x @ truth) + 0.5 * rng.standard_normal(n), truth


def ep_on_grids(x, y, mean, sweeps=15):
    """EP by sums over even nodes, begun beside its fixed point."""
    covariance, sites = 0.01 * np.eye(len(mean)), (np.zeros(len(y)), np.zeros(len(y)))
    for _ in range(sweeps):
        variance = np.einsum("ni,ij,nj->n", x, covariance, x)
        precision = 1 / variance - sites[1]
        m, v = (x @ mean / variance - sites[0]) / precision, 1 / precision
        z = m[:, None] + np.sqrt(v)[:, None] * NODES
        log_w = -2 * (y[:, None] - np.tanh(z)) ** 2 - 0.5 * NODES**2
        w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        mu = (w * z).sum(axis=1)
        sigma2 = (w * (z - mu[:, None]) ** 2).sum(axis=1)
        sites = (mu / sigma2 - m / v, 1 / sigma2 - 1 / v)
        covariance = np.linalg.inv(np.eye(x.shape[1]) + (x * sites[1][:, None]).T @ x)
        mean = covariance @ (x.T @ sites[0])
    return mean, covariance


@pytest.mark.parametrize(("seed", "n"), [(7001, 2000), (1, 2000)])
def test_a_regression_that_overshoots_from_its_prior_settles_where_ep_does(seed, n):
    x, y, truth = saturating(seed, n)

    @hg.factor(output=hg.Gaussian)
    def bend(z):
        return np.tanh(z)

    model = hg.Model()
    w = model.gaussian("w", np.zeros(5), covariance=np.eye(5))
    model.gaussian("y", bend(x @ w), variance=0.25, observed=y)
    posterior = model.infer(seed=0, max_sweeps=30)  # 60 were not enough where only the broken sweep was undone
    assert posterior.converged, posterior.status
    assert any(sweep.rolled_back for sweep in posterior.trace.sweeps)
    mean, covariance = ep_on_grids(x, y, truth)
    found = posterior[w]
    assert np.asarray(found.mean).ravel() == pytest.approx(mean, abs=0.01 * np.sqrt(covariance.max()))
    assert np.asarray(found.covariance).reshape(5, 5) == pytest.approx(covariance, abs=0.01 * covariance.max())


def test_a_run_goes_back_to_where_it_moved_least_and_only_if_it_has_left_that_far_behind():
    states, retreat = [[Gaussian(float(k), 1.0)] for k in range(4)], Retreat()
    assert retreat.back() is None
    for state, change in zip(states, (20.0, 3.0, 5.0, 60.0), strict=True):
        retreat.note(None, state, 1.0, change)
    calm = retreat.back()
    assert calm.beliefs is states[1] and calm.step == 1.0
    assert retreat.back() is None
    retreat.note(None, states[1], 0.5, 4.0)  # the same state, left by a shorter step
    retreat.note(None, states[2], 0.5, 39.0)
    assert retreat.back() is None
