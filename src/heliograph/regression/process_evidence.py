"""The widths of a Gaussian process by evidence, with an analytic gradient.

Recipe: widths started at 2 standard deviations of the inputs seen, bounded to [0.1, 50] times that, with a log-normal
prior of standard deviation 2 around it; relative noise in [1e-8, 1e-2]; signal variances profiled in closed form, or
optimised where labels bring noise variances of their own.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.squared_exponential import LEAST_SIGNAL, NOISE_BOUNDS, Widths, start_widths

__all__ = ["fit_widths", "negative_log_evidence"]

WIDTH_BOUNDS = (0.1, 50.0)  # times the starting width
PRIOR_SD = 2.0  # of the log-normal prior on a width
_ITERATIONS = 100
_TRIAL = 15  # iterations given to each start before only the better one goes on
_TRIED = 80  # labels by which starts are compared at most: they show which way is better at a fraction of the price


def fit_widths(labels: LabelledRows, start: Widths | None = None) -> Widths:
    """Widths, noise and signal variances of largest evidence times prior, by L-BFGS-B.

    `start` gives a warm start; the prior and the bounds always come from the inputs themselves. Costs O(N^3) an
    evaluation, some 20 to 100 of them.
    """
    from scipy.optimize import minimize  # a third of the time of importing this package

    inputs = np.asarray(labels.inputs, dtype=float)
    targets = np.asarray(labels.targets, dtype=float).reshape(len(inputs), -1)
    q = targets.shape[1]
    base = start_widths(inputs, q)
    kept = np.isfinite(base.widths)
    x = inputs[:, kept] - base.centre[kept]
    log_base = np.log(base.widths[kept])
    noise = None if labels.noise is None else np.broadcast_to(np.asarray(labels.noise, dtype=float), targets.shape)

    # where the noise of the labels explains all, the signal may fall to a millionth of the labels' scale, not to 0
    scale = np.maximum((targets**2).mean(0), LEAST_SIGNAL)
    low, high = np.log(WIDTH_BOUNDS)
    bounds = [(b + low, b + high) for b in log_base] + [tuple(np.log(NOISE_BOUNDS))]
    if noise is not None:
        bounds += [(np.log(s) - 14, np.log(s) + 14) for s in scale]

    def pack(log_widths: np.ndarray, relative_noise: float) -> np.ndarray:
        theta = np.concatenate([log_widths, [np.log(relative_noise)], [] if noise is None else np.log(scale)])
        return np.clip(theta, [b[0] for b in bounds], [b[1] for b in bounds])

    def descend(theta: np.ndarray, n_iterations: int, each: int = 1) -> tuple[float, np.ndarray]:
        own = None if noise is None else noise[::each]
        found = minimize(
            negative_log_evidence,
            theta,
            args=(x[::each], targets[::each], own, log_base),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": n_iterations},
        )
        return float(found.fun), found.x

    # a second start at twice the widths: from one start alone a line search leaps to a plateau now and then
    starts = [pack(log_base, base.noise), pack(log_base + np.log(2), base.noise)]
    if start is not None:
        usable = np.isfinite(start.widths[kept])
        warm = log_base.copy()
        warm[usable] = np.log(start.widths[kept][usable])
        starts[0] = pack(warm, start.noise)
    each = -(-len(x) // _TRIED) if len(x) > 2 * _TRIED else 1
    with one_blas_thread():
        _, best = min((descend(theta, _TRIAL, each) for theta in starts), key=lambda pair: pair[0])
        _, best = descend(best, _ITERATIONS)
    k = x.shape[1]
    widths = np.full(kept.size, np.inf)
    widths[kept] = np.exp(best[:k])
    relative_noise = float(np.clip(np.exp(best[k]), *NOISE_BOUNDS))
    if noise is None:
        signal = _profiled(best, x, targets)
    else:
        signal = np.exp(best[k + 1 :])
    return Widths(base.centre, widths, signal, relative_noise)


def negative_log_evidence(
    theta: np.ndarray,
    x: np.ndarray,
    targets: np.ndarray,
    label_noise: np.ndarray | None,
    log_base: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Minus the log evidence of all outputs, less the log prior of the widths, and its gradient.

    `theta` holds log widths, log relative noise and, with label noise only, log signal variances; otherwise those are
    at their best value, where the gradient does not see them.
    """
    n, q = targets.shape
    k = x.shape[1]
    u = x / np.exp(theta[:k])
    rho = np.exp(theta[k])
    sq = (u**2).sum(1)
    c = np.exp(-0.5 * np.maximum(sq[:, None] + sq - 2 * u @ u.T, 0.0))
    np.fill_diagonal(c, 1.0)
    value = 0.0
    slope: np.ndarray | float = 0.0  # derivative of the log evidence, twice, by each entry of c
    grad = np.zeros_like(theta)
    for f in range(1 if label_noise is None else q):
        extra = 0.0 if label_noise is None else label_noise[:, f] / np.exp(theta[k + 1 + f])
        lower = _lower(c, rho + extra)
        half = _solve(lower, targets if label_noise is None else targets[:, f : f + 1])
        weights = _solve(lower, half, trans=1)
        inverse = _inverse(lower)
        log_det = 2 * np.log(np.diagonal(lower)).sum()
        fit = (half**2).sum(0)
        if label_noise is None:
            signal = np.maximum(fit / n, LEAST_SIGNAL)
            value += 0.5 * np.sum(fit / signal + log_det + n * np.log(2 * np.pi * signal))
            part = (weights / signal) @ weights.T - q * inverse
        else:
            signal = np.exp(theta[k + 1 + f])
            value += 0.5 * (fit[0] / signal + log_det + n * np.log(2 * np.pi * signal))
            part = weights @ weights.T / signal - inverse
            # d/d log s: fit/s - n from s itself, and the label noise over s on the diagonal, which shrinks
            by_signal = fit[0] / signal - n - (np.diagonal(part) * extra).sum()
            grad[k + 1 + f] = -0.5 * by_signal
        slope = slope + part
    grad[k] = -0.5 * rho * np.trace(slope)
    g = slope * c
    grad[:k] = -((u**2) * g.sum(1)[:, None] - u * (g @ u)).sum(0)
    off = (theta[:k] - log_base) / PRIOR_SD**2
    value += 0.5 * ((theta[:k] - log_base) * off).sum()
    grad[:k] += off
    return float(value), grad


def _profiled(theta: np.ndarray, x: np.ndarray, targets: np.ndarray) -> np.ndarray:
    k = x.shape[1]
    u = x / np.exp(theta[:k])
    sq = (u**2).sum(1)
    c = np.exp(-0.5 * np.maximum(sq[:, None] + sq - 2 * u @ u.T, 0.0))
    np.fill_diagonal(c, 1.0)
    half = _solve(_lower(c, np.exp(theta[k])), targets)
    return np.maximum((half**2).mean(0), LEAST_SIGNAL)


def _lower(c: np.ndarray, diagonal: np.ndarray | float) -> np.ndarray:
    jitter = 0.0
    while True:
        matrix = c.T.copy(order="F")  # symmetric, and in LAPACK's order
        matrix.ravel(order="F")[:: len(c) + 1] += diagonal + jitter
        lower, info = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)  # type: ignore[attr-defined]
        if not info:
            return lower
        jitter = max(10 * jitter, 10 * float(np.min(diagonal)))  # the noise times 10 as often as it fails


def _solve(lower: np.ndarray, b: np.ndarray, trans: int = 0) -> np.ndarray:
    """SciPy's `solve_triangular`, whose checks take longer than it does for a hundred labels."""
    return lapack.dtrtrs(lower, b, lower=1, trans=trans)[0]  # type: ignore[attr-defined]


def _inverse(lower: np.ndarray) -> np.ndarray:
    """From a factor that is zero above its diagonal."""
    half, _ = lapack.dpotri(lower, lower=1)  # type: ignore[attr-defined]
    inverse = half + half.T
    np.fill_diagonal(inverse, np.diagonal(half))
    return inverse
