"""The house's laws about files: none imports another's private names, none is in a cycle, none is long."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "heliograph"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 300

# Files that may break a law, each with its reason; nothing may be added without one.
LONG: set[str] = set()
PRIVATE: set[str] = set()
IN_A_CYCLE: set[str] = set()


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(("heliograph", *(parts[:-1] if parts[-1] == "__init__" else parts)))


NAMES = {_name(p): p for p in MODULES}


def _here(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def _run(node: ast.AST):
    """All nodes below, but what stands behind `if TYPE_CHECKING`, which is never run."""
    yield node
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    for child in ast.iter_child_nodes(node):
        yield from _run(child)


@cache
def _imported(path: Path) -> frozenset[str]:
    """The modules of the package that a file imports, at its top or inside a function."""
    found = set()
    for node in _run(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from package import module` is about the module, `from package import name` about the package
            below = {f"{node.module}.{a.name}" for a in node.names}
            found |= {name if name in NAMES else node.module for name in below}
    return frozenset(found & set(NAMES)) - {_name(path)}


def _reachable(start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in _imported(NAMES[waiting.pop()]):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _private(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    from_us = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("heliograph")]
    return [a.name for node in from_us for a in node.names if a.name.startswith("_")]


def _circles(path: Path) -> list[str]:
    return sorted(other for other in _imported(path) if _name(path) in _reachable(other))


def _length(path: Path) -> int:
    return len(path.read_text().splitlines())


@pytest.mark.parametrize("path", [p for p in MODULES if _here(p) not in PRIVATE], ids=_here)
def test_no_private_name_is_imported_across_files(path):
    assert not _private(path), f"{_here(path)} imports {_private(path)}"


@pytest.mark.parametrize("path", [p for p in MODULES if _here(p) not in IN_A_CYCLE], ids=_here)
def test_no_file_imports_itself_by_way_of_others(path):
    assert not _circles(path), f"{_here(path)} is imported by what it imports: {_circles(path)}"


@pytest.mark.parametrize("path", [p for p in MODULES if _here(p) not in LONG], ids=_here)
def test_no_file_is_longer_than_300_lines(path):
    assert _length(path) <= LONGEST, f"{_here(path)} has {_length(path)} lines"


@pytest.mark.parametrize("path", sorted(LONG | PRIVATE | IN_A_CYCLE))
def test_an_exception_that_is_no_longer_needed_is_dropped(path):
    here = SOURCE / path
    assert here.exists(), f"{path} is gone: drop it from the exceptions"
    assert path not in LONG or _length(here) > LONGEST
    assert path not in PRIVATE or _private(here)
    assert path not in IN_A_CYCLE or _circles(here)
