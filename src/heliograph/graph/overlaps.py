"""Sums and factors in which every variable counts once.

A node that is itself an expression stays whole in another one (so that what two expressions share stays shared), unless
it overlaps with another term: then it is replaced by its own terms, and these are summed.
"""

from __future__ import annotations

import numpy as np

from heliograph.errors import ModelError
from heliograph.graph.affine import expand, inner_of, merged, product_node, scaled, substitute, sum_of, take, whole
from heliograph.graph.records import Affine, Inner, Matrix, Node, Stacked, Term
from heliograph.graph.sparse import csr_array, is_sparse
from heliograph.graph.support import base_orders, disjoint, repeated, shared_nodes, touched

__all__ = ["distribute", "resolve", "same_quantity"]

_PARALLEL = 1e-12  # relative: rows that are multiples of each other up to rounding


def resolve(form: Affine) -> Affine:
    """The same expression with every base entry in at most one term of a row."""
    for k in reversed(range(len(form.terms))):
        made = form.terms[k].node.made
        if isinstance(made, Affine) and not made.terms:  # a constant
            form = substitute(form, k)
    while True:
        form = merged(form)
        involved, keys = _overlapping(form)
        if not involved:
            return form
        form = _split(form, involved, keys)


def _overlapping(form: Affine) -> tuple[list[int], np.ndarray]:
    """The terms that hold a base entry which another term of the same row holds too, and the keys of those entries."""
    if all(t.node.made is None for t in form.terms) or disjoint([t.node for t in form.terms]):
        return [], np.zeros(0, int)  # equal entries of one base node have been merged
    keys = [touched(t.node, t.entries, t.coefficients != 0) for t in form.terms]
    key, term = np.concatenate(keys), np.repeat(np.arange(len(keys)), [len(k) for k in keys])
    twice = repeated(key)
    return sorted(set(term[twice].tolist())), _distinct(key[twice])


def _distinct(keys: np.ndarray) -> np.ndarray:
    """The distinct keys in order: what `np.unique` gives, which hashes whole numbers first and takes ten times as long."""
    keys = np.sort(keys)
    return keys[np.concatenate([keys[:1] == keys[:1], keys[1:] != keys[:-1]])]


def _split(form: Affine, involved: list[int], keys: np.ndarray) -> Affine:
    """Take apart overlapping terms, those first that were made last."""
    terms = form.terms
    products: dict[tuple[int, int], list[int]] = {}
    for k in involved:
        inner = terms[k].node.made
        if isinstance(inner, Inner):
            products.setdefault((id(inner.node), inner.entry), []).append(k)
    if any(len(same) > 1 for same in products.values()):
        return _one_product_each(form, [same for same in products.values() if len(same) > 1])
    vectors = [same[0] for same in products.values()]
    if any(isinstance(terms[k].node.made, Affine) for k in involved):
        return _open(form, involved, keys)
    sums = [k for k in involved if _sum_inside(terms[k].node)]
    if sums:
        return distribute(form, max(sums, key=lambda k: terms[k].node.order))
    for k in vectors:
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
        inside = scaled(take(sum_of(term.node), term.entries, form.shape), term.coefficients)
        constant = constant + inside.constant
        met = False
        for part in inside.terms:
            touches = _any_of(touched(part.node, part.entries, part.coefficients != 0), keys)
            (waiting if touches and part.node.made is not None else closed).append(part)
            met |= part.node.made is not None and id(part.node) in held
            held.add(id(part.node))
        if met:  # equal terms are summed before they are taken apart
            break
    return form._replace(terms=(*closed, *waiting), constant=constant)


def _any_of(some: np.ndarray, keys: np.ndarray) -> bool:
    """Whether one of some numbers is among the sorted keys."""
    at = np.minimum(np.searchsorted(keys, some), len(keys) - 1)
    return bool((keys[at] == some).any())


def _absorb(form: Affine, k: int, j: int) -> Affine | None:
    """``X @ stack(s) + c * s[i]`` as one inner product, where every ``s[i]`` is among what was stacked."""
    product, scalar = form.terms[k], form.terms[j]
    x, vector, entry = inner_of(product.node)
    if not isinstance(vector.made, Stacked):
        return None
    column = {(id(node), int(entries[entry])): c for c, (node, entries) in enumerate(vector.made.parts)}
    rows = np.flatnonzero(scalar.coefficients)
    at = [column.get((id(scalar.node), int(e))) for e in scalar.entries[rows]]
    if None in at:
        return None
    extra = csr_array((scalar.coefficients[rows], (rows, at)), shape=(form.size, x.shape[1]))
    total = _rows(product) + (extra if is_sparse(x) else extra.toarray())
    node = product_node(Inner(total, vector, entry), product.node.name, (form.size,))
    rest = tuple(t for i, t in enumerate(form.terms) if i not in (k, j))
    return form._replace(terms=(*rest, Term(node, np.arange(form.size), np.ones(form.size))))


def _one_product_each(form: Affine, groups: list[list[int]]) -> Affine:
    """``c * (X @ w) + d * (Z @ w)`` as one inner product, for every vector w that several terms are products of."""
    gone = {k for same in groups for k in same}
    made: list[Term] = []
    for same in groups:
        first = form.terms[same[0]].node
        x = _rows(form.terms[same[0]])
        for k in same[1:]:
            x = x + _rows(form.terms[k])
        node = product_node(inner_of(first)._replace(x=x), first.name, (form.size,))
        made.append(Term(node, np.arange(form.size), np.ones(form.size)))
    return form._replace(terms=(*(t for k, t in enumerate(form.terms) if k not in gone), *made))


def _rows(term: Term) -> Matrix:
    """The coefficients of the vector in every row of a term of inner products."""
    x, c = inner_of(term.node).x, term.coefficients
    if is_sparse(x):
        return csr_array(x[term.entries].multiply(c[:, None]))
    return x[term.entries] * c[:, None]


def _sum_inside(node: Node) -> bool:
    return isinstance(node.made, Inner) and isinstance(node.made.node.made, Affine)


def distribute(form: Affine, k: int) -> Affine:
    """``X @ (c * v + u + shift)`` as ``(c * X) @ v + X @ u + X @ shift``."""
    term = form.terms[k]
    x, vector, entry = inner_of(term.node)
    made = sum_of(vector)
    terms: list[Term] = []
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


# ---- ports of one factor -----------------------------------------------------------------------------------------
def same_quantity(parts: list[tuple[Node, np.ndarray]]) -> int | None:
    """The order of a base node that two (node, entries) pairs have in common in one row, if there is one.

    Two different rows of ``X @ w`` are two quantities that share a vector: a loop, which `infer` warns of, and not one
    quantity twice. Rows that are multiples of each other are one quantity.
    """
    if not shared_nodes(parts):
        return None
    forms = [_opened(node, entries) for node, entries in parts]
    for k, a in enumerate(forms):
        for b in forms[k + 1 :]:
            common = _common(a, b)
            if common is not None:
                return base_orders([node for node, _ in parts], common)[0]
    return None


def _opened(node: Node, entries: np.ndarray) -> Affine:
    """Entries of a node in base entries and in products with base vectors."""
    form = expand(whole(node, entries))
    while True:
        k = next((k for k, t in enumerate(form.terms) if _sum_inside(t.node)), None)
        if k is None:
            return form
        form = expand(distribute(form, k))


def _common(a: Affine, b: Affine) -> np.ndarray | None:
    """The keys of the base entries that two forms have in common in one row, other than by rows of one vector."""
    for t in a.terms:
        for u in b.terms:
            on, also = t.coefficients != 0, u.coefficients != 0
            keys = np.intersect1d(touched(t.node, t.entries, on), touched(u.node, u.entries, also))
            if keys.size and not (_different_rows(t, u, on & also) if _one_vector(t, u) else False):
                return keys
    return None


def _one_vector(t: Term, u: Term) -> bool:
    """Return whether both terms are products of matrices with the same vector."""
    a, b = t.node.made, u.node.made
    return isinstance(a, Inner) and isinstance(b, Inner) and a.node is b.node and a.entry == b.entry


def _different_rows(t: Term, u: Term, rows: np.ndarray) -> bool:
    """Return whether in no row the two products are multiples of each other."""
    x, y = inner_of(t.node).x[t.entries[rows]], inner_of(u.node).x[u.entries[rows]]
    if is_sparse(x) or is_sparse(y):
        x, y = csr_array(x), csr_array(y)
    xy, xx, yy = _row_sums(x * y), _row_sums(x * x), _row_sums(y * y)
    return not np.any((xx * yy > 0) & (xy**2 >= (1.0 - _PARALLEL) * xx * yy))  # a row of zeros is a constant


def _row_sums(x: Matrix) -> np.ndarray:
    return np.asarray(x.sum(axis=1)).reshape(-1)
