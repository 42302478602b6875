"""From the expected logarithms of a Dirichlet back to its concentrations; a Beta is the case of two of them.

Newton's method on the logarithms of all concentrations and of their total, from a start that is right in both limits;
rows that do not settle fall back to a bracketed search on the total alone. The number of steps is bounded everywhere:
nothing here can hang.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heliograph.numerics.chunks import cached_chunks
from heliograph.numerics.gamma_function import digamma_gap, trigamma_excess
from heliograph.numerics.inverse_digamma import (
    inverse_digamma,
    start_from_digamma,
    start_from_gap,
    start_from_trigamma,
)

__all__ = [
    "BRACKET_STEPS",
    "NEWTON_STEPS",
    "SETTLED",
    "dirichlet_centre",
    "dirichlet_mean_log",
    "inverse_dirichlet",
    "others",
    "raised_centre",
]

NEWTON_STEPS = 20  # the quadratic phase needs 4 to 6; what has not settled by then goes to the bracketed search
BRACKET_STEPS = 200  # of which bisection alone would need 60
SETTLED = 1e-9  # a Newton step this small leaves an error of its square
_NEAR = 2e-5  # for log(s / a) below this the trapezoid rule is closer to a difference of gaps than their rounding


def others(a: np.ndarray) -> np.ndarray:
    """The sum of all entries along the last axis but one's own, without subtracting.

    >>> others(np.array([1e20, 1.0, 2.0]))
    array([3.e+00, 1.e+20, 1.e+20])
    """
    if a.shape[-1] == 2:
        return a[..., ::-1]
    before, after = np.zeros_like(a), np.zeros_like(a)
    before[..., 1:] = np.cumsum(a[..., :-1], axis=-1)
    after[..., :-1] = np.cumsum(a[..., :0:-1], axis=-1)[..., ::-1]
    return before + after


def _gap_difference(a: np.ndarray, s: np.ndarray) -> np.ndarray:
    """``digamma_gap(a) - digamma_gap(s) >= 0`` for ``s = sum a``, also where a is nearly all of s."""
    difference = np.maximum(digamma_gap(a) - digamma_gap(s), 0.0)  # it falls; rounding may not know
    u = np.log1p(others(a) / a)
    near = u < _NEAR
    if not near.any():
        return difference
    return np.where(near, 0.5 * u * (trigamma_excess(a) + trigamma_excess(s)), difference)


def dirichlet_mean_log(concentration: np.ndarray) -> np.ndarray:
    """``psi(a_k) - psi(sum a)``, to full relative precision also where it is nearly 0."""
    a = np.asarray(concentration, dtype=float)
    return -np.log1p(others(a) / a) - _gap_difference(a, a.sum(axis=-1, keepdims=True))


def dirichlet_centre(concentration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``E log p`` split as `inverse_dirichlet` takes it: the log centre, and the gap to full relative precision.

    >>> log_centre, gap = dirichlet_centre(np.array([1e8, 1e8]))
    >>> float(np.round(gap * 4e8, 6))
    1.0
    """
    a = np.asarray(concentration, dtype=float)
    s = a.sum(axis=-1, keepdims=True)
    eps = _gap_difference(a, s)
    part = (a / s * np.expm1(-eps)).sum(axis=-1)
    mean_log = -np.log1p(others(a) / a) - eps
    top = mean_log.max(axis=-1, keepdims=True)
    plain = -top[..., 0] - np.log(np.exp(mean_log - top).sum(axis=-1))
    gap = np.where(part > -0.5, -np.log1p(np.maximum(part, -0.5)), plain)  # beyond it nothing cancels anyway
    return mean_log + gap[..., None], gap


def raised_centre(concentration: np.ndarray, rise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`dirichlet_centre` of these concentrations after every ``E log p_k`` has risen by ``rise_k``.

    The gap of a large total is small, and a small rise changes it by less: with c the centre before, it falls by
    ``log(1 + sum_k c_k (exp(rise_k) - 1))``, in which nothing large cancels.
    """
    log_centre, gap = dirichlet_centre(concentration)
    raised = log_centre - gap[..., None] + rise
    small = np.abs(rise).max(axis=-1) < 0.5
    near = (np.exp(log_centre) * np.expm1(np.where(small[..., None], rise, 0.0))).sum(axis=-1)
    top = raised.max(axis=-1)
    rest = np.exp(raised - top[..., None])
    np.put_along_axis(rest, raised.argmax(axis=-1)[..., None], 0.0, axis=-1)
    new = np.where(small, gap - np.log1p(near), -top - np.log1p(rest.sum(axis=-1)))
    return raised + new[..., None], new


def inverse_dirichlet(log_centre: Any, gap: Any) -> np.ndarray:
    """The concentrations ``a_k`` with ``psi(a_k) - psi(sum a) = log_centre_k - gap``, for ``sum exp(log_centre) = 1``.

    That is ``E log p_k``, split into the centre it points at and the `gap` by which Jensen's inequality lowers it. All
    that is known of a large total is in the gap, which, near ``(K - 1) / (2 sum a)``, drowns in the rounding of the
    plain statistics; held apart it keeps its digits. With ``s = sum a`` and ``eps_k = log(a_k / (s centre_k))``, which
    is ``digamma_gap(a_k) - digamma_gap(s) - gap``, the equation ``sum_k centre_k (exp(eps_k) - 1) = 0`` decides s, and
    nothing in it cancels.
    """
    log_centre, gap = np.asarray(log_centre, dtype=float), np.asarray(gap, dtype=float)
    shape = np.broadcast_shapes(log_centre.shape[:-1], gap.shape)
    n_categories = log_centre.shape[-1]
    log_centre = np.broadcast_to(log_centre, (*shape, n_categories)).reshape(-1, n_categories)
    gap = np.clip(np.broadcast_to(gap, shape).reshape(-1, 1), 1e-120, 1e17)  # squares must not overflow
    a = np.empty(log_centre.shape)
    for rows in cached_chunks(len(a), n_categories):
        a[rows], settled = _newton_total(log_centre[rows], gap[rows])
        if not settled.all():
            left = np.arange(len(a))[rows][~settled]
            a[left] = _bracket_total(log_centre[left], gap[left])
    return a.reshape((*shape, n_categories))


def _start_total(log_centre: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """A total concentration to start from: exact where all are large, where all but one are small, and where all are.

    With K = 2 and the smaller concentration a, ``digamma_gap(a)`` is ``log(1 - exp(E log(1 - p))) - E log p`` to
    second order, whatever the larger one; and then ``a psi'(b) = -E log(1 - p)`` to first order in a. With more
    categories the total is started from the gap alone.
    """
    n_categories = log_centre.shape[-1]
    if n_categories != 2:
        return (n_categories - 1) / (2.0 * gap)
    minus = gap - log_centre  # -E log p_k
    t1, t2 = minus.max(axis=-1, keepdims=True), minus.min(axis=-1, keepdims=True)
    log_m = np.log(np.maximum(-np.expm1(-gap), 1e-300)) + t1
    a = start_from_gap(np.logaddexp(0.0, log_m))
    # below 1 either parameter may be large and the ratio b / a is that of the centre, above 1 both are small
    odds = np.where(t2 < 1.0, np.expm1(np.clip(t2, 1e-300, 1.0)), t2)
    return a + start_from_trigamma(a / odds)


def _newton_total(log_centre: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton on ``log s`` and all ``log a_k`` together: the answers, and which of them have settled."""
    n = len(log_centre)
    minus = gap - log_centre
    sigma = np.log(_start_total(log_centre, gap))
    alpha = np.log(start_from_digamma(sigma - digamma_gap(np.exp(sigma)) - minus))
    out, settled, todo = np.exp(alpha), np.zeros(n, dtype=bool), np.arange(n)
    for _ in range(NEWTON_STEPS):
        x = np.exp(np.concatenate([sigma, alpha], axis=1))
        gaps, excesses = digamma_gap(x), trigamma_excess(x)
        gap_s, gap_a, excess_s, excess_a = gaps[:, :1], gaps[:, 1:], excesses[:, :1], excesses[:, 1:]
        residual = alpha - gap_a - (sigma - gap_s - minus)
        # eps_k has forms that agree at the answer: gaps cancel where a is small, logarithms where it is large, and a
        # difference of gaps where a is nearly all of s
        a = x[:, 1:]
        off = sigma - np.log(a.sum(axis=-1, keepdims=True))  # 0 at the answer, where only its rounding would be left
        u = np.log1p(others(a) / a) + np.where(np.abs(off) > 1e-13, off, 0.0)
        near = np.abs(u) < _NEAR
        small = (gap_a > 1.0) & ~near
        difference = np.where(near, 0.5 * u * (excess_a + excess_s), gap_a - gap_s)
        f, weight = _total_equation(log_centre, np.where(small, alpha - sigma - log_centre, difference - gap))
        per = 1.0 / (1.0 + excess_a)
        slope = (weight * (excess_a - excess_s) * per).sum(axis=-1, keepdims=True)
        rest = f + (weight * np.where(small, -1.0, excess_a) * residual * per).sum(axis=-1, keepdims=True)
        good = slope > 1e-9 * np.abs(rest)  # a step beyond 1e9 is no step
        step = np.clip(np.where(good, rest / np.where(good, slope, 1.0), np.sign(rest)), -2.0, 2.0)
        steps = np.clip(((1.0 + excess_s) * step - residual) * per, -4.0, 4.0)
        sigma, alpha = np.clip(sigma + step, -60.0, 600.0), np.clip(alpha + steps, -60.0, 600.0)
        size = np.maximum(np.abs(step)[:, 0], np.abs(steps).max(axis=-1))
        done = size < SETTLED
        if done.any():
            finished = todo[done]
            out[finished], settled[finished] = np.exp(alpha[done]), True
            if done.all():
                break
            keep = ~done
            todo, sigma, alpha = todo[keep], sigma[keep], alpha[keep]
            log_centre, gap, minus = log_centre[keep], gap[keep], minus[keep]
    return out, settled


def _total_equation(log_centre: np.ndarray, eps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``sum_k centre_k (exp(eps_k) - 1)``, and ``centre_k exp(eps_k)``, with neither cancellation nor overflow."""
    centre = np.exp(log_centre)
    weight = np.exp(np.minimum(log_centre + eps, 30.0))  # at most 1 at the answer; far from it only the sign matters
    wide = eps > 1.0
    terms = np.where(wide, weight - centre, centre * np.expm1(np.minimum(eps, 1.0)))
    return terms.sum(axis=-1, keepdims=True), weight


def _bracket_total(log_centre: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """The same answers by a search on ``log s`` alone, inside a bracket that shrinks at every step."""
    minus = gap - log_centre
    low, high = np.full_like(gap, -45.0), np.full_like(gap, 200.0)  # shapes from 1e-20 to 1e87
    sigma = np.clip(np.log(_start_total(log_centre, gap)), -40.0, 190.0)
    a = np.exp(log_centre)
    for _ in range(BRACKET_STEPS):
        s = np.exp(sigma)
        gap_s, excess_s = digamma_gap(s), trigamma_excess(s)
        a = inverse_digamma(sigma - gap_s - minus)
        excess_a = trigamma_excess(a)
        eps = np.where(a < 0.5, np.log(a) - sigma - log_centre, digamma_gap(a) - gap_s - gap)
        f, weight = _total_equation(log_centre, eps)
        slope = (weight * (excess_a - excess_s) / (1.0 + excess_a)).sum(axis=-1, keepdims=True)
        low, high = np.where(f > 0, sigma, low), np.where(f < 0, sigma, high)
        good = slope > 1e-9 * np.abs(f)
        new = sigma + f / np.where(good, slope, 1.0)
        middle = 0.5 * (low + high)
        new = np.where(good & (new > low) & (new < high), new, np.where(f == 0, sigma, middle))
        if (np.abs(new - sigma) <= 4e-16 * np.maximum(1.0, np.abs(sigma))).all():
            break
        sigma = new
    return a
