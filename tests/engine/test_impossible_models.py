"""Models that cannot be true raise, and say where; nothing with probability zero comes back as a posterior."""

import numpy as np
import pytest

import heliograph as hg


def _observed_where_impossible(m):
    m.bernoulli("b", 0.0, observed=1)


def _known_cause_excludes_effect(m):
    cause = m.categorical("cause", [1.0, 0.0])
    m.categorical("effect", [[1.0, 0.0], [0.0, 1.0]], given=cause, observed=1)


def _prior_excludes_the_only_explanation(m):
    cause = m.categorical("cause", [0.5, 0.5, 0.0])
    m.categorical("effect", [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], given=cause, observed=1)


def _two_reports_disagree(m):
    same = [[1.0, 0.0], [0.0, 1.0]]
    cause = m.categorical("cause", [0.5, 0.5])
    m.categorical("one", same, given=cause, observed=1)
    m.categorical("two", same, given=cause, observed=0)


def _constraint_on_a_known_value(m):
    x = m.gaussian("x", 0.0, variance=1.0, observed=1.0)
    m.constrain(x > 2.0)


def _exact_observation_and_constraint(m):
    x = m.gaussian("x", 0.0, variance=1.0)
    m.observe(m.exp(x), 0.5)
    m.constrain(x > 0.0)


def _two_exact_observations(m):
    x = m.gaussian("x", 0.0, variance=1.0)
    m.observe(x + 1.0, 2.0)
    m.observe(x * 2.0, 7.0)


def _one_row_of_a_plate(m):
    cause = m.categorical("cause", np.array([[0.5, 0.5], [1.0, 0.0]]))
    m.categorical("effect", [[1.0, 0.0], [0.0, 1.0]], given=cause, observed=[1, 1])


IMPOSSIBLE = [f for name, f in list(globals().items()) if name.startswith("_") and callable(f) and name[1] != "_"]


@pytest.mark.parametrize("build", IMPOSSIBLE, ids=lambda f: f.__name__[1:])
def test_an_impossible_model_raises_and_names_where(build):
    model = hg.Model()
    with pytest.raises(hg.ContradictionError, match="'"):
        build(model)
        model.infer()


def test_an_unlikely_model_is_not_taken_for_an_impossible_one():
    model = hg.Model()
    cause = model.categorical("cause", [1 - 1e-300, 1e-300])
    model.categorical("effect", [[1.0, 0.0], [0.0, 1.0]], given=cause, observed=1)
    assert model.infer().log_evidence == pytest.approx(np.log(1e-300), rel=1e-9)
