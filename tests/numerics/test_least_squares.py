"""Least squares with few unknowns against SciPy's singular values, also where columns are alike to rounding."""

import numpy as np
import pytest
from scipy.linalg import pinv

from heliograph.numerics.least_squares import least_squares


@pytest.mark.parametrize(("m", "n", "rank"), [(40, 5, 5), (5, 5, 5), (3, 5, 3), (600, 6, 2), (40, 5, 1), (1, 1, 1)])
def test_the_solution_is_that_of_the_pseudo_inverse(m, n, rank):
    rng = np.random.default_rng(m + n + rank)
    matrix = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    target = rng.standard_normal(m)
    kept = matrix.copy(), target.copy()
    found = least_squares(matrix, target, 1e-8)
    assert found == pytest.approx(pinv(matrix, rtol=1e-8) @ target, rel=1e-9, abs=1e-11)
    assert np.array_equal(matrix, kept[0]) and np.array_equal(target, kept[1])
