"""Draws of the unknowns of a model, node by node: base scalars of blocks, nodes beside them, and what functions make of these."""

from __future__ import annotations

import numpy as np

from heliograph.engine.blocks.records import Block
from heliograph.engine.blocks.rows import over
from heliograph.factors import Between, Positive
from heliograph.graph.records import Graph, Node, Plate
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.special import log_ndtr, ndtri_exp

__all__ = ["BlockDraws", "Drawn"]


class BlockDraws:
    """Draws of the base scalars of one block; some of them are functions of others, and are put in when these are known."""

    def __init__(self, block: Block, base: np.ndarray) -> None:
        """`base` (N, S) are the scalars."""
        self.block, self.base = block, base
        self.free = np.ones(len(base), dtype=bool)
        self.redrawn = np.zeros(len(base), dtype=bool)
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

    def redraw_ends(self, rng: np.random.Generator, met: np.ndarray, bounds: np.ndarray) -> None:
        """Draw scalars that one statement alone ties to the rest anew, given that: values that were not seen, or were censored.

        The belief knows a value to a mean and a variance, whatever a function made: draws of that, weighed by the statement, are
        few that count. `met` are the scalars that other factors speak of, `bounds` (2, N) those that an event gives.
        """
        every = np.eye(len(self.base))
        a = np.concatenate([over(k.rows, every) for k in self.block.known] or [every[:0]])
        constant = np.concatenate([k.rows.constant for k in self.block.known] or [np.zeros(0)])
        weight = np.concatenate([k.weight for k in self.block.known] or [np.zeros(0)])
        used, bounded = np.asarray(a != 0), np.isfinite(bounds[0]) | np.isfinite(bounds[1])
        ends = self.free & (used.sum(axis=0) == 1) & ~met
        worth = (used & ~self.free).any(axis=1) | (used & ends & bounded).any(axis=1)
        for row in np.flatnonzero((used & ends).any(axis=1) & worth):
            end = np.flatnonzero(used[row] & ends)[np.argmax(bounded[used[row] & ends])]
            self.base[end] = 0.0
            rest = a[row] @ self.base + constant[row]
            root = np.sqrt(weight[row])
            low, high = sorted((a[row, end] * bounds[0, end], a[row, end] * bounds[1, end]))
            z, log_density = _between(rng, root * (rest + low), root * (rest + high))
            self.base[end] = (z / root - rest) / a[row, end]
            self.free[end], self.redrawn[end] = False, True
            self.log_redrawn += log_density + np.log(root * abs(a[row, end]))


def _between(rng: np.random.Generator, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal draws between bounds, and their log densities."""
    flip = low > 0  # the side where nothing cancels
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    top = log_ndtr(high)
    below = np.exp(log_ndtr(low) - top)
    z = ndtri_exp(top + np.log(below + rng.random(low.shape) * (1.0 - below)))
    log_mass = top + np.log1p(-below)
    return np.where(flip, -z, z), -0.5 * (z**2 + LOG_2PI) - log_mass


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
            n = len(drawn.base)
            met, bounds = np.zeros(n, dtype=bool), np.array([np.full(n, -np.inf), np.full(n, np.inf)])
            for plate, node in ((p, e.node) for p in plates for e in p.edges.values() if e.node in drawn.block.rows):
                rows = drawn.block.rows[node]
                event = _event(self.graph, plate)
                a = over(rows, np.eye(n))
                if event is None:
                    met |= (a != 0).any(axis=0)
                    continue
                entries = plate.edges["x"].entries(plate.size)
                a, constant = a[entries], rows.constant[entries]
                single = (a != 0).sum(axis=1) == 1
                met |= (a[~single] != 0).any(axis=0)
                for k in np.flatnonzero(single):
                    end = np.flatnonzero(a[k])[0]
                    low, high = np.sort((np.array(event)[:, k] - constant[k]) / a[k, end])
                    bounds[:, end] = max(bounds[0, end], low), min(bounds[1, end], high)
            drawn.redraw_ends(rng, met, bounds)
            self._refresh(drawn)

    def redrawn(self, node: int) -> tuple[int, np.ndarray, np.ndarray] | None:
        """The block of a node, its expressions (m, N) and constants (m,), where some entry was drawn given others."""
        block = self._at.get(node)
        if block is None or not block.redrawn.any():
            return None
        rows = block.block.rows[node]
        a = over(rows, np.eye(len(block.base)))
        mine = (a[:, block.redrawn] != 0).any(axis=1)
        return self.blocks.index(block), np.where(mine[:, None], a, np.nan), rows.constant

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


def _event(graph: Graph, plate: Plate) -> tuple[np.ndarray, np.ndarray] | None:
    """The bounds that a plate of events that are known to hold puts on what it is about."""
    if not isinstance(plate.factor, (Between, Positive)) or "y" not in plate.edges:
        return None
    edge = plate.edges["y"]
    seen = graph.nodes[edge.node].observed
    points = None if seen is None else seen.point
    if points is None or not (points[edge.entries(plate.size)] == 1).all():
        return None
    if isinstance(plate.factor, Positive):
        return np.zeros(plate.size), np.full(plate.size, np.inf)
    low, high = (np.broadcast_to(np.asarray(plate.data[k], dtype=float), (plate.size,)) for k in ("lower", "upper"))
    return low, high
