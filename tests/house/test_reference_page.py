"""The reference has every public name, is up to date, and each of its examples runs."""

import importlib.util
import sys
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")
DOCS = Path(__file__).resolve().parents[2] / "docs"


def _maker():
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = _maker()
sys.path.remove(str(DOCS))


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "reference.md").read_text() == MAKER.page(), "run python docs/make_reference.py"


def test_there_is_no_example_of_a_name_that_is_not_there() -> None:
    assert not [name for name in MAKER.EXAMPLES if name not in MAKER.names()]


@pytest.mark.parametrize("name", MAKER.names())
def test_every_public_name_has_an_example_that_runs(name: str, tmp_path, monkeypatch) -> None:
    from matplotlib import pyplot

    example = MAKER.example_of(name)
    assert example, f"{name} has no example: write one into its docstring or into docs/reference_examples.py"
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "__example__"}
    exec(compile(MAKER.SETUP, "the setup of the reference", "exec"), scope)
    exec(compile(example, f"the example of {name}", "exec"), scope)
    pyplot.close("all")
