"""Experiment 2, small: kernels doubt smoothly, forests do not."""

from pathlib import Path

import numpy as np
import pytest

from heliograph.paper.batch.kernels import Sizes
from heliograph.paper.exp2.parts import curves, smoothness
from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.running.parts import Store, run_parts

EXPERIMENT = EXPERIMENTS["exp2"]

SETTINGS = {
    **EXPERIMENT.quick,
    "n_train": 500,
    "n_test": 200,
    "sizes": Sizes(D_in=100, D_out=150, n_trees=16)._asdict(),
    "messages": {"n_problems": 3, "d": 10, "n": 100, "sweeps": 5, "keep_sweeps": 5, "particles": 0},
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    store = Store(Path(tmp_path_factory.mktemp("exp2")))
    return EXPERIMENT.assemble(SETTINGS, 1, {p.name: r for p, r in run_parts(EXPERIMENT.parts(SETTINGS, 1), store)})


def test_the_curves_are_those_of_the_program():
    m, log_precision = curves()
    assert m[0] == -13 and m[-1] == 13 and len(m) == 500
    np.testing.assert_allclose(log_precision[:, 0], [-0.26 + 2.6, -3.38 + 1.6])


def test_total_variation_of_a_monotone_curve_is_its_range():
    tv, jump = smoothness(np.linspace(0, 5, 51) ** 2)
    assert tv == pytest.approx(25.0) and jump == pytest.approx(25 - 4.9**2)


def test_the_kernels_doubt_has_smaller_jumps_than_any_forests(outcome):
    rows = outcome.json["methods"]
    kernel = np.array(rows["kjit (text)"]["biggest_jump"])
    for forest in ("eslami forest", "random forest", "extra trees"):
        assert (kernel <= np.array(rows[forest]["biggest_jump"]) / 3).all(), forest


def test_the_json_has_what_the_page_promises(outcome):
    for name, row in outcome.json["methods"].items():
        assert len(row["total_variation"]) == len(row["biggest_jump"]) == 2, name
        assert 0 <= row["certain_and_wrong"] <= row["n_certain"] <= row["n_test"], name
        assert outcome.series["methods"][name]["log_uncertainty"].shape == (2, 500), name
    assert outcome.series["training"]["mean"].shape == outcome.series["training"]["log_precision"].shape


def test_doubt_of_the_paper_is_never_below_its_noise_and_near_it_among_the_training_messages(outcome):
    for name in ("kjit (text)", "kjit (house)"):
        doubt = outcome.series["methods"][name]["train_log_uncertainty"]
        assert np.log(1e-4) < doubt.min() < np.log(2e-4), name
    assert outcome.series["methods"]["kjit (program)"]["train_log_uncertainty"].min() > np.log(1e-4)


def test_training_messages_are_doubted_and_scored_too(outcome):
    kept = outcome.series["methods"]["kjit (house)"]
    assert len(kept["train_log_kl"]) == len(kept["train_log_uncertainty"]) == 500
    row = outcome.json["methods"]["kjit (house)"]
    assert row["train_mean_log_kl"] == pytest.approx(kept["train_log_kl"].mean())
    assert row["mean_log_uncertainty"] == pytest.approx(kept["log_uncertainty"].mean(axis=1).tolist())


def test_small_doubt_means_small_error(outcome):
    row = outcome.json["methods"]["kjit (text)"]
    assert row["rank_correlation"] > 0.3
    assert outcome.json["methods"]["learned"]["certain_and_wrong"] == 0
