"""Factors that meet several numbers of a block at once, as one vector: joint cavities, in dense and in sparse systems."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp
from vector_factors import Noise, Softmax, attach

import heliograph as hg


def scores(rng, n, q, n_groups, shuffled=False):
    """Scores ``a[group] + x * b`` of n rows and q columns, and the same as a matrix over all (a, b)."""
    group = np.arange(n) % n_groups
    if shuffled:
        rng.shuffle(group)
    x = rng.standard_normal(n)
    model = hg.Model()
    a = model.gaussian("a", np.zeros((n_groups, q)), variance=1.0)
    b = model.gaussian("b", np.zeros(q), variance=0.5)
    z = a[group] + x[:, None] * b
    rows = np.zeros((n, q, n_groups * q + q))
    for k in range(q):
        rows[np.arange(n), k, group * q + k] = 1.0
        rows[:, k, n_groups * q + k] = x
    prior = np.concatenate([np.ones(n_groups * q), np.full(q, 0.5)])
    return model, (a, b), model.stack(z), rows, prior


@pytest.mark.parametrize(("n", "q", "n_groups"), [(1, 2, 1), (2, 3, 2), (7, 10, 3), (60, 4, 5), (200, 3, 60)])
def test_gaussian_noise_behind_a_vector_port_is_exact(n, q, n_groups):
    rng = np.random.default_rng(n)
    model, (a, b), z, rows, prior = scores(rng, n, q, n_groups, shuffled=True)
    half = rng.standard_normal((n, q, q))
    noise = half @ half.transpose(0, 2, 1) + 0.1 * np.eye(q)
    y = rng.standard_normal((n, q))
    attach(model, Noise(), z, y=y, R=noise)
    posterior = model.infer()
    inverse = np.linalg.inv(noise)
    precision = np.diag(1 / prior) + np.einsum("nai,nab,nbj->ij", rows, inverse, rows)
    covariance = np.linalg.inv(precision)
    mean = covariance @ np.einsum("nai,nab,nb->i", rows, inverse, y)
    sd = np.sqrt(np.diag(covariance))
    assert posterior.converged
    found = np.concatenate([posterior[a].mean.reshape(-1), posterior[b].mean])
    spread = np.concatenate([posterior[a].variance.reshape(-1), posterior[b].variance]) ** 0.5
    assert np.abs((found - mean) / sd).max() < 1e-8
    assert np.abs(spread / sd - 1).max() < 1e-8
    whole = rows.reshape(n * q, -1)
    marginal = (whole * prior) @ whole.T
    for k in range(n):
        marginal[k * q : k * q + q, k * q : k * q + q] += noise[k]
    sign, log_det = np.linalg.slogdet(2 * np.pi * marginal)
    log_evidence = -0.5 * (log_det + y.reshape(-1) @ np.linalg.solve(marginal, y.reshape(-1)))
    assert sign > 0 and posterior.log_evidence == pytest.approx(log_evidence, rel=1e-8, abs=1e-8)


def softmax_problem(seed, n, n_groups, q=3):
    rng = np.random.default_rng(seed)
    model, variables, z, rows, prior = scores(rng, n, q, n_groups)
    truth = rows @ (rng.standard_normal(len(prior)) * np.sqrt(prior))
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=1)
    attach(model, Softmax(), z, y=y)
    return model, variables, rows, prior, y


@pytest.mark.parametrize("seed", range(2))
def test_softmax_of_three_scores_agrees_with_importance_sampling(seed):
    model, (a, b), rows, prior, y = softmax_problem(seed, n=25, n_groups=2)
    posterior = model.infer()
    assert posterior.converged and posterior.n_sweeps <= 10
    mean = np.concatenate([posterior[a].mean.reshape(-1), posterior[b].mean])
    sd = np.concatenate([posterior[a].variance.reshape(-1), posterior[b].variance]) ** 0.5
    joint = posterior.covariance(a, a).reshape(6, 6)
    assert np.abs(np.sqrt(np.diag(joint)) / sd[:6] - 1).max() < 1e-8
    rng = np.random.default_rng(100 + seed)
    # draws from a Gaussian a little wider than the prior's product with a Laplace approximation would need: the prior
    d = len(prior)
    scale = 1.4 * sd
    eps = rng.standard_normal((200_000, d))
    draws = mean + eps * scale
    log_w = -0.5 * (draws**2 / prior).sum(1) - 0.5 * np.log(2 * np.pi * prior).sum()
    for k in range(len(y)):
        log_w += log_softmax(draws @ rows[k].T, axis=1)[:, y[k]]
    log_w += 0.5 * (eps**2).sum(1) + 0.5 * d * np.log(2 * np.pi) + np.log(scale).sum()
    total = logsumexp(log_w)
    w = np.exp(log_w - total)
    assert 1 / (w**2).sum() > 5_000
    true_mean = w @ draws
    true_sd = np.sqrt(w @ (draws - true_mean) ** 2)
    error = np.sqrt((w**2).sum())  # of a mean, in sds
    assert np.abs((mean - true_mean) / true_sd).max() < 0.02 + 4 * error
    assert np.abs(sd / true_sd - 1).max() < 0.02 + 4 * error
    assert posterior.log_evidence == pytest.approx(total - np.log(len(draws)), abs=0.03 + 4 * error)


def test_a_sparse_system_gives_what_a_dense_one_gives(monkeypatch):
    found = []
    for small in (64, 10**9):
        monkeypatch.setattr("heliograph.engine.blocks.choosing._SMALL", small)
        model, (a, b), *_ = softmax_problem(5, n=300, n_groups=100)
        posterior = model.infer()
        assert posterior.converged
        found.append((posterior[a].mean, posterior[a].variance, posterior[b].variance, posterior.log_evidence))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_many_rows_of_few_unknowns_start_near_the_mode():
    model, _, *_ = softmax_problem(3, n=400, n_groups=2)
    posterior = model.infer()
    assert posterior.converged and posterior.n_sweeps <= 6
