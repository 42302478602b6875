"""Triangular matrices inverted by halves, against the products that define an inverse."""

import numpy as np
import pytest

from heliograph.numerics.triangular import gram_of_lower, inverse_of_lower, inverse_of_upper


@pytest.mark.parametrize("n", [1, 2, 60, 149, 150, 151, 301, 700, 701])
def test_the_inverse_times_the_matrix_is_the_identity(n):
    rng = np.random.default_rng(n)
    upper = np.asfortranarray(np.triu(rng.standard_normal((n, n)) / np.sqrt(n) + 2 * np.eye(n)))
    kept = upper.copy()
    inverse = inverse_of_upper(upper)
    assert np.array_equal(upper, kept)
    assert np.array_equal(np.tril(inverse, -1), np.zeros((n, n)))
    assert np.abs(inverse @ upper - np.eye(n)).max() < 1e-12
    assert np.abs(inverse_of_lower(np.ascontiguousarray(upper.T)) - inverse.T).max() < 1e-13


def test_scales_that_are_far_apart_keep_their_digits():
    scale = np.logspace(-60, 60, 200)
    upper = np.asfortranarray(np.triu(np.random.default_rng(0).uniform(0.1, 1.0, (200, 200))) * scale)
    plain = inverse_of_upper(np.asfortranarray(upper / scale))
    assert np.allclose(inverse_of_upper(upper) * scale[:, None], plain, rtol=1e-12, atol=0)


@pytest.mark.parametrize("n", [1, 20, 149, 150, 301])
def test_the_gram_matrix_of_a_triangle_is_the_product(n):
    lower = np.tril(np.random.default_rng(n).standard_normal((2, n, n)))
    for half in (lower, lower[0], lower[:1]):
        found = gram_of_lower(half)
        assert found == pytest.approx(np.swapaxes(half, -1, -2) @ half, rel=1e-12, abs=1e-12)
        assert np.array_equal(found, np.swapaxes(found, -1, -2))
