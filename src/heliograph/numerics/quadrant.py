"""Normal distributions of two correlated numbers, cut to where both are positive.

In units of their standard deviations the sum p and the difference d of the two numbers are independent, and the quadrant is
``|d| < p``. Given one of them, the moments of the other are closed (a normal cut to an interval, or at a threshold), and the
outer integral runs over the narrower one: over p where the correlation is negative, over d where it is not. So it stays
smooth however close to -1 or 1 the correlation is, and nothing cancels in the far corner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from heliograph.numerics.chunks import chunks
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.panels import DROP, legendre
from heliograph.numerics.truncated_normal import interval, tail

__all__ = ["Quadrant", "quadrant"]

_NODES = 48  # of the outer integral: exact to 1e-11 for a normal density over the window
_LEAST = 1e-13  # variance of the sum or difference in units of one: less is rounding of a correlation of 1
_STEPS = 60  # of golden section and bisection, in the logarithm
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_NEAREST = 1e-14  # of the farthest place: where the search for the mode begins


class Quadrant(NamedTuple):
    """x ~ N(mean, covariance) given that both components are positive."""

    log_mass: np.ndarray  # (n,) log P(x0 > 0, x1 > 0)
    mean: np.ndarray  # (n, 2)
    covariance: np.ndarray  # (n, 2, 2)


class _Sums(NamedTuple):
    """Mass, mean and covariance of (p, d) over a part of the quadrant."""

    log_mass: np.ndarray
    p: np.ndarray
    d: np.ndarray
    pp: np.ndarray
    dd: np.ndarray
    pd: np.ndarray


def quadrant(mean: np.ndarray, covariance: np.ndarray) -> Quadrant:
    """Mass, mean and covariance of normals cut to the positive quadrant, to about 1e-10.

    Parameters
    ----------
    mean, covariance
        Of the normals before the cut, (n, 2) and (n, 2, 2).

    >>> found = quadrant(np.zeros((1, 2)), np.array([[[1.0, -0.5], [-0.5, 1.0]]]))
    >>> np.exp(found.log_mass).round(10)  # 1/4 + arcsin(correlation) / (2 pi)
    array([0.16666667])
    """
    sd = np.sqrt(np.einsum("nii->ni", covariance))
    m = mean / sd
    rho = np.clip(covariance[:, 0, 1] / (sd[:, 0] * sd[:, 1]), -1.0, 1.0)
    mp, md = m[:, 0] + m[:, 1], m[:, 0] - m[:, 1]
    vp, vd = np.maximum(2.0 * (1.0 + rho), _LEAST), np.maximum(2.0 * (1.0 - rho), _LEAST)
    found = np.empty((6, len(m)))
    for rows, sums in ((rho < 0, _over_sum), (rho >= 0, _over_difference)):
        at = np.flatnonzero(rows)
        for part in chunks(len(at)):
            some = at[part]
            found[:, some] = sums(mp[some], vp[some], md[some], vd[some])
    s = _Sums(*found)
    first = np.stack([0.5 * (s.p + s.d), 0.5 * (s.p - s.d)], axis=1) * sd
    own0, own1, across = 0.25 * (s.pp + s.dd + 2 * s.pd), 0.25 * (s.pp + s.dd - 2 * s.pd), 0.25 * (s.pp - s.dd)
    second = np.stack([np.stack([own0, across], axis=1), np.stack([across, own1], axis=1)], axis=1)
    return Quadrant(s.log_mass, first, second * sd[:, :, None] * sd[:, None, :])


def _over_sum(mp: np.ndarray, vp: np.ndarray, md: np.ndarray, vd: np.ndarray) -> _Sums:
    """Integrate over ``p > 0``; given it, d is cut to ``-p < d < p``."""
    sd = np.sqrt(vd)

    def height(p: np.ndarray) -> np.ndarray:
        near = -np.abs(md)  # on this side both are tails, whose difference keeps its digits
        upper, lower = log_ndtr((p + near) / sd), log_ndtr((-p + near) / sd)
        mass = upper + np.log(-np.expm1(np.minimum(lower - upper, -1e-300)))
        return mass - 0.5 * (p - mp) ** 2 / vp

    low, high = _window(height, np.maximum(mp, 0.0) + np.abs(md) + 12.0 * (np.sqrt(vp) + sd))
    p, weight = _nodes(low, high)
    shape = p.shape
    wide = [np.broadcast_to(a[:, None], shape).reshape(-1) for a in (md / vd, 1.0 / vd)]
    inner = interval(-p.reshape(-1), p.reshape(-1), *wide)
    log_p = inner.log_mass.reshape(shape) + _log_normal(p, mp, vp) + np.log(weight)
    return _sums(log_p, p, inner.mean.reshape(shape), None, inner.variance.reshape(shape))


def _over_difference(mp: np.ndarray, vp: np.ndarray, md: np.ndarray, vd: np.ndarray) -> _Sums:
    """Integrate over d on either side of 0; given it, p is cut to ``p > |d|``."""
    sp = np.sqrt(vp)
    log_p, at, inner_mean, inner_variance = [], [], [], []
    for sign in (1.0, -1.0):
        own = sign * md

        def height(t: np.ndarray, own: np.ndarray = own) -> np.ndarray:
            return log_ndtr((mp - t) / sp) - 0.5 * (t - own) ** 2 / vd

        low, high = _window(height, np.maximum(own, 0.0) + 12.0 * np.sqrt(vd))
        t, weight = _nodes(low, high)
        cut = tail((mp[:, None] - t) / sp[:, None])
        log_p.append(cut.log_mass + _log_normal(t, own, vd) + np.log(weight))
        at.append(sign * t)
        inner_mean.append(t + sp[:, None] * cut.mean)
        inner_variance.append(vp[:, None] * cut.variance)
    joined = [np.concatenate(parts, axis=1) for parts in (log_p, inner_mean, at, inner_variance)]
    return _sums(joined[0], joined[1], joined[2], joined[3], None)


def _window(height: Callable[[np.ndarray], np.ndarray], farthest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a density with one mode on ``0 < t < farthest`` is above exp(-`DROP`) of its highest value."""
    low, high = np.log(_NEAREST * farthest), np.log(farthest)
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    ha, hb = height(np.exp(a)), height(np.exp(b))
    for _ in range(_STEPS):
        left = ha >= hb
        low, high = np.where(left, low, a), np.where(left, b, high)
        a, b = np.where(left, high - _GOLDEN * (high - low), b), np.where(left, a, low + _GOLDEN * (high - low))
        new = height(np.exp(np.where(left, a, b)))
        ha, hb = np.where(left, new, hb), np.where(left, ha, new)
    mode = 0.5 * (low + high)
    top = height(np.exp(mode)) - DROP
    ends = []
    for outside in (np.log(_NEAREST * farthest), np.log(farthest)):
        inner, outer = mode, outside
        inside = height(np.exp(outer)) >= top
        for _ in range(_STEPS // 2):
            middle = 0.5 * (inner + outer)
            above = height(np.exp(middle)) >= top
            inner, outer = np.where(above, middle, inner), np.where(above, outer, middle)
        ends.append(np.where(inside, np.exp(outside), np.exp(outer)))
    return np.where(ends[0] <= 2 * _NEAREST * farthest, 0.0, ends[0]), ends[1]


def _nodes(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, w = legendre(_NODES)
    width = (high - low)[:, None]
    return low[:, None] + width * x, width * w


def _log_normal(x: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return -0.5 * ((x - mean[:, None]) ** 2 / variance[:, None] + np.log(variance)[:, None] + LOG_2PI)


def _sums(
    log_p: np.ndarray, p: np.ndarray, d: np.ndarray, p_inside: np.ndarray | None, d_inside: np.ndarray | None
) -> _Sums:
    """Moments over the nodes of the outer integral; the inner variable has a variance of its own at each."""
    top = log_p.max(axis=1)
    w = np.exp(log_p - top[:, None])
    total = w.sum(axis=1)
    w /= total[:, None]

    def expect(values: np.ndarray) -> np.ndarray:
        return np.einsum("nk,nk->n", w, values)

    mean_p, mean_d = expect(p), expect(d)
    gap_p, gap_d = p - mean_p[:, None], d - mean_d[:, None]
    pp, dd, pd = expect(gap_p * gap_p), expect(gap_d * gap_d), expect(gap_p * gap_d)
    if p_inside is not None:
        pp = pp + expect(p_inside)
    if d_inside is not None:
        dd = dd + expect(d_inside)
    return _Sums(top + np.log(total), mean_p, mean_d, pp, dd, pd)
