"""What learning rows share, counted by hand on small graphs."""

import numpy as np

import heliograph as hg
from heliograph.engine.compiled import compile_model
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


def compiled(model):
    found = compile_model(model.graph.snapshot())
    assert any(plate.parts is not None for plate in found.graph.plates)  # there is a block
    return shared_by_factor(found.graph, found.learning_plates)


def test_a_block_of_one_part_connects_all_rows_of_two_functions():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(4), covariance=np.eye(4))
    first = hg.factor(lambda z: np.tanh(z), output=hg.Gaussian, name="first")
    second = hg.factor(lambda z: np.sin(z), output=hg.Gaussian, name="second")
    rng = np.random.default_rng(0)
    model.gaussian("y", first(rng.standard_normal((30, 4)) @ w), variance=1.0, observed=np.zeros(30))
    model.gaussian("u", second(rng.standard_normal((20, 4)) @ w), variance=1.0, observed=np.zeros(20))
    assert compiled(model) == {id(first): Shared(30, 4, 50), id(second): Shared(20, 4, 50)}


def test_a_block_of_two_parts_connects_the_rows_of_each():
    model = hg.Model()
    box = hg.factor(lambda z: np.tanh(z), output=hg.Gaussian, name="box")
    rng = np.random.default_rng(1)
    for k, n in enumerate((30, 20)):
        w = model.gaussian(f"w{k}", np.zeros(4), covariance=np.eye(4))
        model.gaussian(f"y{k}", box(rng.standard_normal((n, 4)) @ w), variance=1.0, observed=np.zeros(n))
    assert compiled(model) == {id(box): Shared(50, 8, 30)}


def test_rows_whose_output_is_observed_in_part_are_connected_by_their_input():
    model = hg.Model()
    w = model.gaussian("w", np.zeros(4), covariance=np.eye(4))
    box = hg.factor(lambda z: np.tanh(z), output=hg.Gaussian, name="box")
    y = np.where(np.arange(30) < 10, np.nan, 0.3)
    model.gaussian("y", box(np.random.default_rng(2).standard_normal((30, 4)) @ w), variance=1.0, observed=y)
    assert compiled(model)[id(box)].together == 30


def test_a_model_without_black_boxes_shares_nothing():
    assert shared_by_factor(hg.Model().graph, []) == {}
