"""Experiment 4, small: the black box is the compound gamma, and the learners imitate it."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from heliograph.factors import CompoundGamma
from heliograph.families import Beta
from heliograph.paper.columns import kjit_settings
from heliograph.paper.exp4.parts import compound_gamma_factor, incoming_messages, solve_problems
from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.running.parts import Store, run_parts

EXPERIMENT = EXPERIMENTS["exp4"]

METHODS = ("exact", "learned", "kjit (text)", "kjit (program)")
SETTINGS = {**EXPERIMENT.quick, "n_problems": 60, "particles": 4096, "methods": METHODS}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    store = Store(Path(tmp_path_factory.mktemp("exp4")))
    return EXPERIMENT.assemble(SETTINGS, 1, {p.name: r for p, r in run_parts(EXPERIMENT.parts(SETTINGS, 1), store)})


def test_the_black_box_with_its_beta_message_is_the_compound_gamma():
    tau = incoming_messages(1, 5)
    exact = CompoundGamma().belief("tau", {"tau": tau})
    asked = compound_gamma_factor().belief("tau", {"tau": tau, "out": Beta(np.full(5, 3.0), 1.0)}, oracle="quadrature")
    np.testing.assert_allclose(exact.kl(asked), 0, atol=1e-9)  # two quadratures


def test_incoming_messages_are_the_likelihoods_of_the_data():
    tau = incoming_messages(2, 200)
    n = 2 * (tau.shape_parameter - 1)
    assert n.min() >= 10 and n.max() <= 100
    assert np.ptp(np.log(tau.rate)) > 5  # a heavy-tailed prior on the precision


def test_the_paper_s_methods_have_its_oracle_and_the_number_of_questions_does_not_depend_on_it():
    asked = EXPERIMENT.full["oracles"]
    assert asked["kjit (text)"] == asked["kjit (program)"] == "quadrature" and asked["learned sampled"] == "sampling"
    settings = {k: SETTINGS[k] for k in ("n_problems", "particles", "tolerance")}
    settings["operator"] = kjit_settings("exp4", "kjit (text)")
    rows = [solve_problems("kjit (text)", 3, oracle=oracle, **settings) for oracle in ("quadrature", "sampling")]
    # a predictive variance knows where labels are, not what they say
    assert rows[0]["oracle_calls"] == rows[1]["oracle_calls"]
    assert rows[0]["evaluations"] != rows[1]["evaluations"]  # each had its own oracle


def test_learners_give_the_exact_posteriors_with_few_calls(outcome):
    for method in ("learned", "kjit (text)", "kjit (program)"):
        row = outcome.json["methods"][method]
        assert row["correlation_log_rate"] >= 0.999 and row["correlation_log_shape"] >= 0.999, method
        assert row["oracle_calls_after"]["50"] <= 45, method
        assert row["improper"] == 0, method
    assert outcome.json["methods"]["learned"]["worst_posterior_kl"] < 1e-3
    assert outcome.json["methods"]["kjit (program)"]["correlation_log_shape"] == pytest.approx(1.0)


def test_questions_are_counted_after_so_many_problems(outcome):
    for name, row in outcome.json["methods"].items():
        asked = outcome.series[name]["asked"]
        assert row["oracle_calls_after"] == {"50": int(asked[:50].sum())} and row["oracle_calls"] == asked.sum(), name
    assert outcome.series["kjit (text)"]["asked"][:20].all()  # the minibatch


def test_posteriors_are_measured_from_the_exact_ones_and_not_the_other_way(outcome):
    exact, found = (outcome.series[m] for m in ("exact", "kjit (text)"))
    a, b, c, d = exact["shape"], exact["rate"], found["shape"], found["rate"]
    kl = (a - c) * digamma(a) - gammaln(a) + gammaln(c) + c * np.log(b / d) + a * (d - b) / b
    row = outcome.json["methods"]["kjit (text)"]
    assert row["worst_posterior_kl"] == pytest.approx(kl.max(), rel=1e-6)
    other = (c - a) * digamma(c) - gammaln(c) + gammaln(a) + a * np.log(d / b) + c * (b - d) / d
    assert kl.max() != pytest.approx(other.max(), rel=1e-3)


def test_the_shares_of_time_add_up(outcome):
    row = outcome.json["methods"]["kjit (text)"]
    parts = sum(row[f"seconds_{k}"] for k in ("oracle", "learning", "prediction", "rest"))
    assert parts == pytest.approx(row["seconds"])
    assert outcome.series["kjit (text)"]["asked"].sum() == row["oracle_calls"]
    assert outcome.series["data"]["rate"].shape == (60,)
