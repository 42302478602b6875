"""The Gaussian part of the evidence, against the density of data under the prior."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal
from sparse_cases import SHAPES, case, dense_rows, dense_weights, solved

from heliograph.numerics import sparse
from heliograph.numerics.sparse import make_rows


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_without_other_sites_it_is_the_log_evidence(shape, width):
    """Rows ``N(A x + c; 0, 1 / tau)`` are data -c, of mean A x, under the prior rows."""
    for seed, n in enumerate((1, 2, 9, 40)):
        model = case(seed, shape, n, width=width)
        model = model._replace(nu=np.zeros(model.sites.n_rows))
        result = solved(model)
        fixed = [(model.prior, model.prior_tau), (model.sites, model.tau)]
        found = sparse.gaussian_log_evidence(result.factor, result.mean, fixed)
        a, b = dense_rows(model.prior), dense_rows(model.sites)
        prior = np.linalg.inv(a.T @ np.diag(model.prior_tau) @ a)
        noise = np.linalg.inv(dense_weights(model.sites, model.tau))
        truth = multivariate_normal.logpdf(-model.sites.constant, np.zeros(len(b)), b @ prior @ b.T + noise)
        # The prior rows are normalised as densities of A x, not of x: log |det A| apart.
        truth = truth - np.linalg.slogdet(a)[1]
        np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-9)


def test_a_gaussian_factor_without_precision_is_refused():
    model = case(0, "chain", 9)
    result = solved(model)
    with pytest.raises(sparse.NotPositiveDefiniteError):
        sparse.gaussian_log_evidence(result.factor, result.mean, [(model.sites, 0 * model.tau)])


def test_ep_with_these_pieces_agrees_with_integration():
    """Three players, two games (the package's example): skills against quadrature, log evidence with its own small error."""
    prior = make_rows(3, [0, 1, 2], [0, 1, 2])
    games = make_rows(3, [0, 0, 1, 1], [0, 1, 1, 2], [1.0, -1.0, 1.0, -1.0])
    plan = sparse.analyse([prior, games])
    sites = sparse.place(plan, games)
    fixed = sparse.gram(sparse.place(plan, prior), np.ones(3))
    tau, nu = np.zeros(2), np.zeros(2)
    for _ in range(30):
        factor = sparse.factorise(plan, fixed + sparse.gram(sites, tau))
        mean = sparse.solve(factor, sparse.information(games, tau, nu))
        m, v = sparse.apply(games, mean), sparse.variances(sparse.invert(factor), sites)
        cavity_tau = 1 / v - tau
        cavity_v = 1 / cavity_tau
        cavity_m = (m / v - nu) * cavity_v
        u = cavity_m / np.sqrt(1 + cavity_v)
        slope = np.exp(-0.5 * u**2 - log_ndtr(u)) / np.sqrt(2 * np.pi * (1 + cavity_v))
        bend = slope * (slope + cavity_m / (1 + cavity_v))
        tau, nu = bend / (1 - bend * cavity_v), (slope + bend * cavity_m) / (1 - bend * cavity_v)
    terms = log_ndtr(u) + 0.5 * cavity_tau * (m - cavity_m) ** 2 - 0.5 * np.log(cavity_tau * v)
    evidence = sparse.gaussian_log_evidence(factor, mean, [(prior, np.ones(3))]) + terms.sum()
    x, w = np.polynomial.hermite_e.hermegauss(60)
    skills = np.stack(np.meshgrid(x, x, x, indexing="ij"), -1).reshape(-1, 3)
    weight = np.einsum("i,j,k->ijk", w, w, w).ravel() / (2 * np.pi) ** 1.5
    weight = weight * np.exp(log_ndtr(skills[:, 0] - skills[:, 1]) + log_ndtr(skills[:, 1] - skills[:, 2]))
    truth = weight @ skills / weight.sum()
    np.testing.assert_allclose(mean, truth, atol=5e-3)  # EP's own error
    np.testing.assert_allclose(evidence, np.log(weight.sum()), atol=2e-3)
    spread = np.sqrt(weight @ (skills - truth) ** 2 / weight.sum())
    found = np.sqrt(np.diagonal(sparse.covariance(factor, prior)))
    np.testing.assert_allclose(found, spread, rtol=5e-3)
