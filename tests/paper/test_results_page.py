"""The committed results: pages that are made from the JSON beside them, and nothing else."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from heliograph.paper.registry import EXPERIMENTS, claims_of

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
_spec = importlib.util.spec_from_file_location("make_tables", RESULTS / "make_tables.py")
assert _spec is not None and _spec.loader is not None
make_tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_tables)


@pytest.mark.parametrize(("page", "make"), [("README.md", "readme"), ("reproduced.md", "reproduced")])
def test_the_pages_are_what_the_json_beside_them_says(page, make):
    assert (RESULTS / page).read_text() == getattr(make_tables, make)(make_tables.results())


def test_a_changed_number_would_be_seen():
    found = make_tables.results()
    row = next(iter(found["exp4"]["methods"].values()))
    row["worst_posterior_kl"] = 123.0
    assert make_tables.readme(found) != (RESULTS / "README.md").read_text()


def test_every_experiment_is_there_and_every_figure_is_shown():
    found = make_tables.results()
    assert list(found) == list(EXPERIMENTS)
    shown = set(re.findall(r"figures/(\w+\.png)", (RESULTS / "README.md").read_text()))
    assert shown == {p.name for p in (RESULTS / "figures").glob("*.png")}


def test_the_blood_error_and_the_calls_of_experiment_4_have_ranges_beside_the_papers():
    exp4, exp5 = (json.loads((RESULTS / f"{name}.json").read_text()) for name in ("exp4", "exp5"))
    for name in ("kjit (text)", "kjit (program)"):
        assert len(exp4["spread"]["methods"][name]["oracle calls"]) >= 5
        assert len(exp5["spread"]["methods"][name]["error, blood_transfusion"]) >= 2
    (blood,) = [c for c in claims_of(exp5) if "blood transfusion is 0.3166" in c.said]
    (calls,) = [c for c in claims_of(exp4) if c.said.startswith("69 oracle calls")]
    assert " to " in blood.ours and " to " in calls.ours
