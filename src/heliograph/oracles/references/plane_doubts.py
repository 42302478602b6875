"""Checks for mass that sums over even nodes of the plane may miss, and whether closer nodes would find it.

Checked are mass at the border of the window, densities narrower than the spacing, and outputs that pass the mode of their
message between nodes, step, bend sharply, or oscillate faster than the nodes follow (docs/decisions/0067).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heliograph.oracles.references.plane_nodes import NOTHING, Grid, Plane, Weighed

__all__ = ["BORDER", "Laid", "aliased", "closer_along", "hidden", "narrow", "open_rows", "outside"]

BORDER = 18.0  # nats below the largest weight: more at the border is mass outside that moves moments by 1e-15 nats
_DEEP = 25.0  # nats below the largest weight: smaller weights do not matter
_HIDDEN = 3.0  # nats by which a cell may hold more than its corners show, where something may be hidden in it
_REACH = 0.25  # of the range at its corners, by which the output may go on and turn in a cell
_JUMP = 4.0  # times the steps beside it: a step, or a pole
_PART = 0.05  # of the largest step: smaller ones do not count, as their effect shows at every other node
_FLAT = 1e-6  # of a step, or a value: less is rounding
_NARROW = 0.7  # of the spacing: a bump as wide as this is summed to 1e-4, and its doubt shows it
_OFF = 0.05  # nats by which the message may differ from an interpolation: a density that is summed well shows less
_LOOKED = np.array([(-5, -2), (-3, 4), (-2, -1), (-1, 1), (0, 0), (1, -3), (2, 2), (4, -4)])  # cells from the heaviest
_BETWEEN = 0.382  # of the way, along both sides
_CUBIC = np.array(  # the weights of four nodes in the cubic through them, at that place
    [np.prod([(_BETWEEN - m) / (k - m) for m in (-1, 0, 1, 2) if m != k]) for k in (-1, 0, 1, 2)]
)
_TIMES = (1, 2, 4)  # times as close as the nodes: the spacings that lines are looked at with


class Laid(NamedTuple):
    """Values at nodes that were laid by a mean and a root of a covariance."""

    mean: np.ndarray
    root: np.ndarray
    at: np.ndarray
    y: np.ndarray
    log_message: np.ndarray
    log_cavity: np.ndarray


def open_rows(laid: Laid, grid: Grid) -> np.ndarray:
    """Rows with mass at the border of the window, or where the function gives no number."""
    side = np.abs(grid.nodes).max(axis=1)
    log_w = laid.log_message + laid.log_cavity
    edge = log_w[side >= side.max() - 1e-9]
    return (edge.max(axis=0) > log_w.max(axis=0) - BORDER) | (laid.log_message <= 0.5 * NOTHING).any(axis=0)


def outside(wide: Laid, near: Laid, grid: Grid) -> np.ndarray:
    """Rows with noticeable mass outside a smaller window or at its border, or with a missing value."""
    gap = wide.at - near.mean
    t = np.einsum("nij,knj->kni", np.linalg.inv(near.root), gap)
    log_w, top = wide.log_message + wide.log_cavity, (near.log_message + near.log_cavity).max(axis=0)
    edge = np.abs(grid.nodes).max()
    out = np.where(np.abs(t).max(axis=-1) > edge, log_w, -np.inf).max(axis=0)
    return (out > top - BORDER) | open_rows(near, grid)


def hidden(plane: Plane, laid: Laid, log_w: np.ndarray, log_total: np.ndarray, grid: Grid) -> np.ndarray:
    """The share of the mass that may lie between nodes, where the output may come nearer to the mode of its message; 1 at jumps."""
    y, w = laid.y.reshape(*grid.shape, -1), log_w.reshape(*grid.shape, -1)
    low, high, massive = (_of_corners(a, how) for a, how in ((y, np.minimum), (y, np.maximum), (w, np.maximum)))
    mode, best = plane.out.peak()
    mode = np.where(np.isfinite(mode), plane.out.look(np.where(np.isfinite(mode), mode, 0.5)[None])[0][0], np.inf)
    reach = _REACH * (high - low)
    i, j, r = np.nonzero((low - reach <= mode) & (high + reach >= mode))
    within = np.zeros(y.shape[2])
    log_cavity = laid.log_cavity.reshape(*grid.shape, -1)
    most = best[r] + np.max([log_cavity[i + a, j + b, r] for a in (0, 1) for b in (0, 1)], axis=0)
    some = most > massive[i, j, r] + _HIDDEN
    log_root = np.log(laid.root[:, 0, 0] * laid.root[:, 1, 1])
    share = np.exp(np.minimum(most[some] + (log_root - log_total)[r[some]] + grid.log_area, 0.0))
    np.add.at(within, r[some], share)
    within[_breaks(y, w) | _breaks(y.swapaxes(0, 1), w.swapaxes(0, 1))] = 1.0
    return within


def _of_corners(a: np.ndarray, how: np.ufunc) -> np.ndarray:
    lines = how(a[1:], a[:-1])
    return how(lines[:, 1:], lines[:, :-1])


def _breaks(y: np.ndarray, log_w: np.ndarray) -> np.ndarray:
    """Rows in which the output steps or bends along the first axis, at a place with mass, far more than at neighbouring places."""
    massive = log_w > log_w.max(axis=(0, 1)) - _DEEP
    step = np.diff(y, axis=0)
    size, bend = np.abs(step), np.abs(np.diff(step, axis=0))
    large, bent = (_PART * x.max(axis=(0, 1)) for x in (size, bend))
    beside = np.maximum.reduce([size[k : len(size) - 4 + k] for k in (0, 1, 3, 4)])
    jump = (size[2:-2] > _JUMP * beside) & (size[2:-2] > large)
    kink = (bend[2:-2] > _JUMP * np.maximum(bend[:-4], bend[4:])) & (bend[2:-2] > bent)
    kink &= bend[2:-2] > _FLAT * size[2:-3]
    found: np.ndarray = (jump & (massive[2:-3] | massive[3:-2])).any(axis=(0, 1)) | (kink & massive[3:-3]).any(
        axis=(0, 1)
    )
    return found


def closer_along(plane: Plane, laid: Laid, grid: Grid, root: np.ndarray) -> np.ndarray:
    """How many times closer nodes laid by `root` must be along each side ``(n, 2)``, so that the output does not break.

    This is looked at on the two lines through the heaviest node. 0 means that the output breaks at every spacing: closer
    nodes help with a bend, but not with a kink.
    """
    most, n = _TIMES[-1], len(root)
    heaviest = laid.at[np.argmax(laid.log_message + laid.log_cavity, axis=0), np.arange(n)]
    own = np.einsum("nij,nj->ni", np.linalg.inv(root), heaviest - laid.mean)
    closer = np.zeros((n, 2), dtype=int)
    finest = grid._replace(spacing=grid.spacing / most)
    for side, (nodes, between) in enumerate(zip(grid.shape, grid.spacing, strict=True)):
        length = most * (nodes - 1) + 1
        t = between / most * (np.arange(length) - 0.5 * (length - 1))
        places = heaviest + (t[:, None] - own[:, side])[..., None] * root[:, :, side]
        y, log_message, log_cavity = plane.look(places, root, finest)
        log_w, smooth = log_message + log_cavity, np.ones(n, dtype=bool)
        for times in reversed(_TIMES):
            some = slice(None, None, most // times)
            smooth &= ~_breaks(y[some, None], log_w[some, None])
            closer[smooth, side] = times
    return closer


def aliased(plane: Plane, laid: Laid, log_w: np.ndarray, grid: Grid) -> np.ndarray:
    """Rows whose output, at a few places between nodes, differs from cubic interpolation: it oscillates unseen."""
    side, n = grid.shape[1], len(laid.mean)
    heaviest = np.argmax(log_w, axis=0)
    cell = np.stack([heaviest // side, heaviest % side], axis=-1) + _LOOKED[:, None]
    cell = np.clip(cell, 1, np.array(grid.shape) - 3)  # (8, n, 2)
    place = grid.nodes[cell[..., 0] * side + cell[..., 1]] + _BETWEEN * grid.spacing
    y, log_message, _ = plane.look(laid.mean + np.einsum("nij,knj->kni", laid.root, place), laid.root, grid)
    steps = np.arange(-1, 3)
    i, j = cell[..., 0, None, None] + steps[:, None], cell[..., 1, None, None] + steps
    around = laid.y[i * side + j, np.arange(n)[:, None, None]]  # (8, n, 4, 4)
    foretold = np.einsum("knij,i,j->kn", around, _CUBIC, _CUBIC)
    gap = np.abs(plane.out.log_message(plane.out.chart.value(foretold)) - log_message)
    fine: np.ndarray = (gap <= _OFF) | (np.abs(y - foretold) <= _FLAT * np.abs(foretold))
    return np.asarray(~fine.all(axis=0))


def narrow(found: Weighed, grid: Grid) -> np.ndarray:
    """Rows whose density is narrower, in some direction, than the spacing of the nodes can resolve."""
    fine = np.asarray(np.isfinite(found.inner).all(axis=(1, 2)))
    inner = np.where(fine[:, None, None], found.inner, 0.0) / np.outer(grid.spacing, grid.spacing)
    return np.linalg.eigvalsh(inner)[:, 0] < _NARROW**2
