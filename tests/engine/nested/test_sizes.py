"""How much a tail counts: by the variances of what the hyper-parameters govern."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.nested.points import Evaluator
from heliograph.engine.nested.sizes import log_widths
from heliograph.engine.options import InferOptions


def test_a_place_counts_by_the_largest_variance_that_a_straight_line_gives_there():
    at = np.array([[0.0], [1.0], [2.0], [3.0]])
    logs = [np.array([0.0, 5.0]) + u * np.array([0.7, -1.0]) for u in at[:, 0]]
    found = log_widths(logs, at, 0, np.eye(1), np.array([[4.0], [2.5], [-1.0]]))
    np.testing.assert_allclose(found, [2.8, 1.75, 0.0], atol=0.02)
    assert log_widths(logs[:2], at[:2], 0, np.eye(1), np.array([[4.0]])) == 0.0  # too few to tell


def test_a_mean_that_hardly_exists_makes_the_places_count_where_it_does_not():
    """The level of an autoregression is known less and less as the coefficient comes near 1."""
    rng = np.random.default_rng(0)
    model = hg.Model()
    phi, mu = model.flat("phi", 0.0, 1.0), model.gaussian("mu", 0.0, sd=10.0)
    x = model.chain(
        "x",
        40,
        lambda: model.gaussian("x", 0.0, sd=1.0 / np.sqrt(1 - phi**2)),
        lambda before: model.gaussian("x", phi * before, sd=1.0),
    )
    model.gaussian("y", mu + x, sd=0.5, observed=np.cumsum(rng.normal(size=40)))
    evaluator = Evaluator(model, model.draft.hypers, InferOptions())
    for u in (0.5, 1.0, 1.5, 2.0):
        evaluator.at(np.array([u]), False)
    best = max(evaluator.points, key=lambda p: p.log_density).u
    there = best + 1.0
    variance = [evaluator.at(u, False).posterior["mu"].variance for u in (best, there)]
    del evaluator.points[-2:]
    assert evaluator.log_size(there[None])[0] == pytest.approx(np.log(variance[1] / variance[0]), abs=0.8)
    assert evaluator.log_size(there[None])[0] > 0.5
