"""Messages between pairs: exact on trees, the fixed point of their equations on loops, and None where they do not settle."""

from dataclasses import replace

import numpy as np
import pytest

from heliograph.numerics import sparse
from heliograph.numerics.sparse import make_rows, passing


def _tree(rng, n):
    return np.array([(k, rng.integers(k)) for k in range(1, n)], dtype=int).reshape(-1, 2)


def _loop(rng, n):
    return np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)


def _random(rng, n):
    pairs = rng.integers(n, size=(3 * n, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]]


class _World:
    """Priors, weighed pairs and their precision, dense."""

    def __init__(self, seed, n, edges, prior=0.5):
        rng = np.random.default_rng(seed)
        pairs = edges(rng, n)
        value = rng.normal(size=pairs.shape)
        self.n, m = n, len(pairs)
        self.prior = make_rows(n, np.arange(n), np.arange(n))
        self.sites = make_rows(n, np.repeat(np.arange(m), 2), pairs.ravel(), value.ravel(), n_rows=m)
        self.taus = [np.full(n, prior), rng.gamma(2.0, size=m)]
        self.right = rng.normal(size=n)
        self.a = np.zeros((m, n))
        self.a[np.arange(m)[:, None], pairs] = value
        self.precision = prior * np.eye(n) + self.a.T @ (self.taus[1][:, None] * self.a)

    def passed(self, **keywords):
        parts = [self.prior, self.sites]
        plan = sparse.analyse(parts, budget=sparse.Budget(flops=0.0))
        prepared = sparse.prepare_passing(sparse.bare_of(plan, parts), [True, True])
        return prepared, sparse.pass_messages(prepared, self.taus, self.right, **keywords)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 60])
def test_means_and_variances_of_a_tree_are_exact(n):
    world = _World(n, n, _tree)
    covariance = np.linalg.inv(world.precision)
    _, found = world.passed()
    np.testing.assert_allclose(found.mean, covariance @ world.right, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.variances[0], np.diag(covariance), rtol=1e-5)
    np.testing.assert_allclose(found.variances[1], np.diag(world.a @ covariance @ world.a.T), rtol=1e-5)


def _by_hand(precision, n_rounds=2000):
    """Precisions told from every variable to every other, one loop at a time, on the matrix as it is."""
    n = len(precision)
    told = np.zeros((n, n))  # told[i, j]: by i to j
    for _ in range(n_rounds):
        without = np.diag(precision)[:, None] + told.sum(axis=0)[:, None] - told.T  # [i, j]: i without what j told it
        told = np.where(np.eye(n, dtype=bool), 0.0, -(precision**2) / without)
    return 1.0 / (np.diag(precision) + told.sum(axis=0))


@pytest.mark.parametrize("edges", [_loop, _random])
def test_variances_on_loops_are_those_of_the_messages_by_hand_and_means_are_exact(edges):
    world = _World(3, 12, edges, prior=2.0)
    _, found = world.passed()
    np.testing.assert_allclose(found.mean, np.linalg.solve(world.precision, world.right), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found.variances[0], _by_hand(world.precision), rtol=1e-5)


def test_variances_of_many_rows_are_computed_in_parts(monkeypatch):
    world = _World(6, 30, _random, prior=2.0)
    _, whole = world.passed()
    monkeypatch.setattr(passing, "CHUNK", 7)
    _, parts = world.passed()
    for a, b in zip(whole.variances, parts.variances, strict=True):
        np.testing.assert_array_equal(a, b)


def test_differences_have_the_variances_that_rows_of_any_coefficients_have():
    """Where all rows of two variables are multiples of one difference by 1 and -1, variances are those of links."""
    world = _World(7, 40, _random)
    n, m = world.n, world.sites.n_rows
    for one, two in ((1.0, -1.0), (2.0, 0.5)):
        sign = np.where(np.arange(m) % 3 == 0, -1.0, 1.0)
        pairs = np.sort(world.sites.indices.reshape(-1, 2), axis=1)
        row = np.concatenate(
            [np.repeat(np.arange(m), 2), m + np.arange(n)]
        )  # sites, then single variables, in one part
        value = np.concatenate([np.stack([one * sign, two * sign], axis=1).ravel(), np.full(n, 3.0)])
        world.sites = make_rows(n, row, np.concatenate([pairs.ravel(), np.arange(n)]), value)
        world.taus[1] = np.concatenate([world.taus[1][:m], np.zeros(n)])
        prepared, found = world.passed()
        assert prepared.alike[1] is not None
        plain = passing.pass_messages(replace(prepared, alike=(None, None)), world.taus, world.right)
        np.testing.assert_allclose(found.variances[1], plain.variances[1], rtol=1e-13)
        a = np.zeros((m + n, n))
        np.add.at(a, (row, np.concatenate([pairs.ravel(), np.arange(n)])), value)
        precision = 0.5 * np.eye(n) + a.T @ (world.taus[1][:, None] * a)
        np.testing.assert_allclose(found.mean, np.linalg.solve(precision, world.right), rtol=1e-7, atol=1e-8)
        world.sites = make_rows(n, row[: 2 * m], pairs.ravel(), value[: 2 * m])


def test_a_previous_solution_is_improved_a_thousandfold_and_reaches_the_same_in_the_end():
    world = _World(4, 40, _random, prior=2.0)
    _, first = world.passed()
    world.taus[1] *= 1.3
    _, cold = world.passed()
    _, warm = world.passed(previous=first)
    np.testing.assert_allclose(warm.mean, cold.mean, atol=1e-3 * np.abs(first.mean - cold.mean).max())
    for _ in range(3):
        _, warm = world.passed(previous=warm)
    for a, b in zip((warm.mean, *warm.variances), (cold.mean, *cold.variances), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-9)


def test_messages_that_do_not_settle_are_none():
    """Three variables with pairwise precisions of .6: positive definite, but the loop amplifies what goes around it."""
    prior = make_rows(3, np.arange(3), np.arange(3))
    pairs = make_rows(3, [0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 0, 2])
    parts = [prior, pairs]
    plan = sparse.analyse(parts, budget=sparse.Budget(flops=0.0))
    passing = sparse.prepare_passing(sparse.bare_of(plan, parts), [True, False])
    taus = [np.full(3, -0.2), np.full(3, 0.6)]  # 1 on the diagonal, .6 beside it
    precision = np.full((3, 3), 0.6) + 0.4 * np.eye(3)
    assert np.linalg.eigvalsh(precision).min() > 0
    assert sparse.pass_messages(passing, taus, np.ones(3)) is None


def test_rows_of_three_variables_and_strangers_are_left_to_others():
    world = _World(5, 10, _loop)
    passing, found = world.passed()
    three = make_rows(10, [0, 0, 0], [1, 2, 3])
    strangers = make_rows(10, [0, 0], [1, 5])
    neighbours = make_rows(10, [0, 0, 1], [1, 2, 7], [1.0, -1.0, 3.0])
    assert sparse.passed_variances(passing, found, three) is None
    assert sparse.passed_variances(passing, found, strangers) is None
    variances = sparse.passed_variances(passing, found, neighbours)
    assert variances[1] == pytest.approx(9.0 * found.variances[0][7])
    parts = [world.prior, three]
    plan = sparse.analyse(parts, budget=sparse.Budget(flops=0.0))
    assert sparse.prepare_passing(sparse.bare_of(plan, parts), [False, True]) is None
