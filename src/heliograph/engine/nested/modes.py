"""The modes of the hyper-parameters' posterior: where climbs from the middle of the prior and from other places end.

A climb costs five to ten runs of EP, so it is not started from every place. Numbers of either sign are where posteriors have two
modes most often (a coefficient and its negative, two roots of what was seen): one number that is no scale is climbed alone from
both sides whatever the slopes say, and of several the mirror image of a mode is looked at if they may have either sign. Scales
are climbed only where the evidence does not rise towards a mode that is known.
"""

from __future__ import annotations

import numpy as np

from heliograph.engine.nested.points import Evaluator, Point
from heliograph.numerics.exploring.climbing import Frame, Peak, climb, whiten

__all__ = ["best_point", "find_modes"]

_APART = 3.0  # whitened distance from a mode, beyond which another start is worth a look
_SAME = 1.5  # within which a climb has come to a mode that is known
_SIDES = 1.6  # widths of the prior from its middle to starts on both sides of one number
_CORNERS = 1.3  # and to those in the corners of several
_TOP = 1e-3  # nats per dimension, below which the best value has been reached
_ALIKE = 10.0  # nats: a mirror image no farther below its mode is climbed from


def best_point(evaluator: Evaluator) -> Point:
    """The highest mode that several climbs find, and the climb to it carried on to its top."""
    frame, top = find_modes(evaluator)[0]
    if evaluator.late():
        return top
    peak = climb(evaluator.at, top.u, evaluator.width, inverse=frame.axes @ frame.axes.T, enough=_TOP)
    return peak.top  # type: ignore[return-value]


def find_modes(evaluator: Evaluator) -> list[tuple[Frame, Point]]:
    """The modes that climbs from several places end at, with whitened coordinates, the highest first."""
    width = evaluator.width
    frames: list[tuple[Frame, Point]] = []

    def known(u: np.ndarray) -> bool:
        return evaluator.late() or any(np.linalg.norm(f.whitened(u)) < _SAME for f, _ in frames)

    def settle(peak: Peak) -> None:
        frame, top = whiten(evaluator.at, peak, width)
        if top is not peak.top and not known(top.u):  # the climb ended at a point that is no mode
            frame, top = whiten(evaluator.at, climb(evaluator.at, top.u, width), width)
        frames.append((frame, top))  # type: ignore[arg-type]

    settle(climb(evaluator.at, evaluator.centre, width, known=known))
    for place, inverse in [*_mirrored(evaluator, frames[0][0]), *_starts(evaluator, frames[0][0])]:
        apart = _APART if inverse is None else _SAME
        if evaluator.late() or min(np.linalg.norm(f.whitened(place)) for f, _ in frames) < apart:
            continue
        here = evaluator.at(place, True)
        in_vain = _rises_to_one if inverse is None else _is_low
        if not here.good or (not (inverse is None and _is_alone(evaluator)) and in_vain(here, frames)):
            continue
        peak = climb(evaluator.at, place, width, known=known, inverse=inverse)
        if np.isfinite(peak.top.log_density) and not known(peak.top.u):
            settle(peak)
    return sorted(frames, key=lambda f: -f[1].log_density)


def _is_alone(evaluator: Evaluator) -> bool:
    """Whether there is one number, of either sign."""
    return len(evaluator.signed) == 1 and bool(evaluator.signed[0])


def _starts(evaluator: Evaluator, first: Frame) -> list[tuple[np.ndarray, None]]:
    """Far to both sides of one number and half way there, in three corners of several."""
    d, width, centre = len(evaluator.width), evaluator.width, evaluator.centre
    if d == 1:
        ends = [centre - _SIDES * width, centre + _SIDES * width]
        return [(place, None) for end in ends for place in (end, 0.5 * (end + first.centre))]
    signs = np.array([[1, 1, -1], [1, -1, 1], [1, -1, -1]])  # columns of a Hadamard matrix
    return [(centre + _CORNERS * width * np.resize(signs[:, k], d), None) for k in range(3)]


def _mirrored(evaluator: Evaluator, first: Frame) -> list[tuple[np.ndarray, np.ndarray]]:
    """A mode with one number of either sign on the other side of its prior's middle, and the inverse curvature there."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for k in np.flatnonzero(evaluator.mirrored):
        sign = np.ones(len(first.centre))
        sign[k] = -1.0
        place = first.centre + np.where(sign < 0, 2.0 * (evaluator.middle - first.centre), 0.0)
        axes = sign[:, None] * first.axes
        found.append((place, axes @ axes.T))
    return found


def _is_low(here: Point, frames: list[tuple[Frame, Point]]) -> bool:
    """Whether a mirror image of the first mode is far below it: then there is no symmetry."""
    return here.log_density < frames[0][1].log_density - _ALIKE


def _rises_to_one(here: Point, frames: list[tuple[Frame, Point]]) -> bool:
    """Whether the log density rises from here towards a mode that is known, and that is higher."""
    for frame, top in frames:
        towards = frame.centre - here.u
        if top.log_density > here.log_density and float(here.gradient @ towards) > 0:
            return True
    return False
