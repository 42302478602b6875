"""The messages that a run at a new value of the hyper-parameters begins with."""

import numpy as np
import pytest

import heliograph as hg
from heliograph.engine.nested.points import Evaluator
from heliograph.engine.nested.starting import carried_on, shares_at
from heliograph.engine.options import InferOptions
from heliograph.engine.tables import Snapshot
from heliograph.families import Gaussian


@pytest.mark.parametrize("d", [1, 2, 3])
def test_what_changes_in_a_straight_line_is_found_exactly(d):
    rng = np.random.default_rng(d)
    gaps = rng.normal(size=(2 * (d + 1), d))
    shares = shares_at(gaps)
    assert shares.sum() == pytest.approx(1.0)
    assert shares @ (3.0 + gaps @ np.arange(1.0, d + 1)) == pytest.approx(3.0, abs=0.02)  # a small ridge


def test_natural_parameters_are_averaged_and_known_values_kept():
    first = Snapshot({(0, "x"): Gaussian(1.0, 1.0), (1, "x"): Gaussian.point_mass(2.0)}, {})
    second = Snapshot({(0, "x"): Gaussian(2.0, 0.5), (1, "x"): Gaussian.point_mass(3.0)}, {})
    made = carried_on(first, [first, second], np.array([2.0, -1.0])).sent
    np.testing.assert_allclose(np.ravel(made[0, "x"].naturals), [2.0 - 4.0, 2.0 - 2.0])
    assert made[1, "x"].mean == 2.0


def test_a_run_begins_nearer_to_its_end_than_at_the_messages_of_the_nearest_value():
    rng = np.random.default_rng(0)
    model = hg.Model()
    s = model.log_normal("s", 0.0, 1.0)
    x = model.gaussian("x", model.gaussian("mu", 0.0, sd=3.0), sd=s, size=30)
    model.poisson("y", log_rate=x, observed=rng.poisson(2.0, 30))
    evaluator = Evaluator(model, model.draft.hypers, InferOptions())
    for u in (-1.5, -1.2, -0.9):
        evaluator.at(np.array([u]), False)
    u = np.array([-0.6])
    truth = evaluator.at(u, False).posterior.messages()
    carried, nearest = evaluator._starts(u, tuple(evaluator.points[:3]))

    def off(start):
        return max(
            np.abs(np.asarray(a) - b).max()
            for k in truth.sent
            for a, b in zip(start.sent[k].naturals, truth.sent[k].naturals, strict=True)
        )

    assert off(carried) < 0.5 * off(nearest)
