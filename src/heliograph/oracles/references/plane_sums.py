"""Reference beliefs of two unknown numbers by sums over even nodes of the plane, with an estimate of their error.

The error of sums over even nodes of a smooth density falls faster than any power of their spacing. Nodes are laid over the
cavity, then over the tilted density where that is smaller, and closer where every other node gives another result. Rows stay
in doubt where mass may be missed: the output passes the mode of its message between nodes, jumps, or oscillates faster than
the nodes follow, or there is mass at the border of the window (docs/decisions/0067).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.references.plane_doubts import (
    BORDER,
    Laid,
    aliased,
    closer_along,
    hidden,
    narrow,
    open_rows,
    outside,
)
from heliograph.oracles.references.plane_nodes import Grid, Plane, Weighed, even_grid, read, weighed

__all__ = ["VOUCHED", "Summed", "summed"]

_WIDE = even_grid(33, 0.47)  # over the cavity, to 7.5 deviations
_NEAR = even_grid(33, 0.42)  # over the tilted density, to 6.7 deviations or as far as mass reaches
_CLOSE = even_grid(65, 0.21)
# times as many nodes along each side, where the output breaks on no line with that spacing
_CLOSER = {times: even_grid(65, 0.21, times) for times in ((2, 2), (1, 4), (4, 1))}
_MOST = 4  # times as many nodes in all
_AT_ONCE = 256  # rows whose nodes over the cavity are evaluated together
_PLACES = _AT_ONCE * 33**2  # nodes at once, so that their temporaries stay in the cache
_ENOUGH = 1e-12  # nats of doubt, below which no closer look is taken
VOUCHED = 1e-6  # nats of doubt, below which a sum is sent as it is; the finest grids are for rows above it
_NEXT = 4.0  # times the change that the last two doublings of the nodes predict for the next one


class Summed(NamedTuple):
    """The moments in question, and what they may be wrong by."""

    moments: tuple[np.ndarray, np.ndarray]
    log_z: np.ndarray | None
    covariance: np.ndarray  # (n, 2, 2) of the unknowns
    doubt: np.ndarray  # (n,) nats; 1 where something may be hidden

    def put(self, rows: np.ndarray, other: Summed) -> None:
        """Put other results in place of those of some rows."""
        for a, b in zip((*self.moments, self.covariance, self.doubt), (*other.moments, *other[2:]), strict=True):
            a[rows] = b
        if self.log_z is not None and other.log_z is not None:
            self.log_z[rows] = other.log_z


class _Looked(NamedTuple):
    """The results for some rows so far; finer grids improve them in place."""

    plane: Plane
    to: str | None
    wide: Laid
    found: Weighed
    result: Summed
    # (n, 3): how many times as many nodes each side needs (0: none would help), and which number comes first in the root
    next: np.ndarray


def summed(plane: Plane, to: str | None) -> Summed:
    """Moments by sums over even nodes, for rows a few at a time."""
    n, parts = len(plane.mean), []
    for start in range(0, n, _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, n))
        some = plane if len(rows) == n else plane.some(rows)
        parts.append(_sum_rows(some, to))
        plane.n_evaluations += 0 if some is plane else some.n_evaluations
    if len(parts) == 1:
        return parts[0]
    moments = tuple(np.concatenate(a) for a in zip(*(p.moments for p in parts), strict=True))
    log_z = None if to is not None else np.concatenate([p.log_z for p in parts])  # type: ignore[arg-type]
    covariance, doubt = (np.concatenate([p[k] for p in parts]) for k in (2, 3))
    return Summed(moments, log_z, covariance, doubt)  # type: ignore[arg-type]


def _sum_rows(plane: Plane, to: str | None) -> Summed:
    wide = _lay(plane, plane.mean, np.linalg.cholesky(plane.covariance), _WIDE)
    found, result = _sum(plane, wide, _WIDE, to)
    open_ = open_rows(wide, _WIDE)
    result.doubt[open_] = 1.0
    looked = _Looked(plane, to, wide, found, result, np.zeros((len(open_), 3), dtype=int))
    left = np.flatnonzero((result.doubt > _ENOUGH) & ~open_ & _usable(found.covariance))
    for grid in (_NEAR, _CLOSE):
        left = _look_closer(looked, left, grid)
    left = left[result.doubt[left] > VOUCHED]
    for times, grid in _CLOSER.items():
        _look_closer(looked, left[(looked.next[left, :2] == times).all(axis=1)], grid)
    return result


def _look_closer(looked: _Looked, left: np.ndarray, grid: Grid) -> np.ndarray:
    """Sum some rows on another grid, a few at a time, and return those that are still in doubt."""
    plane, to, wide, found, result, next_ = looked
    kept, at_once = [], max(1, _PLACES // len(grid.nodes) // 16 * 16)
    for start in range(0, len(left), at_once):
        rows = left[start : start + at_once]
        some, before = plane.some(rows), _some(wide, rows)
        near = _lay(some, found.mean[rows], _reaching(before, found, rows, next_[rows, 2]), grid)
        closer, sums = _sum(some, near, grid, to)
        out = outside(before, near, grid)
        sums.doubt[out] = 1.0
        better = np.flatnonzero(sums.doubt < result.doubt[rows])
        result.put(rows[better], _some_sums(sums, better))
        found.mean[rows], found.covariance[rows] = closer.mean, closer.covariance
        plane.n_evaluations += some.n_evaluations
        usable = _usable(closer.covariance)
        kept.append(rows[(sums.doubt > _ENOUGH) & usable])
        doubtful = np.flatnonzero((sums.doubt > VOUCHED) & usable & ~out)
        if grid is _CLOSE and len(doubtful):
            few, at = some.some(doubtful), rows[doubtful]
            next_[at] = _next(few, _some(near, doubtful), [_reaching(_some(wide, at), found, at, k) for k in (0, 1)])
            plane.n_evaluations += few.n_evaluations
    return np.concatenate(kept) if kept else left


def _next(plane: Plane, near: Laid, roots: list[np.ndarray]) -> np.ndarray:
    """How many times as many nodes each side needs, by the better of two roots, and which root that is; 0: none would help."""
    best, least = np.zeros((len(near.mean), 3), dtype=int), np.full(len(near.mean), _MOST + 1)
    for k, root in enumerate(roots):
        closer = closer_along(plane, near, _CLOSE, root)
        nodes = closer.prod(axis=1)
        better = (nodes > 0) & (nodes < least)
        # a side that breaks gets all of the nodes, as it may break more sharply where no line was looked at
        first, second = (np.where(a > b, _MOST, np.where(a < b, 1, 2)) for a, b in (closer.T, closer.T[::-1]))
        best[better] = np.column_stack([first, second, np.full(len(nodes), k)])[better]
        least[better] = nodes[better]
    return best


def _lay(plane: Plane, mean: np.ndarray, root: np.ndarray, grid: Grid) -> Laid:
    at = mean + np.einsum("kj,nij->kni", grid.nodes, root)
    return Laid(mean, root, at, *plane.look(at, root, grid))


def _reaching(wide: Laid, found: Weighed, rows: np.ndarray, first: np.ndarray | int) -> np.ndarray:
    """Roots of the covariances of the tilted density, longer where mass reaches farther than the nodes would.

    Along one side of such a grid both numbers change, along the other only the one that is not `first`.
    """
    covariance = found.covariance[rows]
    root = np.linalg.cholesky(covariance)
    if np.any(first):
        other = np.linalg.cholesky(covariance[:, ::-1, ::-1])[:, ::-1, ::-1]
        root = np.where(np.reshape(first, (-1, 1, 1)) == 0, root, other)
    t = np.abs(np.einsum("nij,knj->kni", np.linalg.inv(root), wide.at - found.mean[rows]))
    log_w = wide.log_message + wide.log_cavity
    reach = np.where((log_w > log_w.max(axis=0) - 1.3 * BORDER)[..., None], t, 0.0).max(axis=0)
    return root * np.maximum(reach / np.abs(_CLOSE.nodes).max(), 1.0)[:, None]


def _some(laid: Laid, rows: np.ndarray) -> Laid:
    return Laid(laid.mean[rows], laid.root[rows], *(a[:, rows] for a in laid[2:]))


def _some_sums(sums: Summed, rows: np.ndarray) -> Summed:
    first, second = sums.moments
    log_z = None if sums.log_z is None else sums.log_z[rows]
    return Summed((first[rows], second[rows]), log_z, sums.covariance[rows], sums.doubt[rows])


def _usable(covariance: np.ndarray) -> np.ndarray:
    """The rows whose covariance nodes can be laid by."""
    a, b, c = covariance[:, 0, 0], covariance[:, 1, 1], covariance[:, 0, 1]
    with np.errstate(invalid="ignore"):
        return (a > 0) & (b > 0) & (a * b - c * c > 1e-10 * a * b) & np.isfinite(a + b)


# ---- sums, and sums over every other node ------------------------------------------------------------------------------
def _sum(plane: Plane, laid: Laid, grid: Grid, to: str | None) -> tuple[Weighed, Summed]:
    """The moments by all nodes, and their distance from those by every other node and by every fourth."""
    log_w = laid.log_message + laid.log_cavity
    all_ = weighed(laid.mean, laid.root, grid, laid.at, laid.y, log_w, 0.0)
    levels = [read(plane, all_, to)]
    nodes = _every_other(np.ones(len(grid.nodes), dtype=bool), grid)
    part = grid
    with np.errstate(all="ignore"):
        for _ in range(2):
            part = part._replace(nodes=grid.nodes[nodes], log_area=part.log_area + 2 * float(np.log(2.0)))
            some = weighed(laid.mean, laid.root, part, laid.at[nodes], laid.y[nodes], log_w[nodes], 0.0)
            levels.append(read(plane, some, to))
            nodes = _every_other(nodes, grid)
        one, two = _nats(levels[0], levels[1]), _nats(levels[1], levels[2])
        doubt = np.minimum(one, _NEXT * one * one / np.maximum(two, 1e-300))
    doubt = np.where(np.isfinite(doubt), doubt, 1.0) + hidden(plane, laid, log_w, all_.log_total, grid)
    doubt[aliased(plane, laid, log_w, grid) | narrow(all_, grid)] = 1.0
    (first, second), log_z = levels[0]
    return all_, Summed((first, second), log_z, all_.covariance, np.minimum(doubt, 1.0))


def _every_other(nodes: np.ndarray, grid: Grid) -> np.ndarray:
    """Every other one of those of a grid's nodes that are marked, along both sides."""
    square = nodes.reshape(grid.shape)
    first, second = (np.flatnonzero(square.any(axis=k))[::2] for k in (1, 0))
    mask = np.zeros_like(square)
    mask[np.ix_(first, second)] = True
    return mask.reshape(-1)


def _nats(a: tuple, b: tuple) -> np.ndarray:
    """Nats between two readings: of moments, to second order; of log Z, the square of the difference."""
    if a[1] is not None:
        return (a[1] - b[1]) ** 2
    (m, v), (other_m, other_v) = a[0], b[0]
    if v.ndim == 1:
        return 0.5 * (m - other_m) ** 2 / v + 0.25 * np.log(other_v / v) ** 2
    fine = _usable(v)
    safe = np.where(fine[:, None, None], v, np.eye(2))
    inverse = np.linalg.inv(safe)
    gap, ratio = other_m - m, inverse @ (other_v - v)
    kl = 0.5 * np.einsum("ni,nij,nj->n", gap, inverse, gap) + 0.25 * np.einsum("nij,nji->n", ratio, ratio)
    return np.where(fine, kl, np.inf)
