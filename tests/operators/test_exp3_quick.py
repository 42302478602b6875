"""The paper's Experiment 3, small: three related logistic regressions, the oracle always asked against learning in time."""

from __future__ import annotations

import numpy as np
import pytest
from logistic_world import GridOracle, logistic_factor

import heliograph as hg
from heliograph.operators import Kjit
from heliograph.oracles import ImportanceOracle

D, N, SWEEPS = 20, 300, 10


def problems(seed, n_problems=3):
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(D)
    test = rng.standard_normal((10_000, D))
    data = []
    for _ in range(n_problems):
        X = rng.standard_normal((N, D))
        data.append((X, (rng.random(N) < 1 / (1 + np.exp(-X @ w))).astype(float)))
    return data, lambda mean: np.mean((test @ mean > 0) != (test @ w > 0))


def infer(logistic, X, y, operator, oracle, **more):
    model = hg.Model()
    w = model.gaussian("w", np.zeros(X.shape[1]), covariance=np.eye(X.shape[1]))
    model.bernoulli("y", logistic(X @ w), observed=y)
    more = {"stop": hg.after(SWEEPS), **more}
    *_, (posterior, _) = hg.steps(model, operator=operator, oracle=oracle, seed=0, **more)  # settled or not
    return posterior


@pytest.fixture(scope="module")
def runs():
    data, error = problems(0)
    learning, asking = logistic_factor(), logistic_factor()
    kjit = [infer(learning, X, y, "kjit", GridOracle()) for X, y in (*data, data[0])]
    ask = [infer(asking, X, y, "ask", GridOracle()) for X, y in data]
    return kjit, ask, error


def test_learned_and_sampled_messages_classify_alike(runs):
    kjit, ask, error = runs
    for a, b in zip(kjit, ask, strict=False):
        assert abs(error(a["w"].mean) - error(b["w"].mean)) <= 0.005


def test_asks_fall_from_problem_to_problem_and_a_second_pass_hardly_asks(runs):
    kjit, ask, _ = runs
    asked = [p.trace.n_asked for p in kjit]
    assert asked[0] > asked[1] and asked[1] < 0.2 * asked[0] and asked[2] < 0.2 * asked[0]
    assert asked[3] <= 0.02 * asked[0]
    assert all(p.trace.n_asked == N * SWEEPS for p in ask)


def test_the_trace_holds_every_invocation(runs):
    kjit, _, _ = runs
    trace = kjit[1].trace
    assert len(trace.invocations) == SWEEPS
    for call in trace.invocations:
        assert call.log_variance.shape[0] == len(call.asked) == N
        np.testing.assert_array_equal(call.asked, (call.log_variance >= -8.5).any(axis=1))
    sweep = trace.sweeps[0]
    assert sweep.seconds_prediction > 0 and sweep.seconds_rest > 0
    assert trace.plot().axes[0].get_title() == "logistic to z"


def test_the_posterior_mean_is_that_of_exact_messages(runs):
    kjit, ask, _ = runs
    for a, b in zip(kjit, ask, strict=False):
        # the belief target has errors of about 1e-2 in each of 300 messages
        assert np.abs(a["w"].mean - b["w"].mean).max() < 0.1 * np.sqrt(b["w"].variance).max() + 0.1


def test_the_evidence_of_a_learned_model_is_that_of_the_factor_made_by_hand():
    X, y = (a[:60] for a in problems(3, 1)[0][0])
    logistic = logistic_factor(oracle=GridOracle())
    learned = infer(logistic, X[:, :4], y, Kjit(100, 150, minibatch=50, target="message"), None, stop=hg.after(15))
    model = hg.Model()
    w = model.gaussian("w", np.zeros(4), covariance=np.eye(4))
    model.bernoulli("y", logit=X[:, :4] @ w, observed=y)
    exact = model.infer(progress=False)
    # errors of the messages are second order in EP's evidence
    assert abs(learned.log_evidence - exact.log_evidence) < 1e-3


def test_the_same_seed_gives_the_same_posterior_to_the_last_bit():
    X, y = (a[:80] for a in problems(1, 1)[0][0])
    kjit = Kjit(100, 150, minibatch=60)
    runs = [infer(logistic_factor(), X, y, kjit, ImportanceOracle(256), stop=hg.after(2)) for _ in range(2)]
    np.testing.assert_array_equal(runs[0]["w"].mean, runs[1]["w"].mean)


def test_the_sequential_schedule_learns_message_by_message():
    data, _ = problems(2, 1)
    X, y = data[0][0][:60, :5], data[0][1][:60]
    logistic = logistic_factor()
    kjit = Kjit(100, 150, minibatch=40)
    first = infer(logistic, X, y, kjit, GridOracle(), schedule="sequential", stop=hg.after(4))
    assert all(len(call.asked) == 1 for call in first.trace.invocations)
    assert all(call.asked.all() for call in first.trace.invocations[:40])
    again = infer(logistic, X, y, kjit, GridOracle(), schedule="sequential", stop=hg.after(4))
    exact = infer(logistic, X, y, "ask", GridOracle(), schedule="sequential", stop=hg.after(4))
    assert again.trace.n_asked <= 0.02 * 240 < 40 <= first.trace.n_asked < 240
    np.testing.assert_allclose(again["w"].mean, exact["w"].mean, atol=0.1)
