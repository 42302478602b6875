"""Variances of rows of one or two scalars, read off the covariance: those of dense algebra, where they cancel too."""

import numpy as np
import pytest

from heliograph.engine.blocks.rows import add, base, minus, scale
from heliograph.engine.blocks.short import short_rows


def pairs(n_columns, n, seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_columns, n)
    second = (first + rng.integers(1, n_columns, n)) % n_columns
    return first, second, rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
def test_variances_are_those_of_dense_algebra(seed):
    first, second, weight = pairs(7, 40, seed)
    rows = add(scale(base(first, 7), weight), base(second, 7))
    root = np.tril(np.random.default_rng(seed).normal(size=(7, 7)))
    x = rows.sparse.toarray()
    assert short_rows(rows).variances(root) == pytest.approx(np.einsum("ij,jk,ik->i", x, root @ root.T, x), rel=1e-13)
    assert short_rows(base(first, 7)).variances(root) == pytest.approx(np.diag(root @ root.T)[first], rel=1e-13)


def test_differences_that_are_far_narrower_than_their_ends_keep_their_digits():
    first, second, _ = pairs(5, 30, 0)
    noise = np.linspace(1e-6, 3e-6, 5)
    root = np.c_[np.full(5, 1e3), np.diag(noise)]  # all vary together by a thousand, and apart by a millionth
    root = np.linalg.qr(root.T, mode="r").T
    rows = minus(base(first, 5), base(second, 5))
    white = root[first] - root[second]
    assert short_rows(rows).variances(root) == pytest.approx((white**2).sum(axis=1), rel=1e-12)


def test_rows_that_are_few_long_or_empty_are_left_to_others():
    first, second, _ = pairs(20, 30, 1)
    two = minus(base(first, 20), base(second, 20))
    assert short_rows(two) is None  # fewer than two rows per scalar
    first, second, _ = pairs(200, 1500, 1)
    assert short_rows(minus(base(first, 200), base(second, 200))) is None  # whose covariance costs more than they do
    first, second, _ = pairs(200, 1600, 1)
    assert short_rows(minus(base(first, 200), base(second, 200))) is not None
    first, second, _ = pairs(5, 30, 1)
    third = base((second + 1) % 5, 5)
    assert short_rows(add(minus(base(first, 5), base(second, 5)), scale(third, 2.0))) is None
    assert short_rows(base(np.r_[np.zeros(29, dtype=int), -1], 5, np.ones(30))) is None  # a constant
