"""Which code a part's result depends on, as a short text that changes when that code does.

It is made from the syntax trees of the part's module and of everything in this package that those import, however far, also inside
functions. Comments, docstrings and line breaks are left out: they cannot change a number. The releases of NumPy and
SciPy are in it too.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

import numpy as np
import scipy

__all__ = ["code_behind", "files_in", "modules_behind"]

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = __name__.split(".")[0]


@cache
def code_behind(module: str) -> str:
    """A digest of all code of this package that `module` can reach; the same for two modules outside of it.

    >>> code_behind("heliograph.paper.exp4.parts") == code_behind("heliograph.paper.exp1.parts")
    False
    """
    digest = hashlib.sha256(f"numpy {np.__version__} scipy {scipy.__version__}".encode())
    for name in sorted(modules_behind(module)):
        digest.update(f"{name} {_read(name)[0]}".encode())
    return digest.hexdigest()[:16]


def modules_behind(module: str) -> set[str]:
    """The modules of this package that `module` imports, directly or not, and itself.

    >>> "heliograph.oracles.importance.plain" in modules_behind("heliograph.paper.exp3.parts")
    True
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and _path(name) is not None:
            found.add(name)
            waiting += _read(name)[1]
    return found


def files_in(folder: str | Path) -> str:
    """A digest of the names and contents of a folder's files; of nothing if there is no such folder."""
    digest = hashlib.sha256()
    if not Path(folder).is_dir():  # the reader of the file raises the error
        return digest.hexdigest()[:16]
    for path in sorted(p for p in Path(folder).iterdir() if p.is_file()):
        digest.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()} ".encode())
    return digest.hexdigest()[:16]


def _path(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != _PACKAGE:
        return None
    base = _ROOT.joinpath(*rest)
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.exists():
            return path
    return None


@cache
def _read(module: str) -> tuple[str, tuple[str, ...]]:
    """The digest of a module's code, and the names that it imports."""
    path = _path(module)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # what is imported may itself be a module; names that are none lead nowhere
            imported += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        _forget_docstring(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(imported)


def _forget_docstring(node: ast.AST) -> None:
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]
