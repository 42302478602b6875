"""The house's own laws: imports flow one way, every module says what it is, the notation table is in step."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "heliograph"
ROOMS = [
    "errors",
    "numerics",
    "storage",
    "families",
    "kernels",
    "regression",
    "operators",
    "oracles",
    "factors",
    "graph",
    "engine",
    "paper",  # a wing: no room before it may look in
]
MODULES = sorted(SOURCE.rglob("*.py"))


def _room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _rank(room: str) -> int:
    if room in ROOMS:
        return ROOMS.index(room)
    return len(ROOMS)


def _imports(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "heliograph":
            yield from (f"heliograph.{a.name}" for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("heliograph."):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("heliograph"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_imports_only_rooms_before_it(path):
    here = _room(path)
    if here == "__init__":
        return  # the front door opens on every room
    for module in _imports(ast.parse(path.read_text())):
        parts = module.split(".")
        there = parts[1] if len(parts) > 1 else "__init__"
        assert there != "__init__" or here == "cli", f"{path.name} imports the package's front door"
        assert _rank(there) <= _rank(here), f"{here} imports {there}, which comes later"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no docstring"


def test_equations_cited_in_the_source_stand_in_the_notation_table_and_the_other_way_round():
    pattern = re.compile(r"eqs?\. \((\d+)\)(?:-\((\d+)\))?")

    def cited(text):
        numbers = set()
        for first, last in pattern.findall(text):
            numbers |= set(range(int(first), int(last or first) + 1))
        return numbers

    in_source = set().union(*(cited(p.read_text()) for p in MODULES))
    in_table = cited((ROOT / "docs" / "notation.md").read_text())
    assert in_source == in_table
