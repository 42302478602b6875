"""A report of made-up results, built once."""

import importlib.util
from pathlib import Path

import pytest

from heliograph.paper.registry import EXPERIMENTS
from heliograph.paper.report.page import build
from heliograph.paper.results import write_outcome

_spec = importlib.util.spec_from_file_location("report_made_up", Path(__file__).with_name("made_up.py"))
assert _spec is not None and _spec.loader is not None
_made_up = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made_up)


@pytest.fixture(scope="session")
def made_up():
    return _made_up


@pytest.fixture(scope="session")
def report_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name, make in _made_up.ALL.items():
        if name in EXPERIMENTS:
            write_outcome(folder, make())
    return build(folder)
