"""The base entries that an expression is made of, by which two terms or two ports are found to be the same quantity."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from heliograph.graph.records import Affine, Inner, Matrix, Node, Stacked, Term
from heliograph.graph.sparse import csr_array
from heliograph.numerics.remembering import is_remembering, pattern_of, recalled

__all__ = [
    "base_orders",
    "disjoint",
    "makers_first",
    "makers_of",
    "repeated",
    "roots_of",
    "shared_nodes",
    "support_of",
    "touched",
]

_COLUMNS = 2**31 - 1  # of a support matrix, one per entry of a base node; columns that hold nothing cost nothing


def shared_nodes(parts: list[tuple[Node, np.ndarray]]) -> list[int]:
    """The orders of the base nodes of which two (node, entries) pairs touch the same entry in one row."""
    if len(parts) < 2 or disjoint([node for node, _ in parts]):
        return []
    key = np.concatenate([touched(node, entries, None) for node, entries in parts])
    twice = repeated(key)
    if not twice.any():
        return []
    return base_orders([node for node, _ in parts], key[twice])


def base_orders(nodes: list[Node], keys: np.ndarray) -> list[int]:
    """The orders of the base nodes, among those that the nodes are made of, whose entries the keys of `touched` name."""
    orders = {start: order for node in nodes for order, start in roots_of(node).items()}
    starts = np.sort(list(orders))
    found = np.unique(np.searchsorted(starts, np.unique(keys % _COLUMNS), side="right") - 1)
    return [orders[int(starts[k])] for k in found]


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


def support_of(node: Node) -> Matrix:
    """A CSR pattern: which base entries (columns) every entry of a node (rows) touches, each once."""
    if node.support is None:
        for one in makers_first(node, lambda n: n.support is not None):
            one.support = _support(one)
    return node.support


def _support(node: Node) -> Matrix:
    made = node.made
    if isinstance(made, Affine):
        total = csr_array((made.size, _COLUMNS), dtype=np.int32)
        for term in made.terms:
            total = total + _support_of_term(term)
        return total
    if isinstance(made, Inner):
        return support_of(made.node)[np.full(node.size, made.entry)]
    if isinstance(made, Stacked):  # every vector touches all of its scalars
        first, entries = made.parts[0]
        total = support_of(first)[entries]
        for part, entries in made.parts[1:]:
            total = total + support_of(part)[entries]
        return total
    n = node.size
    return csr_array((np.ones(n, dtype=np.int32), node.start + np.arange(n), np.arange(n + 1)), shape=(n, _COLUMNS))


def _support_of_term(term: Term) -> Matrix:
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


def makers_first(node: Node, done: Callable[[Node], bool]) -> list[Node]:
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


def touched(node: Node, entries: np.ndarray, on: np.ndarray | None) -> np.ndarray:
    """One number for every base entry that a row touches, different for different rows and entries."""
    on = None if on is None or on.all() else on
    if node.made is None:
        return _keys(np.arange(len(entries)), node.start + entries, on)
    inside, arrays = _pattern(node), pattern_of(entries, on) if is_remembering() else None
    key = None if inside is None or arrays is None else (inside, arrays)
    return recalled("touched", key, lambda: _touched(node, entries, on))


def _touched(node: Node, entries: np.ndarray, on: np.ndarray | None) -> np.ndarray:
    part = support_of(node)[entries]
    return _keys(np.repeat(np.arange(len(entries)), np.diff(part.indptr)), part.indices, on)


def _keys(rows: np.ndarray, columns: np.ndarray, on: np.ndarray | None) -> np.ndarray:
    if on is not None:
        rows, columns = rows[on[rows]], columns[on[rows]]
    return rows * _COLUMNS + columns


def _pattern(node: Node) -> Hashable:
    """All that the support of a node depends on, None where nothing is kept."""
    if not is_remembering():
        return None
    made = node.made
    if made is None:
        return node.start, node.size
    if isinstance(made, Inner):
        inside = _pattern(made.node)
        return None if inside is None else ("inner", inside, made.entry, node.size)
    if isinstance(made, Stacked):
        parts = [(_pattern(n), pattern_of(entries)) for n, entries in made.parts]
    else:
        parts = [(_pattern(t.node), pattern_of(t.entries, t.coefficients != 0)) for t in made.terms]
    if any(a is None or b is None for a, b in parts):
        return None
    return (type(made).__name__, made.size if isinstance(made, Affine) else 0, *parts)


def repeated(key: np.ndarray) -> np.ndarray:
    """A mask of the numbers that occur more than once."""
    order = np.argsort(key, kind="stable")
    equal = key[order][1:] == key[order][:-1]
    found = np.zeros(len(key), dtype=bool)
    found[order[1:]] |= equal
    found[order[:-1]] |= equal
    return found


def disjoint(nodes: list[Node]) -> bool:
    """Return whether no two of the nodes have a base node in common."""
    seen: set[int] = set()
    for node in nodes:
        orders = roots_of(node).keys()
        if not seen.isdisjoint(orders):
            return False
        seen.update(orders)
    return True
