# pyright: basic
"""Draws of the unknowns of a model, node by node, and what every plate says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from heliograph.engine.blocks.records import Block
from heliograph.engine.blocks.rows import over
from heliograph.engine.forms.product import JointProduct
from heliograph.engine.forms.scored_product import ScoredProduct
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.tables import Tables
from heliograph.factors import Factor, Prior, Product
from heliograph.families import Beta, Family, Gamma, Gaussian
from heliograph.graph.records import Graph, Node, Plate

__all__ = ["BlockDraws", "Drawn", "Said", "said_of", "scalar_form"]

_TINY = 1e-300
_NUMBERS = (Gaussian, Gamma, Beta)


class Said(NamedTuple):
    """What a plate says of draws."""

    log_density: np.ndarray  # (S,)
    complete: bool  # whether all that it is about was drawn, or summed exactly


class BlockDraws:
    """Draws of the base scalars of one block; some of them are functions of others, and are put in when these are known."""

    def __init__(self, block: Block, base: np.ndarray) -> None:
        """`base` (N, S) are the scalars."""
        self.block, self.base = block, base
        self.free = np.ones(len(base), dtype=bool)
        self.log_redrawn = np.zeros(base.shape[1])  # log density of what was drawn given the rest

    def of(self, node: int, dimension: int | None) -> np.ndarray:
        """Draws (m, S) of the entries of a node, (m, d, S) of vectors."""
        rows = self.block.rows[node]
        values = over(rows, self.base) + rows.constant[:, None]
        return values if dimension is None else values.reshape(-1, dimension, values.shape[-1])

    def fill(self, node: int, entries: np.ndarray, values: np.ndarray) -> bool:
        """Put values in for the base scalars of a node; False where it has none of its own."""
        columns = self.block.base.get(node)
        if columns is None or (np.reshape(columns, -1)[entries] < 0).any():
            return False
        at = np.reshape(columns, -1)[entries]
        self.base[at], self.free[at] = values, False
        return True

    def redraw_ends(self, rng: np.random.Generator, met: np.ndarray) -> None:
        """Draw scalars that one statement alone ties to values of functions anew, given these: a value that was not seen.

        The belief knows such a value to a mean and a variance, whatever the function made: draws of that, weighed by the
        statement, are few that count. `met` are the scalars that other factors speak of.
        """
        every = np.eye(len(self.base))
        a = np.concatenate([over(k.rows, every) for k in self.block.known] or [every[:0]])
        constant = np.concatenate([k.rows.constant for k in self.block.known] or [np.zeros(0)])
        weight = np.concatenate([k.weight for k in self.block.known] or [np.zeros(0)])
        used = a != 0
        ends = self.free & (used.sum(axis=0) == 1) & ~met
        for row in np.flatnonzero((used & ends).any(axis=1) & (used & ~self.free).any(axis=1)):
            end = np.flatnonzero(used[row] & ends)[0]
            gap = rng.standard_normal(self.base.shape[1]) / np.sqrt(weight[row])
            self.base[end] = 0.0
            self.base[end] = (gap - a[row] @ self.base - constant[row]) / a[row, end]
            self.free[end] = False
            self.log_redrawn += 0.5 * (np.log(weight[row] / (2 * np.pi)) - weight[row] * gap**2) + np.log(
                abs(a[row, end])
            )


class Drawn:
    """Draws of nodes: ``values[node]`` is (m, S), or (m, d, S) for vectors."""

    def __init__(self, graph: Graph, n: int) -> None:
        self.graph, self.n = graph, n
        self.values: dict[int, np.ndarray] = {}
        self.blocks: list[BlockDraws] = []
        self._at: dict[int, BlockDraws] = {}
        self.alone: dict[int, np.ndarray] = {}  # nodes in no block that are no function of others: entries not observed

    def add_node(self, node: Node, values: np.ndarray, free: np.ndarray) -> None:
        """Take a node that was drawn by itself; `free` are the entries that were not observed."""
        self.alone[node.position] = free
        self.values[node.position] = values

    def add_block(self, block: Block, base: np.ndarray) -> None:
        """Take the base scalars of one more block."""
        made = BlockDraws(block, base)
        self.blocks.append(made)
        self._at |= dict.fromkeys(block.rows, made)
        self._refresh(made)

    def _refresh(self, block: BlockDraws) -> None:
        for node in block.block.rows:
            if not self.graph.nodes[node].fully_observed:
                self.values[node] = block.of(node, self.graph.nodes[node].dimension)

    def redraw_ends(self, rng: np.random.Generator, plates: list[Plate]) -> None:
        """Draw values that were not seen given what functions made; `plates` are those besides the blocks."""
        for drawn in self.blocks:
            nodes = {e.node for p in plates for e in p.edges.values()} & drawn.block.rows.keys()
            every = np.eye(len(drawn.base))
            met = [(over(drawn.block.rows[node], every) != 0).any(axis=0) for node in nodes]
            drawn.redraw_ends(rng, np.any(met, axis=0) if met else np.zeros(len(drawn.base), dtype=bool))
            self._refresh(drawn)

    @property
    def log_redrawn(self) -> np.ndarray:
        """``log`` density of what was drawn given the rest."""
        return sum((b.log_redrawn for b in self.blocks), np.zeros(self.n))

    def put(self, node: int, entries: np.ndarray, values: np.ndarray) -> bool:
        """Record the values of a function; False where that cannot be."""
        block = self._at.get(node)
        if block is not None:
            if not block.fill(node, entries, values):
                return False
            self._refresh(block)
            return True
        if len(entries) != self.graph.nodes[node].size or self.graph.nodes[node].observed is not None:
            return False
        self.alone.pop(node, None)
        self.values[node] = np.empty_like(values)
        self.values[node][entries] = values
        return True


def scalar_form(plate: Plate) -> Plate:
    """The plate with its factor's own ports, where a run made a vector of some of them."""
    if not plate.joined or isinstance(plate.factor, ScoredProduct):  # which is a function of its vector
        return plate
    factor: Any = Product() if isinstance(plate.factor, JointProduct) else getattr(plate.factor, "factor", None)
    if factor is None:
        return plate
    vector = plate.factor.port  # type: ignore[attr-defined]
    edges = {k: e for k, e in plate.edges.items() if k != vector} | dict(plate.joined)
    return replace(plate, factor=factor, edges={p: edges[p] for p in factor.ports if p in edges})


def said_of(plate: Plate, tables: Tables, drawn: Drawn, learned: bool) -> Said | None:
    """What a plate says of draws: its factor, or its messages where it has to be learned; None where that is not known."""
    at = {port: _at(plate, port, drawn) for port in plate.edges}
    at = {port: v for port, v in at.items() if v is not None}
    if not at:
        return _undrawn(plate, tables, drawn)
    if learned or (plate.joined and plate.factor.learns):
        return _of_messages(plate, tables, drawn)
    rows = np.repeat(np.arange(plate.size), drawn.n)
    incoming: dict[str, Any] = {p: d[rows] for p, d in plate.data.items()}
    seen = True
    for port, edge in plate.edges.items():
        if port in at:
            incoming[port] = type_of(drawn.graph, edge.node).point_mass(at[port])
            continue
        incoming[port] = tables.incoming(tables.graph.plates[plate.position], port, None)[rows]
        summed = _summed(drawn.graph, plate, port)
        if summed is None and type_of(drawn.graph, edge.node).discrete and len(drawn.graph.edges_of(edge.node)) > 1:
            return None  # messages to categories hold what these rows said of them, too
        seen = seen and bool(summed)
    factor = plate.factor
    if isinstance(factor, Prior) and factor.fixed is not None:
        factor = Prior(factor.fixed[rows])
    done = _function(plate, factor, drawn, incoming, at)
    if done is not None:
        return Said(np.zeros(drawn.n), True) if done else None
    log_z = factor.log_z(incoming).reshape(plate.size, drawn.n)
    times = np.ones(plate.size) if plate.times is None else plate.times
    return Said(times @ log_z, seen)


def _undrawn(plate: Plate, tables: Tables, drawn: Drawn) -> Said:
    """What a plate without a drawn unknown adds: a number, or nothing where others sum over what it makes."""
    graph, plate = drawn.graph, tables.graph.plates[plate.position]
    free = [e.node for e in plate.edges.values() if not graph.nodes[e.node].fully_observed]
    if not free:
        own = np.sum(plate.factor.log_z(gather_all(tables, plate)) * (1.0 if plate.times is None else plate.times))
        return Said(np.full(drawn.n, own), True)
    met = [p for p, _ in graph.edges_of(free[0]) if p.position != plate.position]
    return Said(
        np.zeros(drawn.n), len(free) == 1 and any(e.node in drawn.values for p in met for e in p.edges.values())
    )


def _summed(graph: Graph, plate: Plate, port: str) -> bool | None:
    """Whether an unknown that was not drawn is met by one row of the plate, and by one other factor that is its prior.

    False: that one is of another kind, so that the sum is right but for a constant. None: there are others.
    """
    edge = plate.edges[port]
    if graph.nodes[edge.node].fully_observed:
        return True
    meets = graph.edges_of(edge.node)
    others = [p for p, _ in meets if p.position != plate.position]
    if len(meets) != 2 or len(others) != 1 or others[0].parts is not None:
        return None
    known = all(graph.nodes[e.node].fully_observed for e in others[0].edges.values() if e.node != edge.node)
    if not (edge.unique and not edge.shared and known):
        return None
    made = others[0].edges.get(others[0].factor.child)
    return made is not None and made.node == edge.node


def type_of(graph: Graph, node: int) -> type[Family]:
    """The family of a node."""
    return graph.nodes[node].family


def _at(plate: Plate, port: str, drawn: Drawn) -> np.ndarray | None:
    """Draws at a port, row by row and draw by draw; None where the node was not drawn."""
    edge = plate.edges[port]
    values = drawn.values.get(edge.node)
    if values is None:
        return None
    picked = values[edge.entries(plate.size)]
    if picked.ndim == 3:
        return picked.transpose(0, 2, 1).reshape(-1, picked.shape[1])
    return picked.reshape(-1)


def _function(
    plate: Plate, factor: Factor, drawn: Drawn, incoming: dict[str, Any], at: dict[str, np.ndarray]
) -> bool | None:
    """Compute what the plate makes, where its factor is a function of what was drawn; None where it is not one."""
    edge = plate.edges.get(factor.child)
    if edge is None or drawn.graph.nodes[edge.node].fully_observed:
        return None
    if drawn.graph.nodes[edge.node].family not in _NUMBERS:
        return None
    parents = [p for p in plate.edges if p != factor.child]
    if not parents or any(not (p in at or incoming[p].point is not None) for p in parents):
        return None
    made = factor.message(factor.child, {**incoming, factor.child: incoming[factor.child].as_uniform()})
    if made.point is None or not made.is_point.all():
        return None
    return drawn.put(edge.node, edge.entries(plate.size), made.point.reshape(plate.size, drawn.n))


def _of_messages(plate: Plate, tables: Tables, drawn: Drawn) -> Said | None:
    """A plate's own messages at draws, in the place of a factor that would have to be evaluated."""
    total = np.zeros(drawn.n)
    plate = tables.graph.plates[plate.position]
    for port, edge in plate.edges.items():
        values = drawn.values.get(edge.node)
        if values is None:
            continue
        sent = tables.sent[plate.position, port]
        if sent.point is not None:
            return None
        values = values[edge.entries(plate.size)]
        flat = values.transpose(2, 0, 1) if values.ndim == 3 else values.T
        total = total + sent.log_density(flat).sum(axis=1)
    return Said(total, False)
