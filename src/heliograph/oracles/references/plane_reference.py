"""The reference belief of a deterministic factor of two unknown numbers: moments on even nodes of the plane.

Nodes are spread over the cavity, finer ones where something is sharper than they see. Where the tilted density is a needle
beside the cavity, iterated linearisation says where to look.
"""

from __future__ import annotations

import numpy as np

from heliograph.oracles.references.linearisation import linearise
from heliograph.oracles.references.output import output_of
from heliograph.oracles.references.plane_nodes import (
    LEAST,
    Grid,
    Plane,
    Seen,
    Weighed,
    even_grid,
    moments_of,
    read,
    weigh,
)
from heliograph.oracles.references.plane_sums import VOUCHED, Summed, summed
from heliograph.oracles.references.record import Question, Reference

__all__ = ["two_unknown"]

_NARROW = (0.45, 0.35)  # deviations of the cavity: a needle between two nodes seems as wide as 0.25
_THIN = (0.15, 0.12)  # the same between finer nodes, which see a needle as wide as 0.1
_WIDER = 1.3  # than linearisation says
_ROUGH = (-np.log(1e-3), -np.log(1e-2))  # nats between all nodes and every other: where finer ones begin to count
_BLIND = 0.03  # nats of doubt where the nodes do not cover the whole plane
_CLEAR = 1e-6  # nats of doubt that mean nothing
_BLOCK = 256  # rows at once where nodes are fine


_EVEN = even_grid(17, 0.5)  # over the cavity
_FINE = even_grid(43, 0.2)  # the same where something is sharper than that
_NEAR = even_grid(13, 0.7)  # over a needle


def _doubt(found: Weighed, grid: Grid) -> np.ndarray:
    """Nats between what all nodes say of each coordinate and what every other one says, the larger of the two."""
    w = found.w[grid.half]
    total = w.sum(axis=0)
    moved, inner = moments_of(grid.nodes[grid.half], w / np.where(total > 0, total, 1.0))
    all_v, half_v = (np.diagonal(a, axis1=1, axis2=2) for a in (found.inner, inner))
    gap2 = (moved - found.moved) ** 2 / all_v
    kl = 0.5 * gap2 + 0.25 * np.log(half_v / all_v) ** 2
    return np.where(total > 1e-6, kl.max(axis=1), 1.0)  # every other node sees nothing: that is doubt enough


def two_unknown(question: Question) -> Reference:
    """Reference beliefs of an unknown input or of the output."""
    plane, to = Plane(question, output_of(question.out)), question.to
    known = summed(plane, to)
    determinant = _determinant(plane, known.covariance)
    left = np.flatnonzero(known.doubt > VOUCHED)
    if len(left):
        some = plane if len(left) == len(known.doubt) else plane.some(left)
        before = 0 if some is not plane else plane.n_evaluations
        found, seen = _look(some, to)
        plane.n_evaluations += 0 if some is plane else some.n_evaluations - before
        known.put(left, Summed(seen.moments, seen.log_z, found.covariance, seen.doubt))
        determinant[left] = found.inner[:, 0, 0] * found.inner[:, 1, 1] - found.inner[:, 0, 1] ** 2
    summaries = np.stack([np.log(determinant), np.log(known.doubt + _CLEAR)], axis=1)
    sure = known.doubt.copy()
    sure[left] = 1.0
    return Reference(known.moments, summaries, known.log_z, known.doubt, plane.n_evaluations, sure)


def _determinant(plane: Plane, covariance: np.ndarray) -> np.ndarray:
    """Of the belief's covariance in units of the cavity's, as nodes over the cavity see it."""
    inverse = np.linalg.inv(np.linalg.cholesky(plane.covariance))
    with np.errstate(invalid="ignore"):
        return np.linalg.det(inverse @ covariance @ np.swapaxes(inverse, 1, 2) + LEAST**2 * np.eye(2))


def _look(plane: Plane, to: str | None) -> tuple[Weighed, Seen]:
    """The moments by few nodes, or by finer ones where these are too coarse; their errors are not guaranteed."""
    found = weigh(plane, plane.mean, plane.covariance, _EVEN)
    seen = Seen(*read(plane, found, to), _doubt(found, _EVEN))
    share = np.maximum(_share(_least_deviation(found), _NARROW), _share(-np.log(seen.doubt + 1e-300), _ROUGH))
    rough = np.flatnonzero(share > 0)
    for start in range(0, len(rough), _BLOCK):
        rows = rough[start : start + _BLOCK]
        some = plane.some(rows)
        _mix(seen, rows, share[rows], _look_closer(some, to))
        plane.n_evaluations += some.n_evaluations
    return found, seen


def _look_closer(plane: Plane, to: str | None) -> Seen:
    """By finer nodes over the cavity; where even they see only a needle, by nodes where linearisation says it is."""
    found = weigh(plane, plane.mean, plane.covariance, _FINE)
    seen = Seen(*read(plane, found, to), _doubt(found, _FINE))
    share = _share(_least_deviation(found), _THIN)
    thin = np.flatnonzero(share > 0)
    if len(thin):
        few = plane.some(thin)
        line = linearise(few.question, few.out)
        near = weigh(few, line.update.mean, _WIDER**2 * line.update.covariance, _NEAR)
        # linearisation finds one mode and misses another: the whole plane was not covered
        doubt = np.maximum(_doubt(near, _NEAR), _BLIND)
        _mix(seen, thin, share[thin], Seen(*read(few, near, to), doubt))
        plane.n_evaluations += few.n_evaluations + line.n_evaluations
    return seen


def _mix(seen: Seen, rows: np.ndarray, share: np.ndarray, other: Seen) -> None:
    """Go over to what others saw of some rows, in place and without a jump: what is learned is a smooth function."""
    pairs = [*zip(seen.moments, other.moments, strict=True), (seen.doubt, other.doubt)]
    if seen.log_z is not None and other.log_z is not None:
        pairs.append((seen.log_z, other.log_z))
    for a, b in pairs:
        a[rows] += share.reshape(-1, *[1] * (a.ndim - 1)) * (b - a[rows])


def _share(ratio: np.ndarray, ends: tuple[float, float]) -> np.ndarray:
    """From 0 to 1 between two ends, so that what is learned is a smooth function."""
    return np.clip((ends[0] - ratio) / (ends[0] - ends[1]), 0.0, 1.0)


def _least_deviation(found: Weighed) -> np.ndarray:
    """The smallest deviation in any direction, in those of the nodes."""
    a, b, c = found.inner[:, 0, 0], found.inner[:, 1, 1], found.inner[:, 0, 1]
    least = 0.5 * (a + b - np.sqrt((a - b) ** 2 + 4 * c * c))
    return np.sqrt(np.maximum(least, 0.0))
