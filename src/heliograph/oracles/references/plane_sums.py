"""Reference beliefs of two unknown numbers by sums over even nodes of the plane, with an estimate of their error.

The error of sums over even nodes of a smooth density falls faster than any power of their spacing. Nodes are laid over the
cavity, then over the tilted density where that is smaller, and closer where every other node gives another result. Rows stay
in doubt where mass may be missed: the output passes the mode of its message between nodes, jumps, or oscillates faster than
the nodes follow, or there is mass at the border of the window (docs/decisions/0067).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.references.plane_nodes import NOTHING, Grid, Plane, Weighed, even_grid, read, weighed

__all__ = ["Summed", "summed"]

_WIDE = even_grid(33, 0.47)  # over the cavity, to 7.5 deviations
_NEAR = even_grid(33, 0.42)  # over the tilted density, to 6.7 deviations or as far as mass reaches
_CLOSE = even_grid(65, 0.21)
_ROWS = {33: 256, 65: 64}  # at once, so that their temporaries stay in the cache
_ENOUGH = 1e-12  # nats of doubt, below which no closer look is taken
_BORDER = 18.0  # nats below the largest weight: more at the border is mass outside that moves moments by 1e-15 nats
_DEEP = 25.0  # nats below the largest weight: smaller weights do not matter
_HIDDEN = 3.0  # nats by which a cell may hold more than its corners show, where something may be hidden in it
_REACH = 0.25  # of the range at its corners, by which the output may go on and turn in a cell
_JUMP = 4.0  # times the steps beside it: a step, or a pole
_PART = 0.05  # of the largest step: smaller ones do not count, as their effect shows at every other node
_FLAT = 1e-6  # of a step, or a value: less is rounding
_NARROW = 0.7  # of the spacing: a bump as wide as this is summed to 1e-4, and its doubt shows it
_NEXT = 4.0  # times the change that the last two doublings of the nodes predict for the next one
_OFF = 0.05  # nats by which the message may differ from an interpolation: a density that is summed well shows less
_LOOKED = np.array([(-5, -2), (-3, 4), (-2, -1), (-1, 1), (0, 0), (1, -3), (2, 2), (4, -4)])  # cells from the heaviest
_BETWEEN = 0.382  # of the way, along both sides
_CUBIC = np.array(  # the weights of four nodes in the cubic through them, at that place
    [np.prod([(_BETWEEN - m) / (k - m) for m in (-1, 0, 1, 2) if m != k]) for k in (-1, 0, 1, 2)]
)


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


class _Laid(NamedTuple):
    """Values at nodes that were laid by a mean and a root of a covariance."""

    mean: np.ndarray
    root: np.ndarray
    at: np.ndarray
    y: np.ndarray
    log_message: np.ndarray
    log_cavity: np.ndarray


def summed(plane: Plane, to: str | None) -> Summed:
    """Moments by sums over even nodes, for rows a few at a time."""
    n, parts = len(plane.mean), []
    for start in range(0, n, _ROWS[33]):
        rows = np.arange(start, min(start + _ROWS[33], n))
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
    laid = _lay(plane, plane.mean, np.linalg.cholesky(plane.covariance), _WIDE)
    found, result = _sum(plane, laid, _WIDE, to)
    open_ = _open(laid, _WIDE)
    result.doubt[open_] = 1.0
    left = np.flatnonzero((result.doubt > _ENOUGH) & ~open_ & _usable(found.covariance))
    for grid in (_NEAR, _CLOSE):
        kept = []
        for start in range(0, len(left), _ROWS[round(len(grid.nodes) ** 0.5)]):
            rows = left[start : start + _ROWS[round(len(grid.nodes) ** 0.5)]]
            some, wide = plane.some(rows), _some(laid, rows)
            near = _lay(some, found.mean[rows], _reaching(wide, found, rows, grid), grid)
            closer, sums = _sum(some, near, grid, to)
            sums.doubt[_outside(wide, near, grid)] = 1.0
            better = np.flatnonzero(sums.doubt < result.doubt[rows])
            result.put(rows[better], _some_sums(sums, better))
            found.mean[rows], found.covariance[rows] = closer.mean, closer.covariance
            plane.n_evaluations += some.n_evaluations
            kept.append(rows[(sums.doubt > _ENOUGH) & _usable(closer.covariance)])
        left = np.concatenate(kept) if kept else left
    return result


def _lay(plane: Plane, mean: np.ndarray, root: np.ndarray, grid: Grid) -> _Laid:
    at = mean + np.einsum("kj,nij->kni", grid.nodes, root)
    return _Laid(mean, root, at, *plane.look(at, root, grid))


def _reaching(wide: _Laid, found: Weighed, rows: np.ndarray, grid: Grid) -> np.ndarray:
    """Roots of the covariances of the tilted density, longer where mass reaches farther than the nodes would."""
    root, edge = np.linalg.cholesky(found.covariance[rows]), np.abs(grid.nodes).max()
    t = np.abs(np.einsum("nij,knj->kni", np.linalg.inv(root), wide.at - found.mean[rows]))
    log_w = wide.log_message + wide.log_cavity
    reach = np.where((log_w > log_w.max(axis=0) - 1.3 * _BORDER)[..., None], t, 0.0).max(axis=0)
    return root * np.maximum(reach / edge, 1.0)[:, None]


def _some(laid: _Laid, rows: np.ndarray) -> _Laid:
    return _Laid(laid.mean[rows], laid.root[rows], *(a[:, rows] for a in laid[2:]))


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
def _sum(plane: Plane, laid: _Laid, grid: Grid, to: str | None) -> tuple[Weighed, Summed]:
    """The moments by all nodes, and their distance from those by every other node and by every fourth."""
    log_w = laid.log_message + laid.log_cavity
    all_ = weighed(laid.mean, laid.root, grid, laid.at, laid.y, log_w, 0.0)
    levels = [read(plane, all_, to)]
    nodes = _every_other(np.ones(len(grid.nodes), dtype=bool), grid)
    part = grid
    with np.errstate(all="ignore"):
        for _ in range(2):
            part = Grid(grid.nodes[nodes], np.ones(nodes.sum(), dtype=bool), part.log_area + 2 * float(np.log(2.0)))
            some = weighed(laid.mean, laid.root, part, laid.at[nodes], laid.y[nodes], log_w[nodes], 0.0)
            levels.append(read(plane, some, to))
            nodes = _every_other(nodes, grid)
        one, two = _nats(levels[0], levels[1]), _nats(levels[1], levels[2])
        doubt = np.minimum(one, _NEXT * one * one / np.maximum(two, 1e-300))
    doubt = np.where(np.isfinite(doubt), doubt, 1.0) + _hidden(plane, laid, log_w, all_.log_total, grid)
    doubt[_aliased(plane, laid, log_w, grid) | _narrow(all_, grid)] = 1.0
    (first, second), log_z = levels[0]
    return all_, Summed((first, second), log_z, all_.covariance, np.minimum(doubt, 1.0))


def _narrow(found: Weighed, grid: Grid) -> np.ndarray:
    """Rows whose density is narrower, in some direction, than the spacing of the nodes can resolve."""
    spacing = grid.nodes[1, 1] - grid.nodes[0, 1]
    fine = np.asarray(np.isfinite(found.inner).all(axis=(1, 2)))
    inner = np.where(fine[:, None, None], found.inner, 0.0)
    return np.linalg.eigvalsh(inner)[:, 0] < (_NARROW * spacing) ** 2


def _every_other(nodes: np.ndarray, grid: Grid) -> np.ndarray:
    """Every other one of those of a grid's nodes that are marked, along both sides."""
    side = round(len(grid.nodes) ** 0.5)
    square = nodes.reshape(side, side)
    k = np.flatnonzero(square.any(axis=1))[::2]
    mask = np.zeros_like(square)
    mask[np.ix_(k, k)] = True
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


# ---- mass between nodes --------------------------------------------------------------------------------------------------
def _open(laid: _Laid, grid: Grid) -> np.ndarray:
    """Rows with mass at the border of the window, or where the function gives no number."""
    side = np.abs(grid.nodes).max(axis=1)
    log_w = laid.log_message + laid.log_cavity
    edge = log_w[side >= side.max() - 1e-9]
    return (edge.max(axis=0) > log_w.max(axis=0) - _BORDER) | (laid.log_message <= 0.5 * NOTHING).any(axis=0)


def _outside(wide: _Laid, near: _Laid, grid: Grid) -> np.ndarray:
    """Rows with noticeable mass outside a smaller window or at its border, or with a missing value."""
    gap = wide.at - near.mean
    t = np.einsum("nij,knj->kni", np.linalg.inv(near.root), gap)
    log_w, top = wide.log_message + wide.log_cavity, (near.log_message + near.log_cavity).max(axis=0)
    edge = np.abs(grid.nodes).max()
    out = np.where(np.abs(t).max(axis=-1) > edge, log_w, -np.inf).max(axis=0)
    return (out > top - _BORDER) | _open(near, grid)


def _hidden(plane: Plane, laid: _Laid, log_w: np.ndarray, log_total: np.ndarray, grid: Grid) -> np.ndarray:
    """The share of the mass that may lie between nodes, where the output may come nearer to the mode of its message; 1 at jumps."""
    side = round(len(grid.nodes) ** 0.5)
    y, w = laid.y.reshape(side, side, -1), log_w.reshape(side, side, -1)
    low, high, massive = (_of_corners(a, how) for a, how in ((y, np.minimum), (y, np.maximum), (w, np.maximum)))
    mode, best = plane.out.peak()
    mode = np.where(np.isfinite(mode), plane.out.look(np.where(np.isfinite(mode), mode, 0.5)[None])[0][0], np.inf)
    reach = _REACH * (high - low)
    i, j, r = np.nonzero((low - reach <= mode) & (high + reach >= mode))
    hidden = np.zeros(y.shape[2])
    log_cavity = laid.log_cavity.reshape(side, side, -1)
    most = best[r] + np.max([log_cavity[i + a, j + b, r] for a in (0, 1) for b in (0, 1)], axis=0)
    some = most > massive[i, j, r] + _HIDDEN
    log_root = np.log(laid.root[:, 0, 0] * laid.root[:, 1, 1])
    share = np.exp(np.minimum(most[some] + (log_root - log_total)[r[some]] + grid.log_area, 0.0))
    np.add.at(hidden, r[some], share)
    hidden[_breaks(y, w)] = 1.0
    return hidden


def _of_corners(a: np.ndarray, how: np.ufunc) -> np.ndarray:
    lines = how(a[1:], a[:-1])
    return how(lines[:, 1:], lines[:, :-1])


def _breaks(y: np.ndarray, log_w: np.ndarray) -> np.ndarray:
    """Rows in which the output steps or bends, at a place with mass, far more than at neighbouring places."""
    top = log_w.max(axis=(0, 1))
    found = np.zeros(y.shape[2], dtype=bool)
    for a, w in ((y, log_w), (y.swapaxes(0, 1), log_w.swapaxes(0, 1))):
        massive = w > top - _DEEP
        step = np.diff(a, axis=0)
        size, bend = np.abs(step), np.abs(np.diff(step, axis=0))
        large, bent = (_PART * x.max(axis=(0, 1)) for x in (size, bend))
        beside = np.maximum.reduce([size[k : len(size) - 4 + k] for k in (0, 1, 3, 4)])
        jump = (size[2:-2] > _JUMP * beside) & (size[2:-2] > large)
        kink = (bend[2:-2] > _JUMP * np.maximum(bend[:-4], bend[4:])) & (bend[2:-2] > bent)
        kink &= bend[2:-2] > _FLAT * size[2:-3]
        found |= (jump & (massive[2:-3] | massive[3:-2])).any(axis=(0, 1)) | (kink & massive[3:-3]).any(axis=(0, 1))
    return found


def _aliased(plane: Plane, laid: _Laid, log_w: np.ndarray, grid: Grid) -> np.ndarray:
    """Rows whose output, at a few places between nodes, differs from cubic interpolation: it oscillates unseen."""
    side, n = round(len(grid.nodes) ** 0.5), len(laid.mean)
    heaviest = np.argmax(log_w, axis=0)
    cell = np.stack([heaviest // side, heaviest % side], axis=-1) + _LOOKED[:, None]
    cell = np.clip(cell, 1, side - 3)  # (8, n, 2)
    spacing = grid.nodes[1, 1] - grid.nodes[0, 1]
    place = grid.nodes[cell[..., 0] * side + cell[..., 1]] + _BETWEEN * spacing
    y, log_message, _ = plane.look(laid.mean + np.einsum("nij,knj->kni", laid.root, place), laid.root, grid)
    steps = np.arange(-1, 3)
    i, j = cell[..., 0, None, None] + steps[:, None], cell[..., 1, None, None] + steps
    around = laid.y[i * side + j, np.arange(n)[:, None, None]]  # (8, n, 4, 4)
    foretold = np.einsum("knij,i,j->kn", around, _CUBIC, _CUBIC)
    gap = np.abs(plane.out.log_message(plane.out.chart.value(foretold)) - log_message)
    fine: np.ndarray = (gap <= _OFF) | (np.abs(y - foretold) <= _FLAT * np.abs(foretold))
    return np.asarray(~fine.all(axis=0))
