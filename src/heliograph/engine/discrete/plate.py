"""A discrete block as one factor of the graph: it reads a message per entry and answers with exact marginals.

What comes in at a port is the product of the messages that other factors sent to the node: a site, log weights of the
categories of every entry. What goes out is the marginal, divided by what came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from heliograph.engine.discrete.compile import DiscreteBlock, Tuples, log_weights
from heliograph.engine.joint_plates import port_of
from heliograph.errors import ContradictionError
from heliograph.factors import Factor
from heliograph.families import Bernoulli, Categorical, Family
from heliograph.graph.records import Graph
from heliograph.graph.sparse import connected_parts
from heliograph.numerics.elimination import make_plan, solve, solve_in_logs

__all__ = ["DiscreteFactor", "DiscreteJoint"]

_LOST = 1e-250  # a probability below this may have underflowed
_WIDE = 200.0  # nats between log weights, below which no probability that counts is lost


class DiscreteJoint(NamedTuple):
    """The joint distribution of a block, by what a run looks at."""

    log_z: float
    log_p: dict[str, np.ndarray]  # port -> log probabilities (size, categories), 0 where an entry was observed


class DiscreteFactor(Factor):
    """The factor of one block."""

    name = "discrete block"
    families: ClassVar = {}

    def __init__(self, graph: Graph, block: DiscreteBlock, sites: set[int]) -> None:
        """`sites` are the nodes at which other factors meet the block."""
        self.block = block
        self.at = {port_of(m.node): m for m in block.members}
        self.tuples = {port_of(t.node): t for t in block.tuples}
        self.pieces = [piece for port, t in self.tuples.items() for piece in _pieces_of(port, t)]
        nodes = {p: m.node for p, m in (*self.at.items(), *self.tuples.items())}
        self.ports = tuple(nodes)  # type: ignore[misc]
        self.site_ports = tuple(p for p, k in nodes.items() if k in sites)
        self.kinds = {p: graph.nodes[k].family for p, k in nodes.items()}
        self.names = [graph.nodes[m.node].name for m in block.members]
        self._unary = {c: k for k, c in enumerate(block.unary)}  # the unary tables come first
        scopes = [*(v[:, None] for v, _ in block.unary.values()), *block.scopes]
        self._first_piece = len(scopes)
        self.plan = make_plan(block.cards, [*scopes, *(piece.scope for piece in self.pieces if piece.scope.size)])
        self._place = np.zeros(len(block.cards), dtype=int)
        for variables, _ in block.unary.values():
            self._place[variables] = np.arange(len(variables))
        tables = (*(w for _, w in block.unary.values()), *block.tables)
        self._wide = any(bool((np.isfinite(t) & (t < -_WIDE)).any()) for t in tables)
        label = _components(block, [piece.scope for piece in self.pieces])
        self._parts = {p: _labels(m.variable, label) for p, m in self.at.items()}
        self._parts |= {p: _labels(t.variables.max(axis=1), label) for p, t in self.tuples.items()}
        self._reads = _dependence(self.site_ports, self._parts, int(label.max(initial=-1)) + 1)

    @property
    def parts(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        """The connected part of the block that each entry at a port belongs to, -1 where it was observed."""
        return self._parts

    def depends(self, to: str, points: frozenset[str]) -> frozenset[str]:
        """The ports whose sites the marginals at `to` depend on, apart from each entry's own site."""
        return self._reads[to]

    def solve(self, sites: Mapping[str, Family]) -> DiscreteJoint:
        """The joint distribution under the sites that came in."""
        block = self.block
        weights = {p: log_weights(sites[p]) for p in self.site_ports}
        unary = {c: w.copy() for c, (_, w) in block.unary.items()}
        wide = self._wide or any(_is_wide(w) for w in weights.values())
        for port, m in self.at.items():
            if port in weights:
                free = m.variable >= 0
                unary[m.n_categories][self._place[m.variable[free]]] += weights[port][free]
        own = [piece.table(weights[piece.port]) for piece in self.pieces]
        tables = [
            *unary.values(),
            *block.tables,
            *(t for t, piece in zip(own, self.pieces, strict=True) if piece.scope.size),
        ]
        constant = block.log_constant + sum(
            float(t.sum()) for t, p in zip(own, self.pieces, strict=True) if not p.scope.size
        )
        wanted = (*self._unary.values(), *range(self._first_piece, len(tables)))
        if any(np.isnan(t).any() for t in tables):
            return DiscreteJoint(np.nan, {p: np.full(w.shape, np.nan) for p, w in weights.items()})
        found = solve(self.plan, tables, wanted)
        if np.isneginf(found.log_z + constant):
            raise ContradictionError(
                f"variables {', '.join(map(repr, self.names[:6]))}: no combination of their categories is possible under the "
                "tables and what else is known of them; correct the observed values or take one of the statements back"
            )
        with np.errstate(divide="ignore"):
            log_p = {k: np.log(t) for k, t in found.tables.items()}
        if wide and any(bool(((p < np.log(_LOST)) & ~np.isneginf(tables[k])).any()) for k, p in log_p.items()):
            log_p = solve_in_logs(self.plan, tables, wanted)
        return DiscreteJoint(found.log_z + constant, self._shown(log_p))

    def _shown(self, log_p: dict[int, np.ndarray]) -> dict[str, np.ndarray]:
        """The log marginals by port, of all entries."""
        shown: dict[str, np.ndarray] = {}
        for port, m in self.at.items():
            free = m.variable >= 0
            shown[port] = np.zeros((len(m.variable), m.n_categories))
            shown[port][free] = log_p[self._unary[m.n_categories]][self._place[m.variable[free]]]
        for port, t in self.tuples.items():
            shown[port] = np.full((len(t.variables), int(np.prod(t.shape))), -np.inf)
        k = self._first_piece
        for piece in self.pieces:
            piece.write(log_p[k] if piece.scope.size else None, shown[piece.port])
            k += bool(piece.scope.size)
        return shown

    def answer(self, to: str, site: Family | None, joint: DiscreteJoint) -> Family:
        """The marginals divided by what came in; the message to a category that the site itself excludes does not matter."""
        log_p = joint.log_p[to]
        if site is not None:
            weight = log_weights(site)
            if to in self.at:
                weight = np.where((self.at[to].variable >= 0)[:, None], weight, 0.0)
            out = np.isneginf(weight)
            log_p = log_p - np.where(out, 0.0, weight)
            if out.any():
                log_p = np.where(out, np.max(np.where(out, -np.inf, log_p), axis=1, keepdims=True), log_p)
        kind = self.kinds[to]
        assert issubclass(kind, (Bernoulli, Categorical))
        return kind.from_log_weights(log_p, strict=False)


def _is_wide(weight: np.ndarray) -> bool:
    """Whether log weights of an entry differ so much that probabilities may be lost."""
    with np.errstate(invalid="ignore"):
        return bool((np.isfinite(weight) & (weight < weight.max(axis=1, keepdims=True) - _WIDE)).any())


def _components(block: DiscreteBlock, others: list[np.ndarray]) -> np.ndarray:
    """The number of the connected part that each variable belongs to."""
    scopes = [*block.scopes, *others]
    rows = np.concatenate([np.zeros(0, dtype=int), *(s[:, :-1].reshape(-1) for s in scopes)])
    columns = np.concatenate([np.zeros(0, dtype=int), *(s[:, 1:].reshape(-1) for s in scopes)])
    return connected_parts(len(block.cards), rows, columns)


def _labels(variable: np.ndarray, label: np.ndarray) -> np.ndarray:
    return np.where(variable >= 0, label[variable], -1)


def _dependence(sites: tuple[str, ...], parts: dict[str, np.ndarray], n: int) -> dict[str, frozenset[str]]:
    """The ports whose sites the entries of each port depend on, apart from the own site of each entry."""
    count = {p: np.bincount(parts[p][parts[p] >= 0], minlength=n) for p in sites}
    reads: dict[str, frozenset[str]] = {}
    for port, label in parts.items():
        mine = label[label >= 0]
        reads[port] = frozenset(p for p in sites if (count[p][mine] > (p == port)).any())
    return reads


# ---- tuples of which some variables were observed --------------------------------------------------------------------
class _Piece(NamedTuple):
    """Tuples of one node with the same variables open."""

    port: str
    rows: np.ndarray  # (m,) of the node
    shape: tuple[int, ...]  # categories of each variable
    scope: np.ndarray  # (m, r) the open variables
    known: np.ndarray  # (r,) which were observed
    values: np.ndarray  # (m, n_known) their categories

    def table(self, weights: np.ndarray) -> np.ndarray:
        """The log weights of the open variables, of those of all entries of the node."""
        return np.moveaxis(weights[self.rows].reshape(-1, *self.shape), self._axes, self._first)[self._index]

    def write(self, log_p: np.ndarray | None, found: np.ndarray) -> None:
        """Put the log marginals of the open variables (none: all are known) where they belong in those of the node."""
        whole = np.full((len(self.rows), *self.shape), -np.inf)
        np.moveaxis(whole, self._axes, self._first)[self._index] = 0.0 if log_p is None else log_p
        found[self.rows] = whole.reshape(len(self.rows), -1)

    @property
    def _axes(self) -> list[int]:
        return [1 + int(k) for k in np.flatnonzero(self.known)]

    @property
    def _first(self) -> list[int]:
        return [1 + k for k in range(int(self.known.sum()))]

    @property
    def _index(self) -> tuple[np.ndarray, ...]:
        return (np.arange(len(self.rows)), *self.values.T)


def _pieces_of(port: str, tuples: Tuples) -> list[_Piece]:
    """The tuples of a node, those with the same variables open together."""
    seen: np.ndarray = np.less(tuples.variables, 0)
    code = np.zeros(len(seen), dtype=int)
    for k in range(seen.shape[1]):
        code += seen[:, k] * 2**k
    found: list[_Piece] = []
    for c in np.flatnonzero(np.bincount(code)):
        rows = np.flatnonzero(code == c)
        known = seen[rows[0]]
        values = tuples.values[rows][:, known].astype(int)
        found.append(_Piece(port, rows, tuples.shape, tuples.variables[rows][:, ~known], known, values))
    return found
