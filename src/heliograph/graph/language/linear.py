"""Affine expressions: what ``+``, ``-``, ``*`` with numbers, ``X @ w`` and `stack` make of Gaussian variables."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.factors import Stack
from heliograph.families import Beta, Family, Gamma, Gaussian, MultivariateGaussian
from heliograph.graph.affine import combine, expand, product_node, scaled, whole
from heliograph.graph.check import check_matrix, check_number
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import fit, want
from heliograph.graph.overlaps import resolve
from heliograph.graph.plating import check_distinct
from heliograph.graph.quantity import Quantity
from heliograph.graph.records import Affine, Inner, Node, Stacked
from heliograph.graph.support import shared_nodes

__all__ = ["add", "dot", "express", "known_rows", "scale", "shown", "stack", "stacked", "subtract", "whole_of"]

_LONGEST = 100  # characters of an expression's name
_LINEAR: tuple[type[Family], ...] = (Gaussian, MultivariateGaussian)
_HINTS: dict[type[Family], str] = {
    Gamma: " (a Gamma variable can be multiplied; 1 + s for a scale or a shape takes a hyper-parameter, s = model.log_normal(...))",
    Beta: " (for what is computed from probabilities, such as 1 - p or a difference, draw: posterior.sample)",
}


# ---- sums --------------------------------------------------------------------------------------------------------
def add(draft: Draft, a: Any, b: Any) -> Quantity:
    """``a + b``; one of the two may be constant."""
    return _sum(draft, a, b, 1.0, "+")


def subtract(draft: Draft, a: Any, b: Any) -> Quantity:
    """``a - b``; one of the two may be constant."""
    return _sum(draft, a, b, -1.0, "-")


def _hint(x: Quantity) -> str:
    return _HINTS.get(x.family, "")


def scale(draft: Draft, a: Quantity, constant: Any) -> Quantity:
    """``a * constant``, for scalars entry by entry."""
    label = f"({a.name} * {shown(constant)})"
    want(label, "argument", a, _LINEAR, _hint(a))
    constant = check_number(label, "constant", constant)
    if a.node.dimension is not None and constant.ndim:
        raise ModelError(f"vector {a.name!r} can be scaled by a number only; use a matrix product for more")
    shape = fit(label, a.shape, constant.shape)
    form = whole(a.node, np.broadcast_to(a.entries(), shape))
    return express(draft, label, resolve(scaled(form, np.broadcast_to(constant, shape).reshape(-1))))


def _sum(draft: Draft, a: Any, b: Any, sign: float, word: str) -> Quantity:
    left, right = _form(a, b, word), _form(b, a, word)
    label = f"({shown(a)} {word} {shown(b)})"
    fit(label, left.shape, right.shape)
    return express(draft, label, resolve(combine(left, right, sign)))


def _form(x: Any, other: Any, word: str) -> Affine:
    """A variable or a constant as an affine expression, to be added to `other`."""
    if isinstance(x, Quantity):
        want(f"{shown(x)} {word} {shown(other)}", "argument", x, _LINEAR, _hint(x))
        if isinstance(other, Quantity) and (x.family, x.node.dimension) != (other.family, other.node.dimension):
            raise UnsupportedError(
                f"{x.name!r} {word} {other.name!r}: both must be scalars or vectors of one dimension"
            )
        return whole_of(x)
    label = f"({other.name} {word} constant)"
    value = check_number(label, "constant", x)
    d = other.node.dimension
    if d is None:
        return Affine(value.shape, (), value.reshape(-1))
    if value.ndim and value.shape[-1] not in (1, d):
        raise ModelError(f"{label}: a constant of shape {value.shape} does not fit vectors of {d} entries")
    value = np.broadcast_to(value, np.broadcast_shapes(value.shape, (d,)))
    return Affine(value.shape[:-1], (), value.reshape(-1, d))


# ---- inner products ----------------------------------------------------------------------------------------------
def stack(draft: Draft, x: Quantity) -> Quantity:
    """The scalar Gaussian variables along the last axis as one vector, so that their posterior is joint."""
    want("stack", "argument", x, Gaussian)
    if not x.shape:
        raise ModelError(f"stack({x.name!r}): a scalar has no axis to stack")
    k, shape = x.shape[-1], x.shape[:-1]
    if not k:
        raise ModelError(f"stack({x.name!r}): its last axis is empty")
    entries = x.entries()
    parts = tuple((x.node, np.asarray(entries[..., i]).reshape(-1)) for i in range(k))
    check_distinct(Stack(k), {f"x{i}": x.part((..., i)) for i in range(k)}, shape)
    return stacked(draft, f"stack({x.name})", parts, shape)


def stacked(draft: Draft, name: str, parts: tuple[tuple[Node, np.ndarray], ...], shape: tuple[int, ...]) -> Quantity:
    """One vector for the same scalars, however often they are stacked: what uses it is then joint."""
    key = shape, *((node.order, entries.tobytes()) for node, entries in parts)
    if key not in draft.stacks:
        node = Node(-1, name, MultivariateGaussian, shape, len(parts), False, made=Stacked(parts))
        draft.number(node)
        draft.stacks[key] = node
    return Quantity(draft.stacks[key])


def dot(draft: Draft, x: Any, w: Quantity) -> Quantity:
    """``X @ w`` with a matrix of numbers."""
    x = check_matrix(f"X @ {w.name!r}", x)
    if w.family is Gaussian and len(w.shape) == 1:
        parts = [(w.node, w.entries()[i : i + 1]) for i in range(w.size)]
        if shared_nodes(parts) and x.shape[-1:] == w.shape:
            return _dot_with_repeats(draft, x, w)
        w = stack(draft, w)
    elif w.family is Gaussian and w.shape:
        w = stack(draft, w)
    want("X @ w", "right side", w, MultivariateGaussian)
    if w.shape not in ((), (1,)):
        raise ModelError(f"X @ {w.name!r}: the right side must be one vector, not an array of shape {w.shape}")
    d = w.node.dimension
    if x.ndim not in (1, 2) or x.shape[-1] != d or 0 in x.shape:
        raise ModelError(f"X @ {w.name!r}: X has shape {x.shape}, but {w.name!r} has {d} entries; X must be (n, {d})")
    rows = x if x.ndim == 2 else x.reshape(1, -1)
    known = known_rows(w)
    if known is not None and not np.isnan(known).any():
        return express(draft, f"X @ {w.name}", Affine(x.shape[:-1], (), np.asarray(rows @ known[0]).reshape(-1)))
    node = product_node(Inner(rows, w.node, int(w.entries().ravel()[0])), f"X @ {w.name}", x.shape[:-1])
    draft.number(node)
    return Quantity(node)


def _dot_with_repeats(draft: Draft, x: Any, w: Quantity) -> Quantity:
    """``X @ w`` where entries of w are made of the same quantities: ``(X A) @ u + X c`` with ``w = A u + c``."""
    form = expand(whole_of(w))
    column: dict[tuple[int, int], int] = {}
    parts: list[tuple[Node, np.ndarray]] = []
    a: dict[tuple[int, int], float] = {}
    for term in form.terms:
        for row in np.flatnonzero(term.coefficients):
            key = term.node.order, int(term.entries[row])
            if key not in column:
                column[key] = len(parts)
                parts.append((term.node, term.entries[row : row + 1]))
            a[int(row), column[key]] = a.get((int(row), column[key]), 0.0) + term.coefficients[row]
    shift = np.asarray(x @ form.constant).reshape(-1)
    shape = x.shape[:-1]
    if not parts:
        return express(draft, f"X @ {w.name}", Affine(shape, (), shift))
    matrix = np.zeros((w.size, len(parts)))
    for (row, k), value in a.items():
        matrix[row, k] = value
    u = stacked(draft, f"stack({w.name})", tuple(parts), ())
    product = dot(draft, x @ matrix, u)
    return add(draft, product, shift.reshape(shape)) if shift.any() else product


# ---- expressions -------------------------------------------------------------------------------------------------
def whole_of(x: Quantity) -> Affine:
    """A quantity as an affine expression of itself."""
    return whole(x.node, x.entries())


def express(draft: Draft, label: str, form: Affine) -> Quantity:
    """A quantity for an expression; some entries of a node, as they are, need no node of their own."""
    if len(form.terms) == 1 and not form.constant.any() and (form.terms[0].coefficients == 1).all():
        node, entries, _ = form.terms[0]
        same = node.shape == form.shape and np.array_equal(entries, np.arange(node.size))
        return Quantity(node, None if same else entries.reshape(form.shape))
    vector = form.constant.ndim == 2
    family: type[Family] = MultivariateGaussian if vector else Gaussian
    dimension = form.constant.shape[1] if vector else None
    if len(label) > _LONGEST:
        label = f"{label[: _LONGEST // 2]}...{label[-_LONGEST // 4 :]}"
    node = Node(-1, label, family, form.shape, dimension, False, made=form)
    draft.number(node)
    return Quantity(node)


def known_rows(x: Quantity) -> np.ndarray | None:
    """The constant rows of a quantity that is an expression, NaN in the others; None where there can be none."""
    form = x.node.made
    if not isinstance(form, Affine) or not form.constant_rows.any():
        return None
    known = form.constant_rows.reshape(-1, *(1,) * (form.constant.ndim - 1))
    values = np.where(known, form.constant, np.nan)
    return values if x.index is None else values[x.index.ravel()]


def shown(x: object) -> str:
    """A variable's name, a number, or the word constant."""
    if isinstance(x, Quantity):
        return x.name
    return f"{float(cast(float, x)):g}" if isinstance(x, (int, float, np.integer, np.floating)) else "constant"
