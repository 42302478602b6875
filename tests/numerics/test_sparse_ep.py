"""EP written by hand with the pieces of the sparse solver, against integration."""

import numpy as np
from scipy.special import log_ndtr

from heliograph.numerics import sparse
from heliograph.numerics.sparse import make_rows


def test_ep_with_these_pieces_agrees_with_integration():
    """Three players, two games (the package's example): skills against quadrature."""
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
    x, w = np.polynomial.hermite_e.hermegauss(60)
    skills = np.stack(np.meshgrid(x, x, x, indexing="ij"), -1).reshape(-1, 3)
    weight = np.einsum("i,j,k->ijk", w, w, w).ravel() / (2 * np.pi) ** 1.5
    weight = weight * np.exp(log_ndtr(skills[:, 0] - skills[:, 1]) + log_ndtr(skills[:, 1] - skills[:, 2]))
    truth = weight @ skills / weight.sum()
    np.testing.assert_allclose(mean, truth, atol=5e-3)  # EP's own error
    spread = np.sqrt(weight @ (skills - truth) ** 2 / weight.sum())
    found = np.sqrt(np.diagonal(sparse.covariance(factor, prior)))
    np.testing.assert_allclose(found, spread, rtol=5e-3)
