"""Two constraints on one noise variable of their own are one site of two numbers.

``c1 < z`` and ``z < c2`` with uncertain cuts, where nothing else speaks of z beside its own distribution: as two scalar sites, each
would take the other's effect on z for independent evidence. So both expressions are stacked, and one factor says that both hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.blocks.joining import stacked
from heliograph.engine.blocks.records import Block
from heliograph.engine.blocks.rows import take
from heliograph.engine.blocks.some import some_elements
from heliograph.engine.forms.both_positive import BothPositive
from heliograph.factors import Positive
from heliograph.graph.records import Edge, Graph, Plate
from heliograph.graph.sparse import connected_parts

__all__ = ["with_paired_constraints"]

_ROUNDS = 100  # of pairing leaves: a chain of four times as many constraints stays as it is


class _Elements(NamedTuple):
    """All constraints of a graph on expressions of one block, an element each."""

    plate: np.ndarray  # (n,) position of its plate
    row: np.ndarray  # (n,) its number there
    matrix: Any  # (n, N) CSR, the expressions over the base scalars


def with_paired_constraints(graph: Graph, blocks: Sequence[Block]) -> Graph:
    """The graph with one plate of pairs for all constraints that share a private variable with exactly one other."""
    hard = {p.position for p in graph.plates if _is_hard(graph, p)}
    pairs = [_pairs(graph, block, hard) for block in blocks] if hard else []
    pairs = [p for p in pairs if len(p)]
    if not pairs:
        return graph
    return _rewritten(graph, np.concatenate(pairs))


def _is_hard(graph: Graph, plate: Plate) -> bool:
    """Whether a plate says of each of its expressions that it is positive, or that it is not."""
    if not isinstance(plate.factor, Positive) or "x" not in plate.edges:
        return False
    return "y" not in plate.edges or graph.nodes[plate.edges["y"].node].fully_observed


def _pairs(graph: Graph, block: Block, hard: set[int]) -> np.ndarray:
    """``(m, 4)``: plate and row of one constraint, and of the other, for every pair."""
    n = block.n_columns
    met = np.zeros(n, dtype=int)  # site rows that touch each base scalar
    touched = np.zeros(n, dtype=int)  # rows of known weight that do
    private = np.ones(n, dtype=bool)
    for known in block.known:
        touched += np.bincount(known.rows.sparse.indices, minlength=n)
        for _, columns in known.rows.dense:
            private[columns] = False
    parts: list[_Elements] = []
    for plate in graph.plates:
        if plate.position in block.plates:
            continue
        for edge in plate.edges.values():
            if edge.node not in block.rows:
                continue
            rows = take(block.rows[edge.node], None if edge.index is None else _components(graph, edge))
            met += np.bincount(rows.sparse.indices, minlength=n)
            for _, columns in rows.dense:
                private[columns] = False
            if plate.position in hard:
                parts.append(_Elements(np.full(plate.size, plate.position), np.arange(plate.size), rows.sparse))
    if not parts:
        return np.zeros((0, 4), dtype=int)
    return _partners(parts, private & (touched == 1) & (met == 2))


def _components(graph: Graph, edge: Edge) -> np.ndarray:
    """The rows of a node that an edge with an index touches."""
    assert edge.index is not None
    d = graph.nodes[edge.node].dimension or 1
    return (np.asarray(edge.index)[:, None] * d + np.arange(d)).reshape(-1)


def _partners(parts: list[_Elements], private: np.ndarray) -> np.ndarray:
    """Constraints that share a private scalar with one other, and only with that one."""
    plate, row = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
    starts = np.cumsum([0, *(len(p.plate) for p in parts)])
    element = np.concatenate(
        [s + np.repeat(np.arange(len(p.plate)), np.diff(p.matrix.indptr)) for s, p in zip(starts, parts, strict=False)]
    )
    column = np.concatenate([p.matrix.indices for p in parts])
    mine = private[column]
    element, column = element[mine], column[mine]
    order = np.lexsort((element, column))
    element, column = element[order], column[order]
    same = np.flatnonzero(column[1:] == column[:-1])
    if not len(same):
        return np.zeros((0, 4), dtype=int)
    links = np.unique(np.stack([element[same], element[same + 1]], axis=1), axis=0)
    links = _matched(links[links[:, 0] != links[:, 1]], len(plate))
    return np.stack([plate[links[:, 0]], row[links[:, 0]], plate[links[:, 1]], row[links[:, 1]]], axis=1)


def _matched(links: np.ndarray, n: int) -> np.ndarray:
    """Links that pair all vertices of their connected part, leaves first; parts that cannot be paired so have none.

    Half of a chain of three would be joint, and which half would hang on the order in which it was written.
    """
    part = connected_parts(n, links[:, 0], links[:, 1])
    partner = np.full(n, -1)
    left = links
    for _ in range(_ROUNDS):
        degree = np.bincount(left.reshape(-1), minlength=n)
        one, other = (np.where(degree[left[:, 0]] == 1, left[:, k], left[:, 1 - k]).reshape(-1) for k in (0, 1))
        leaf = degree[one] == 1
        if not leaf.any():
            break
        partner[other[leaf]] = one[leaf]  # of several leaves at one vertex the last: the others stay alone
        chosen = other[leaf]
        partner[partner[chosen]] = chosen
        left = left[(partner[left] < 0).all(axis=1)]
    alone = np.zeros(int(part.max(initial=-1)) + 1, dtype=bool)
    met = np.unique(links)
    alone[part[met[partner[met] < 0]]] = True
    good = met[(partner[met] > met) & ~alone[part[met]]]
    return np.stack([good, partner[good]], axis=1)


def _rewritten(graph: Graph, pairs: np.ndarray) -> Graph:
    made = replace(graph, nodes=list(graph.nodes), plates=[])
    for plate in graph.plates:
        gone = np.concatenate([pairs[pairs[:, k] == plate.position, k + 1] for k in (0, 2)])
        rest = np.setdiff1d(np.arange(plate.size), gone) if len(gone) else None
        if rest is None or len(rest):
            kept = plate if rest is None else some_elements(plate, rest)
            made.plates.append(replace(kept, position=len(made.plates)))
    for a, b in np.unique(pairs[:, [0, 2]], axis=0):
        chosen = pairs[(pairs[:, 0] == a) & (pairs[:, 2] == b)]
        ends = [some_elements(graph.plates[int(k)], rows) for k, rows in ((a, chosen[:, 1]), (b, chosen[:, 3]))]
        name = f"{ends[0].name} and {ends[1].name}"
        edge = stacked(made, [end.edges["x"] for end in ends], len(chosen))
        sign = np.stack([_signs(graph, end) for end in ends], axis=1)
        made.plates.append(Plate(len(made.plates), name, BothPositive(), (len(chosen),), {"x": edge}, {"sign": sign}))
    return made


def _signs(graph: Graph, plate: Plate) -> np.ndarray:
    """1 where an expression is said to be positive, else -1."""
    if "y" in plate.edges:
        seen = graph.nodes[plate.edges["y"].node].observed
        assert seen is not None and seen.point is not None
        value = np.asarray(seen.point)[plate.edges["y"].entries(plate.size)]
    else:
        value = np.asarray(plate.data["y"].point)
    return np.where(value > 0.5, 1.0, -1.0)
