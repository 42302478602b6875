"""From a graph to its discrete blocks: which nodes known tables join, and these tables over the variables that are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from heliograph.errors import ContradictionError
from heliograph.factors import ConditionalTable, DirichletTable, DirichletTuple, Equal, Prior
from heliograph.families import Bernoulli, Categorical, Family
from heliograph.graph.records import Edge, Graph, Node, Plate
from heliograph.numerics.joined_sets import joined_sets

__all__ = ["DiscreteBlock", "Joined", "Member", "Tuples", "find_discrete_blocks", "log_weights", "with_tuples"]


class Member(NamedTuple):
    """The entries of a node as variables of a block."""

    node: int
    n_categories: int
    variable: np.ndarray  # (size,) numbers of variables, -1 where the entry was observed


class Tuples(NamedTuple):
    """The entries of a node that are several variables at once, some of which may have been observed."""

    node: int
    shape: tuple[int, ...]  # categories of each
    variables: np.ndarray  # (size, r), -1 where observed
    values: np.ndarray  # (size, r) the observed categories, NaN where there are none


@dataclass(frozen=True, eq=False)
class DiscreteBlock:
    """A connected set of nodes of categories, and everything known that joins them."""

    members: tuple[Member, ...]
    plates: frozenset[int]  # positions of the plates that the block stands for
    cards: np.ndarray  # (n,) categories of every variable
    unary: dict[
        int, tuple[np.ndarray, np.ndarray]
    ]  # categories -> variables (m,) and their log weights (m, categories)
    scopes: tuple[np.ndarray, ...]  # variables of the tables of two and more, (m, r)
    tables: tuple[np.ndarray, ...]  # and their logarithms, (m, *categories)
    log_constant: float  # of tables all of whose variables were observed
    tuples: tuple[Tuples, ...] = ()


def find_discrete_blocks(graph: Graph, joined: Sequence[Joined] = ()) -> list[DiscreteBlock]:
    """The discrete blocks of a graph; a node that no table joins to another is in none."""
    return [_Compiler(graph, nodes, joined).block() for nodes in _groups(graph, joined)]


# ---- which nodes --------------------------------------------------------------------------------------------------
def _is_table(graph: Graph, plate: Plate) -> bool:
    """Whether a plate is a table of known numbers over categories."""
    factor = plate.factor
    if isinstance(factor, Prior):
        return isinstance(factor.fixed, (Categorical, Bernoulli))
    if not isinstance(factor, (ConditionalTable, Equal)):
        return False
    return all(graph.nodes[e.node].family.discrete for e in plate.edges.values())


def _open_nodes(graph: Graph, plate: Plate) -> list[int]:
    return [e.node for e in plate.edges.values() if not graph.nodes[e.node].fully_observed]


def _groups(graph: Graph, joined: Sequence[Joined]) -> list[set[int]]:
    ends = [_open_nodes(graph, p) for p in graph.plates if _is_table(graph, p)]
    ends += [[e.node for e in j.ends if not graph.nodes[e.node].fully_observed] for j in joined]
    return joined_sets(nodes for nodes in ends if len(nodes) > 1)


# ---- one block ----------------------------------------------------------------------------------------------------
class _Compiler:
    """Writes the plates of one block as log tables over numbered variables."""

    def __init__(self, graph: Graph, nodes: set[int], joined: Sequence[Joined]) -> None:
        self.graph = graph
        self.joined = [j for j in joined if nodes.intersection(e.node for e in j.ends)]
        self.plates = [p for p in graph.plates if _is_table(graph, p) and nodes.intersection(_open_nodes(graph, p))]
        self.members: dict[int, Member] = {}
        cards: list[np.ndarray] = []
        n = 0
        for k in sorted(nodes):
            node = graph.nodes[k]
            open_ = np.isnan(_values(node))
            variable = np.full(node.size, -1)
            variable[open_] = n + np.arange(int(open_.sum()))
            n += int(open_.sum())
            self.members[k] = Member(k, node.dimension or 2, variable)
            cards.append(np.full(int(open_.sum()), node.dimension or 2))
        self.cards = np.concatenate(cards)
        self.unary = {int(c): np.flatnonzero(self.cards == c) for c in np.flatnonzero(np.bincount(self.cards))}
        self.place = np.zeros(n, dtype=int)  # of a variable among those with as many categories
        for variables in self.unary.values():
            self.place[variables] = np.arange(len(variables))
        self.weights = {c: np.zeros((len(v), c)) for c, v in self.unary.items()}
        self.scopes: list[np.ndarray] = []
        self.tables: list[np.ndarray] = []
        self.log_constant = 0.0

    def block(self) -> DiscreteBlock:
        """The whole block."""
        for plate in self.plates:
            self._write(plate)
        plates = frozenset(p.position for p in self.plates)
        unary = {c: (v, self.weights[c]) for c, v in self.unary.items()}
        members = tuple(self.members.values())
        return DiscreteBlock(
            members, plates, self.cards, unary, tuple(self.scopes), tuple(self.tables), self.log_constant,
            tuple(self._tuples(j) for j in self.joined),
        )  # fmt: skip

    def _tuples(self, joined: Joined) -> Tuples:
        n = self.graph.nodes[joined.node].size
        variables = [self._variable_of(e, n) for e in joined.ends]
        values = [_values(self.graph.nodes[e.node])[e.entries(n)] for e in joined.ends]
        return Tuples(joined.node, joined.shape, np.stack(variables, axis=1), np.stack(values, axis=1))

    def _write(self, plate: Plate) -> None:
        table, ports = _log_table(self.graph, plate)
        variables = np.stack([self._variables(plate, p) for p in ports], axis=1)  # (m, r)
        values = np.stack([self._seen(plate, p) for p in ports], axis=1)
        seen = variables < 0
        code = seen @ (1 << np.arange(len(ports)))
        for c in np.flatnonzero(np.bincount(code)):
            rows = np.flatnonzero(code == c)
            known = seen[rows[0]]
            part = table if len(rows) == len(table) else table[rows]
            for k in np.flatnonzero(known)[
                ::-1
            ]:  # the last axis first, so that the positions of the others do not change
                at = values[rows, k].astype(int).reshape(-1, *(1,) * (part.ndim - 1))
                part = np.take_along_axis(part, at, axis=1 + k).squeeze(1 + k)
            self._add(variables[rows][:, ~known], part)

    def _add(self, scope: np.ndarray, table: np.ndarray) -> None:
        """Put log tables of equal shape where tables of their number of variables are."""
        if scope.shape[1] == 0:
            self.log_constant += float(table.sum())
        elif scope.shape[1] == 1:
            np.add.at(self.weights[table.shape[1]], self.place[scope[:, 0]], table)
        elif any((a == b).any() for a, b in combinations(scope.T, 2)):
            raise ContradictionError("one random category stands at two places of one table")  # pragma: no cover
        else:
            self.scopes.append(scope)
            self.tables.append(table)

    def _variables(self, plate: Plate, port: str) -> np.ndarray:
        return self._variable_of(plate.edges.get(port), plate.size)

    def _variable_of(self, edge: Edge | None, size: int) -> np.ndarray:
        if edge is None or edge.node not in self.members:
            return np.full(size, -1)
        return self.members[edge.node].variable[edge.entries(size)]

    def _seen(self, plate: Plate, port: str) -> np.ndarray:
        edge = plate.edges.get(port)
        if edge is None:  # a constant at the port
            return np.asarray(plate.data[port].point)
        return _values(self.graph.nodes[edge.node])[edge.entries(plate.size)]


def _values(node: Node) -> np.ndarray:
    """The observed categories of a node, NaN where there is none."""
    if node.observed is None or node.observed.point is None:
        return np.full(node.size, np.nan)
    return node.observed.point


def _log_table(graph: Graph, plate: Plate) -> tuple[np.ndarray, list[str]]:
    """The log tables of a plate, an axis for every port that they list."""
    factor = plate.factor
    with np.errstate(divide="ignore"):
        if isinstance(factor, Prior):
            assert isinstance(factor.fixed, (Categorical, Bernoulli))
            return factor.fixed.log_p, ["x"]
        if isinstance(factor, ConditionalTable):
            return np.log(np.asarray(plate.data["table"], dtype=float)), [*factor.parents, "child"]
        k = max(graph.nodes[e.node].dimension or 2 for e in plate.edges.values())
        return np.broadcast_to(np.log(np.eye(k)), (plate.size, k, k)), ["a", "b"]


def log_weights(message: Family) -> np.ndarray:
    """The logarithms of a message's weights (n, categories), as its natural parameters have them; -inf if impossible."""
    if isinstance(message, Bernoulli):
        weights = np.stack([np.zeros(message.shape), message.naturals[0]], axis=-1)
    else:
        weights = message.naturals[0]
    if message.point is None:
        return weights
    hot = np.zeros(weights.shape, dtype=bool)
    at = np.flatnonzero(message.is_point)
    hot[at, message.point[at].astype(int)] = True
    return np.where(message.is_point[:, None], np.where(hot, 0.0, -np.inf), weights)


# ---- categories that an unknown table joins, as one category ---------------------------------------------------------
class Joined(NamedTuple):
    """A node whose entries are several categories at once: the rows of an unknown table see them jointly then."""

    node: int
    shape: tuple[int, ...]  # categories of each
    ends: tuple[Edge, ...]  # where each is, the parents first


def with_tuples(graph: Graph) -> tuple[Graph, list[Joined]]:
    """The graph with a node of tuples for every unknown table that joins two open categories or more."""
    made = replace(graph, nodes=list(graph.nodes), plates=[])
    joined: list[Joined] = []
    for plate in graph.plates:
        factor = plate.factor
        if isinstance(factor, DirichletTable) and _n_open(graph, plate, factor) > 1:
            ends = tuple(plate.edges[p] for p in (*factor.parents, "child"))
            size = graph.nodes[ends[-1].node].dimension or 2
            shape = (*factor.sizes, size)
            name = f"({graph.nodes[ends[-1].node].name} and what it is given by)"
            node = Node(len(made.nodes), name, Categorical, (plate.size,), len(factor.rows) * size, False)
            made.nodes.append(node)
            joined.append(Joined(node.position, shape, ends))
            edges = {row: plate.edges[row] for row in factor.rows} | {"x": Edge(node.position, None, True)}
            plate = replace(plate, factor=DirichletTuple(len(factor.rows)), edges=edges)
        made.plates.append(replace(plate, position=len(made.plates)))
    return (made, joined) if joined else (graph, [])


def _n_open(graph: Graph, plate: Plate, factor: DirichletTable) -> int:
    return sum(not graph.nodes[plate.edges[p].node].fully_observed for p in (*factor.parents, "child"))
