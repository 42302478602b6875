"""The forest, the network and plain asking as operators, through the same door as the paper's."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_world import GridOracle, logistic_factor, plate

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors.black_box import RunOptions
from heliograph.operators import make_operator, operator_names, register
from heliograph.operators.registry import operator_from_state
from heliograph.paper.rivals.forest import Forest
from heliograph.paper.rivals.neural import Neural


def small_forest(**more):
    return Forest(16, minibatch=120, n_candidates=30, **more)


def run(operator, seeds, to="z", logistic=None, n=200):
    logistic = logistic or logistic_factor()
    conduct = RunOptions(np.random.default_rng(0), operator=operator, oracle=GridOracle())
    return logistic, [logistic.send(to, plate(s, n), conduct) for s in seeds]


def test_asking_always_sends_the_oracles_message_and_learns_nothing():
    logistic, replies = run("ask", (0, 0))
    exact = GridOracle().ask(None, None, plate(0)).beliefs["z"] / plate(0)["z"]
    for reply in replies:
        assert reply.asked.all() and reply.n_asked == 200
        np.testing.assert_array_equal(reply.message.naturals[0], exact.naturals[0])
    assert logistic.n_asked == 400


@pytest.mark.parametrize("to", ["z", "out"])
def test_the_forest_learns_just_in_time(to):
    _, replies = run(small_forest(threshold=-4.0), (0, 1, 2, 0, 0), to)
    asked = [r.n_asked for r in replies]
    # full leaves split and answer differently, so a plate seen before may be asked about a little once more
    assert asked[0] >= 120 and max(asked[1:3]) < 60 and asked[4] <= asked[3] < 10
    exact = GridOracle().ask(None, None, plate(2)).beliefs[to]
    reply = replies[2]
    kl = exact.kl(reply.message * plate(2)[to])
    assert np.median(kl) < 1e-3


def test_the_forest_sees_the_factor_at_the_mode_unless_told_not_to():
    for mode_value, n in ((True, 200), (False, 0)):
        logistic, replies = run(small_forest(mode_value=mode_value), (0, 0))
        assert replies[-1].n_evaluations == n
        (operator,) = logistic.operators.values()
        assert ("factor at the mode" in next(iter(operator.directions))) == mode_value


def test_a_restored_forest_predicts_the_same_bits():
    logistic, _ = run(small_forest(), (0, 1))
    (operator,) = logistic.operators.values()
    other = operator_from_state("forest", operator.settings, *operator.state())
    assert other.key == operator.key
    _, (a,) = run(operator, (5,), logistic=logistic)
    _, (b,) = run(other, (5,), logistic=logistic_factor())
    np.testing.assert_array_equal(a.asked, b.asked)
    np.testing.assert_array_equal(a.message.naturals[1], b.message.naturals[1])


def test_an_untrained_network_says_how_to_train_it():
    with pytest.raises(ModelError, match=r"factor\.train\(rng, incoming, 'neural'\)"):
        run("neural", (0,))


def test_a_trained_network_never_asks():
    logistic = logistic_factor()
    operator = Neural((20, 20), max_iter=300)
    answer = logistic.train(np.random.default_rng(0), plate(7, 400), operator, oracle=GridOracle())
    assert logistic.n_asked == 400 and operator.empty, "an untrained object is a recipe: the factor trains its own"
    _, replies = run(operator, (0, 1), logistic=logistic)
    assert all(r.n_asked == 0 and not r.asked.any() and not r.failed.any() for r in replies)
    exact = GridOracle().ask(None, None, plate(1)).beliefs["z"]
    assert np.median(exact.kl(replies[1].message * plate(1)["z"])) < 1e-3
    assert set(answer.beliefs) == {"z", "out"}


def test_a_network_trained_by_hand_is_used_itself():
    operator = Neural((10,), max_iter=50).train(plate(7, 100), GridOracle().ask(None, None, plate(7, 100)))
    logistic, _ = run(operator, (0,))
    assert logistic.operators[operator.key] is operator


def test_a_restored_network_predicts_the_same_bits():
    operator = Neural((10,), max_iter=50).train(plate(7, 100), GridOracle().ask(None, None, plate(7, 100)))
    other = operator_from_state("neural", {"hidden": [10], "max_iter": 50}, *operator.state())
    assert other.key == operator.key
    for to in ("z", "out"):
        a, b = (o.send(np.random.default_rng(0), to, plate(3), None) for o in (operator, other))
        np.testing.assert_array_equal(a.message.naturals[1], b.message.naturals[1])


def test_what_learns_while_it_runs_is_not_trained_before():
    with pytest.raises(UnsupportedError, match="learns while it runs"):
        logistic_factor().train(np.random.default_rng(0), plate(0, 5), "kjit", oracle=GridOracle())


def test_operators_are_chosen_by_name_or_given_as_objects():
    assert {"ask", "kjit", "forest", "neural", "learned"} <= set(operator_names())
    assert make_operator("kjit").key == "kjit"
    with pytest.raises(ModelError, match="there is no operator 'magic'"):
        make_operator("magic")
    with pytest.raises(ModelError, match="an object with a method send, not int"):
        make_operator(3)
    register("shout", lambda: make_operator("ask"))
    assert make_operator("shout").name == "ask"
