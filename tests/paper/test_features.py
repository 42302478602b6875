"""The appendix on features, small: approximations improve, by the root of their number."""

from pathlib import Path

import numpy as np
import pytest

from heliograph.paper.features.parts import approximation, gaussian_messages
from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.running.parts import Store, run_parts

EXPERIMENT = EXPERIMENTS["features"]

SETTINGS = {
    **EXPERIMENT.quick,
    "D": (50, 800),
    "n_messages": 60,
    "n_trials": 10,
    "D_in": (20, 150),
    "D_out": (20, 150),
    "n_grid_trials": 4,
    "n_train": 300,
    "n_test": 100,
    "beyond": (40, 160),
    "beyond_train": 300,
    "beyond_test": 100,
    "beyond_messages": {"exact": {"n_problems": 2, "d": 8, "n": 60, "sweeps": 5, "keep_sweeps": 5, "particles": 0}},
    "messages": {"n_problems": 2, "d": 8, "n": 60, "sweeps": 5, "keep_sweeps": 5, "particles": 0},
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    store = Store(Path(tmp_path_factory.mktemp("features")))
    return EXPERIMENT.assemble(SETTINGS, 1, {p.name: r for p, r in run_parts(EXPERIMENT.parts(SETTINGS, 1), store)})


def test_messages_have_the_moments_of_the_appendix():
    m = gaussian_messages(np.random.default_rng(0), 20_000)
    assert m.mean.var() == pytest.approx(9, rel=0.05)
    assert m.variance.mean() == pytest.approx(12, rel=0.05)  # shape 3 over rate 1/4


@pytest.mark.parametrize("method", SETTINGS["methods"])
def test_sixteen_times_the_features_have_a_quarter_of_the_error(outcome, method):
    # the law of large numbers; features that are all products of 7 and of 28 only have 4 times as many draws
    row = outcome.json["methods"][method]
    for error in ("max_abs_error", "frobenius"):
        small, large = row[error]
        assert large < (0.9 if method.startswith("product") else 0.5) * small, error


def test_more_outer_features_do_more_than_more_inner_ones(outcome):
    frobenius = np.array(outcome.json["grid"]["frobenius"])
    assert frobenius[0, 1] < frobenius[1, 0]
    assert frobenius[1, 1] == frobenius.min()


def test_batch_learning_gains_from_both(outcome):
    log_kl = np.array(outcome.json["grid"]["mean_log_kl"])
    assert log_kl.shape == (2, 2)
    assert log_kl[1, 1] == log_kl.min()


def test_the_same_seed_gives_the_same_numbers():
    once, twice = (approximation("expected product", 7, (30,), 20, 2) for _ in range(2))
    assert once == twice
