"""Arrays of variables, as NumPy would have them: sums and means along an axis, joined arrays, components of vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.families import Gaussian, MultivariateGaussian
from heliograph.graph.affine import product_node, take
from heliograph.graph.check import check_matrix, check_number
from heliograph.graph.draft import Draft
from heliograph.graph.language.children import want
from heliograph.graph.language.linear import dot, express, known_rows, scale, shown, whole_of
from heliograph.graph.overlaps import resolve
from heliograph.graph.quantity import Quantity, reaches_inside
from heliograph.graph.records import Affine, Inner, Term
from heliograph.graph.sparse import is_sparse
from heliograph.numerics.checks import in_words

__all__ = [
    "components",
    "from_left",
    "holds_columns",
    "join",
    "matmul",
    "mean",
    "part_of",
    "pile",
    "reshaped",
    "total",
    "transposed",
]

_LONG = 32  # terms of one sum, beyond which it is written as one inner product with a row of ones


# ---- sums --------------------------------------------------------------------------------------------------------
def total(draft: Draft, x: Quantity, axis: Any) -> Quantity:
    """The sum of the entries of an array along some axes; None: of all."""
    label = f"sum({x.name})"
    x = components(draft, x)
    want(label, "argument", x, Gaussian)
    if not x.shape:
        return x
    try:
        axes = (
            tuple(range(len(x.shape))) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, len(x.shape))
        )
    except (TypeError, ValueError):  # an AxisError is a ValueError
        raise ModelError(f"{label}: there is no axis {in_words(axis)} of shape {x.shape}") from None
    left = tuple(k for k in range(len(x.shape)) if k not in axes)
    shape = tuple(x.shape[k] for k in left)
    grid = np.transpose(np.arange(x.size).reshape(x.shape), (*left, *axes)).reshape(int(np.prod(shape)), -1)
    if not grid.shape[1]:
        raise ModelError(f"{label}: there is nothing to add along an axis of length 0")
    made = x.node.made
    if isinstance(made, Inner) and x.node.position < 0:  # (X @ w).sum() is one product with the sum of the rows
        entries = x.entries().reshape(-1)[grid]
        rows = _sum_rows(made.x, entries)
        node = product_node(made._replace(x=rows), label, shape)
        draft.number(node)
        return Quantity(node)
    if grid.shape[0] == 1 and grid.shape[1] > _LONG:
        every = x.part(np.unravel_index(grid[0], x.shape)) if x.shape else x
        return _as_shape(dot(draft, np.ones((1, grid.shape[1])), every), shape)
    form = whole_of(x) if not isinstance(made, Affine) else take(made, x.entries().reshape(-1))
    columns = [take(form, grid[:, k], shape) for k in range(grid.shape[1])]
    terms = tuple(t for c in columns for t in c.terms)
    return express(draft, label, resolve(Affine(shape, terms, sum((c.constant for c in columns), np.zeros(len(grid))))))


def mean(draft: Draft, x: Quantity, axis: Any) -> Quantity:
    """The mean of the entries of an array along some axes; None: of all."""
    summed = total(draft, x, axis)
    size = components(draft, x).size
    return scale(draft, summed, summed.size / size) if summed.size != size else summed


def _sum_rows(x: Any, entries: np.ndarray) -> Any:
    """Sums of rows of a matrix, those of each line of `entries`."""
    found = x[entries[:, 0]]
    for k in range(1, entries.shape[1]):
        found = found + x[entries[:, k]]
    return found


def _as_shape(x: Quantity, shape: tuple[int, ...]) -> Quantity:
    return Quantity(x.node, x.entries().reshape(shape))


# ---- entries -----------------------------------------------------------------------------------------------------
def part_of(draft: Draft, x: Quantity, key: Any) -> Quantity:
    """Some entries, as NumPy would index them; beyond the axes of a plate of vectors, entries of the vectors."""
    return (components(draft, x) if reaches_inside(x, key) else x).part(key)


def transposed(draft: Draft, x: Quantity) -> Quantity:
    """The same entries with the axes in reverse order."""
    return Quantity(x.node, np.transpose(x.entries()))


def reshaped(draft: Draft, x: Quantity, shape: tuple[Any, ...]) -> Quantity:
    """The same entries in another shape."""
    if len(shape) == 1 and shape[0] is None:
        raise ModelError(f"variable {x.name!r}: reshape takes whole numbers, not None")
    try:
        index = np.reshape(x.entries(), shape[0] if len(shape) == 1 else shape)
    except (TypeError, ValueError) as error:
        wanted = in_words(shape[0]) if len(shape) == 1 else str(shape)
        raise ModelError(f"variable {x.name!r} of shape {x.shape} cannot have the shape {wanted}: {error}") from None
    return Quantity(x.node, index)


# ---- joined arrays -----------------------------------------------------------------------------------------------
def join(draft: Draft, parts: Sequence[Any], axis: Any) -> Quantity:
    """Arrays one behind the other along an axis; numbers may be among them."""
    forms, label = _forms(draft, "concatenate", parts)
    return _side_by_side(draft, label, forms, lambda grids: np.concatenate(grids, axis=axis))


def pile(draft: Draft, parts: Sequence[Any], axis: Any) -> Quantity:
    """Arrays of one shape side by side along a new axis; numbers may be among them."""
    forms, label = _forms(draft, "stack", parts)
    return _side_by_side(draft, label, forms, lambda grids: np.stack(np.broadcast_arrays(*grids), axis=axis))


def _side_by_side(draft: Draft, label: str, forms: list[Affine], put: Callable[[list[np.ndarray]], Any]) -> Quantity:
    """The rows of all forms, in the order in which `put` arranges arrays of their numbers."""
    starts = np.cumsum([0, *(f.size for f in forms)])
    try:
        place = put([start + np.arange(f.size).reshape(f.shape) for start, f in zip(starts[:-1], forms, strict=True)])
    except (TypeError, ValueError) as error:
        raise ModelError(f"{label}: {error}") from None
    return _joined(draft, label, forms, place)


def _forms(draft: Draft, word: str, parts: Sequence[Any]) -> tuple[list[Affine], str]:
    label = f"{word}({', '.join(shown(p) for p in parts[:4])}{', ...' if len(parts) > 4 else ''})"
    if len(parts) == 1 and isinstance(parts[0], Quantity) and not parts[0].shape:
        raise ModelError(f"{label}: a scalar has no axis; give a list of variables")
    forms: list[Affine] = []
    for part in parts:
        if isinstance(part, Quantity):
            if part.family not in (Gaussian, MultivariateGaussian):
                raise UnsupportedError(
                    f"{label}: {part.name!r} is {part.family.__name__}, and only Gaussian variables can be joined; "
                    "make one array with size= and take its entries"
                )
            forms.append(whole_of(components(draft, part)))
        else:
            value = check_number(label, "part", part)
            forms.append(Affine(value.shape, (), value.reshape(-1)))
    return forms, label


def _joined(draft: Draft, label: str, forms: list[Affine], place: np.ndarray) -> Quantity:
    """Rows of several forms, in the order of `place`, as one array."""
    flat, starts = place.reshape(-1), np.cumsum([0, *(f.size for f in forms)])
    constant = np.concatenate([f.constant for f in forms])[flat]
    nodes: dict[int, list[tuple[int, Term]]] = {}
    for start, form in zip(starts[:-1], forms, strict=True):
        for term in form.terms:
            nodes.setdefault(id(term.node), []).append((int(start), term))
    terms: list[Term] = []
    for same in nodes.values():  # each form has one term, so that no two of a node meet in a row
        entries, coefficients = np.zeros(starts[-1], dtype=int), np.zeros(starts[-1])
        for start, term in same:
            at = slice(start, start + len(term.entries))
            entries[at], coefficients[at] = term.entries, term.coefficients
        terms.append(Term(same[0][1].node, entries[flat], coefficients[flat]))
    return express(draft, label, resolve(Affine(place.shape, tuple(terms), constant)))


# ---- vectors -----------------------------------------------------------------------------------------------------
def components(draft: Draft, x: Quantity) -> Quantity:
    """Vectors as arrays of scalars: one more axis, of the length of a vector; scalars stay as they are."""
    d = x.node.dimension
    if x.family is not MultivariateGaussian or d is None:
        return x
    return _inner(draft, np.eye(d), x, f"entries of {x.name}")


def holds_columns(x: Quantity) -> bool:
    """Whether this is ``X @ vectors``, all of it, which has a column for each vector."""
    made = x.node.made
    if not isinstance(made, Affine) or x.index is None or len(x.shape) < 2 or x.size != x.node.size:
        return False
    rows = np.arange(x.size).reshape(*x.shape[1:], x.shape[0])
    return np.array_equal(x.index, np.moveaxis(rows, -1, 0)) and all(isinstance(t.node.made, Inner) for t in made.terms)


def _inner(draft: Draft, x: Any, vectors: Quantity, label: str) -> Quantity:
    """``X @ w`` for every vector w of an array: shape ``(*vectors.shape, n)`` for a matrix X of n rows."""
    chosen, back = np.unique(vectors.entries(), return_inverse=True)
    nodes = [_product(draft, x, vectors, int(entry), label) for entry in chosen]
    n = int(x.shape[0])
    if len(nodes) == 1:
        return Quantity(nodes[0].node, np.broadcast_to(nodes[0].entries(), (*vectors.shape, n)))
    all_ = _joined(draft, label, [whole_of(n) for n in nodes], np.arange(len(nodes) * n))
    at = back.reshape(vectors.shape)[..., None] * n + np.arange(n)
    return Quantity(all_.node, all_.entries()[at])


def _product(draft: Draft, x: Any, vectors: Quantity, entry: int, label: str) -> Quantity:
    """``X @ w`` for one vector, the same node whenever it is asked for: what is the same quantity must be known to be."""
    one = Quantity(vectors.node, np.array(entry))
    known = known_rows(one)
    if known is not None and not np.isnan(known).any():
        return express(draft, label, Affine((x.shape[0],), (), np.asarray(x @ known[0])))
    key = "product", vectors.node.order, entry, label, x.shape, None if is_sparse(x) else x.tobytes()
    if is_sparse(x) or key not in draft.stacks:
        node = product_node(Inner(x, vectors.node, entry), label, (x.shape[0],))
        draft.number(node)
        draft.stacks[key] = node
    return Quantity(draft.stacks[key])


# ---- products ----------------------------------------------------------------------------------------------------
def matmul(draft: Draft, x: Any, w: Quantity) -> Quantity:
    """``X @ W``: W one vector, a plate of vectors (one column of the result for each), or scalars as NumPy has them."""
    if w.family is MultivariateGaussian and w.shape not in ((), (1,)):
        matrix = check_matrix(f"X @ {w.name!r}", x)
        d = w.node.dimension
        if matrix.ndim not in (1, 2) or matrix.shape[-1] != d or 0 in matrix.shape:
            raise ModelError(
                f"X @ {w.name!r}: X has shape {matrix.shape}, but each vector of {w.name!r} has {d} entries; "
                f"X must be (n, {d})"
            )
        found = _inner(draft, matrix.reshape(-1, d) if matrix.ndim == 1 else matrix, w, f"X @ {w.name}")
        if matrix.ndim == 1:
            return found.part((..., 0))
        return Quantity(found.node, np.moveaxis(found.entries(), -1, 0))
    if w.family is Gaussian and len(w.shape) > 1 and w.shape[0] > 1:
        matrix = check_matrix(f"X @ {w.name!r}", x)
        if len(w.shape) > 2 or matrix.shape[-1:] != w.shape[:1]:
            raise ModelError(
                f"X @ {w.name!r}: X has shape {matrix.shape} and {w.name!r} {w.shape}; the last axis of X and the first of "
                f"{w.name!r} must have one length, and {w.name!r} at most two axes"
            )
        return pile(draft, [dot(draft, matrix, w.part((slice(None), k))) for k in range(w.shape[1])], -1)
    return dot(draft, x, w)


def from_left(draft: Draft, w: Quantity, x: Any) -> Quantity:
    """``w @ X`` with a matrix of numbers; an array of vectors is a stack of rows, as NumPy has it."""
    product = matmul(draft, check_matrix(f"{w.name!r} @ X", x).T, w)
    if w.family is MultivariateGaussian and w.shape not in ((), (1,)) and len(product.shape) > len(w.shape):
        return Quantity(product.node, np.moveaxis(product.entries(), 0, -1))
    return product
