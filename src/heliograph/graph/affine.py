"""Affine expressions of variables, in which every variable counts once.

``2 * x + x`` is ``3 * x`` and ``x - x`` is the constant 0: a factor whose two ports touch the same random quantity would
take it for two independent ones. An expression is kept as terms over nodes. A node that is itself an expression stays
whole in another one (so that what two expressions share stays shared), unless it overlaps with another term: then it is
replaced by its own terms, and these are summed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from heliograph.errors import ModelError
from heliograph.graph.records import Node

__all__ = [
    "Affine",
    "Inner",
    "Stacked",
    "Term",
    "combine",
    "distribute",
    "expand",
    "makers_first",
    "makers_of",
    "resolve",
    "roots_of",
    "shared_node",
    "substitute",
    "whole",
]

_COLUMNS = 2**31 - 1  # of a support matrix, one per entry of a base node; columns that hold nothing cost nothing


class Term(NamedTuple):
    """``coefficients * node[entries]``, row by row."""

    node: Node
    entries: np.ndarray  # (n,) flat positions in the node
    coefficients: np.ndarray  # (n,)


class Affine(NamedTuple):
    """``sum of terms + constant``, a row for every entry of an array of this shape."""

    shape: tuple[int, ...]
    terms: tuple[Term, ...]
    constant: np.ndarray  # (n,), or (n, d) for vectors

    @property
    def size(self) -> int:
        """The number of rows."""
        return math.prod(self.shape)

    @property
    def constant_rows(self) -> np.ndarray:
        """The rows in which no variable is left."""
        return ~np.any([t.coefficients != 0 for t in self.terms], axis=0) if self.terms else np.ones(self.size, bool)


class Inner(NamedTuple):
    """``x @ node[entry]``: how a node of inner products with one vector is made."""

    x: Any  # (n, d), dense or CSR
    node: Node  # the vector's
    entry: int


class Stacked(NamedTuple):
    """Vectors of scalars: column k of every vector is an entry of a node."""

    parts: tuple[tuple[Node, np.ndarray], ...]  # a node and its (n,) entries for every column


# ---- making -----------------------------------------------------------------------------------------------------
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


def scaled(form: Affine, factor: np.ndarray) -> Affine:
    """Every row times its own number."""
    column = factor[:, None] if form.constant.ndim == 2 else factor
    terms = tuple(t._replace(coefficients=factor * t.coefficients) for t in form.terms)
    return form._replace(terms=terms, constant=column * form.constant)


# ---- overlaps ---------------------------------------------------------------------------------------------------
def resolve(form: Affine) -> Affine:
    """The same expression with every base entry in at most one term of a row."""
    for k in reversed(range(len(form.terms))):
        made = form.terms[k].node.made
        if isinstance(made, Affine) and not made.terms:  # a constant
            form = substitute(form, k)
    while True:
        form = _merge(form)
        involved, keys = _overlapping(form)
        if not involved:
            return form
        form = _split(form, involved, keys)


def expand(form: Affine) -> Affine:
    """The expression in base nodes only (and inner products with vectors), each entry once a row."""
    while True:
        form = _merge(form)
        made = [k for k, t in enumerate(form.terms) if isinstance(t.node.made, Affine)]
        if not made:
            return form
        form = substitute(form, made[0])


def _merge(form: Affine) -> Affine:
    """Add the coefficients of terms that hold the same entry of the same node, and drop terms without any."""
    terms = list(form.terms)
    places: dict[int, list[int]] = {}
    for k, t in enumerate(terms):
        places.setdefault(id(t.node), []).append(k)
    for same in places.values():
        if len(same) > 1:
            for k, c in zip(same, _merged([terms[k] for k in same]), strict=True):
                terms[k] = terms[k]._replace(coefficients=c)
    return form._replace(terms=tuple(t for t in terms if np.any(t.coefficients != 0)))


def _merged(terms: list[Term]) -> np.ndarray:
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


def _overlapping(form: Affine) -> tuple[list[int], np.ndarray]:
    """The terms that hold a base entry which another term of the same row holds too, and the keys of those entries."""
    if len(form.terms) < 2 or _disjoint([t.node for t in form.terms]):
        return [], np.zeros(0, int)
    touched = [_touched(t.node, t.entries, t.coefficients != 0) for t in form.terms]
    key, term = np.concatenate(touched), np.repeat(np.arange(len(touched)), [len(k) for k in touched])
    twice = _twice(key)
    return sorted(set(term[twice].tolist())), np.unique(key[twice])


def shared_node(parts: list[tuple[Node, np.ndarray]]) -> int | None:
    """The order of a base node of which two (node, entries) pairs touch the same entry in one row, if there is one."""
    if len(parts) < 2 or _disjoint([node for node, _ in parts]):
        return None
    key = np.concatenate([_touched(node, entries, None) for node, entries in parts])
    twice = _twice(key)
    if not twice.any():
        return None
    column = int(key[twice][0]) % _COLUMNS
    starts = {start: order for node, _ in parts for order, start in roots_of(node).items()}
    return starts[max(s for s in starts if s <= column)]


def _touched(node: Node, entries: np.ndarray, on: np.ndarray | None) -> np.ndarray:
    """One number for every base entry that a row touches, different for different rows and entries."""
    if node.made is None:
        rows, columns = np.arange(len(entries)), node.start + entries
    else:
        part = support_of(node)[entries]
        rows, columns = np.repeat(np.arange(len(entries)), np.diff(part.indptr)), part.indices
    if on is not None and not on.all():
        rows, columns = rows[on[rows]], columns[on[rows]]
    return rows * _COLUMNS + columns


def _twice(key: np.ndarray) -> np.ndarray:
    """Which of the numbers occur more than once."""
    order = np.argsort(key, kind="stable")
    equal = key[order][1:] == key[order][:-1]
    found = np.zeros(len(key), dtype=bool)
    found[order[1:]] |= equal
    found[order[:-1]] |= equal
    return found


def _split(form: Affine, involved: list[int], keys: np.ndarray) -> Affine:
    """Take apart overlapping terms, those first that were made last."""
    terms = form.terms
    vectors: dict[tuple[int, int], int] = {}
    for k in involved:
        inner = terms[k].node.made
        if isinstance(inner, Inner):
            key = id(inner.node), inner.entry
            if key in vectors:
                return _one_product(form, vectors[key], k)
            vectors[key] = k
    if any(isinstance(terms[k].node.made, Affine) for k in involved):
        return _open(form, involved, keys)
    products = [k for k in involved if _sum_inside(terms[k].node)]
    if products:
        return distribute(form, max(products, key=lambda k: terms[k].node.order))
    for k in vectors.values():
        for j in involved:
            absorbed = _absorb(form, k, j) if terms[j].node.made is None else None
            if absorbed is not None:
                return absorbed
    names = [repr(terms[k].node.name) for k in involved]
    raise ModelError(
        f"{' and '.join(names)} are made of the same random quantities and cannot be added; write their sum as one product "
        "of a matrix with one vector, (X + Z) @ w"
    )


def _open(form: Affine, involved: list[int], keys: np.ndarray) -> Affine:
    """Replace sums that touch the keys by their terms, the last made first, until one meets itself or none is left."""
    closed = [t for k, t in enumerate(form.terms) if k not in set(involved)]
    waiting = [form.terms[k] for k in involved]
    constant = form.constant
    held = {id(t.node) for t in form.terms}
    while True:
        sums = [k for k, t in enumerate(waiting) if isinstance(t.node.made, Affine)]
        if not sums:
            break
        term = waiting.pop(max(sums, key=lambda k: waiting[k].node.order))
        inside = scaled(take(term.node.made, term.entries, form.shape), term.coefficients)
        constant = constant + inside.constant
        met = False
        for part in inside.terms:
            touches = np.isin(_touched(part.node, part.entries, part.coefficients != 0), keys).any()
            (waiting if touches and part.node.made is not None else closed).append(part)
            met |= part.node.made is not None and id(part.node) in held
            held.add(id(part.node))
        if met:  # what stands twice is summed before it is taken apart
            break
    return form._replace(terms=(*closed, *waiting), constant=constant)


def _absorb(form: Affine, k: int, j: int) -> Affine | None:
    """``X @ stack(s) + c * s[i]`` as one inner product, where every ``s[i]`` is among what was stacked."""
    product, scalar = form.terms[k], form.terms[j]
    x, vector, entry = product.node.made
    if not isinstance(vector.made, Stacked):
        return None
    column = {(id(node), int(entries[entry])): c for c, (node, entries) in enumerate(vector.made.parts)}
    rows = np.flatnonzero(scalar.coefficients)
    at = [column.get((id(scalar.node), int(e))) for e in scalar.entries[rows]]
    if None in at:
        return None
    extra = scipy.sparse.csr_array((scalar.coefficients[rows], (rows, at)), shape=(form.size, x.shape[1]))
    total = _rows(product) + (extra if scipy.sparse.issparse(x) else extra.toarray())
    node = product_node(Inner(total, vector, entry), product.node.name, (form.size,))
    rest = tuple(t for i, t in enumerate(form.terms) if i not in (k, j))
    return form._replace(terms=(*rest, Term(node, np.arange(form.size), np.ones(form.size))))


def substitute(form: Affine, k: int) -> Affine:
    """Replace a term by the terms of the expression that makes its node."""
    term = form.terms[k]
    inside = scaled(take(term.node.made, term.entries, form.shape), term.coefficients)
    return form._replace(
        terms=(*form.terms[:k], *inside.terms, *form.terms[k + 1 :]), constant=form.constant + inside.constant
    )


def _one_product(form: Affine, i: int, j: int) -> Affine:
    """``c * (X @ w) + d * (Z @ w)`` as one inner product."""
    first, second = form.terms[i], form.terms[j]
    x = _rows(first) + _rows(second)
    node = product_node(Inner(x, first.node.made.node, first.node.made.entry), first.node.name, (form.size,))
    term = Term(node, np.arange(form.size), np.ones(form.size))
    rest = tuple(t for k, t in enumerate(form.terms) if k not in (i, j))
    return form._replace(terms=(*rest, term))


def _rows(term: Term) -> Any:
    """The coefficients of the vector in every row of a term of inner products."""
    x, c = term.node.made.x, term.coefficients
    if scipy.sparse.issparse(x):
        return scipy.sparse.csr_array(x[term.entries].multiply(c[:, None]))
    return x[term.entries] * c[:, None]


def _sum_inside(node: Node) -> bool:
    return isinstance(node.made, Inner) and isinstance(node.made.node.made, Affine)


def distribute(form: Affine, k: int) -> Affine:
    """``X @ (c * v + u + shift)`` as ``(c * X) @ v + X @ u + X @ shift``."""
    term = form.terms[k]
    x, vector, entry = term.node.made
    made = vector.made
    terms = []
    for part in made.terms:
        c = part.coefficients[entry]
        if c != 0:
            name = term.node.name.removesuffix(vector.name) + part.node.name
            node = product_node(Inner(x * c, part.node, int(part.entries[entry])), name, term.node.shape)
            terms.append(term._replace(node=node))
    shift = np.asarray(x @ made.constant[entry]).reshape(-1)
    return form._replace(
        terms=(*form.terms[:k], *terms, *form.terms[k + 1 :]),
        constant=form.constant + term.coefficients * shift[term.entries],
    )


def product_node(inner: Inner, name: str, shape: tuple[int, ...]) -> Node:
    """A node of inner products that is in no graph yet."""
    from heliograph.families import Gaussian

    return Node(-1, name, Gaussian, shape, None, False, made=inner, order=inner.node.order)


# ---- which base entries a node is made of ------------------------------------------------------------------------
def roots_of(node: Node) -> dict[int, int]:
    """The base nodes that a node is an affine function of: order -> first column of their entries."""
    if node.roots is None:
        for one in makers_first(node, lambda n: n.roots is not None):
            found: dict[int, int] = {}
            for parent in makers_of(one):
                found.update(parent.roots or {})
            one.roots = found if makers_of(one) else {one.order: one.start}
    assert node.roots is not None
    return node.roots


def support_of(node: Node) -> Any:
    """A CSR pattern: which base entries (columns) every entry of a node (rows) touches, each once."""
    if node.support is None:
        for one in makers_first(node, lambda n: n.support is not None):
            one.support = _support(one)
    return node.support


def _support(node: Node) -> Any:
    made = node.made
    if isinstance(made, Affine):
        total = scipy.sparse.csr_array((made.size, _COLUMNS), dtype=np.int32)
        for term in made.terms:
            total = total + _support_of_term(term)
        return total
    if isinstance(made, Inner):
        return made.node.support[np.full(node.size, made.entry)]
    if isinstance(made, Stacked):  # every vector touches all of its scalars
        first, entries = made.parts[0]
        total = first.support[entries]
        for part, entries in made.parts[1:]:
            total = total + part.support[entries]
        return total
    n = node.size
    return scipy.sparse.csr_array(
        (np.ones(n, dtype=np.int32), node.start + np.arange(n), np.arange(n + 1)), shape=(n, _COLUMNS)
    )


def _support_of_term(term: Term) -> Any:
    part = support_of(term.node)[term.entries]
    if np.all(term.coefficients != 0):
        return part
    part.data = part.data * np.repeat(term.coefficients != 0, np.diff(part.indptr))
    part.eliminate_zeros()
    return part


def makers_of(node: Node) -> list[Node]:
    """The nodes that an expression is directly made of; none for any other node."""
    made = node.made
    if isinstance(made, Affine):
        return [t.node for t in made.terms]
    if isinstance(made, Inner):
        return [made.node]
    return [part for part, _ in made.parts] if isinstance(made, Stacked) else []


def makers_first(node: Node, done: Any) -> list[Node]:
    """The nodes that a node is made of, those first that others are made of, without recursion (chains are long)."""
    order: list[Node] = []
    seen: set[int] = set()
    stack = [(node, False)]
    while stack:
        one, ready = stack.pop()
        if ready:
            order.append(one)
        elif id(one) not in seen and not done(one):
            seen.add(id(one))
            stack.append((one, True))
            stack.extend((parent, False) for parent in makers_of(one))
    return order


def _disjoint(nodes: list[Node]) -> bool:
    """Whether no two of the nodes have a base node in common."""
    seen: set[int] = set()
    for node in nodes:
        orders = roots_of(node).keys()
        if not seen.isdisjoint(orders):
            return False
        seen.update(orders)
    return True
