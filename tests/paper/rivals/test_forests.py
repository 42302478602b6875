"""scikit-learn's forests through the protocol of the learners."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from heliograph.errors import ModelError
from heliograph.paper.rivals.forests import ExtraTrees, RandomForest

BOTH = pytest.mark.parametrize(
    ("ours", "theirs"), [(RandomForest, RandomForestRegressor), (ExtraTrees, ExtraTreesRegressor)]
)


def rows(rng, n=300):
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.stack([X[:, 0] * 1000, np.sin(3 * X[:, 1])], axis=1)


@BOTH
def test_the_mean_is_scikit_learns_own_one_forest_an_output(ours, theirs):
    rng = np.random.default_rng(0)
    X, Y = rows(rng)
    new, _ = rows(rng)
    mean, _ = ours(n_trees=10, random_state=5).fit(X, Y).predict(new)
    for k in range(2):
        expected = theirs(10, random_state=5 + k).fit(X, Y[:, k]).predict(new)
        np.testing.assert_allclose(mean[:, k], expected, rtol=1e-12)  # the order of summation


@BOTH
def test_the_variance_is_that_of_the_trees_and_larger_where_nothing_was_seen(ours, theirs):
    X, Y = rows(np.random.default_rng(0))
    X, Y = X[np.abs(X[:, 1]) > 0.3], Y[np.abs(X[:, 1]) > 0.3]
    forest = ours(n_trees=32).fit(X, Y)
    trees = forest.trees(X)
    assert trees.shape == (32, len(X), 2)
    np.testing.assert_array_equal(forest.predict(X)[1], trees.var(axis=0))
    hole = X * [1, 0.01, 1]
    assert forest.predict(hole)[1][:, 1].mean() > 3 * forest.predict(X)[1][:, 1].mean()


@BOTH
def test_an_output_of_small_scale_is_learned_beside_a_large_one(ours, theirs):
    rng = np.random.default_rng(0)
    forest = ours().fit(*rows(rng, 1000))
    X, Y = rows(rng)
    error = (forest.predict(X)[0] - Y).std(axis=0) / Y.std(axis=0)
    assert (error < 0.1).all()


@BOTH
def test_the_same_seed_gives_the_same_bits_with_one_worker_or_two(ours, theirs):
    X, Y = rows(np.random.default_rng(0))
    a, b, c = (
        ours(n_trees=6, n_jobs=jobs, random_state=s).fit(X, Y).predict(X[:20] + 0.01)[0]
        for jobs, s in ((1, 1), (2, 1), (1, 2))
    )
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


@BOTH
def test_it_wants_rows_first(ours, theirs):
    with pytest.raises(ModelError, match="call fit"):
        ours().predict(np.zeros((1, 1)))
    with pytest.raises(ModelError, match="matrix"):
        ours().fit(np.zeros((3, 1)), np.zeros(3))
