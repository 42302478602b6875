"""Experiments 3 and 5, tiny: which oracle each row asks, against what it is measured, and with which settings."""

import numpy as np
import pytest
from scipy.special import expit

import heliograph.paper.sequences.logistic as logistic
from heliograph.paper.columns import KJIT, kjit_settings
from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.sequences.parts import level_of, level_per_sweep

EXP3 = EXPERIMENTS["exp3"]
EXP5 = EXPERIMENTS["exp5"]

TINY = {"n_problems": 2, "d": 3, "n": 40, "n_test": 500, "sweeps": 3, "particles": 700}
SMALL = {"D_in": 60, "D_out": 80, "minibatch": 30}


def _operator(method, experiment="exp3"):
    return {**kjit_settings(experiment, method), **SMALL} if method in KJIT else None


@pytest.fixture
def drawn(monkeypatch):
    """Everything that the logistic factor was evaluated at."""
    seen = []

    def counted(z):
        seen.append(np.array(z, dtype=float).ravel())
        return expit(z)

    monkeypatch.setattr(logistic, "expit", counted)
    return seen


@pytest.mark.parametrize("method", [*KJIT, "forest", "sampling"])
def test_a_row_of_the_paper_asks_its_sampler_and_nothing_else(drawn, method):
    row = logistic.synthetic_sequence(method, 3, operator=_operator(method), **TINY)
    z = np.concatenate(drawn)
    asked = sum(row["oracle_calls"]) * TINY["particles"]
    looks = sum(row["messages"]) if method == "forest" else 0  # its trees see the factor's value at the mode
    assert sum(row["evaluations"]) == asked + looks
    assert 0 <= len(z) - asked - looks < 100  # a function is tried on a few numbers before it is used
    assert sum(row["oracle_calls"]) >= (SMALL["minibatch"] if method in KJIT else 1)
    if method != "forest":  # N(0, 200): six standard errors of the mean and of the variance
        assert abs(z.mean()) < 6 * np.sqrt(200 / len(z))
        assert z.var() == pytest.approx(200, abs=6 * 200 * np.sqrt(2 / len(z)))


def test_exact_ep_evaluates_no_black_box_and_the_network_asks_only_before(drawn):
    row = logistic.synthetic_sequence("exact", 3, **TINY)
    assert not drawn and row["evaluations"] == [0, 0] and row["posterior_kl"] == [0.0, 0.0]


@pytest.mark.parametrize("method", ["kjit (text)", "sampling"])
def test_posteriors_are_measured_from_exact_ep_and_errors_by_the_noise_free_label(monkeypatch, method):
    beliefs, infer = [], logistic._infer
    monkeypatch.setattr(logistic, "_infer", lambda *a: beliefs.append(infer(*a)) or beliefs[-1])
    problems, solve = [], logistic.solve_sequence
    monkeypatch.setattr(logistic, "solve_sequence", lambda p, *a, **k: problems.extend(p) or solve(p, *a, **k))
    row = logistic.synthetic_sequence(method, 3, operator=_operator(method), **TINY)
    w = np.random.default_rng([3, 2**31]).standard_normal(3)
    for k, problem in enumerate(problems):
        exact, ours = beliefs[2 * k][0], beliefs[2 * k + 1][0]
        label = problem.X_test @ w > 0
        np.testing.assert_array_equal(problem.y_test > 0, label)  # the same w in every problem
        assert row["disagreement"][k] == np.mean((problem.X_test @ ours.mean > 0) != label)
        assert row["posterior_kl"][k] == pytest.approx(_kl(exact, ours), rel=1e-6)
        assert _kl(exact, ours) != pytest.approx(_kl(ours, exact), rel=1e-3)  # so the direction can be seen
    assert len(problems) == 2 and not np.array_equal(problems[0].X, problems[1].X)


def _kl(p, q):
    """KL(p || q) of two Gaussians by the textbook formula."""
    a, b = p.covariance, q.covariance
    d = q.mean - p.mean
    inverse = np.linalg.inv(b)
    logs = np.linalg.slogdet(b)[1] - np.linalg.slogdet(a)[1]
    return 0.5 * (np.trace(inverse @ a) + d @ inverse @ d - len(d) + logs)


def test_training_labels_are_drawn_from_the_model_and_not_the_noise_free_ones(monkeypatch):
    problems = []
    monkeypatch.setattr(logistic, "solve_sequence", lambda p, *a, **k: problems.extend(p) or {})
    logistic.synthetic_sequence("exact", 5, **{**TINY, "n_problems": 40})
    w = np.random.default_rng([5, 2**31]).standard_normal(3)
    y = np.concatenate([p.y for p in problems])
    p = expit(np.concatenate([p.X for p in problems]) @ w)
    z = (y - p).sum() / np.sqrt((p * (1 - p)).sum())
    assert abs(z) < 4 and np.mean((y > 0) != (p > 0.5)) > 0.02


@pytest.mark.parametrize(("experiment", "size"), [(EXP3, "quick"), (EXP3, "full"), (EXP5, "quick"), (EXP5, "full")])
def test_every_part_has_the_column_it_is_named_for_and_the_same_draws(experiment, size):
    settings = getattr(experiment, size)
    parts = {p.name: p.settings for p in experiment.parts(settings, 0) if "method" in p.settings}
    assert {p["particles"] for p in parts.values()} == {settings["particles"]}
    for name in KJIT:
        assert parts[f"{experiment.name} {name}"]["operator"] == kjit_settings(experiment.name, name)
    assert settings["particles"] == (500_000 if size == "full" else 50_000)


def test_the_program_meets_the_data_sets_in_its_own_order_and_tables_have_the_texts():
    parts = {p.name: p.settings for p in EXP5.parts(EXP5.full, 0)}
    text = ("banknote", "blood_transfusion", "fertility", "ionosphere")
    assert parts["exp5 kjit (text)"]["names"] == text
    assert parts["exp5 kjit (program)"]["names"] == ("banknote", "blood_transfusion", "ionosphere", "fertility")
    row = {"names": list(parts["exp5 kjit (program)"]["names"]), "disagreement": [0.1, 0.2, 0.3, 0.4]}
    row |= {key: [1, 2, 3, 4] for key in ("oracle_calls", "evaluations")}
    told = EXP5.assemble(EXP5.full, 0, {"exp5 kjit (program)": {**row, "series": {}}}).json
    assert told["methods"]["kjit (program)"]["disagreement"] == [0.1, 0.2, 0.4, 0.3]
    assert told["methods"]["kjit (program)"]["names"] == list(text)
    assert told["methods"]["kjit (program)"]["run_order"] == row["names"]


def test_real_problems_are_measured_by_their_test_labels(monkeypatch):
    problems = []
    monkeypatch.setattr(logistic, "solve_sequence", lambda p, *a, **k: problems.extend(p) or {})
    logistic.uci_sequence("exact", 0, ("fertility",), "whole", None)
    (problem,) = problems
    assert len(problem.y) == len(problem.y_test) == 50 and set(np.unique(problem.y_test)) == {0, 1}
    assert problem.X.shape[1] == 9  # no intercept


def test_the_trace_is_of_the_first_output_the_mean(monkeypatch):
    runs, infer = [], logistic._infer
    monkeypatch.setattr(logistic, "_infer", lambda *a: runs.append(infer(*a)) or runs[-1])
    method = "kjit (program)"  # a feature map for each output, and so a variance for each
    kept = logistic.synthetic_sequence(method, 3, operator=_operator(method), **TINY)["series"]
    assert np.isnan(kept["log_variance"][:30]).all() and kept["asked"][:30].all()
    calls = [call for _, posterior, _ in runs for call in posterior.trace.invocations if call.to == "z"]
    both = np.concatenate([c.log_variance for c in calls if c.log_variance is not None])
    np.testing.assert_array_equal(kept["log_variance"], both[:, 0].astype(np.float32))
    assert (both[30:, 0] != both[30:, 1]).any()


def test_a_level_is_the_mean_of_the_second_half_and_reached_when_a_sweep_is_near_it():
    level, after = level_of(np.concatenate([np.full(300, np.nan), np.zeros(200), np.full(1500, -8.8)]))
    assert level == pytest.approx(-8.8) and 790 <= after <= 800
    kept = {
        "problem": np.array([0, 0, 0, 1]),
        "sweep": np.array([1, 1, 2, 1]),
        "log_variance": np.array([1.0, 3, np.nan, 4]),
    }
    assert level_per_sweep(kept) == [[2.0, None], [4.0]]
