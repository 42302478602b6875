"""Black boxes on blocks: what their messages share is counted as in the factorised graph, so that tolerances are the same."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.compiled import compile_model
from heliograph.graph.shared import shared_by_factor


def box():
    @hg.factor(output=hg.Beta)
    def logistic(z):
        return 1 / (1 + np.exp(-z))

    return logistic


def regression(model, rng):
    w = model.gaussian("w", np.zeros(3), covariance=np.eye(3))
    return rng.normal(size=(40, 3)) @ w


def groups(model, rng):
    mean, effect = model.gaussian("mean", 0.0, variance=1.0), model.gaussian("effect", 0.0, variance=1.0, size=5)
    return mean + effect[rng.integers(0, 5, 40)]


def apart(model, rng):
    return 2.0 * model.gaussian("x", 0.0, variance=1.0, size=40)


@pytest.mark.parametrize("write", [regression, groups, apart])
def test_rows_share_as_much_in_a_block_as_in_the_factorised_graph(write):
    rng = np.random.default_rng(0)
    model = hg.Model()
    model.bernoulli("y", box()(write(model, rng)), observed=rng.integers(0, 2, 40).astype(float))
    found = []
    for structure in ("auto", "factorised"):
        compiled = compile_model(model.graph.snapshot(), structure)
        (shared,) = shared_by_factor(compiled.graph, compiled.learning_plates).values()
        found.append(shared)
    assert found[0] == found[1]
    assert found[0].together == (1 if write is apart else 40)
