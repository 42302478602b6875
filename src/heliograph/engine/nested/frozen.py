"""How the evidence changes with the numbers of a model at fixed messages, where these are numbers of Gaussian blocks alone.

At fixed messages a factor's part of the evidence depends on its own numbers only. So where all that a hyper-parameter changes is
inside blocks, the change of the evidence is that of the blocks' integrals under the same sites, and no other factor is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from heliograph.engine.blocks.plate import BlockFactor, Joint
from heliograph.engine.compiled import CompiledModel
from heliograph.engine.plates.block import BlockPlate
from heliograph.engine.tables import Tables
from heliograph.families import Family
from heliograph.graph.records import Graph, Plate

__all__ = ["change_of_blocks"]


def change_of_blocks(compiled: CompiledModel, tables: Tables, graph: Graph) -> float | None:
    """The change of the log evidence from a compiled model to the same with other numbers, at the messages of a table.

    None where numbers outside the blocks differ, or a block is not simply solved: then all of the evidence must be computed.

    Parameters
    ----------
    compiled
        The model at which the messages were found.
    tables
        The messages.
    graph
        The other model, with its blocks.
    """
    if len(graph.plates) != len(compiled.graph.plates):
        return None
    total = 0.0
    for kind, old, new in zip(compiled.plates, compiled.graph.plates, graph.plates, strict=True):
        if isinstance(kind, BlockPlate) and isinstance(new.factor, BlockFactor):
            change = _change(kind, tables, new.factor)
            if change is None:
                return None
            total += change
        elif not _same(old, new):
            return None
    return total


def _change(kind: BlockPlate, tables: Tables, other: BlockFactor) -> float | None:
    factor, sites = kind.factor, kind.sites(tables)
    exact = any(s.point is not None for s in sites.values())
    if exact or factor.refused is not None or other.refused is not None or factor.site_ports != other.site_ports:
        return None
    before, after = kind.joint(tables), other.solve(sites)
    if before is None or after is None:
        return None
    # an integral is given with the sites counted from the means of its own belief: here both are counted from one point
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
    """Whether two plates of one structure hold the same numbers; False where that cannot be seen."""
    return type(a.factor) is type(b.factor) and _alike(a.data, b.data) and _alike(vars(a.factor), vars(b.factor))


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
