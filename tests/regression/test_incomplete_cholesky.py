"""Incomplete Cholesky against the full kernel matrix and plain kernel ridge regression."""

import numpy as np
import pytest

from heliograph.regression import incomplete_cholesky as ic
from heliograph.regression import ridge as ridge_regression


def problem(n=80, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    return z, np.stack([np.sin(z[:, 0]), z[:, 1] ** 2], axis=1)


def kernel(a, b):
    return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))


def test_the_factor_approaches_the_kernel_matrix_as_the_rank_grows_and_is_exact_at_the_pivots():
    z, _ = problem()
    k = kernel(z, z)
    errors = []
    for rank in (5, 20, 60):
        f = ic.factorise(np.diag(k), lambda i: k[:, i], rank)
        approx = f.factor @ f.factor.T
        np.testing.assert_allclose(approx[f.pivots], k[f.pivots], atol=1e-10)
        np.testing.assert_allclose(np.diag(k) - np.diag(approx), f.left, atol=1e-12)
        errors.append(np.abs(approx - k).max())
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert errors[2] < 1e-6


def test_it_stops_where_nothing_is_left_to_explain():
    z = np.repeat(problem(5)[0], 6, axis=0)
    k = kernel(z, z)
    f = ic.factorise(np.diag(k), lambda i: k[:, i], 30)
    assert len(f.pivots) == 5
    assert len(ic.factorise(np.zeros(0), lambda i: np.zeros(0), 3).pivots) == 0


def test_only_the_columns_of_the_pivots_are_computed():
    z, _ = problem()
    k, asked = kernel(z, z), []

    def column(i):
        asked.append(i)
        return k[:, i]

    f = ic.factorise(np.diag(k), column, 7)
    assert asked == list(f.pivots)


@pytest.mark.parametrize("ridge", [1e-4, 1e-1])
def test_at_full_rank_it_is_kernel_ridge_regression(ridge):
    z, y = problem(40)
    new = problem(10, seed=1)[0]
    k = kernel(z, z)
    f = ic.factorise(np.diag(k), lambda i: k[:, i], 40, tolerance=0.0)
    weights = ridge_regression.fit(f.factor, y, ridge)
    dense = kernel(new, z) @ np.linalg.solve(k + ridge * np.eye(40), y)
    rows = ic.features(f.factor[f.pivots], kernel(new, z[f.pivots]))
    np.testing.assert_allclose(rows @ weights, dense, atol=1e-6)


def test_features_of_the_training_points_are_the_rows_of_the_factor():
    z, _ = problem()
    k = kernel(z, z)
    f = ic.factorise(np.diag(k), lambda i: k[:, i], 12)
    np.testing.assert_allclose(ic.features(f.factor[f.pivots], k[:, f.pivots]), f.factor, atol=1e-8)
