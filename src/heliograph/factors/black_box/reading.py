"""What a function reads besides its arguments: numbers and arrays among its globals, its closure, its defaults and its object.

A factor keeps what it learned, so a number that changes between two runs would make its messages wrong without a warning.
Looking at the numbers costs no call of the function; only where one has changed is it called again
(`factors/black_box/checking.py`).
"""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from types import CodeType
from typing import Any

import numpy as np

__all__ = ["changed", "numbers_read"]

_MOST = 65_536  # numbers of an array that are looked at: of a larger one every k-th
_DEEPEST = 6  # functions called by functions


def numbers_read(function: Any) -> dict[str, bytes]:
    """A digest of every number, word and array that a function can read besides its arguments, by name.

    >>> scale = 2.0
    >>> list(numbers_read(lambda z: scale * z))
    ['the code of <lambda>', 'scale']
    """
    found: dict[str, bytes] = {}
    _read(function, "", found, set(), 0)
    return found


def changed(before: Mapping[str, bytes], now: Mapping[str, bytes]) -> list[str]:
    """Names of what is not as it was."""
    return [name for name, digest in before.items() if now.get(name) != digest]


def _read(function: Any, prefix: str, found: dict[str, bytes], seen: set[int], depth: int) -> None:
    if id(function) in seen or depth > _DEEPEST:
        return
    seen.add(id(function))
    if isinstance(function, functools.partial):
        given = {f"argument {k}": a for k, a in enumerate(function.args)} | dict(function.keywords)
        _note(given, prefix, found, seen, depth)
        _read(function.func, prefix, found, seen, depth + 1)
        return
    owner = getattr(function, "__self__", None)
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    if code is None:
        if owner is None and callable(function) and not isinstance(function, type) and hasattr(function, "__dict__"):
            _note(vars(function), prefix, found, seen, depth)  # a callable object, by its attributes
            _read(vars(type(function)).get("__call__"), prefix, found, seen, depth + 1)
        return
    found[f"{prefix}the code of {code.co_name}"] = _digest_of(_words_of(code)) or b""
    names = _names_of(code)
    given = {n: function.__globals__[n] for n in sorted(names) if n in function.__globals__}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            given[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    given |= {f"default {k}": a for k, a in enumerate(function.__defaults__ or ())}
    given |= function.__kwdefaults__ or {}
    if owner is not None and hasattr(owner, "__dict__"):
        given |= {f"self.{k}": a for k, a in vars(owner).items()}
    _note(given, prefix, found, seen, depth)


def _note(given: Mapping[str, Any], prefix: str, found: dict[str, bytes], seen: set[int], depth: int) -> None:
    for name, value in given.items():
        digest = _digest_of(value)
        if digest is not None:
            found[prefix + name] = digest
            continue
        value = getattr(getattr(value, "sampler", value), "function", value)  # of a black box, or of a form of one
        if inspect.isfunction(value) or inspect.ismethod(value) or isinstance(value, functools.partial):
            _read(value, f"{prefix}{name}.", found, seen, depth + 1)


def _names_of(code: CodeType) -> set[str]:
    """Global names in a function and in those written inside it."""
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _names_of(inner)
    return names


def _words_of(code: CodeType) -> tuple[Any, ...]:
    """What is written in a function, its constants included."""
    consts = tuple(_words_of(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.co_code, code.co_names, repr(consts)


def _digest_of(value: Any) -> bytes | None:
    """A digest of a number, a word, an array, or a collection of such; None of anything else."""
    if isinstance(value, np.ndarray | np.generic):
        a = np.asarray(value)
        if a.dtype == object:
            return None
        step = max(1, a.size // _MOST)
        content = repr((a.shape, a.dtype.str)).encode() + np.ascontiguousarray(a.ravel()[::step]).tobytes()
        return hashlib.blake2b(content, digest_size=16).digest()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return hashlib.blake2b(repr(value).encode(), digest_size=16).digest()
    if isinstance(value, tuple | list | set | frozenset):
        parts = [_digest_of(v) for v in (sorted(value, key=repr) if isinstance(value, set | frozenset) else value)]
    elif isinstance(value, dict):
        parts = [_digest_of(v) for pair in value.items() for v in pair]
    else:
        return None
    return None if None in parts else hashlib.blake2b(b"".join(p for p in parts if p), digest_size=16).digest()
