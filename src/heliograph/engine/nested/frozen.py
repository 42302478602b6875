"""How the evidence changes with the numbers of a model at fixed messages, computed from the changed factors only.

At fixed messages a factor's part of the evidence depends on its own numbers only. So the change is that of the factors whose
numbers differ: of a block, its integral under the same sites; of a plain factor, its log Z under the same messages, of which some
factors know the slopes by their numbers, so that one integral serves every direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from heliograph.engine.blocks.plate import BlockFactor, Joint
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.plates.gathering import gather_all
from heliograph.engine.plates.plain import PlainPlate
from heliograph.engine.tables import Snapshot, Tables
from heliograph.families import Family
from heliograph.graph.records import Graph, Node, Plate

__all__ = ["Frozen"]


class Frozen:
    """The evidence at other values of the hyper-parameters, under the messages that were found at one value.

    Parameters
    ----------
    written
        The model at that value as it was written, before parts of it were joined.
    compiled
        The same, as it ran.
    messages
        What it found.
    power
        Of power EP.
    """

    def __init__(self, written: Graph, compiled: CompiledModel, messages: Snapshot, power: float = 1.0) -> None:
        self.compiled, self.messages = compiled, messages
        self.tables = Tables(compiled.graph)
        self.tables.restore(messages, copy=False)
        self._written, self._power = written, power
        self._plain = {id(k.plate.edges): k for k in compiled.plates if isinstance(k, PlainPlate)}
        self._pointing = {id(p.edges) for p in compiled.graph.plates if self._sends_points(p)}
        self._log_z: dict[int, float] = {}  # sums, by the position of a plate
        self._slopes: dict[int, Mapping[str, np.ndarray] | None] = {}

    def change(self, graph: Graph, joined: Callable[[Graph], Graph], linear: bool = False) -> float | None:
        """The change of the log evidence to the same model with other numbers.

        None where factors differ that are neither plain nor simply solved: then all of the evidence must be computed.

        Parameters
        ----------
        graph
            The other model, as it is written.
        joined
            What joins its parts, as was done with the first.
        linear
            Whether slopes will do where a factor knows them: for differences that are small.
        """
        old, new = self._written, graph
        if len(old.plates) != len(new.plates) or not all(map(_same_node, old.nodes, new.nodes)):
            return None
        pairs = [(a, b) for a, b in zip(old.plates, new.plates, strict=True) if not _same(a, b)]
        if all(id(a.edges) in self._plain for a, _ in pairs):  # nothing that is joint is different
            changes = [self._of_plain(self._plain[id(a.edges)].plate, b, linear) for a, b in pairs]
        else:
            changes = self._of_joined(joined(graph), linear)
        return None if any(c is None for c in changes) else float(sum(cast("list[float]", changes)))

    def holds(self, graph: Graph | None = None) -> bool:
        """Whether the evidence is that of a fixed point, which does not change with the messages, at other numbers, or at any.

        It is not where a factor sends point masses, as a function of numbers does: these move with the numbers.
        """
        if graph is None or not self._pointing or len(graph.plates) != len(self._written.plates):
            return not self._pointing
        moved = {a.position for a, b in zip(self._written.nodes, graph.nodes, strict=True) if not _same_node(a, b)}
        return not any(
            id(a.edges) in self._pointing and (not _same(a, b) or any(e.node in moved for e in a.edges.values()))
            for a, b in zip(self._written.plates, graph.plates, strict=True)
        )

    def _sends_points(self, plate: Plate) -> bool:
        nodes = self.tables.graph.nodes
        sent = (self.messages.sent[plate.position, p] for p, e in plate.edges.items() if nodes[e.node].observed is None)
        return any(message.is_point.any() for message in sent)

    def _of_joined(self, graph: Graph, linear: bool) -> list[float | None]:
        old = self.compiled.graph.plates
        if len(graph.plates) != len(old):
            return [None]
        found: list[float | None] = []
        for kind, a, b in zip(self.compiled.plates, old, graph.plates, strict=True):
            if not _same_place(a, b):  # which of several bounds is the tightest hangs on the numbers
                return [None]
            if isinstance(kind, BlockPlate) and isinstance(b.factor, BlockFactor):
                found.append(_of_block(kind, self.tables, b.factor))
            elif not _same(a, b):
                found.append(self._of_plain(a, b, linear) if isinstance(kind, PlainPlate) else None)
        return found

    def _of_plain(self, a: Plate, b: Plate, linear: bool) -> float | None:
        """The change of one plate's log Z."""
        if type(a.factor) is not type(b.factor) or a.data.keys() != b.data.keys():
            return None
        power = self._power if a.factor.powers else 1.0
        incoming = gather_all(self.tables, a, power)
        if linear and power == 1.0 and _alike(vars(a.factor), vars(b.factor)):
            slopes = self._slopes_of(a, incoming)
            if slopes is not None and all(k in slopes or _alike(v, b.data[k]) for k, v in a.data.items()):
                return float(sum(np.sum(s * (np.asarray(b.data[k]) - a.data[k])) for k, s in slopes.items()))
        if a.position not in self._log_z:
            self._log_z[a.position] = float(np.sum(a.factor.log_z(incoming, power)))
        change = float(np.sum(b.factor.log_z({**incoming, **b.data}, power))) - self._log_z[a.position]
        return change / power if np.isfinite(change) else None

    def _slopes_of(self, plate: Plate, incoming: Mapping[str, Any]) -> Mapping[str, np.ndarray] | None:
        if plate.position not in self._slopes:
            slopes = plate.factor.log_z_slopes(incoming)
            if slopes is not None and not all(np.isfinite(s).all() for s in slopes.values()):
                slopes = None
            self._slopes[plate.position] = slopes
        return self._slopes[plate.position]


def _of_block(kind: BlockPlate, tables: Tables, other: BlockFactor) -> float | None:
    factor, sites = kind.factor, kind.sites(tables)
    exact = any(s.point is not None for s in sites.values())
    if exact or factor.refused is not None or other.refused is not None or factor.site_ports != other.site_ports:
        return None
    before, after = kind.joint(tables), other.solve(sites)
    if before is None or after is None:
        return None
    # each integral counts the sites' statistics from its own belief's mean: here both are counted from one point
    moved = sum(_moved(sites[p], _mean(factor, p, before), _mean(other, p, after)) for p in sites)
    return other.log_mass(after) - factor.log_mass(before) + float(moved)


def _mean(factor: BlockFactor, port: str, joint: Joint) -> np.ndarray:
    if port in joint.vectors:
        return joint.vectors[port][0]
    at = factor.at[port]
    return joint.mean[at.start : at.start + len(at.rows)]


def _moved(site: Family, before: np.ndarray, after: np.ndarray) -> float:
    """What ``shift z - z tau z / 2`` gains from one mean to the other."""
    shift, tau = site.naturals
    middle = 0.5 * (before + after)
    pull = tau * middle if tau.ndim == shift.ndim else np.einsum("...ij,...j->...i", tau, middle)
    return float(np.sum((after - before) * (shift - pull)))


# ---- numbers that are the same --------------------------------------------------------------------------------------
def _same(a: Plate, b: Plate) -> bool:
    """Return whether two plates of one structure hold the same numbers; False where that cannot be told."""
    return type(a.factor) is type(b.factor) and _alike(a.data, b.data) and _alike(vars(a.factor), vars(b.factor))


def _same_place(a: Plate, b: Plate) -> bool:
    """Whether two plates touch the same entries of the same nodes."""
    if a.edges is b.edges:
        return True
    if a.edges.keys() != b.edges.keys() or a.size != b.size:
        return False
    pairs = [(e, b.edges[port]) for port, e in a.edges.items()]
    return all(e.node == f.node and _alike(e.index, f.index) for e, f in pairs)


def _same_node(a: Node, b: Node) -> bool:
    return a.name == b.name and a.shape == b.shape and _alike(a.observed, b.observed)


def _alike(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return _equal(cast("np.ndarray", a), b)
    if isinstance(a, Family):
        return _alike(a.naturals, b.naturals) and _alike(a.point, b.point)
    if isinstance(a, Mapping):
        left, right = cast("Mapping[Any, Any]", a), cast("Mapping[Any, Any]", b)
        return left.keys() == right.keys() and all(_alike(left[k], right[k]) for k in left)
    if isinstance(a, (list, tuple)):
        one, two = cast("Sequence[Any]", a), cast("Sequence[Any]", b)
        return len(one) == len(two) and all(_alike(x, y) for x, y in zip(one, two, strict=True))
    return isinstance(a, (bool, int, float, str)) and bool(a == b)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.dtype.hasobject:
        return False
    return a.tobytes() == b.tobytes()
