# pyright: basic
"""Draws of the unknowns of a model, node by node: base scalars of blocks, nodes beside them, and what functions make of these."""

from __future__ import annotations

import numpy as np

from heliograph.engine.blocks.records import Block
from heliograph.engine.blocks.rows import over
from heliograph.graph.records import Graph, Node, Plate

__all__ = ["BlockDraws", "Drawn"]


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
