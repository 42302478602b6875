"""From a graph to its Gaussian blocks: which nodes are jointly Gaussian, and as which rows over which base scalars.

Plates that are linear in Gaussian variables (sums, scalings, ``X @ w``, stacks, Gaussian noise of known variance, priors)
disappear into the block of the nodes that they join. What remains of a block is one expression per
entry of every node, and the rows whose weight is known for the whole run: priors, noise and data.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from heliograph.engine.blocks.constraints import Elimination, eliminate
from heliograph.engine.blocks.grouping import DETERMINISTIC, Linear, groups, is_gaussian_prior, is_linear
from heliograph.engine.blocks.records import Block, Known, components
from heliograph.engine.blocks.rows import (
    Rows,
    add,
    apply,
    base,
    constants,
    joined,
    minus,
    scale,
    shifted,
    take,
)
from heliograph.engine.blocks.whitening import whitened
from heliograph.factors import (
    Difference,
    Dot,
    Equal,
    GaussianFactor,
    MultivariateGaussianFactor,
    Prior,
    Scale,
    Shift,
    Sum,
)
from heliograph.families import Family, Gaussian, MultivariateGaussian
from heliograph.graph.records import Graph, Plate
from heliograph.numerics.triangular import times, transposed_times

__all__ = ["find_blocks"]

_SUMS = (Sum, Difference)
_TIGHT = 1e-7  # variance over that of the mean, below which a node is written as a deviation from its mean


def find_blocks(graph: Graph, linear: Linear = is_linear) -> list[Block]:
    """The Gaussian blocks of a graph; nodes that no linear plate joins to another are in none."""
    return [_Compiler(graph, nodes, linear).block() for nodes in groups(graph, linear)]


# ---- one block --------------------------------------------------------------------------------------------------
class _Compiler:
    """Writes the nodes of one block as rows, plate by plate, parents before children."""

    def __init__(self, graph: Graph, nodes: set[int], linear: Linear) -> None:
        self.graph = graph
        self.nodes = tuple(sorted(nodes))
        self.plates = [
            p
            for p in graph.plates
            if (linear(graph, p) or is_gaussian_prior(p)) and any(e.node in nodes for e in p.edges.values())
        ]
        makers: dict[int, list[Plate]] = {}
        for plate in self.plates:
            if isinstance(plate.factor, DETERMINISTIC):
                makers.setdefault(plate.edges[plate.factor.child].node, []).append(plate)
        self.makers = makers
        self.by_edges = {id(p.edges): p for p in self.plates}
        self.base: dict[int, np.ndarray] = {}
        self.n_columns = 0
        for k in self.nodes:
            if k not in makers:
                self._number(k)
        self.rows: dict[int, Rows] = {}
        self.known: list[Known] = []
        self.fixed: list[tuple[Rows, np.ndarray]] = []  # rows that have a value exactly
        self.log_constant = 0.0
        self.written: set[int] = set()  # plates that are in the rows already

    @cached_property
    def spread(self) -> np.ndarray:
        """Rough variances of the base scalars before any data, (N,)."""
        spread = np.full(self.n_columns, np.inf)
        for plate in self.plates:
            factor = plate.factor
            if isinstance(factor, Prior) and factor.fixed is not None and plate.edges["x"].node in self.base:
                columns = self.base[plate.edges["x"].node]
                edge = plate.edges["x"]
                d = self.graph.nodes[edge.node].dimension or 1
                at = columns if edge.index is None else columns[components(np.asarray(edge.index), d)]
                variance = np.asarray(factor.fixed.variance, dtype=float).reshape(-1)
                free = at >= 0
                spread[at[free]] = np.minimum(spread[at[free]], variance[free])
        return np.where(np.isfinite(spread), spread, 0.0)

    def _number(self, k: int) -> None:
        node = self.graph.nodes[k]
        d = node.dimension or 1
        open_ = np.ones(node.size, dtype=bool) if node.observed is None else ~node.observed.is_point
        n = int(open_.sum()) * d
        if n == node.size * d:
            self.base[k] = np.arange(self.n_columns, self.n_columns + n)
        else:
            self.base[k] = np.full(node.size * d, -1)
            self.base[k][np.repeat(open_, d)] = np.arange(self.n_columns, self.n_columns + n)
        self.n_columns += n

    def block(self) -> Block:
        """The whole block."""
        for k in self.nodes:  # parents come before children
            self._write_node(k)
        for plate in self.plates:
            self._write_known(plate)
        n = self.n_columns
        made = Block(
            self.nodes,
            frozenset(p.position for p in self.plates),
            n,
            self.rows,
            self.base,
            tuple(self.known),
            self.log_constant,
        )
        if not self.fixed:
            return made
        fixed = joined([r for r, _ in self.fixed], n)
        values = np.concatenate([v for _, v in self.fixed])
        return _without(made, eliminate(fixed, values))

    # ---- nodes ----------------------------------------------------------------------------------------------
    def _write_node(self, k: int) -> None:
        node = self.graph.nodes[k]
        d = node.dimension or 1
        seen = np.zeros(node.size, dtype=bool) if node.observed is None else node.observed.is_point
        values = np.zeros((node.size, d))
        if node.observed is not None and node.observed.point is not None:
            values[seen] = np.asarray(node.observed.point).reshape(node.size, d)[seen]
        if k in self.base:
            self.rows[k] = base(self.base[k], self.n_columns, values)
            self._write_conditional(k, bool(seen.any()))
            return
        made = np.zeros(node.size, dtype=bool)
        parts: list[Rows] = []
        places: list[np.ndarray] = []
        for plate in self.makers[k]:
            index = plate.edges[plate.factor.child].index
            at = np.arange(node.size) if index is None else np.asarray(index)
            made[at] = True
            parts.append(self._image(plate))
            places.append(components(at, d))
        rest = np.flatnonzero(~made)
        if len(rest):  # known, since nothing makes them
            parts.append(constants(values[rest], self.n_columns))
            places.append(components(rest, d))
        order = np.concatenate(places)
        whole = joined(parts, self.n_columns)
        if not np.array_equal(order, np.arange(len(order))):
            back = np.empty(len(order), dtype=int)
            back[order] = np.arange(len(order))
            whole = take(whole, back)
        self.rows[k] = whole
        said = np.flatnonzero(seen & made)  # a derived value that was observed is a constraint
        if len(said):
            self.fixed.append((take(whole, components(said, d)), values[said].reshape(-1)))

    def _write_conditional(self, k: int, observed: bool) -> None:
        """A node that is made by ``x ~ N(mean, variance)``, where that is far narrower than what its mean may be.

        The precisions of x and of its mean would differ by less than double precision holds. So x is written as its mean plus a
        deviation of its own, which is the base scalar.
        """
        maker = self.graph.nodes[k].maker
        plate = None if maker is None else self.by_edges.get(id(maker.edges))
        if plate is None or not isinstance(plate.factor, GaussianFactor) or "mean" not in plate.edges:
            return
        if plate.edges["x"].index is not None or plate.edges["mean"].node not in self.rows:
            return
        mean = self._port(plate, "mean")
        variance = np.asarray(plate.data["variance"], dtype=float)
        spread = self._spread(mean)
        free = self.base[k] >= 0
        if observed or not (variance > 0).all() or not (variance < _TIGHT * spread).all():
            self.spread[self.base[k][free]] = (spread + variance)[free]
            return
        deviation = self.rows[k]
        self.rows[k] = add(mean, deviation)
        self.known.append(Known(deviation, 1.0 / variance))
        self.spread[self.base[k]] = variance
        self.written.add(plate.position)

    def _spread(self, rows: Rows) -> np.ndarray:
        """Rough variances of rows before any data."""
        s = rows.sparse
        row = np.repeat(np.arange(len(rows)), np.diff(s.indptr))
        total = np.bincount(row, s.data**2 * self.spread[s.indices], len(rows))
        for x, columns in rows.dense:
            total = total + x**2 @ self.spread[columns]
        return total

    def _image(self, plate: Plate) -> Rows:
        """The rows of what a deterministic plate makes."""
        factor = plate.factor
        if isinstance(factor, _SUMS):
            return (add if isinstance(factor, Sum) else minus)(self._port(plate, "a"), self._port(plate, "b"))
        if isinstance(factor, Scale):
            x = self._port(plate, "x")
            return scale(x, np.repeat(np.asarray(plate.data["constant"], dtype=float), len(x) // plate.size))
        if isinstance(factor, Shift):
            x = self._port(plate, "x")
            return shifted(x, np.asarray(plate.data["constant"], dtype=float).reshape(-1))
        if isinstance(factor, Dot):
            edge = plate.edges["w"]
            node = self.graph.nodes[edge.node]
            entry = np.zeros(1, dtype=int) if edge.index is None else np.asarray(edge.index)[:1]
            one = None if node.size == 1 else components(entry, node.dimension or 1)
            return apply(plate.data["x"], take(self._node(edge.node), one))
        columns = [self._port(plate, f"x{k}") for k in range(factor.n)]  # type: ignore[attr-defined]
        whole = joined(columns, self.n_columns)
        return take(whole, np.arange(len(whole)).reshape(len(columns), plate.size).T.reshape(-1))

    def _node(self, k: int) -> Rows:
        if k not in self.rows:  # wholly observed
            node = self.graph.nodes[k]
            assert node.observed is not None and node.observed.point is not None
            return constants(np.asarray(node.observed.point), self.n_columns)
        return self.rows[k]

    def _port(self, plate: Plate, port: str) -> Rows:
        """The rows that a port sees, element by element."""
        if port not in plate.edges:
            value = plate.data[port]
            value = value.point if isinstance(value, Family) else value
            return constants(np.asarray(value), self.n_columns)
        edge = plate.edges[port]
        d = self.graph.nodes[edge.node].dimension or 1
        return take(self._node(edge.node), None if edge.index is None else components(np.asarray(edge.index), d))

    # ---- rows of known weight -------------------------------------------------------------------------------
    def _write_known(self, plate: Plate) -> None:
        factor = plate.factor
        if plate.position in self.written:
            return
        if isinstance(factor, DETERMINISTIC):
            child = plate.edges[factor.child]
            if child.node not in self.nodes:  # an expression that was observed, all of it
                image, value = self._image(plate), self._port(plate, factor.child)
                self.fixed.append((image, value.constant))
        elif isinstance(factor, Prior):
            self._write_prior(plate, factor)
        elif isinstance(factor, Equal):
            gap = minus(self._port(plate, "a"), self._port(plate, "b"))
            self.fixed.append((gap, np.zeros(len(gap))))
        elif isinstance(factor, GaussianFactor):
            gap = minus(self._port(plate, "mean"), self._port(plate, "x"))
            variance = np.asarray(plate.data["variance"], dtype=float)
            hard = np.flatnonzero(variance == 0)
            if len(hard):
                self.fixed.append((take(gap, hard), np.zeros(len(hard))))
                soft = np.flatnonzero(variance > 0)
                gap, variance = take(gap, soft), variance[soft]
            self.known.append(Known(gap, 1.0 / variance))
        elif isinstance(factor, MultivariateGaussianFactor):
            gap = minus(self._port(plate, "x"), self._port(plate, "mean"))
            covariance = np.asarray(plate.data["covariance"], dtype=float)
            self._write_vectors(gap, np.linalg.inv(covariance))

    def _write_prior(self, plate: Plate, factor: Prior) -> None:
        rows, message = self._port(plate, "x"), factor.fixed
        assert message is not None
        shift, precision = message.naturals
        if isinstance(message, Gaussian):
            self.known.append(Known(shifted(rows, -shift / precision), precision))
        elif isinstance(message, MultivariateGaussian):
            mean = shift
            if shift.any() and message.root is not None:
                mean = times(message.root[0], transposed_times(message.root[0], shift))
            elif shift.any():
                mean = np.linalg.solve(precision, shift[..., None])[..., 0]
            self._write_vectors(shifted(rows, -mean.reshape(-1)), precision, message)

    def _write_vectors(self, rows: Rows, precision: np.ndarray, prior: MultivariateGaussian | None = None) -> None:
        """Vectors around 0 of a known precision matrix; `prior` is the same as a message on them."""
        known, log_constant = whitened(rows, precision, prior)
        self.known.append(known)
        self.log_constant += log_constant


def _without(block: Block, gone: Elimination) -> Block:
    """The block over the scalars that are left when constraints have fixed the others."""
    known = tuple(Known(gone.substitute(k.rows), k.weight) for k in block.known)
    log_constant = block.log_constant + gone.log_constant
    columns = {k: np.where(c >= 0, gone.kept[c], -1) for k, c in block.base.items()}
    rows = {k: gone.substitute(r) for k, r in block.rows.items()}
    return replace(block, n_columns=gone.n_columns, rows=rows, base=columns, known=known, log_constant=log_constant)
