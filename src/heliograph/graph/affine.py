"""The algebra of affine expressions of variables: sums, multiples, rows, and what is left when terms are merged.

``2 * x + x`` is ``3 * x`` and ``x - x`` is the constant 0: a factor whose two ports touch the same random quantity would
take it for two independent ones. `graph.overlaps` sees to that; here is the algebra, and the records are in `graph.records`.
"""

from __future__ import annotations

import numpy as np

from heliograph.families import Gaussian
from heliograph.graph.records import Affine, Inner, Node, Term

__all__ = [
    "broadcast",
    "by_pattern",
    "combine",
    "expand",
    "inner_of",
    "merged",
    "product_node",
    "scaled",
    "substitute",
    "sum_of",
    "take",
    "whole",
]


def whole(node: Node, entries: np.ndarray) -> Affine:
    """Some entries of a node, as they are."""
    flat = np.asarray(entries).reshape(-1)
    event = () if node.dimension is None else (node.dimension,)
    term = Term(node, flat, np.ones(flat.size))
    return Affine(np.shape(entries), (term,), np.zeros((flat.size, *event)))


def combine(a: Affine, b: Affine, sign: float) -> Affine:
    """``a + sign * b``, broadcast; overlaps are not yet resolved."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = broadcast(a, shape), broadcast(b, shape)
    turned = tuple(t._replace(coefficients=sign * t.coefficients) for t in b.terms)
    return Affine(shape, (*a.terms, *turned), a.constant + sign * b.constant)


def broadcast(form: Affine, shape: tuple[int, ...]) -> Affine:
    """The same rows repeated to a larger shape."""
    if form.shape == shape:
        return form
    rows = np.broadcast_to(np.arange(form.size).reshape(form.shape), shape).reshape(-1)
    return take(form, rows, shape)


def take(form: Affine, rows: np.ndarray, shape: tuple[int, ...] | None = None) -> Affine:
    """Some rows of a form."""
    terms = tuple(Term(t.node, t.entries[rows], t.coefficients[rows]) for t in form.terms)
    return Affine((len(rows),) if shape is None else shape, terms, form.constant[rows])


def by_pattern(form: Affine) -> list[tuple[np.ndarray | slice, Affine]]:
    """Rows with the same variables in them, and what they are without the others; rows with none are left out."""
    held = np.array([t.coefficients != 0 for t in form.terms]).reshape(len(form.terms), form.size)
    if held.all():  # the most common case, in which rows need no slow sorting
        return [(slice(None), form)] if len(form.terms) else []
    patterns, which = np.unique(held, axis=1, return_inverse=True)
    found: list[tuple[np.ndarray | slice, Affine]] = []
    for k in range(patterns.shape[1]):
        if patterns[:, k].any():
            rows = np.flatnonzero(which.reshape(-1) == k) if patterns.shape[1] > 1 else slice(None)
            part = form if isinstance(rows, slice) else take(form, rows)
            terms = tuple(t for t, on in zip(part.terms, patterns[:, k], strict=True) if on)
            found.append((rows, part._replace(terms=terms)))
    return found


def scaled(form: Affine, factor: np.ndarray) -> Affine:
    """Multiply every row by its own number."""
    column = factor[:, None] if form.constant.ndim == 2 else factor
    terms = tuple(t._replace(coefficients=factor * t.coefficients) for t in form.terms)
    return form._replace(terms=terms, constant=column * form.constant)


def product_node(inner: Inner, name: str, shape: tuple[int, ...]) -> Node:
    """A node of inner products that is in no graph yet."""
    return Node(-1, name, Gaussian, shape, None, False, made=inner, order=inner.node.order)


def inner_of(node: Node) -> Inner:
    """The product that a node is made of."""
    assert isinstance(node.made, Inner)
    return node.made


def sum_of(node: Node) -> Affine:
    """The sum that a node is made of."""
    assert isinstance(node.made, Affine)
    return node.made


def substitute(form: Affine, k: int) -> Affine:
    """Replace a term by the terms of the expression that makes its node."""
    term = form.terms[k]
    inside = scaled(take(sum_of(term.node), term.entries, form.shape), term.coefficients)
    return form._replace(
        terms=(*form.terms[:k], *inside.terms, *form.terms[k + 1 :]), constant=form.constant + inside.constant
    )


def expand(form: Affine) -> Affine:
    """The expression in base nodes only (and inner products with vectors), each entry once per row."""
    while True:
        form = merged(form)
        made = [k for k, t in enumerate(form.terms) if isinstance(t.node.made, Affine)]
        if not made:
            return form
        form = substitute(form, made[0])


def merged(form: Affine) -> Affine:
    """Add the coefficients of terms that hold the same entry of the same node, and drop terms without any."""
    terms = list(form.terms)
    places: dict[int, list[int]] = {}
    for k, t in enumerate(terms):
        places.setdefault(id(t.node), []).append(k)
    for same in places.values():
        if len(same) == 2 and not (terms[same[0]].entries == terms[same[1]].entries).any():
            continue  # as in x[1:] - x[:-1]
        if len(same) > 1:
            for k, c in zip(same, _summed([terms[k] for k in same]), strict=True):
                terms[k] = terms[k]._replace(coefficients=c)
    return form._replace(terms=tuple(t for t in terms if np.any(t.coefficients != 0)))


def _summed(terms: list[Term]) -> np.ndarray:
    """Coefficients of terms of one node, (terms, rows), with those of equal entries of a row summed at the first of them."""
    entries, c = np.array([t.entries for t in terms]), np.array([t.coefficients for t in terms])
    order = np.argsort(entries, axis=0, kind="stable")
    entries, c = np.take_along_axis(entries, order, 0), np.take_along_axis(c, order, 0)
    total, largest = c.copy(), np.abs(c)
    for k in range(len(terms) - 1, 0, -1):
        equal = entries[k] == entries[k - 1]
        total[k - 1] = np.where(equal, total[k - 1] + total[k], total[k - 1])
        largest[k - 1] = np.where(equal, np.maximum(largest[k - 1], largest[k]), largest[k - 1])
        total[k] = np.where(equal, 0.0, total[k])
    # what is left of 0.1 * x + 0.2 * x - 0.3 * x is rounding, and not a coefficient
    total = np.where(np.abs(total) <= 4e-16 * len(terms) * largest, 0.0, total)
    found = np.empty_like(total)
    np.put_along_axis(found, order, total, 0)
    return found
