"""What is looked at without a run must notice that the numbers of a model decide which of two bounds is the tightest."""

from __future__ import annotations

import numpy as np
import pytest

from heliograph.engine import Model
from heliograph.engine.compiled import compile_model, with_joint_parts
from heliograph.engine.nested.frozen import Frozen


def _model(bound: float) -> Model:
    model = Model()
    x = model.gaussian("x", 0.0, sd=1.0)
    y = model.gaussian("y", x, sd=1.0)
    model.gaussian("seen", x + y, sd=1.0, observed=0.3)
    model.constrain(x > bound * np.array([1.0, -2.0]))
    return model


@pytest.mark.parametrize(("one", "other", "known"), [(0.3, 0.301, True), (0.1, -0.1, False), (-0.1, 0.1, False)])
def test_a_change_of_the_tightest_bound_is_no_small_change(one: float, other: float, known: bool) -> None:
    written, graph = (_model(b).graph.snapshot() for b in (one, other))
    posterior = _model(one).infer()
    change = Frozen(written, compile_model(written), posterior.messages()).change(graph, with_joint_parts)
    if known:
        assert change == pytest.approx(_model(other).infer().log_evidence - posterior.log_evidence, abs=1e-4)
    else:
        assert change is None
