"""What learning rows share, counted by hand on small graphs."""

import numpy as np

import heliograph as hg
from heliograph.graph.shared import Shared, shared_by_factor


def box_of(model, *inputs):
    box = hg.factor(lambda z: np.tanh(z), output=hg.Gaussian, name="box")
    out = box(*inputs)
    model.gaussian("y", out, variance=1.0, observed=np.zeros(out.shape))
    learning = [p.position for p in model.graph.plates if p.factor is box]
    return shared_by_factor(model.graph, learning)[id(box)]


def test_rows_of_a_regression_share_its_coefficients():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(4), covariance=np.eye(4))
    assert box_of(model, np.ones((30, 4)) @ w) == Shared(30, 4, 30)


def test_rows_with_a_variable_each_share_nothing():
    model = hg.Model()
    assert box_of(model, model.gaussian("x", 0.0, variance=1.0, size=9)) == Shared(9, 9, 1)


def test_rows_that_gather_from_groups_are_connected_within_their_group():
    model = hg.Model()
    x = model.gaussian("x", 0.0, variance=1.0, size=3)
    assert box_of(model, x[np.array([0, 0, 0, 1, 1, 2])]) == Shared(6, 3, 3)


def test_a_common_mean_connects_rows_whose_variables_are_their_own():
    model = hg.Model()
    mean = model.gaussian("mean", 0.0, variance=1.0)
    assert box_of(model, model.gaussian("x", mean, variance=1.0, size=5)) == Shared(5, 5, 5)


def test_a_model_without_black_boxes_shares_nothing():
    assert shared_by_factor(hg.Model().graph, []) == {}
