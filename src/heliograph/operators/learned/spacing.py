"""How fine a lattice has to be, and whether one will do at all: found by sampling the process at some rows of a plate."""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.operators.learned.cells import CUBIC, HALF, class_columns, is_plain
from heliograph.operators.learned.lattice import MOST_CLASSES, MOST_NODES, Lattice, LatticeChart, Sampled
from heliograph.operators.protocol import Incoming

__all__ = ["in_classes", "lattice_for"]

_ROWS_PER_CLASS = 8  # rows of a plate for each, at least: else it does not see the same again and again
_TESTED = 24  # cells by which the spacing is chosen
_HALVINGS = 8
_LEAST = 0.25  # spread of the log spreads of a plate
_COARSE = 0.5  # the first spacing, in deviations of a plate on that axis
_FINER = 0.25  # of what interpolation may add, on each axis at the rows tried: cells between them may be worse
_MOST_ROWS = 0.9  # of the rows tried must be that fine; cells where it is not are never used


def lattice_for(
    to: str, chart: Any, process: object, allowed: float, incoming: Incoming, sampled: Sampled
) -> Lattice | None:
    """A lattice for plates like this one, as coarse as `allowed` nats per interpolated message permit; None if none will do.

    Parameters
    ----------
    to : the port whose messages move
    chart : of that port
    process : what is sampled; the lattice only remembers which one it was
    allowed : nats that interpolation may add to a message
    incoming : a plate like those to come
    sampled : what the process says of messages
    """
    if not in_classes(to, chart, incoming):
        return None
    features = chart.features(incoming[to])
    # the first sweep of a run may have all centres alike: no less than the messages' own width, then
    least = np.array([np.sqrt(np.median(chart.moments(incoming[to])[1])), _LEAST])
    spread = np.maximum(features.std(axis=0), least)
    spacing = 2.0 ** np.floor(np.log2(_COARSE * spread))
    rows = np.unique(np.linspace(0, len(features) - 1, _TESTED).astype(int))
    some = {p: m[rows] for p, m in incoming.items()}
    for _ in range(_HALVINGS):
        worst = [_roughness(axis, to, chart, some, features[rows], spacing, sampled) for axis in range(2)]
        fine = np.array([w <= _FINER * allowed for w in worst])
        if fine.all():
            reach = (features.max(axis=0) - features.min(axis=0)) / spacing
            return Lattice(to, chart, process, allowed, spacing, incoming) if (reach < MOST_NODES / 2).all() else None
        spacing = np.where(fine, spacing, 0.5 * spacing)
    return None


def in_classes(to: str, chart: Any, incoming: Incoming) -> bool:
    """Whether the message of one port alone moves on a plate: what the others hold takes a few values."""
    if not hasattr(chart, "from_features") or any(not is_plain(m) for m in incoming.values()):
        return False
    columns = class_columns(incoming, [p for p in incoming if p != to])
    n_distinct = np.unique(columns, axis=1).shape[1]
    return n_distinct <= MOST_CLASSES and n_distinct * _ROWS_PER_CLASS <= columns.shape[1]


def _roughness(
    axis: int,
    to: str,
    chart: LatticeChart,
    incoming: Incoming,
    features: np.ndarray,
    spacing: np.ndarray,
    sampled: Sampled,
) -> float:
    """What cubic interpolation along one axis is wrong by at most rows, half-way between nodes."""
    steps = np.array([-1.5, -0.5, 0.0, 0.5, 1.5])
    at = np.repeat(features[None], len(steps), axis=0)
    at[:, :, axis] += steps[:, None] * spacing[axis]
    n = len(features)
    tiled = {p: m[np.tile(np.arange(n), len(steps))] for p, m in incoming.items()}
    tiled[to] = chart.from_features(at.reshape(-1, 2))
    said = sampled(tiled)
    gap = said.gap.reshape(len(steps), n, 2)
    middle = np.einsum("a,anq->nq", CUBIC @ HALF, gap[[0, 1, 3, 4]])
    off = (said.weights.reshape(len(steps), n, 2)[2] * (middle - gap[2]) ** 2).sum(axis=1)
    return float(np.quantile(np.where(np.isfinite(off), off, np.inf), _MOST_ROWS))
