"""A Gaussian cavity of scores times one of their softmax probabilities, ``exp(z_k) / (1 + sum exp(z))``.

The last category has the score 0, so K categories are K - 1 scores. The product is log-concave. One score is a logistic integral;
two and three are summed on an even grid where the cavity is narrow (exact to 1e-9 or so), two by nested quadrature where it is
wider; more than three by 2,048 points that follow the peak and the curvature. The error of the points, the worst of ten random
cavities of nine scores against 131,072 points, in units of the cavity's deviations: where each score has a deviation of about .6,
1e-4 in log Z, 3e-4 in the mean and 5e-4 in the covariance; of 1.5, 2e-3, 5e-3 and 4e-3; of 3, 5e-2, 5e-2 and 1e-1, which
regressions meet in first sweeps only (docs/decisions/0050).
"""

from __future__ import annotations

import numpy as np

from heliograph.factors.integrals.label import label_log_z, label_site
from heliograph.factors.integrals.logistic import logistic_tilt
from heliograph.factors.integrals.vector_tilt import VectorCavity, VectorTilt
from heliograph.numerics.adaptive_quadrature import adapt, around
from heliograph.numerics.chunks import chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.normal_points import even_grid, spread_points

__all__ = ["softmax_tilt"]

_REACH = 7.6  # deviations: exp(-7.6^2 / 2) is 3e-13
_STEP = 0.75  # of a score, at which the trapezoidal rule errs by exp(-2 pi^2 / step), 4e-12: its poles are pi away
_FINEST = 0.85  # deviations, at which it errs by exp(-2 pi^2 / step^2), 1e-12, for the Gaussian itself
_MOST = {2: 20, 3: 40}  # nodes a dimension, by the number of scores; beyond, nested quadrature of two is cheaper
_POINTS = 1024  # half of the points for more than three scores
_NARROW = 1e-2  # variance of a score
_WIDEST = 1e5  # deviation of a score, beyond which there is no answer: nothing is known there but an order
_FARTHEST = 1e8  # mean of a score, likewise
_NUMBERS = 2**21  # that are in memory at once


def softmax_tilt(cavity: VectorCavity, label: np.ndarray) -> VectorTilt:
    """The tilt of every cavity (n, d) and the probability of its label (n,), one of d + 1."""
    n, d = cavity.mean.shape
    found = VectorTilt(np.full(n, np.nan), np.full((n, d), np.nan), np.full((n, d, d), np.nan))
    near = (np.abs(cavity.root).max(axis=(1, 2)) < _WIDEST) & (np.abs(cavity.mean).max(axis=1) < _FARTHEST)
    if not near.all():  # there is no answer for the others
        index = np.flatnonzero(near)
        if index.size:
            _fill(found, index, softmax_tilt(_some(cavity, index), label[index]))
        return found
    if d == 1:
        sign = np.where(label == 0, 1.0, -1.0)
        _fill(found, np.arange(n), _one_score(cavity, sign))
        return found
    if d > max(_MOST):
        for part in chunks(n, max(1, _NUMBERS // (2 * _POINTS * d))):
            index = np.arange(n)[part]
            _fill(found, index, _by_points(_some(cavity, index), label[index]))
        return found
    nodes = _nodes_needed(cavity.root)
    size = np.where(nodes <= 20, 20, _MOST[d])
    wide = nodes > _MOST[d]
    for count in np.unique(size):
        rows = np.flatnonzero((size == count) & ~wide)
        for part in chunks(rows.size, max(1, _NUMBERS // (int(count) ** d * d))):
            index = rows[part]
            _fill(found, index, _on_grid(_some(cavity, index), label[index], int(count)))
    rows = np.flatnonzero(wide)
    for part in chunks(rows.size, 64):
        index = rows[part]
        how = _nested if d == 2 else _by_points
        _fill(found, index, how(_some(cavity, index), label[index]))
    return found


def _some(cavity: VectorCavity, index: np.ndarray) -> VectorCavity:
    return VectorCavity(*(a[index] for a in cavity))


def _fill(found: VectorTilt, index: np.ndarray, part: VectorTilt) -> None:
    for whole, field in zip(found, part, strict=True):
        whole[index] = field


def _nodes_needed(root: np.ndarray) -> np.ndarray:
    """Nodes a dimension: the poles of the softmax are pi apart in differences of two scores, the last one included."""
    with_last = np.concatenate([root, np.zeros_like(root[:, :1])], axis=1)
    gaps = np.abs(with_last[:, :, None] - with_last[:, None, :]).max(axis=(1, 2, 3))
    step = np.minimum(_FINEST, _STEP / np.maximum(gaps, 1e-300))
    return np.minimum(2.0 * _REACH / step + 1.0, 1e9)


# ---- one score ---------------------------------------------------------------------------------------------------
def _one_score(cavity: VectorCavity, sign: np.ndarray) -> VectorTilt:
    sd = cavity.root[:, 0, 0]
    one = np.ones_like(sd)
    tilt = logistic_tilt(sign * cavity.mean[:, 0], sd**2, one, 0.0 * one)
    excess = np.where(sd > 0, sd**2 * tilt.bend, 0.0)
    return VectorTilt(tilt.log_z, (sd * sign * tilt.slope)[:, None], excess[:, None, None])


# ---- the probability and its slope -------------------------------------------------------------------------------
def _log_p(z: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``log`` of the probability of the label, and the probabilities of all but the last, at scores (n, q, d)."""
    top = np.maximum(z.max(axis=-1), 0.0)
    e = np.exp(z - top[..., None])
    total = e.sum(axis=-1) + np.exp(-top)
    own = np.where(
        (label < z.shape[-1])[:, None],
        np.take_along_axis(z, np.minimum(label, z.shape[-1] - 1)[:, None, None], axis=-1)[..., 0],
        0.0,
    )
    return own - top - np.log(total), e / total[..., None]


def _hot(label: np.ndarray, d: int) -> np.ndarray:
    return (label[:, None] == np.arange(d)).astype(float)


def _peak(cavity: VectorCavity, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the tilted t is densest, and a root of the inverse curvature there; damped Newton steps."""
    mean, root = cavity.mean, cavity.root
    n, d = mean.shape
    hot, t = _hot(label, d), np.zeros((n, d))

    def height(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        l, p = _log_p((mean + np.einsum("nij,nj->ni", root, t))[:, None], label)
        return l[:, 0] - 0.5 * (t * t).sum(axis=1), p[:, 0]

    value, p = height(t)
    for _ in range(100):
        slope = np.einsum("nji,nj->ni", root, hot - p) - t
        bend = np.eye(d) + _curvature(root, p)
        step = np.linalg.solve(bend, slope[..., None])[..., 0]
        gain = (slope * step).sum(axis=1)
        if (gain < 1e-12).all():
            break
        size = np.ones(n)
        for _ in range(30):
            new, _ = height(t + size[:, None] * step)
            bad = new < value + 1e-4 * size * gain - 1e-12 * (1.0 + np.abs(value))
            if not bad.any():
                break
            size = np.where(bad, 0.5 * size, size)
        t = t + size[:, None] * step
        value, p = height(t)
    inverse = np.linalg.inv(np.eye(d) + _curvature(root, p))
    return t, np.linalg.cholesky(0.5 * (inverse + np.swapaxes(inverse, 1, 2)))


def _curvature(root: np.ndarray, p: np.ndarray) -> np.ndarray:
    """``L' (diag p - p p') L``."""
    scaled = np.einsum("nij,ni->nij", root, p)
    first = np.einsum("nji,njk->nik", root, scaled)
    mean = np.einsum("nji,nj->ni", root, p)
    return first - mean[:, :, None] * mean[:, None, :]


def _summed(cavity: VectorCavity, label: np.ndarray, t: np.ndarray, log_w: np.ndarray) -> VectorTilt:
    """The tilt from nodes t (n, q, d) with the logs of their weights, in which the cavity's density is."""
    z = cavity.mean[:, None] + t @ np.swapaxes(cavity.root, 1, 2)
    l, p = _log_p(z, label)
    log_w = log_w + l
    top = log_w.max(axis=1)
    w = np.exp(log_w - top[:, None])
    total = w.sum(axis=1)
    w /= total[:, None]
    slope = (_hot(label, t.shape[-1])[:, None] - p) @ cavity.root  # of the log factor, along t: its mean is that of t
    mean = np.einsum("nq,nqd->nd", w, slope)
    centre = np.einsum("nq,nqd->nd", w, t)
    excess = np.einsum("nq,nqi,nqj->nij", w, t - centre[:, None], slope - mean[:, None], optimize=True)
    return VectorTilt(top + np.log(total), mean, 0.5 * (excess + np.swapaxes(excess, 1, 2)))


def _on_grid(cavity: VectorCavity, label: np.ndarray, count: int) -> VectorTilt:
    d = cavity.mean.shape[1]
    peak, _ = _peak(cavity, label)
    t = peak[:, None] + even_grid(d, count, _REACH)
    step = 2.0 * _REACH / (count - 1)
    log_w = -0.5 * (t * t).sum(axis=-1) - 0.5 * d * LOG_2PI + d * np.log(step)
    return _summed(cavity, label, t, log_w)


def _by_points(cavity: VectorCavity, label: np.ndarray) -> VectorTilt:
    """Points of the Gaussian at the peak, weighted; a second time by the mean and covariance that the first gave."""
    n, d = cavity.mean.shape
    points = spread_points(d, _POINTS)
    centre, root = _peak(cavity, label)
    tilt = VectorTilt(np.zeros(n), centre, np.zeros((n, d, d)))
    for _ in range(2):
        t = centre[:, None] + points @ np.swapaxes(root, 1, 2)
        log_det = np.log(np.einsum("nii->ni", root)).sum(axis=1)
        log_w = (
            -0.5 * (t * t).sum(axis=-1) + 0.5 * (points * points).sum(axis=-1) + log_det[:, None] - np.log(len(points))
        )
        tilt = _summed(cavity, label, t, log_w)
        spread = np.linalg.eigh(np.eye(d) + tilt.excess)
        kept = np.clip(spread.eigenvalues, 1e-6, 1.0)  # a log-concave factor widens nothing
        wide = np.einsum("nij,nj,nkj->nik", spread.eigenvectors, kept, spread.eigenvectors)
        centre, root = tilt.mean, np.linalg.cholesky(wide)
    return tilt


# ---- two scores under a wide cavity --------------------------------------------------------------------------------
def _nested(cavity: VectorCavity, label: np.ndarray) -> VectorTilt:
    """Quadrature over the first coordinate, and a logistic integral over the second, which is alone in its score.

    With ``z_1 = m_1 + L_11 t_1`` given, the probability of any label is ``exp(a) sigmoid(+-(z_2 - c))`` with a and c of z_1.
    """
    mean, root = cavity.mean, cavity.root
    n = len(mean)
    peak, spread = _peak(cavity, label)
    width = spread[:, 0, 0]
    second = label == 1

    def given(t: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, ...]:
        """What is left over the second coordinate: the log of a constant, a sign, and the cavity of ``sign (z_2 - c)``."""
        z1 = mean[k, 0] + root[k, 0, 0] * t
        c = np.logaddexp(0.0, z1)  # of 1 + exp(z_1)
        sign = np.where(second[k], 1.0, -1.0) + 0.0 * t
        a = np.where(second[k], 0.0, np.where((label == 0)[k], z1, 0.0) - c)
        return a, sign, sign * (mean[k, 1] + root[k, 1, 0] * t - c), root[k, 1, 1] ** 2 + 0.0 * t

    def log_density(d: np.ndarray, k: np.ndarray) -> np.ndarray:
        t = peak[k, 0] + d
        a, _, m, v = given(t, k)
        return a + label_log_z(m.ravel(), v.ravel(), np.ones(m.size)).reshape(m.shape) - 0.5 * t * t

    far = np.full(n, _REACH)
    edges = around(-far, far, np.zeros((n, 1)), np.clip(width, 1e-3, 1.0)[:, None])
    rule = adapt(log_density, edges)
    t1 = rule.of(peak[:, 0]) + rule.offset
    _, sign, m, v = given(t1, rule.row[:, None])
    slope, bend = (f.reshape(m.shape) for f in _slope_and_bend(m.ravel(), v.ravel()))
    r = rule.of(root[:, 1, 1])
    t2, more = sign * r * slope, r**2 * bend  # of the second coordinate given the first: mean, variance less 1
    m1, m2 = rule.mean(t1), rule.mean(t2)
    c1, c2 = t1 - rule.of(m1), t2 - rule.of(m2)
    excess = np.empty((n, 2, 2))
    excess[:, 0, 0] = rule.mean(c1 * c1) - 1.0
    excess[:, 0, 1] = excess[:, 1, 0] = rule.mean(c1 * c2)
    excess[:, 1, 1] = rule.mean(more + c2 * c2)
    return VectorTilt(rule.log_z - 0.5 * LOG_2PI, np.stack([m1, m2], axis=1), excess)


def _slope_and_bend(m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first two derivatives of ``log E sigmoid(z)`` with respect to the mean of N(m, v)."""
    if v.min(initial=1.0) < _NARROW:  # a difference of two nearly equal variances
        tilt = logistic_tilt(m, v, np.ones(m.size), np.zeros(m.size))
        return tilt.slope, tilt.bend
    shift, precision = label_site(m, v, np.ones(m.size))
    ratio = 1.0 / (1.0 + v * precision)
    return ratio * (shift - precision * m), -precision * ratio
