"""Ridge regression: closed-form leave-one-out against brute force."""

import numpy as np
import pytest

from heliograph.regression import ridge


def problem(n, d, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 2))
    x = np.sqrt(2 / d) * np.cos(z @ rng.normal(size=(2, d)) + rng.uniform(0, 2 * np.pi, d))
    return x, np.stack([np.sin(z[:, 0]), 3 * z[:, 1]], axis=1) + 0.01 * rng.normal(size=(n, 2))


SIZES = [(40, 10), (20, 20), (25, 60)]


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("strength", [1e-6, 1e-3, 1.0])
def test_weights_are_the_normal_equations(n, d, strength):
    x, y = problem(n, d)
    dense = np.linalg.solve(x.T @ x + strength * np.eye(d), x.T @ y)
    np.testing.assert_allclose(ridge.fit(x, y, strength), dense, atol=1e-7 * np.abs(dense).max())


@pytest.mark.parametrize(("n", "d"), SIZES)
@pytest.mark.parametrize("strength", [1e-6, 1e-3, 1.0])
def test_leave_one_out_equals_leaving_each_row_out(n, d, strength):
    x, y = problem(n, d)
    closed = ridge.leave_one_out(ridge.spectrum(x, y), strength)
    for i in range(n):
        rest = np.arange(n) != i
        brute = y[i] - x[i] @ ridge.fit(x[rest], y[rest], strength)
        np.testing.assert_allclose(closed[i], brute, rtol=1e-6, atol=1e-8)
