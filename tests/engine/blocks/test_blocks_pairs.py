"""Two constraints that share a variable of their own are one site of two numbers: ordinal data with uncertain cuts."""

import numpy as np
import pytest
from by_hand_vectors import expectation_propagation
from scipy.special import gammaln, log_ndtr, logsumexp, ndtr

import heliograph as hg

CUTS = np.array([-1.0, 0.0, 1.0])  # prior means
VARIANCE = np.array([4.0, 2.0, 2.0, 2.0])  # of the slope and the cuts


def data(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return x, np.searchsorted([-1.0, 0.3, 1.5], 1.2 * x + rng.standard_normal(n))


def ordinal(x, y, negated=False):
    model = hg.Model()
    b = model.gaussian("b", 0.0, variance=4.0)
    c = model.gaussian("c", CUTS, variance=2.0)
    z = model.gaussian("z", b * x, variance=1.0)
    above, below = np.flatnonzero(y > 0), np.flatnonzero(y < 3)
    if len(above):
        if negated:  # the same said as events that did not happen
            model.observe(z[above] < c[y[above] - 1], np.zeros(len(above)))
        else:
            model.constrain(z[above] > c[y[above] - 1])
    if len(below):
        model.constrain(z[below] < c[y[below]])
    return model, b, c


def read(posterior, b, c):
    mean = np.array([float(posterior[b].mean), *posterior[c].mean])
    covariance = np.zeros((4, 4))
    covariance[0, 0] = posterior[b].variance
    covariance[1:, 1:] = posterior.covariance(c, c)
    covariance[0, 1:] = covariance[1:, 0] = posterior.covariance(b.reshape(1), c)[0]
    return mean, covariance


def rows_and_likelihoods(x, y):
    """The noise integrated out: ``P(y) = Phi(upper - f) - Phi(lower - f)``."""
    e, offset = np.eye(4), np.concatenate([[0.0], CUTS])
    rows, likelihoods = [], []
    for xi, k in zip(x, y, strict=True):
        f = xi * e[0]
        own = ([f - e[k]] if k > 0 else []) + ([e[k + 1] - f] if k < 3 else [])
        shift = ([-offset[k]] if k > 0 else []) + ([offset[k + 1]] if k < 3 else [])
        rows.append(np.array(own))
        if len(own) == 1:
            likelihoods.append(lambda z, s=shift[0]: log_ndtr(z[:, 0] + s))
        else:
            likelihoods.append(
                lambda z, s=shift: np.log(np.maximum(ndtr(z[:, 1] + s[1]) - ndtr(-z[:, 0] - s[0]), 1e-300))
            )
    return rows, likelihoods


@pytest.mark.parametrize(("n", "negated"), [(1, False), (2, True), (7, False)])
def test_ordinal_data_with_random_cuts_reach_the_fixed_point_of_pairs(n, negated):
    x, y = data(n, seed=4)
    y[0] = 1
    model, b, c = ordinal(x, y, negated)
    posterior = model.infer()
    assert posterior.converged, posterior.status
    mean, covariance = read(posterior, b, c)
    rows, likelihoods = rows_and_likelihoods(x, y)
    expected, spread, log_evidence = expectation_propagation(np.zeros(4), np.diag(VARIANCE), rows, likelihoods, n=161)
    sd = np.sqrt(np.diag(spread))
    np.testing.assert_allclose((mean - expected - np.concatenate([[0.0], CUTS])) / sd, 0.0, atol=2e-3)
    np.testing.assert_allclose(covariance / np.outer(sd, sd), spread / np.outer(sd, sd), atol=2e-3)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-3)


def by_importance(x, y, mean, covariance, n_draws=100_000):
    """Student-t draws around a given place; the noise is integrated out."""
    rng = np.random.default_rng(1)
    half = np.linalg.cholesky(1.1 * covariance)
    e = rng.standard_normal((n_draws, 4)) / np.sqrt(rng.chisquare(8.0, n_draws) / 8.0)[:, None]
    draws = mean + e @ half.T
    log_q = gammaln(6.0) - gammaln(4.0) - 2 * np.log(8 * np.pi) - 6 * np.log1p((e**2).sum(1) / 8)
    log_q -= np.log(np.diag(half)).sum()
    gap = draws - np.concatenate([[0.0], CUTS])
    log_p = (-0.5 * gap**2 / VARIANCE - 0.5 * np.log(2 * np.pi * VARIANCE)).sum(1)
    for xi, k in zip(x, y, strict=True):
        f = draws[:, 0] * xi
        upper = ndtr(draws[:, k + 1] - f) if k < 3 else 1.0
        lower = ndtr(draws[:, k] - f) if k > 0 else 0.0
        log_p += np.log(np.maximum(upper - lower, 1e-300))
    log_w = log_p - log_q
    total = logsumexp(log_w)
    w = np.exp(log_w - total)
    assert 1 / (w**2).sum() > 0.5 * n_draws
    first = w @ draws
    return first, np.sqrt(w @ (draws - first) ** 2), total - np.log(n_draws)


def test_ordinal_data_with_random_cuts_agree_with_importance_sampling():
    x, y = data(200, seed=1)
    model, b, c = ordinal(x, y)
    posterior = model.infer()
    mean, covariance = read(posterior, b, c)
    expected, sd, log_evidence = by_importance(x, y, mean, covariance)
    assert posterior.converged and posterior.n_sweeps <= 10
    assert np.abs((mean - expected) / sd).max() < 0.02
    assert np.abs(np.sqrt(np.diag(covariance)) / sd - 1).max() < 0.015
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=0.02)


def test_rows_in_another_order_give_the_same():
    x, y = data(40, seed=2)
    order = np.random.default_rng(0).permutation(40)
    found = []
    for some in (slice(None), order):
        model, b, c = ordinal(x[some], y[some])
        found.append(read(model.infer(), b, c))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-5)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-5)


def test_a_variable_that_others_speak_of_is_not_private():
    x, y = data(12, seed=3)
    y[:] = np.clip(y, 1, 2)
    model, _, _ = ordinal(x, y)
    z = model["z"]
    model.gaussian("seen", z, variance=1.0, observed=1.2 * x)
    posterior = model.infer()
    assert posterior.converged
    assert not any(p.factor.name == "both positive" for p in posterior._graph.plates)
    model, _, _ = ordinal(x, y)
    assert any(p.factor.name == "both positive" for p in model.infer()._graph.plates)
