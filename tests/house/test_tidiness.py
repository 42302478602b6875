"""Files and functions one can read at a sitting, that import nothing private of each other and form no circles."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "heliograph"
ROOMS = ("graph", "engine")  # the rooms that keep these laws
MODULES = sorted(p for room in ROOMS for p in (SOURCE / room).rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION = 300, 40


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path) -> list[tuple[str, str]]:
    """The (module, name) pairs that a file imports from this package, function-local ones included."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("heliograph"):
            found += [(node.module, alias.name) for alias in node.names]
    return found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_private_name_is_imported_from_another_file(path):
    private = [f"{name} from {module}" for module, name in _imports(path) if _is_private(name)]
    assert not private


@pytest.mark.parametrize("room", ROOMS)
def test_the_files_of_a_room_import_each_other_in_one_direction(room):
    files = {_name(p): p for p in MODULES if p.is_relative_to(SOURCE / room)}
    needs = {}
    for name, path in files.items():
        wanted = {f"{module}.{what}" if f"{module}.{what}" in files else module for module, what in _imports(path)}
        needs[name] = {w for w in wanted if w in files and w != name}
    done: set[str] = set()
    while len(done) < len(needs):
        ready = {name for name in needs if name not in done and needs[name] <= done}
        assert ready, f"these files import each other in a circle: {sorted(set(needs) - done)}"
        done |= ready


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            doc = node.body[0].end_lineno - node.body[0].lineno + 1 if ast.get_docstring(node) else 0
            lines = node.end_lineno - node.lineno + 1 - doc
            assert lines <= LONGEST_FUNCTION, f"{node.name} has {lines} lines"
