"""Statements about labels and categories: ``a & b``, ``a | b``, ``a ^ b``, ``~a``, ``a == b`` and ``a != b``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import ConditionalTable
from heliograph.families import Bernoulli, Categorical
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import Kind, derived, want
from heliograph.graph.quantity import Quantity

__all__ = ["compare", "connect", "negate"]

_CONNECTED: dict[str, Callable[[Any, Any], Any]] = {"&": np.logical_and, "|": np.logical_or, "^": np.logical_xor}


def negate(draft: Draft, a: Quantity) -> Quantity:
    """``~a`` of a Bernoulli."""
    x = want(f"~{a.name}", "argument", a, Bernoulli)
    table = np.array([[0.0, 1.0], [1.0, 0.0]])
    return derived(draft, f"~{x.name}", ConditionalTable(), {"parent": x}, {"table": table}, Kind(Bernoulli))


def connect(draft: Draft, sign: str, a: Quantity, b: Any) -> Quantity:
    """``a & b``, ``a | b`` or ``a ^ b`` of Bernoulli variables, or of one and known truth values."""
    label = f"({a.name} {sign} {b.name if isinstance(b, Quantity) else 'constant'})"
    want(label, "argument", a, Bernoulli)
    if isinstance(b, Quantity):
        want(label, "argument", b, Bernoulli)
    elif not np.isin(np.asarray(b), (0, 1)).all():
        raise ModelError(f"{label}: a truth value is True or False, 1 or 0")
    return _table(draft, label, a, b, _CONNECTED[sign])


def compare(draft: Draft, sign: str, a: Quantity, b: Any) -> Quantity:
    """``a == b`` or ``a != b`` of two discrete variables, or of one and known categories."""
    label = f"({a.name} {sign} {b.name if isinstance(b, Quantity) else _shown(b)})"
    for x in (a, b):
        if isinstance(x, Quantity) and x.family not in (Bernoulli, Categorical):
            raise UnsupportedError(
                f"{label}: only Bernoulli and Categorical variables can be compared for equality, but {x.name!r} is "
                f"{x.family.__name__}; state that two variables are equal with model.equal(a, b), and that one has a value "
                "with model.observe(x, value)"
            )
    if not isinstance(b, Quantity):
        b = np.asarray(b)
        k = a.node.dimension or 2
        if b.dtype.kind not in "buif" or not np.isin(b, np.arange(k)).all():
            raise ModelError(f"{label}: the categories of {a.name!r} are whole numbers from 0 to {k - 1}")
    return _table(draft, label, a, b, np.equal if sign == "==" else np.not_equal)


def _table(draft: Draft, label: str, a: Quantity, b: Any, function: Callable[[Any, Any], Any]) -> Quantity:
    """The truth value of a function of one or two categories, as a table of 0 and 1."""
    k = np.arange(a.node.dimension or 2)
    if isinstance(b, Quantity):
        j = np.arange(b.node.dimension or 2)
        true = function(k[:, None], j).astype(float)
        ports, factor = {"parent0": a, "parent1": b}, ConditionalTable(2)
    else:
        true = function(k, np.asarray(b)[..., None]).astype(float)
        ports, factor = {"parent": a}, ConditionalTable()
    table = np.stack([1.0 - true, true], axis=-1)
    return derived(draft, label, factor, ports, {"table": table}, Kind(Bernoulli))


def _shown(value: Any) -> str:
    return str(value) if np.ndim(value) == 0 else "constant"
