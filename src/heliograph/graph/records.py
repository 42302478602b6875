"""The records of a graph: nodes (array-shaped variables), affine expressions of them, edges, and plates of equal factors."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from heliograph.factors.base import Factor
from heliograph.families import Family

__all__ = ["Affine", "Condition", "Edge", "Gate", "Graph", "Inner", "Matrix", "Node", "Plate", "Stacked", "Term"]


Matrix: TypeAlias = Any  # an array or one of SciPy's sparse ones, which come without types


@dataclass(eq=False)
class Node:
    """A variable of the graph: an array of random quantities of one family, kept flat."""

    position: int  # its place in `Graph.nodes`; -1 while it is an expression that no factor uses
    name: str
    family: type[Family]
    shape: tuple[int, ...]
    dimension: int | None = None  # length of one value, for vectors and categories
    given: bool = True  # the user named it; a derived node is the result of an expression
    observed: Family | None = None  # (size,) point masses where it was seen, uniform where it is missing
    maker: Plate | None = None  # the plate that made it, where that is one
    made: Affine | Inner | Stacked | None = None  # how an expression is made of other nodes; None for any other node
    labels: tuple[str, ...] | None = None  # of the components of a vector, from the columns of a table
    order: int = -1  # nodes of a model in the order in which they were written, expressions included
    start: int = 0  # where the entries of this node begin among all entries of all base nodes of the model
    roots: dict[int, int] | None = None  # the base nodes it is an affine function of, kept by `graph.support`
    support: Matrix | None = None  # CSR: which base entries each of its entries touches, kept by `graph.support`
    times: np.ndarray | None = None  # (size,) how many alike entries each stands for, in a run; None: one
    _all_seen: tuple[Family, bool] | None = None  # the answer for one value of `observed`, which is asked for often

    @property
    def size(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    @property
    def fully_observed(self) -> bool:
        """Whether every entry was seen."""
        if self.observed is None:
            return False
        if self._all_seen is None or self._all_seen[0] is not self.observed:
            self._all_seen = self.observed, bool(self.observed.is_point.all())
        return self._all_seen[1]

    def uniform(self, size: int | None = None) -> Family:
        """The uniform message for `size` entries of this node (all of them by default)."""
        n = self.size if size is None else size
        if self.dimension is None:
            return self.family.uniform((n,))
        return cast(Any, self.family).uniform((n,), self.dimension)


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

    x: Matrix  # (n, d), dense or CSR
    node: Node  # the vector's
    entry: int


class Stacked(NamedTuple):
    """Vectors of scalars: column k of every vector is an entry of a node."""

    parts: tuple[tuple[Node, np.ndarray], ...]  # a node and its (n,) entries for every column


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """The link between a port of a plate and a node."""

    node: int
    index: np.ndarray | None  # (plate size,) entry of the node that each element touches; None: the same, in order
    unique: bool  # no entry is touched twice
    shared: bool = False  # all elements touch one entry (the first of `index`, or 0) and send it one message together
    joint: bool = False  # of a block of jointly Gaussian variables, which sends one message per entry of the node

    def entries(self, size: int) -> np.ndarray:
        """The entry of the node that each of a plate's `size` elements touches."""
        if self.shared:
            return np.full(size, 0 if self.index is None else self.index[0])
        return np.arange(size) if self.index is None else self.index


@dataclass(eq=False)
class Plate:
    """A group of equal factors, one element per entry of its shape."""

    position: int
    name: str
    factor: Factor
    shape: tuple[int, ...]
    edges: dict[str, Edge]
    data: dict[str, Any] = field(default_factory=dict[str, Any])  # port -> plain array over the plate
    joined: dict[str, Edge] = field(
        default_factory=dict[str, "Edge"]
    )  # of ports that a vector port stands for, in a run
    times: np.ndarray | None = None  # (size,) how many alike elements each stands for, in a run; None: one

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def parts(self) -> Mapping[str, np.ndarray] | None:
        """Of a block: the connected part that each entry at a port belongs to, or -1."""
        return self.factor.parts

    @property
    def n_elements(self) -> int:
        """How many parts it has that share nothing within the plate: its elements, or the connected parts of a block."""
        parts = self.parts
        if parts is None:
            return self.size
        return max((int(p.max(initial=-1)) for p in parts.values()), default=-1) + 1

    def touches(self, port: str) -> tuple[np.ndarray, np.ndarray]:
        """Entries of the node at a port, and the number of the element (or part of a block) that touches each."""
        parts = self.parts
        if parts is None:
            return self.edges[port].entries(self.size), np.arange(self.size)
        entries = np.flatnonzero(parts[port] >= 0)
        return entries, parts[port][entries]

    def separate(self, port: str) -> bool:
        """Return whether no two elements touch the same entry at this port, so that none depends on another there."""
        edge = self.edges[port]
        return edge.unique and not (edge.shared and self.size > 1)

    def points(self, graph: Graph) -> frozenset[str]:
        """The ports where every message is a point mass for the whole run: constants and observed variables."""
        return frozenset(
            port
            for port in self.factor.ports
            if port not in self.edges or graph.nodes[self.edges[port].node].fully_observed
        )


@dataclass(eq=False)
class Graph:
    """Nodes and plates in the order in which they were made: parents come before children."""

    nodes: list[Node] = field(default_factory=list[Node])
    plates: list[Plate] = field(default_factory=list[Plate])

    live: Graph | None = None  # in a snapshot: the graph that it was taken of
    counts: dict[str, Plate] = field(
        default_factory=dict[str, "Plate"]
    )  # of all counts by name, seen or not, to predict them
    script: Any = None  # in a snapshot: the calls that wrote the model, and its data
    version: int = 0  # how often the model was written anew with other data

    def snapshot(self) -> Graph:
        """A copy of the graph as it is now, which later additions and observations leave as it is."""
        return Graph(
            [replace(node) for node in self.nodes], list(self.plates), self, dict(self.counts), version=self.version
        )

    def meetings(self) -> dict[int, list[tuple[Plate, str]]]:
        """The (plate, port) pairs that meet each node that is met at all."""
        found: dict[int, list[tuple[Plate, str]]] = {}
        for plate in self.plates:
            for port, edge in plate.edges.items():
                found.setdefault(edge.node, []).append((plate, port))
        return found

    def without(self, gone: Collection[int]) -> Graph:
        """The same nodes, and the plates that are at none of these positions, numbered anew."""
        kept = [p for p in self.plates if p.position not in gone]
        return replace(self, plates=[replace(p, position=k) for k, p in enumerate(kept)])

    def edges_of(self, node: int) -> list[tuple[Plate, str]]:
        """The (plate, port) pairs that meet a node."""
        return [(p, port) for p in self.plates for port, edge in p.edges.items() if edge.node == node]


class Condition(NamedTuple):
    """A switch has one of these values."""

    switch: Node
    values: frozenset[int]


@dataclass(eq=False)
class Gate:
    """One `with model.when(...)` block: all of its conditions hold in the branches that it is part of."""

    conditions: tuple[Condition, ...]
    words: str
    start: int = 0  # what is written inside has this number in the order of writing, or a later one

    def holds(self, values: Mapping[Node, int]) -> bool:
        """Whether it is part of the branch in which the switches have these values."""
        return all(values.get(c.switch) in c.values for c in self.conditions)

    def __str__(self) -> str:
        return self.words
