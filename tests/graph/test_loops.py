"""Which variables are named as factorised in a loop: those on a cycle of entries and factors, and no others."""

import warnings

import numpy as np
import pytest

import heliograph as hg
from heliograph.graph.loops import variables_in_loops


def scalars(model, *names):
    return [model.gaussian(name, 0.0, variance=1.0) for name in names]


def regression_of_scalars():
    model = hg.Model()
    a, b = scalars(model, "a", "b")
    model.gaussian("y", a + b * np.linspace(5, 10, 8), variance=1.0, observed=np.arange(8.0))
    return model


def loops_said(model, **settings):
    """What a run says about loops."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", hg.AccuracyWarning)
        model.infer(**settings)
    return [str(w.message) for w in said if "factorised in a loop" in str(w.message)]


def test_a_regression_written_with_scalars_is_a_loop_of_factorised_messages_and_says_so():
    (said,) = loops_said(regression_of_scalars(), structure="factorised")
    assert "'a', 'b' are factorised in a loop" in said


def test_the_same_regression_is_one_block_unless_the_user_says_otherwise():
    assert loops_said(regression_of_scalars()) == []
    assert loops_said(regression_of_scalars(), structure="joint") == []


def test_products_of_shared_scalars_are_joint_sites_unless_the_user_says_otherwise():
    model = hg.Model()
    a, b = scalars(model, "a", "b")
    model.gaussian("y", a * b * np.array([1.0, 2.0]) + a, variance=1.0, observed=[1.0, 2.0])
    assert loops_said(model) == []
    (said,) = loops_said(model, structure="factorised")
    assert "'a'" in said


def test_two_blocks_that_meet_in_several_rows_are_one_unless_the_user_says_otherwise():
    model = hg.Model()
    u, v = (model.gaussian(name, 0.5, variance=1.0, size=2) for name in "uv")
    for name, x in (("a", u), ("b", v)):  # each a block of two
        model.gaussian(name, x[0] + x[1], variance=0.1, observed=1.0)
    model.gaussian("y", u * v, variance=1.0, observed=[0.3, 0.2])
    assert loops_said(model) == []
    (said,) = loops_said(model, structure="factorised")
    assert "'u', 'v' are factorised in a loop" in said


def test_a_switch_whose_output_is_dependent_too_is_a_loop_still():
    model = hg.Model()
    common = model.gaussian("common", 0.0, variance=1.0)
    means = [model.gaussian(f"mean{k}", common + 3.0 * k, variance=0.5) for k in range(2)]
    which = model.bernoulli("which", 0.5, size=3)
    for k in range(3):
        model.gaussian(
            f"y{k}", model.select(which[k], means[0] + 0.1, means[1]) + common, variance=1.0, observed=float(k)
        )
    assert loops_said(model)  # there is no form for a switch of which all three numbers are joint


def test_the_same_regression_with_one_vector_is_not():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    model.gaussian("y", np.c_[np.ones(8), np.arange(8.0)] @ w, variance=1.0, observed=np.arange(8.0))
    assert variables_in_loops(model.graph) == []


def test_one_row_joins_two_variables_without_a_loop():
    model = hg.Model()
    a, b = scalars(model, "a", "b")
    model.gaussian("y", a + b, variance=1.0, observed=1.0)
    assert variables_in_loops(model.graph) == []


def test_a_chain_is_no_loop_and_a_ring_is():
    model = hg.Model()
    s = model.gaussian("s", 0.0, variance=1.0, size=200)
    model.gaussian("step", s[1:] - s[:-1], variance=1.0, observed=np.zeros(199))
    assert variables_in_loops(model.graph) == []
    model.gaussian("last", s[-1] - s[0], variance=1.0, observed=0.0)
    assert variables_in_loops(model.graph) == ["s"]


def test_a_tree_of_games_is_no_loop_and_a_return_match_is():
    for winner, loser, looped in (([0, 1, 2], [1, 2, 3], False), ([0, 1, 2], [1, 2, 0], True), ([0, 1], [1, 0], True)):
        model = hg.Model()
        skill = model.gaussian("skill", 0.0, variance=1.0, size=4)
        a, b = (model.gaussian(f"of {side}", skill[np.array(side)], variance=1.0) for side in (winner, loser))
        model.constrain(a > b)
        assert ("skill" in variables_in_loops(model.graph)) == looped


def test_an_observed_variable_cuts_a_loop():
    model = hg.Model()
    a, b = scalars(model, "a", "b")
    model.gaussian("y", a + b * np.array([1.0, 2.0]), variance=1.0, observed=[0.0, 1.0])
    assert variables_in_loops(model.graph) == ["a", "b"]
    model.observe(b, 1.0)
    assert variables_in_loops(model.graph) == []


def test_a_missing_entry_does_not_cut_a_loop():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, observed=[1.0, np.nan, np.nan])
    model.gaussian("y", x[[1, 1]] + x[[2, 2]] * np.array([1.0, 2.0]), variance=1.0, observed=[0.0, 1.0])
    assert variables_in_loops(model.graph) == ["x"]
    other = hg.Model()
    x = other.gaussian("x", 0.0, variance=1.0, observed=[1.0, np.nan, 2.0])
    other.gaussian("y", x[[1, 1]] + x[[2, 2]] * np.array([1.0, 2.0]), variance=1.0, observed=[0.0, 1.0])
    assert variables_in_loops(other.graph) == []


def test_two_vectors_in_every_row_are_a_loop():
    rng = np.random.default_rng(0)
    model = hg.Model()
    w = model.gaussian("w", np.zeros(2), covariance=np.eye(2))
    u = model.gaussian("u", np.zeros(3), covariance=np.eye(3))
    z = rng.standard_normal((5, 2)) @ w + rng.standard_normal((5, 3)) @ u
    model.bernoulli("y", logit=z, observed=np.ones(5))
    assert variables_in_loops(model.graph) == ["w", "u"]


def test_a_matrix_times_a_vector_stacked_again_is_a_loop():
    model = hg.Model()
    s = model.gaussian("s", np.zeros(2), covariance=np.eye(2))
    nxt = model.gaussian("next", model.stack(np.array([[1.0, 1.0], [0.0, 1.0]]) @ s), covariance=np.eye(2))
    model.gaussian("y", np.array([[1.0, 0.0]]) @ nxt, variance=1.0, observed=[1.0])
    assert variables_in_loops(model.graph) == ["s"]  # "next" hangs on it


def test_discrete_loops_are_named_and_discrete_trees_are_not():
    same = [[0.9, 0.1], [0.2, 0.8]]
    model = hg.Model()
    root = model.categorical("root", [0.5, 0.5])
    left, right = (model.categorical(name, same, given=root) for name in ("left", "right"))
    assert variables_in_loops(model.graph) == []
    model.equal(left, right)
    assert variables_in_loops(model.graph) == ["root", "left", "right"]


def test_a_conjugate_mean_and_precision_is_not_called_a_loop():
    model = hg.Model()
    mean, precision = model.gaussian("mean", 0.0, variance=10.0), model.gamma("precision", 2.0, 1.0)
    model.gaussian("x", mean, precision=precision, observed=np.arange(5.0))
    assert variables_in_loops(model.graph) == []


def _brute_force(n, edges):
    """Whether a bipartite multigraph has a cycle, by union and find."""
    parent = list(range(n))

    def root(k):
        while parent[k] != k:
            k = parent[k]
        return k

    for a, b in edges:
        if root(a) == root(b):
            return True
        parent[root(a)] = root(b)
    return False


@pytest.mark.parametrize("seed", range(40))
def test_random_pairs_agree_with_union_and_find(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 12)), int(rng.integers(1, 12))
    pairs = [rng.choice(n, 2, replace=False) for _ in range(m)]
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, size=n)
    i, j = np.array(pairs).T
    model.gaussian("y", x[i] + x[j], variance=1.0, observed=np.zeros(m))
    edges = [(e, n + k) for k, pair in enumerate(pairs) for e in pair]
    assert bool(variables_in_loops(model.graph)) == _brute_force(n + m, edges)
