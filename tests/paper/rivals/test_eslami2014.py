"""Eslami's forest against a tree walked row by row, dense ridge regressions, and its own promises."""

from __future__ import annotations

import json

import numpy as np
import pytest

from heliograph.errors import FileFormatError, ModelError
from heliograph.paper.rivals.eslami2014 import EslamiForest


def truth(X):
    return np.stack([np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 1]) * X[:, 0]], axis=1)


def wavy(rng, n, d=3):
    X = rng.uniform(-2, 2, (n, d))
    return X, truth(X)


@pytest.fixture(scope="module")
def grown():
    X, Y = wavy(np.random.default_rng(0), 600)
    return X, Y, EslamiForest(n_trees=8, random_state=3).fit(X, Y)


def walk(forest, tree, x):
    node = tree
    while forest.feature_[node] >= 0:
        node = forest.child_[node] + int(x[forest.feature_[node]] > forest.threshold_[node])
    return node


def test_all_rows_reach_the_leaf_that_one_row_alone_reaches(grown):
    _, _, forest = grown
    X, _ = wavy(np.random.default_rng(1), 40)
    leaves = forest._route(X)
    assert [[walk(forest, t, x) for x in X] for t in range(8)] == leaves.tolist()


def test_training_rows_are_filed_in_the_leaf_they_reach(grown):
    X, _, forest = grown
    np.testing.assert_array_equal(forest.leaf_[:, : forest.n_rows_], forest._route(X))


def test_a_leaf_answers_with_the_ridge_regression_of_its_own_rows(grown):
    X, Y, forest = grown
    new, _ = wavy(np.random.default_rng(2), 5)
    trees = forest.trees(new)
    for t in range(8):
        for k, x in enumerate(new):
            rows = np.flatnonzero(forest.leaf_[t, : len(X)] == walk(forest, t, x))
            mean, sd = X[rows].mean(axis=0), X[rows].std(axis=0)

            def terms(z):
                pairs = [(i, j) for i in range(3) for j in range(i, 3)]
                return np.array([1.0, *z, *(z[i] * z[j] for i, j in pairs)])

            phi = np.array([terms((row - mean) / sd) for row in X[rows]])
            y = Y[rows]
            # augmented least squares: another route to the ridge solution than the normal equations
            stacked = np.vstack([phi, np.sqrt(1e-6) * np.eye(10)])
            target = np.vstack([y - y.mean(axis=0), np.zeros((10, 2))])
            w = np.linalg.lstsq(stacked, target, rcond=None)[0]
            expected = terms((x - mean) / sd) @ w + y.mean(axis=0)
            # the normal equations square the condition number, which the ridge bounds by about 1e9
            np.testing.assert_allclose(trees[t, k], expected, rtol=1e-6, atol=1e-6)


def test_more_terms_than_rows_give_the_same_ridge_from_the_smaller_side():
    rng = np.random.default_rng(5)
    X, Y = rng.standard_normal((12, 6)), rng.standard_normal((12, 1))  # 28 terms, 12 rows
    forest = EslamiForest(n_trees=1, ridge=0.1).fit(X, Y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    i, j = np.triu_indices(6)
    phi = np.hstack([np.ones((12, 1)), Z, Z[:, i] * Z[:, j]])
    w = np.linalg.solve(phi.T @ phi + 0.1 * np.eye(28), phi.T @ (Y - Y.mean(axis=0)))
    np.testing.assert_allclose(forest.trees(X)[0], phi @ w + Y.mean(axis=0), atol=1e-10)


@pytest.mark.parametrize("n_candidates", [1, 100])
def test_leaves_keep_their_size(n_candidates):
    X, Y = wavy(np.random.default_rng(0), 600)
    forest = EslamiForest(n_trees=8, n_candidates=n_candidates).fit(X, Y)
    for t in range(8):
        _, counts = np.unique(forest.leaf_[t, : len(X)], return_counts=True)
        assert counts.min() >= 10 and counts.sum() == len(X)
        assert n_candidates == 1 or counts.max() <= 50  # a single candidate may leave too few on one side: no split


def test_a_split_divides_where_the_function_breaks():
    x = np.random.default_rng(0).uniform(-1, 1, (100, 1))
    y = np.where(x < 0.2, 3 * x, 5 - 4 * x)
    forest = EslamiForest(n_trees=1, max_leaf=99, n_candidates=1000).fit(x, y)
    assert forest.threshold_[0] == x[x < 0.2].max()


def test_a_quadratic_is_learned_exactly_and_its_trees_agree():
    X, _ = wavy(np.random.default_rng(0), 400)
    Y = (1 + X[:, :1] * X[:, 1:2] - X[:, 2:] ** 2) @ np.array([[1.0, 3.0]])
    forest = EslamiForest(n_trees=8, ridge=1e-9).fit(X, Y)
    mean, variance = forest.predict(X)
    np.testing.assert_allclose(mean, Y, atol=1e-5)  # the ridge, 1e-9, against sums of about 10 rows
    assert variance.max() < 1e-8 and forest.answer(X)[1].max() < 1e-8


def test_rows_added_one_by_one_teach_what_a_batch_teaches():
    rng = np.random.default_rng(4)
    X, Y = wavy(rng, 500)
    new, expected = wavy(rng, 300)
    batch = EslamiForest(n_trees=16).fit(X, Y)
    online = EslamiForest(n_trees=16)
    for k in range(500):
        online.update(X[k : k + 1], Y[k : k + 1])
    error = [np.abs(f.predict(new)[0] - expected).mean() for f in (batch, online)]
    assert error[1] < 2 * error[0] < 0.05  # other splits are chosen, so equal in quality, not in bits
    assert online.n_rows_ == 500


def test_a_new_row_lowers_the_uncertainty_where_it_lies():
    rng = np.random.default_rng(6)
    X, Y = wavy(rng, 400)
    far = X[:40] * 0.1 + 6.0
    forest = EslamiForest(n_trees=16).fit(X, Y)
    before = forest.answer(far)[1].mean()
    assert before > 10 * forest.answer(X)[1].mean()
    forest.update(far, truth(far))
    assert forest.answer(far)[1].mean() < 0.1 * before


def test_one_leaf_alone_never_claims_to_be_certain():
    X, Y = wavy(np.random.default_rng(0), 50)
    forest = EslamiForest().fit(X, Y)
    assert not forest.has_split and np.isinf(forest.predict(X)[1]).all() and np.isinf(forest.answer(X)[1]).all()
    forest.update(X[:1] + 0.01, Y[:1])
    assert forest.has_split and np.isfinite(forest.predict(X)[1]).all()


def test_a_step_in_a_column_that_never_varied_is_doubted_until_it_has_been_seen():
    X, Y = wavy(np.random.default_rng(0), 300)
    X[:, 2] = 0.3  # so every tree ignores it, and all would agree
    forest = EslamiForest(n_trees=8).fit(X, Y)
    stepped = X + np.array([0.0, 0.0, 0.5])
    new = stepped[:40]
    assert np.isfinite(forest.answer(X)[1]).all() and np.isinf(forest.answer(new)[1]).all()
    assert np.isinf(forest.predict(new)[1]).all()
    forest.update(stepped, Y + 100.0)
    assert np.isfinite(forest.answer(new)[1]).all() and np.isfinite(forest.answer(X)[1]).all()
    np.testing.assert_allclose(forest.predict(new)[0], Y[:40] + 100.0, atol=2.0)


def test_an_answer_is_the_prediction_with_the_uncertainty(grown):
    X, _, forest = grown
    mean, doubt = forest.answer(X[:20])
    np.testing.assert_array_equal(mean, forest.predict(X[:20])[0])
    np.testing.assert_array_equal(doubt, forest.trees(X[:20]).var(axis=0).max(axis=1))


def test_the_callbacks_see_every_tree_and_decide(grown):
    X, Y, forest = grown
    other = EslamiForest(
        n_trees=8,
        random_state=3,
        combine=lambda p: np.median(p, axis=0),
        disagreement=lambda p: np.ptp(p[..., 0], axis=0),
    ).fit(X, Y)
    trees = forest.trees(X[:30])
    np.testing.assert_array_equal(other.predict(X[:30])[0], np.median(trees, axis=0))
    np.testing.assert_array_equal(other.answer(X[:30])[1], np.ptp(trees[..., 0], axis=0))


def test_the_same_seed_gives_the_same_bits_and_another_does_not(grown):
    X, Y, forest = grown
    new, _ = wavy(np.random.default_rng(9), 50)
    again, other = (EslamiForest(n_trees=8, random_state=s).fit(X, Y) for s in (3, 4))
    np.testing.assert_array_equal(again.predict(new)[0], forest.predict(new)[0])
    assert (other.predict(new)[0] != forest.predict(new)[0]).any()


def test_rows_are_predicted_alike_alone_and_in_a_large_plate(grown, monkeypatch):
    X, _, forest = grown
    whole = forest.trees(X)
    monkeypatch.setattr("heliograph.paper.rivals.eslami2014._CHUNK", 1000)
    np.testing.assert_array_equal(forest.trees(X), whole)


def test_equal_rows_and_constant_columns_make_no_trouble():
    X, Y = np.full((120, 3), 0.1), np.arange(120.0)[:, None]  # the mean of many 0.1 is not 0.1
    forest = EslamiForest(n_trees=4).fit(X, Y)  # nothing to split: one leaf, however full
    np.testing.assert_allclose(forest.predict(X[:2])[0], 59.5)
    X[:, 0] = np.linspace(0, 1, 120)
    mean, _ = EslamiForest(n_trees=4).fit(X, Y).predict(np.array([[0.5, 0.1, 0.1], [0.5, 7.0, -1e6]]))
    np.testing.assert_allclose(mean, 59.5, rtol=1e-3)  # columns that never moved have no slope


def test_no_candidate_is_spent_on_a_column_that_does_not_vary():
    X = np.zeros((60, 1000))
    X[:, 500] = np.arange(60)
    forest = EslamiForest(n_trees=4, leaf_columns=[500]).fit(X, X[:, :1])
    assert (forest.feature_[:4] == 500).all()


def test_far_from_all_rows_the_answers_stay_finite_and_near_the_outputs_seen(grown):
    _, Y, forest = grown
    mean, variance = forest.predict(np.array([[1e8, -1e8, 1e300], [-1e12, 0.0, 0.0]]))
    span = np.ptp(Y, axis=0)
    assert np.isfinite(variance).all()
    assert (mean <= Y.max(axis=0) + span).all() and (mean >= Y.min(axis=0) - span).all()


def test_a_restored_forest_answers_and_goes_on_learning_as_the_first_would(grown):
    X, Y, _ = grown
    forest = EslamiForest(n_trees=8, random_state=3, leaf_columns=[0, 1]).fit(X[:200], Y[:200])
    for k in range(200, 250):
        forest.update(X[k : k + 1], Y[k : k + 1])
    arrays, header = forest.state()
    other = EslamiForest(n_trees=8).restore(arrays, json.loads(json.dumps(header)))
    # leaves solved in another batch round differently, and their condition is up to 1e9
    np.testing.assert_allclose(other.trees(X), forest.trees(X), atol=1e-6)
    for f in (forest, other):
        f.update(X[250:], Y[250:])
    np.testing.assert_array_equal(other.feature_[: other.n_nodes_], forest.feature_[: forest.n_nodes_])
    np.testing.assert_array_equal(other.leaf_[:, :600], forest.leaf_[:, :600])
    np.testing.assert_allclose(other.trees(X), forest.trees(X), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("child", lambda a: a * 0),
        ("feature", lambda a: a + 9),
        ("leaf", lambda a: a + 10**6),
        ("leaf", lambda a: a[:, 1:]),
        ("Y", lambda a: a[1:]),
        ("threshold", lambda a: a[1:]),
        ("columns", lambda a: a + 7),
        ("tree", lambda a: a + 1),
    ],
)
def test_a_forest_is_not_restored_from_arrays_that_cannot_be_its_own(grown, name, change):
    arrays, header = grown[2].state()
    with pytest.raises(FileFormatError, match="8 trees"):
        EslamiForest(n_trees=8).restore(arrays | {name: change(arrays[name])}, header)


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        (np.zeros(3), np.zeros((3, 1)), "matrix"),
        (np.full((3, 2), np.nan), np.zeros((3, 1)), "not finite"),
        (np.zeros((3, 2)), np.zeros((2, 1)), "do not fit"),
    ],
)
def test_rows_that_are_no_rows_are_named(X, Y, words):
    with pytest.raises(ModelError, match=words):
        EslamiForest().fit(X, Y)


def test_it_says_when_it_was_not_taught_or_wrongly_set():
    with pytest.raises(ModelError, match="fit or update"):
        EslamiForest().predict(np.zeros((1, 1)))
    with pytest.raises(ModelError, match="2 x min_leaf"):
        EslamiForest(min_leaf=30).fit(np.zeros((1, 1)), np.zeros((1, 1)))
