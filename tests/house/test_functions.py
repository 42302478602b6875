"""Functions one can read at a sitting."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "heliograph"
ROOMS = ("graph", "engine")  # the rooms that keep this law; to grow until it is all of them
MODULES = [SOURCE / "cli.py", *sorted(p for room in ROOMS for p in (SOURCE / room).rglob("*.py"))]
LONGEST = 40  # lines, the docstring not counted


def _lines(function: ast.FunctionDef) -> int:
    doc = function.body[0] if ast.get_docstring(function) else None
    return function.end_lineno - function.lineno + 1 - (doc.end_lineno - doc.lineno + 1 if doc else 0)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_function_is_longer_than_40_lines(path):
    functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
    assert not [f"{f.name}: {_lines(f)} lines" for f in functions if _lines(f) > LONGEST]
