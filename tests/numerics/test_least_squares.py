"""Least squares by a triangle, against the singular value decomposition of the whole matrix."""

import numpy as np
import pytest

from heliograph.numerics.least_squares import least_squares


@pytest.mark.parametrize("m", [1, 2, 4, 5, 6, 60, 5000])
def test_it_is_the_answer_of_the_decomposition_also_where_columns_depend_on_each_other(m):
    rng = np.random.default_rng(m)
    columns, target = rng.standard_normal((m, 4)) * np.array([1.0, 0.1, 10.0, 1.0]), rng.standard_normal(m)
    columns = np.column_stack([columns, columns[:, 0] + columns[:, 3]])
    u, s, v = np.linalg.svd(columns, full_matrices=False)
    kept = s > 1e-8 * s[0]
    truth = v[kept].T @ ((u[:, kept].T @ target) / s[kept])
    assert least_squares(columns, target, 1e-8) == pytest.approx(truth, rel=1e-7, abs=1e-9)
