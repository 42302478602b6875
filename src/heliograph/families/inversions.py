"""From expected statistics back to parameters: vectorised Newton inversions of digamma-like functions.

Each works on the logarithm of the parameter, from a start that is right in both limits, so a handful of steps reaches
rounding for parameters from 1e-6 to 1e8 and far beyond. The two-dimensional ones fall back, entry by entry, to a
bracketed search on one unknown. The number of steps is bounded everywhere: nothing here can hang.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import psi

from heliograph.families.stirling import digamma_gap, trigamma_excess, trigammas

__all__ = [
    "dirichlet_centre",
    "dirichlet_mean_log",
    "inverse_beta_chart",
    "inverse_digamma",
    "inverse_digamma_gap",
    "inverse_dirichlet",
    "inverse_trigamma",
    "others",
    "raised_centre",
    "stored",
]

_EULER = 0.5772156649015329
_NEWTON_STEPS = 20  # the quadratic phase needs 4 to 6; what has not settled by then goes to the bracketed search
_BRACKET_STEPS = 200  # of which bisection alone would need 60
_SETTLED = 1e-9  # a Newton step this small leaves an error of its square


_NEAR = 2e-5  # for log(s / a) below this the trapezoid rule is closer to a difference of gaps than their rounding
_LEAST = float(np.nextafter(-1.0, 0.0))


def stored(parameter: np.ndarray) -> np.ndarray:
    """``parameter - 1``, the natural parameter, never rounded down to -1, which would be improper."""
    return np.maximum(parameter - 1.0, _LEAST)


def inverse_digamma_gap(gap: Any) -> np.ndarray:
    """The shape s with ``log s - psi(s) = gap``, for ``gap > 0``.

    On log-log axes the function is nearly a straight line of slope -1, so Newton there converges at once.

    >>> float(np.round(inverse_digamma_gap(digamma_gap(3.0)), 12))
    3.0
    """
    d = np.clip(gap, 1e-300, 1e17)  # beyond, the shape overflows, or is rounded away when it is stored
    s = _start_from_gap(d)
    for _ in range(3):  # the start is within 2 %, and the line bends so little that errors fall as .02, 3e-5, 1e-10
        value = digamma_gap(s)
        s = s * np.exp(np.log(value / d) * value / trigamma_excess(s))
    return s


def _start_from_gap(d: np.ndarray) -> np.ndarray:
    """The shape at which ``(1 + 3 s) / (s (1 + 6 s))``, within 2 % of the true gap, equals d."""
    root = np.sqrt((d - 3.0) ** 2 + 24.0 * d)
    near, far = np.minimum(d, 3.0), np.maximum(d, 3.0)  # two forms of one quadratic's root: neither cancels
    return np.where(d <= 3.0, (3.0 - near + root) / (12.0 * near), 2.0 / (root + far - 3.0))


def inverse_trigamma(variance: Any) -> np.ndarray:
    """The shape s with ``psi'(s) = variance``, for ``variance > 0``.

    >>> float(np.round(inverse_trigamma(np.pi**2 / 6), 12))
    1.0
    """
    v = np.asarray(variance, dtype=float)
    # beyond these limits the leading terms of psi' are exact to rounding
    inside = np.clip(v, 1e-8, 1e16)
    s = np.atleast_1d(_start_from_trigamma(1.0 / inside))
    for _ in range(4):
        value, slope = trigammas(s)
        s = s * np.exp(np.log(value / inside) * value / (s * slope))
    s = s.reshape(v.shape)
    return np.where(v < 1e-8, 1.0 / np.minimum(v, 1e-8) + 0.5, np.where(v > 1e16, 1.0 / np.sqrt(v), s))


def _start_from_trigamma(y: np.ndarray) -> np.ndarray:
    """The shape at which ``s^2 / (s + 0.6)``, near the true ``1 / psi'(s)``, equals y."""
    return 0.5 * (y + np.sqrt(y * (y + 2.4)))


def inverse_digamma(y: Any) -> np.ndarray:
    """The x with ``psi(x) = y``.

    >>> float(inverse_digamma(psi(7.0)))
    7.0
    """
    y = np.clip(y, -1e100, 690.0)  # from 1e-100 to exp(690): beyond, squares or the answer itself overflow
    x = _start_from_digamma(y)
    for _ in range(5):
        # Newton in log x, whose slope x psi'(x) is never below 1
        x = x * np.exp((y - psi(x)) / (1.0 + trigamma_excess(x)))
    return x


def _start_from_digamma(y: np.ndarray) -> np.ndarray:
    high = y >= -2.22
    return np.where(high, np.exp(np.clip(y, -2.22, 690.0)) + 0.5, -1.0 / (np.minimum(y, -2.22) + _EULER))


# ---- Dirichlet, and Beta as its case K = 2 --------------------------------------------------------------------------
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
    for rows in _chunks(len(a), n_categories):
        a[rows], settled = _newton_total(log_centre[rows], gap[rows])
        if not settled.all():
            left = np.arange(len(a))[rows][~settled]
            a[left] = _bracket_total(log_centre[left], gap[left])
    return a.reshape((*shape, n_categories))


def _chunks(n_rows: int, width: int) -> list[slice]:
    """Rows in parts whose twenty or so temporaries stay in the cache, and are not many times the plate itself."""
    step = max(1, 16384 // width)
    return [slice(i, i + step) for i in range(0, n_rows, step)]


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
    a = _start_from_gap(np.logaddexp(0.0, log_m))
    # below 1 either parameter may be large and the ratio b / a is that of the centre, above 1 both are small
    odds = np.where(t2 < 1.0, np.expm1(np.clip(t2, 1e-300, 1.0)), t2)
    return a + _start_from_trigamma(a / odds)


def _newton_total(log_centre: np.ndarray, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton on ``log s`` and all ``log a_k`` together: the answers, and which of them have settled."""
    n = len(log_centre)
    minus = gap - log_centre
    sigma = np.log(_start_total(log_centre, gap))
    alpha = np.log(_start_from_digamma(sigma - digamma_gap(np.exp(sigma)) - minus))
    out, settled, todo = np.exp(alpha), np.zeros(n, dtype=bool), np.arange(n)
    for _ in range(_NEWTON_STEPS):
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
        done = size < _SETTLED
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
    for _ in range(_BRACKET_STEPS):
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


# ---- the logit chart of Beta ----------------------------------------------------------------------------------------
def inverse_beta_chart(mean: Any, variance: Any) -> tuple[np.ndarray, np.ndarray]:
    """The ``(a, b)`` with ``psi(a) - psi(b) = mean`` and ``psi'(a) + psi'(b) = variance``: the logit's moments.

    >>> a, b = inverse_beta_chart(0.0, np.pi**2 / 3)
    >>> float(np.round(a, 12)), float(np.round(b, 12))
    (1.0, 1.0)
    """
    mean, variance = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(variance, dtype=float))
    shape = mean.shape
    mean, variance = mean.reshape(-1), np.clip(variance.reshape(-1), 1e-120, 1e33)  # squares must not overflow
    flip = np.where(mean <= 0, 1.0, -1.0)  # solve for the smaller parameter first, whose variance is most of the sum
    x = np.empty((2, len(mean)))
    for rows in _chunks(len(mean), 2):
        x[:, rows], settled = _newton_chart(-np.abs(mean[rows]), variance[rows])
        if not settled.all():
            left = np.arange(len(mean))[rows][~settled]
            x[:, left] = _bracket_chart(-np.abs(mean[left]), variance[left])
    a, b = np.where(flip > 0, x[0], x[1]), np.where(flip > 0, x[1], x[0])
    return a.reshape(shape), b.reshape(shape)


def _newton_chart(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton on ``log a`` and ``log b`` together, for ``mean <= 0``: the answers, and which have settled."""
    n = len(mean)
    share = 1.0 / (1.0 + np.exp(np.maximum(mean, -700.0)))  # exact for large a, b; at most 2 times off elsewhere
    a = _start_from_trigamma(1.0 / np.maximum(variance * share, 1e-300))
    alpha = np.log(a)
    beta = np.log(_start_from_digamma(np.minimum(psi(a) - mean, 600.0)))
    out, settled, todo = np.exp(np.stack([alpha, beta])), np.zeros(n, dtype=bool), np.arange(n)
    for _ in range(_NEWTON_STEPS):
        x = np.exp(np.stack([alpha, beta]))
        first, second = trigammas(x)
        total = first.sum(axis=0)
        digamma = psi(x)
        f, g = digamma[0] - digamma[1] - mean, np.log(total / variance)
        fa, fb = x * first * np.array([[1.0], [-1.0]])
        ga, gb = -x * second / total
        determinant = fa * gb - fb * ga  # < 0 always
        step_a = np.clip((fb * g - gb * f) / determinant, -3.0, 3.0)
        step_b = np.clip((ga * f - fa * g) / determinant, -3.0, 3.0)
        alpha, beta = np.clip(alpha + step_a, -60.0, 300.0), np.clip(beta + step_b, -60.0, 300.0)
        done = np.maximum(np.abs(step_a), np.abs(step_b)) < _SETTLED
        if done.any():
            finished = todo[done]
            out[:, finished], settled[finished] = np.exp(np.stack([alpha[done], beta[done]])), True
            if done.all():
                break
            keep = ~done
            todo, alpha, beta, mean, variance = todo[keep], alpha[keep], beta[keep], mean[keep], variance[keep]
    return out, settled


def _bracket_chart(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The same answers by bisection on how the variance is split; the mean falls as the share of a grows."""
    low, high = np.full(mean.shape, -5.0), np.full(mean.shape, 300.0)  # log of psi'(a) / psi'(b); >= 0 as a <= b
    for _ in range(_BRACKET_STEPS):
        theta = 0.5 * (low + high)
        share_b = 1.0 / (1.0 + np.exp(theta))
        share_a = 1.0 / (1.0 + np.exp(-theta))
        x = inverse_trigamma(np.stack([variance * share_a, np.maximum(variance * share_b, 1e-300)]))
        above = psi(x[0]) - psi(x[1]) > mean
        low, high = np.where(above, theta, low), np.where(above, high, theta)
        if (high - low <= 4e-16 * np.abs(high)).all():
            break
    return x
