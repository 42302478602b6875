"""Unknown precision matrices: the closed form where the mean is known, Gibbs sampling where it is not."""

import numpy as np
import pytest
from scipy.special import multigammaln
from scipy.stats import wishart

import heliograph as hg


def world(d, n, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    return rng.multivariate_normal(np.zeros(d), root @ root.T + 0.3 * np.eye(d), n)


@pytest.mark.parametrize(("d", "n"), [(2, 1), (2, 30), (3, 40)])
def test_with_a_known_mean_the_posterior_is_wishart(d, n):
    y, dof, scale = world(d, n), d + 2.0, np.eye(d) / (d + 2.0)
    model = hg.Model()
    w = model.wishart("W", dof, scale)
    model.gaussian("y", np.zeros(d), precision=w, observed=y)
    posterior = model.infer()
    after, total = np.linalg.inv(np.linalg.inv(scale) + y.T @ y), dof + n
    evidence = -0.5 * n * d * np.log(np.pi) + multigammaln(total / 2, d) - multigammaln(dof / 2, d)
    evidence += 0.5 * total * np.linalg.slogdet(after)[1] - 0.5 * dof * np.linalg.slogdet(scale)[1]
    sd = np.sqrt(total * (after**2 + np.outer(np.diag(after), np.diag(after))))
    assert posterior.converged
    assert posterior.log_evidence == pytest.approx(evidence, abs=0.01 if n > 1 else 0.03)  # of one row .018, seen first
    np.testing.assert_allclose(posterior[w].mean, total * after, atol=0.03 * sd.max())
    np.testing.assert_allclose(posterior[w].sd, sd, rtol=0.03 if n > 1 else 0.08)  # of one row 6 %, seen first


def test_with_an_unknown_mean_and_missing_rows_it_is_what_gibbs_sampling_finds():
    y, scale = world(2, 12, 1) + np.array([1.0, -2.0]), np.eye(2) / 4.0
    model = hg.Model()
    w = model.wishart("W", 4.0, scale)
    mean = model.gaussian("mean", np.zeros(2), covariance=4.0 * np.eye(2))
    model.gaussian("y", mean, precision=w, observed=np.concatenate([y, np.full((2, 2), np.nan)]))
    posterior = model.infer()
    rng, mu, kept = np.random.default_rng(0), np.zeros(2), []
    for k in range(6000):
        gap = y - mu
        precision = wishart.rvs(16.0, np.linalg.inv(4.0 * np.eye(2) + gap.T @ gap), random_state=rng)
        covariance = np.linalg.inv(0.25 * np.eye(2) + 12 * precision)
        mu = rng.multivariate_normal(covariance @ precision @ y.sum(0), covariance)
        if k >= 200:
            kept.append([*mu, *precision[np.triu_indices(2)]])
    drawn = np.array(kept)
    first, sd = drawn.mean(0), drawn.std(0)
    ours = np.concatenate([posterior[mean].mean, posterior[w].mean[np.triu_indices(2)]])
    spread = np.concatenate([posterior[mean].sd, posterior[w].sd[np.triu_indices(2)]])
    np.testing.assert_allclose((ours - first) / sd, 0.0, atol=0.06)  # 5,800 draws are good to about .02
    np.testing.assert_allclose(spread / sd, 1.0, atol=0.06)


def test_a_matrix_of_numbers_is_the_precision_of_a_vector():
    y, precision = world(2, 5), np.array([[2.0, 0.5], [0.5, 1.0]])
    found = []
    for width in ({"precision": precision}, {"covariance": np.linalg.inv(precision)}):
        model = hg.Model()
        mean = model.gaussian("mean", np.zeros(2), covariance=np.eye(2))
        model.gaussian("y", mean, **width, observed=y)
        found.append(model.infer()[mean])
    np.testing.assert_allclose(found[0].mean, found[1].mean, rtol=1e-12)
    np.testing.assert_allclose(found[0].covariance, found[1].covariance, rtol=1e-12)


@pytest.mark.parametrize(
    ("dof", "scale", "words"),
    [
        (1.0, np.eye(2), "above 1"),
        (4.0, np.eye(4), "2 or 3 rows"),
        (4.0, [[1.0, 2.0], [2.0, 1.0]], "positive definite"),
        (-1.0, np.eye(2), "dof"),
        (4.0, 3.0, "model.gamma"),
    ],
)
def test_what_is_no_wishart_says_so(dof, scale, words):
    with pytest.raises(hg.ModelError, match=words):
        hg.Model().wishart("W", dof, scale)
