"""Messages to begin with at a new value of the hyper-parameters: those of values before, carried on in a straight line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from heliograph.engine.tables import Snapshot
from heliograph.families import Family

__all__ = ["carried_on", "shares_at"]

F = TypeVar("F", bound=Family)

_NEAR = 0.1  # squared distance within which values count alike, in units in which neighbours are about 1 apart
_STEADY = 1e-3  # ridge on slopes: values on one line do not determine slopes across it


def shares_at(gaps: np.ndarray) -> np.ndarray:
    """Weights, summing to 1, with which quantities at points ``(P, d)`` away give an estimate here: a local straight line.

    >>> shares_at(np.array([[-1.0], [1.0], [9.0]])).round(2)
    array([0.5, 0.5, 0. ])
    """
    n, d = gaps.shape
    near = 1.0 / ((gaps**2).sum(axis=1) + _NEAR) ** 2
    near = near / near.max()
    design = np.concatenate([np.ones((n, 1)), gaps], axis=1)
    ridge = np.diag(np.r_[0.0, np.full(d, _STEADY)])
    return np.asarray(np.linalg.solve(design.T @ (near[:, None] * design) + ridge, design.T * near), dtype=float)[0]


def carried_on(near: Snapshot, others: Sequence[Snapshot], shares: np.ndarray) -> Snapshot:
    """The messages of several runs, the nearest among them, averaged with some weights in their natural parameters."""
    return Snapshot(
        {key: _averaged(own, [s.sent.get(key) for s in others], shares) for key, own in near.sent.items()},
        {key: _averaged(own, [s.scattered.get(key) for s in others], shares) for key, own in near.scattered.items()},
    )


def _averaged(own: F, every: Sequence[Family | None], shares: np.ndarray) -> F:
    """The average of messages of one kind; the nearest one where they are not all densities of its shape."""
    alike = [m for m in every if isinstance(m, type(own)) and m.point is None and m.shape == own.shape]
    if len(alike) < len(every):
        return own
    columns = zip(*(m.naturals for m in alike), strict=True)
    mixed = tuple(np.tensordot(shares, np.stack(c), axes=1) for c in columns)
    return type(own).from_naturals(mixed) if all(np.isfinite(a).all() for a in mixed) else own
