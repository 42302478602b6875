"""The paper's own numbers: each stands on the line of the paper that the data file names, and beside the right columns."""

import os
import re
from pathlib import Path

import pytest

from heliograph.operators import Kjit
from heliograph.paper.columns import KJIT, kjit_settings, numbers, paper_of, published, reproduces, settings_table
from heliograph.paper.registry import EXPERIMENTS

PAPER = Path(os.environ.get("HELIOGRAPH_SHARED", Path(__file__).resolve().parents[2] / "../shared")) / "paper.tex"


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not beside the repository")
def test_a_printed_number_stands_on_its_line_and_a_drawn_one_belongs_to_the_figure_that_begins_there():
    lines = PAPER.read_text(encoding="latin-1").splitlines()
    for n in numbers():
        line = lines[n.line - 1]
        if n.source == "text":
            found = {float(x.replace(",", "")) for x in re.findall(r"-?\d[\d,]*(?:\.\d+)?", line)}
            assert n.value in found, f"{n.key} of {n.method}: {n.value} is not on line {n.line}: {line}"
        else:
            assert re.search(r"\\subfloat\[|\\begin\{figure", line), f"line {n.line} begins no figure: {line}"


def test_no_number_is_given_twice():
    keys = [(n.experiment, n.method, n.key, n.at) for n in numbers()]
    assert len(keys) == len(set(keys))


def test_methods_and_keys_are_those_of_the_experiments():
    for n in numbers():
        methods = {*EXPERIMENTS[n.experiment].full["methods"], "kjit"}
        assert n.method in methods, n


def test_numbers_of_kjit_stand_beside_text_and_program_and_not_beside_our_own():
    assert [name for name in KJIT if reproduces(name)] == ["kjit (text)", "kjit (program)"]
    for n in numbers():
        if n.method == "kjit":
            beside = [paper_of(n.experiment, name, n.key, n.at) for name in KJIT]
            assert beside == [n.value, n.value, None]


def test_an_experiments_json_has_every_number_of_it():
    told = published("exp4")
    assert told["kjit"]["oracle_calls_after"]["50"] == 28 and told["exact"] == {"seconds_when_asked": 0.265}
    n_told = sum(len(v) if isinstance(v, dict) else 1 for row in told.values() for v in row.values())
    assert n_told == sum(n.experiment == "exp4" for n in numbers())


def test_the_settings_of_every_column_are_those_of_the_paper():
    # sections 4.3 to 4.5 of the paper, and the program where it differs
    text = kjit_settings("exp3", "kjit (text)")
    assert (text["D_in"], text["D_out"], text["noise"], text["threshold"], text["minibatch"]) == (
        300,
        500,
        1e-4,
        -8.5,
        300,
    )
    text = kjit_settings("exp5", "kjit (text)")
    assert (text["threshold"], text["minibatch"], text["D_out"]) == (-9.0, 500, 500)
    program = kjit_settings("exp5", "kjit (program)")
    assert (program["threshold"], program["minibatch"], program["D_in"], program["D_out"]) == (-8.95, 500, 400, 800)
    program = kjit_settings("exp4", "kjit (program)")
    assert (program["D_in"], program["D_out"], program["threshold"], program["minibatch"]) == (400, 800, -6.0, 20)


@pytest.mark.parametrize("experiment", ["exp3", "exp4", "exp5"])
def test_the_table_of_settings_is_what_the_operators_are_made_with(experiment):
    names, rows = settings_table(experiment)
    table = {key: dict(zip(names, values, strict=True)) for key, values in rows}
    for name in names:
        operator = Kjit(**kjit_settings(experiment, name))
        learner = operator.learner
        assert operator.threshold == table["threshold"][name] and operator.minibatch == table["minibatch"][name]
        assert operator.target.name == table["target"][name] and operator.order == table["order"][name]
        assert operator.improper == table["improper"][name]
        assert (learner.n_inner, learner.n_outer) == (table["D_in"][name], table["D_out"][name])
        assert (learner.noise, learner.prior_variance) == (table["noise"][name], table["prior_variance"][name])
        assert (learner.gamma_factor, learner.embedding) == (table["gamma_factor"][name], table["embedding"][name])
        assert (learner.features, learner.axis) == (table["features"][name], table["axis"][name])
    text = {key: row["kjit (text)"] for key, row in table.items()}
    assert (text["order"], text["embedding"], text["gamma_factor"], text["features"]) == (
        "in turn",
        "exact",
        1.0,
        "one",
    )
    program = {key: row["kjit (program)"] for key, row in table.items()}
    assert (program["embedding"], program["gamma_factor"], program["features"]) == ("moments", 0.5, "per output")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_the_same_three_names(name):
    methods = EXPERIMENTS[name].full["methods"]
    assert [m for m in methods if m.startswith("kjit")] == (list(KJIT) if name != "features" else [])
