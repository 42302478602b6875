"""The mode of a log density by BFGS, and its curvature there by differences of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

__all__ = ["Evaluated", "Frame", "Peak", "climb", "whiten"]

_ENOUGH = 0.02  # nats per dimension that the quadratic model still promises, below which a climb ends
_MOST = 40  # steps
# widths of the prior that one step may go in any coordinate: alone, and of several, where longer ones often passed the mode
_LONGEST = (1.5, 1.0)
_FIRST = 0.5  # and the first step, when nothing is known of the curvature
_SHORTEST = 1e-3  # of a step, below which a line search gives up
_FARTHEST = 0.7  # widths of the prior that a look at the curvature goes in any coordinate
# standard deviations that a look at the curvature goes: in two dimensions often near a place of the lattice; in more only one,
# since steep log scales looked narrow from farther off (log evidence .23 off on one of four random densities)
_LOOK = {2: 1.3}
_DIFFERENT = 5.0  # times the curvature that a climb saw, or a fifth of it: reason to measure it once more
_BENT = 3.0  # times the mean curvature along a step, or a third of it: more than that no cubic is believed
_HIGHER = 0.05  # nats that one of the points may be above what a climb took for the top
_MEASURED = 3  # times, at the most
_FLAT = 1.0 / 9.0  # least curvature that is believed: a standard deviation is at most 3 widths of the prior


class Evaluated(Protocol):
    """A point at which the density was evaluated."""

    @property
    def u(self) -> np.ndarray:
        """Where, ``(d,)``."""
        ...

    @property
    def log_density(self) -> float:
        """The log density there; -inf where it could not be computed."""
        ...

    @property
    def gradient(self) -> np.ndarray:
        """Its gradient, ``(d,)``; NaN where it was not wanted."""
        ...

    @property
    def bend(self) -> np.ndarray | None:
        """A guess at its second derivative along every coordinate, ``(d,)``, where there is one."""
        ...


Evaluate = Callable[[np.ndarray, bool], Evaluated]  # at u, with its gradient or without


class Peak(NamedTuple):
    """The end of a climb."""

    top: Evaluated
    inverse: np.ndarray  # (d, d) what BFGS knows of the inverse curvature
    n_steps: int


class Frame(NamedTuple):
    """Whitened coordinates around a mode: ``u = centre + axes @ z`` with curvature near 1 in every direction of z."""

    centre: np.ndarray  # (d,)
    axes: np.ndarray  # (d, d)
    curvature: np.ndarray  # (d,) eigenvalues in units of the prior's width, before any was raised
    flat: np.ndarray  # (d,) which directions are flat, or fall on one side only

    def whitened(self, u: np.ndarray) -> np.ndarray:
        """The coordinates z of points ``(..., d)``."""
        return np.linalg.solve(self.axes, (u - self.centre)[..., None])[..., 0]

    def at(self, z: np.ndarray) -> np.ndarray:
        """The points u of coordinates ``(..., d)``."""
        return self.centre + z @ self.axes.T


def climb(
    evaluate: Evaluate,
    start: np.ndarray,
    width: np.ndarray,
    known: Callable[[np.ndarray], bool] | None = None,
    inverse: np.ndarray | None = None,
    enough: float = _ENOUGH,
) -> Peak:
    """Climb from `start` to a mode.

    Parameters
    ----------
    evaluate
        The log density and its gradient at a point.
    start
        Where to begin, ``(d,)``.
    width
        The scale of every coordinate, ``(d,)``.
    known
        Whether a point is in a region that is known already, where the climb may end.
    inverse
        The inverse curvature, ``(d, d)``, if something is known of it.
    enough
        Nats per dimension that the quadratic model still promises, below which the climb ends.
    """
    here, fresh = evaluate(start, True), inverse is None
    if inverse is None:
        bend = np.zeros(len(width)) if here.bend is None else np.where(np.isfinite(here.bend), -here.bend, 0.0)
        inverse = np.diag(1.0 / np.maximum(bend, 2.0 / width**2))
    for step in range(_MOST):
        slope = here.gradient
        if known is not None and known(here.u):
            return Peak(here, inverse, step)
        if not fresh and slope @ inverse @ slope < enough * len(width):
            return Peak(here, inverse, step)
        there = _search(evaluate, here, inverse @ slope, (_FIRST if fresh else _LONGEST[len(width) > 1]) * width)
        moved, turned = there.u - here.u, here.gradient - there.gradient
        if there is here or not np.isfinite(there.log_density):
            return Peak(here, inverse, step)
        inverse = _updated(inverse, moved, turned, fresh)
        here, fresh = there, False
    return Peak(here, inverse, _MOST)


def _search(evaluate: Evaluate, here: Evaluated, step: np.ndarray, longest: np.ndarray) -> Evaluated:
    """A point further up, along a step that is shortened until it is."""
    step = step / max(1.0, float(np.max(np.abs(step) / longest)))
    scale = 1.0
    while True:
        there = evaluate(here.u + scale * step, True)
        gain = 1e-4 * scale * float(step @ here.gradient)
        if there.log_density > here.log_density + gain - 1e-6:
            return there
        scale *= 0.4
        if scale < _SHORTEST:
            return here


def _updated(inverse: np.ndarray, moved: np.ndarray, turned: np.ndarray, fresh: bool) -> np.ndarray:
    """The BFGS update of the inverse curvature; where the density curves upwards, longer steps."""
    along = float(moved @ turned)
    if along <= 1e-10:
        return 2.0 * inverse
    if fresh:  # as long as what was seen along the first step
        inverse = inverse * np.clip(along / float(turned @ inverse @ turned), 0.2, 5.0)
    left = np.eye(len(moved)) - np.outer(moved, turned) / along
    return left @ inverse @ left.T + np.outer(moved, moved) / along


def whiten(evaluate: Evaluate, peak: Peak, width: np.ndarray) -> tuple[Frame, Evaluated]:
    """Whitened coordinates at a mode, from gradients about a standard deviation away along every direction.

    The directions are those in which a climb saw unit curvature: along coordinates, a step of the size of a standard deviation
    would go far down wherever two of them are correlated. Where the curvature turns out to be very different from what the climb
    saw, or a point is higher than its top, it is measured once more, in directions of its own. Gives the frame, and the highest
    point seen.
    """
    d, top = len(width), peak.top
    look = _LOOK.get(d, 1.0)
    if d == 1 and peak.n_steps > 1:  # the last two gradients of a climb along a line have shown the curvature
        curvature = width**2 / peak.inverse[0]
        axes = (width / np.sqrt(np.maximum(curvature, _FLAT)))[:, None]
        return Frame(top.u, axes, curvature, curvature < _FLAT), top
    root = np.linalg.cholesky(peak.inverse)
    for _ in range(_MEASURED):
        root = root * np.minimum(1.0, _FARTHEST / np.max(np.abs(root) / width[:, None], axis=0))
        hessian, seen = _curvature(evaluate, top, look * root)
        hessian /= look**2
        best = max([top, *seen], key=lambda e: e.log_density)
        back = np.linalg.inv(root)
        frame = _frame(best.u, back.T @ hessian @ back, width)
        found = np.linalg.eigvalsh(hessian)
        as_seen = found[0] > 1.0 / _DIFFERENT and found[-1] < _DIFFERENT
        if as_seen and best.log_density < top.log_density + _HIGHER:
            break
        root, top = frame.axes, best
    return frame, best


def _frame(centre: np.ndarray, hessian: np.ndarray, width: np.ndarray) -> Frame:
    """Coordinates in which a curvature is 1, and no direction longer than is believed."""
    values, vectors = np.linalg.eigh(hessian * np.outer(width, width))
    axes = width[:, None] * vectors / np.sqrt(np.maximum(values, _FLAT))
    return Frame(centre, axes, values, values < _FLAT)


def _curvature(evaluate: Evaluate, top: Evaluated, root: np.ndarray) -> tuple[np.ndarray, list[Evaluated]]:
    """Minus the second derivatives at a point in the coordinates ``u = top.u + root @ z``, and the points that were looked at.

    One point per direction: the values and the slopes at its two ends determine a cubic, and so the bend at the first of them.
    """
    d = len(root)
    hessian, seen = np.zeros((d, d)), []
    for k in range(d):
        for sign in (1.0, -1.0):
            there = evaluate(top.u + sign * root[:, k], True)
            if np.isfinite(there.log_density):
                break
        if not np.isfinite(there.log_density):
            hessian[k, k] = 1.0
            continue
        seen.append(there)
        hessian[k] = sign * (top.gradient - there.gradient) @ root
        rise = sign * float(top.gradient @ root[:, k])
        mean = hessian[k, k]  # of the curvature, along the way
        if mean > 0:
            at_top = -2.0 * mean - 6.0 * (there.log_density - top.log_density - rise)
            hessian[k, k] = np.clip(at_top, mean / _BENT, _BENT * mean)
    return 0.5 * (hessian + hessian.T), seen
