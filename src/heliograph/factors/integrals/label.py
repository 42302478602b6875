"""The message of a logistic likelihood with a known label: what logistic regression asks for n times a sweep.

A Gaussian cavity N(m, v) times ``sigmoid(z)`` is, moved to ``c = m + v / 2``, a Gaussian times the even bell
``1 / (2 cosh(z / 2))``. For cavities that are not wide the trapezoid rule integrates that with few nodes and almost no
exponentials; very narrow and very wide ones have ways of their own.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.special import expit

from heliograph.factors.integrals.logistic import logistic_tilt
from heliograph.factors.integrals.tilt import gaussian_site
from heliograph.numerics.chunks import chunks

__all__ = ["DIGITS", "FAST_UNTIL", "LIMITS", "label_log_z", "label_site"]

FAST_UNTIL = 512.0  # largest cavity variance of the trapezoid rule: beyond, its nodes overflow
_NARROW = 1e-2  # below this variance the derivatives of log Z are integrated, not the moments
LIMITS = np.array([_NARROW, 0.25, *(2.0 ** np.arange(10))])  # one rule for each class of variance
_COARSE = np.array([_NARROW, 4.0, 64.0, FAST_UNTIL])  # for few rows, where a call costs more than a node
_COARSE_LIST = _COARSE.tolist()
_FEW = 1024
DIGITS = 14.0  # of integrals by the trapezoid rule
_BLOCK = 4096  # rows taken together
_NODES = 65536  # of a block held at once: two arrays of half a megabyte, which stay in the cache


def label_site(
    m: np.ndarray, v: np.ndarray, label: np.ndarray, digits: float = DIGITS
) -> tuple[np.ndarray, np.ndarray]:
    """Shift and precision of the message to z from ``sigmoid(label z)``, label -1 or 1, cavities N(m, v), all flat.

    `digits` are those of the integrals, by the trapezoid rule; the other ways have all.

    >>> label_site(np.array([0.0]), np.array([0.0]), np.array([1.0]))  # slope and bend of log sigmoid
    (array([0.5]), array([0.25]))
    """
    workspace = _workspace()
    if 0 < m.size <= _FEW:
        high = float(v.max())
        if bisect_left(_COARSE_LIST, float(v.min())) == bisect_left(_COARSE_LIST, high):
            return _site(m, v, label, workspace, digits, high)  # few rows, all of one class
    shift, precision = np.empty(m.size), np.empty(m.size)
    for rows in _classes(v):
        shift[rows], precision[rows] = _site(m[rows], v[rows], label[rows], workspace, digits)
    return shift, precision


def label_log_z(m: np.ndarray, v: np.ndarray, label: np.ndarray) -> np.ndarray:
    """``log`` of the mean of ``sigmoid(label z)`` over N(m, v), all flat.

    >>> float(np.exp(label_log_z(np.array([0.0]), np.array([2.0]), np.array([1.0]))[0]).round(12))
    0.5
    """
    log_z = np.empty(m.size)
    workspace = _workspace()
    for rows in _classes(v):
        log_z[rows] = _log_z(m[rows], v[rows], label[rows], workspace)
    return log_z


_kept = threading.local()


def _workspace() -> np.ndarray:
    """Room for a block's nodes, kept for the next call of this thread: fresh megabytes cost more than a small plate."""
    if not hasattr(_kept, "room"):
        _kept.room = np.empty((2, _NODES))
    return _kept.room


def _classes(v: np.ndarray) -> Iterator[slice | np.ndarray]:
    """Rows to be integrated together: a block at a time, and in it one class of variances at a time."""
    for part in chunks(v.size, _BLOCK):
        block = v[part]
        kind = np.searchsorted(_COARSE if block.size <= _FEW else LIMITS, block)
        for k in np.flatnonzero(np.bincount(kind)):
            rows = np.flatnonzero(kind == k)
            yield part if rows.size == block.size else rows + part.start


def _site(
    m: np.ndarray, v: np.ndarray, label: np.ndarray, workspace: np.ndarray, digits: float, high: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """`label_site` for rows of one class; `high` is their largest variance."""
    high = float(v.max()) if high is None else high
    if high == 0.0:
        return _point_site(m, label)
    if high <= _NARROW:
        return _narrow_site(m, v, label, high)
    if high > FAST_UNTIL:
        tilt = logistic_tilt(m, v, (label > 0) * 1.0, (label < 0) * 1.0)
        shift, precision = gaussian_site(m, v, tilt)
        return shift, np.maximum(precision, 0.0)
    c = label * m
    c += 0.5 * v
    total, first, second = _bell_moments(np.abs(c), v, high, workspace, digits)
    first /= total
    second /= total
    ratio = second - first * first
    # sigmoid is log-concave: its message is never improper, and rounding must not say otherwise
    precision = np.maximum(1.0 / ratio - 1.0, 0.0) / v
    slope = 0.5 - np.copysign(first, c) / np.sqrt(v)
    return label * slope / ratio + m * precision, precision


def _log_z(m: np.ndarray, v: np.ndarray, label: np.ndarray, workspace: np.ndarray) -> np.ndarray:
    """`label_log_z` for rows of one class."""
    high = float(v.max())
    x = label * m
    if high > FAST_UNTIL:
        return logistic_tilt(x, v, np.ones(x.size), np.zeros(x.size)).log_z
    if high <= _NARROW:
        total = _narrow_sigmoids(x, v, high)[0]
        return np.where(x > -600.0, np.log(total), x + 0.5 * v)  # far down sigmoid is an exponential
    c = x + 0.5 * v
    total = _bell_moments(np.abs(c), v, high, workspace)[0]
    return 0.5 * (x - np.abs(c)) + 0.125 * v + np.log(total)


def _bell_moments(
    c: np.ndarray, v: np.ndarray, high: float, workspace: np.ndarray, digits: float = DIGITS
) -> np.ndarray:
    """Rows (3, n): the mean of ``exp(c/2) / (2 cosh(z/2))``, times 1, u, u^2, over z = sd u - c of N(-c, v), c >= 0.

    The nodes are equally spaced, so ``exp(sd u / 2)`` at all of them is one geometric series, filled by doubling:
    three exponentials per row instead of one per node.
    """
    # the rule for the next quarter power of two: no more nodes than needed, and few rules to keep
    first, step, n, weights = _trapezoid(max(0.25, 2.0 ** (math.ceil(4.0 * math.log2(high)) / 4.0)), digits)
    size = workspace.shape[1] // n
    if c.size > size:
        parts = [_bell_moments(c[i], v[i], high, workspace, digits) for i in chunks(c.size, size)]
        return np.concatenate(parts, axis=1)
    half = 0.5 * np.sqrt(v)
    q, bell = (w[: n * c.size].reshape(n, c.size) for w in workspace)
    np.exp(first * half, out=q[0])
    g = np.exp(step * half)
    done = 1
    while done < n:
        more = min(done, n - done)
        np.multiply(q[:more], g, out=q[done : done + more])
        done += more
        if done < n:
            g = g * g
    np.multiply(q, q, out=bell)
    bell *= np.exp(-c)
    bell += 1.0
    np.divide(q, bell, out=bell)
    return weights @ bell


@cache
def _trapezoid(limit: float, digits: float) -> tuple[float, float, int, np.ndarray]:
    """First node, step, number of nodes and weights (3, nodes) of 1, u, u^2 for cavities of variance up to `limit`.

    The rule's error is ``exp(-2 pi^2 / step^2)`` for the Gaussian and ``exp(pi^2 / 2 v - 2 pi^2 / (step sd))`` for the
    poles of the bell at plus and minus i pi; both are kept below as many digits. The bell, to the right of the cavity, pulls the
    mass up by at most half a deviation for each unit of sd, and never down.
    """
    sd = np.sqrt(limit)
    target = digits * np.log(10.0)  # the moments of u lose up to two digits of it
    step = min(np.sqrt(2.0 * np.pi**2 / target), 2.0 * np.pi**2 / (target + 0.5 * np.pi**2 / limit) / sd)
    reach = np.sqrt(2.0 * target)
    n = int(np.ceil((2.0 * reach + 0.5 * sd) / step)) + 1
    u = -reach + step * np.arange(n)
    w = step / np.sqrt(2.0 * np.pi) * np.exp(-0.5 * u * u)
    return -reach, step, n, np.stack([w, w * u, w * u * u])


@cache
def _hermite(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The positive half of the nodes of the standard normal distribution, and all weights (negative nodes last)."""
    u, w = np.polynomial.hermite_e.hermegauss(n)
    w = w[n // 2 :] / w.sum()
    return u[n // 2 :, None], np.concatenate([w, w])


def _point_site(m: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The slope of the log of the sigmoid at m, as the shift of a message of its curvature there."""
    rest = expit(-label * m)
    precision = rest * expit(label * m)
    return label * rest + m * precision, precision


def _narrow_site(m: np.ndarray, v: np.ndarray, label: np.ndarray, high: float) -> tuple[np.ndarray, np.ndarray]:
    """By the derivatives of log Z, so that narrow cavities lose no digits and v = 0 is the limit."""
    x = label * m
    total, first, second = _narrow_sigmoids(x, v, high)
    slope = first / total
    # log-concave, see above
    bend = np.minimum((2.0 * second - first) / total - slope * slope, 0.0)
    slope = np.where(x < 0, 1.0 - slope, slope)
    ratio = 1.0 + v * bend
    precision = -bend / ratio
    return label * slope / ratio + m * precision, precision


def _narrow_sigmoids(x: np.ndarray, v: np.ndarray, high: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means over N(x, v) of s, ``s r`` and ``s r^2`` for ``s = sigmoid(z)`` and r the smaller of s and 1 - s.

    Of the two, r has the exact small numbers in its differences: s where x < 0, 1 - s elsewhere. Error 3e-14 with 4
    Gauss-Hermite nodes below a variance of 1e-3, 2e-14 with 6 below 1e-2.
    """
    u, w = _hermite(4 if high <= 1e-3 else 6)
    half = u.size
    y = np.empty((2 * half, x.size))
    np.exp(u * np.sqrt(v), out=y[:half])
    np.divide(1.0, y[:half], out=y[half:])
    y *= np.exp(np.maximum(-np.abs(x), -700.0))  # exp(-|z|); beyond 700 the sigmoid is 0 or 1 to every digit
    s = 1.0 / (1.0 + y)
    y *= s  # now r
    s = np.where(x < 0, y, s)
    total = w @ s
    s *= y
    first = w @ s
    s *= y
    return total, first, w @ s
