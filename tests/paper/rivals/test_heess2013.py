"""Heess's network: its gradient against differences, and what it promises not to do."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from heliograph.errors import FileFormatError, ModelError
from heliograph.paper.rivals.heess2013 import HeessNetwork


def rows(rng, n=200):
    X = rng.uniform(-1, 1, (n, 2)) * [1, 100]
    return X, np.stack([np.sin(3 * X[:, 0]), 1000 + X[:, 1] * X[:, 0]], axis=1)


def test_the_gradient_equals_differences():
    rng = np.random.default_rng(0)
    X, Y = rows(rng, 20)
    network = HeessNetwork((5, 4, 3), weight_decay=0.1, max_iter=1).fit(X, Y)
    at = rng.standard_normal(network.parameters_.shape)
    Z, T = rng.standard_normal((20, 2)), rng.standard_normal((20, 2))
    numeric = approx_fprime(at, lambda p: network._loss(p, Z, T)[0], 1e-7)
    np.testing.assert_allclose(network._loss(at, Z, T)[1], numeric, atol=2e-6)  # one-sided differences, step 1e-7


def test_it_learns_a_smooth_function_whatever_the_scales():
    rng = np.random.default_rng(1)
    network = HeessNetwork((20, 20, 20), max_iter=300).fit(*rows(rng))
    X, Y = rows(rng)
    error = (network.predict(X)[0] - Y).std(axis=0) / Y.std(axis=0)
    assert (error < 0.02).all()


def test_it_has_no_variance_and_so_no_threshold_is_reached():
    network = HeessNetwork((4,), max_iter=5).fit(*rows(np.random.default_rng(0)))
    variance = network.predict(np.zeros((3, 2)))[1]
    assert variance.shape == (3, 2)
    assert not (variance > 0).any() and not (np.log(variance) > -8.5).any()


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    X, Y = rows(np.random.default_rng(0))
    a, b, c = (HeessNetwork((6, 6), max_iter=20, random_state=s).fit(X, Y).predict(X)[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_a_restored_network_answers_with_the_same_bits_and_foreign_arrays_are_refused():
    X, Y = rows(np.random.default_rng(0))
    network = HeessNetwork((6, 5), max_iter=20).fit(X, Y)
    arrays, header = network.state()
    header = json.loads(json.dumps(header))
    np.testing.assert_array_equal(HeessNetwork().restore(arrays, header).predict(X)[0], network.predict(X)[0])
    for name in arrays:
        with pytest.raises(FileFormatError, match="stated layers"):
            HeessNetwork().restore(arrays | {name: arrays[name][1:]}, header)
    with pytest.raises(FileFormatError, match="stated layers"):
        HeessNetwork().restore(arrays, {"shapes": header["shapes"][::-1]})


def test_it_wants_rows_first_and_finite():
    with pytest.raises(ModelError, match="call fit"):
        HeessNetwork().predict(np.zeros((1, 2)))
    with pytest.raises(ModelError, match="finite matrices"):
        HeessNetwork().fit(np.full((2, 1), np.inf), np.zeros((2, 1)))


def test_constant_columns_and_outputs_are_left_alone():
    X, Y = rows(np.random.default_rng(0))
    X, Y = np.column_stack([X, np.full(200, 7.0)]), np.column_stack([Y, np.full(200, -3.0)])
    mean, _ = HeessNetwork((8, 8), max_iter=50).fit(X, Y).predict(X)
    assert (mean[:, 2] == -3.0).all()
