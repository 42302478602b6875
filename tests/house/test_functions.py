"""Functions one can read at a sitting."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "heliograph"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 40  # lines, the docstring not counted
FORMULA = "one integral: the mode, the ends and the density share a dozen quantities, which would all be arguments"
LONGER = {  # function -> why it is longer
    "factors/gamma.py: _integrate": FORMULA,
    "factors/integrals/precision.py: _integrate": FORMULA,
    "factors/integrals/precision.py: tilt_of_precision": "the cases of one integral, each a few lines on the same arrays",
    "factors/integrals/product.py: _integrate": FORMULA,
    "factors/probit.py: _tilt_rows": FORMULA,
    "oracles/importance/adapting.py: adapt": "one loop whose ten arrays are all cut to the rows that still need it",
    "oracles/importance/fitting.py: fit": "the parts of one mixture, in the order in which they stand in it",
    "oracles/quadrature/evaluation.py: evaluate_cells": "one pass over the nodes of a cell: every line reads the last ones",
    "regression/process_evidence.py: fit_widths": "what is minimised, its bounds and its starts are one problem",
    "regression/process_evidence.py: negative_log_evidence": "a value and its gradient, which share all that is computed",
}


def _lines(function: ast.FunctionDef) -> int:
    doc = function.body[0] if ast.get_docstring(function) else None
    return function.end_lineno - function.lineno + 1 - (doc.end_lineno - doc.lineno + 1 if doc else 0)


def _long(path: Path) -> dict[str, int]:
    functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
    here = path.relative_to(SOURCE).as_posix()
    return {f"{here}: {f.name}": _lines(f) for f in functions if _lines(f) > LONGEST}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_function_is_longer_than_40_lines_without_a_reason(path):
    assert not {name: n for name, n in _long(path).items() if name not in LONGER}


@pytest.mark.parametrize("name", LONGER)
def test_a_reason_that_is_no_longer_needed_is_dropped(name):
    path = SOURCE / name.split(":")[0]
    assert path.exists() and name in _long(path), f"{name} is short or gone: drop it from the exceptions"
