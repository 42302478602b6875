"""Re-fitting a proposal to where the weight was seen: tempered moments, then local parts."""

from __future__ import annotations

import numpy as np

from heliograph.oracles.importance.diagnostics import effective_sample_size
from heliograph.oracles.importance.proposal import Proposal
from heliograph.oracles.problem import Problem, continuous_columns

__all__ = ["fit", "temper"]

_LOCAL = 12  # Gaussians placed where the weight is, so that a ring or two modes are followed
_POWERS = 1.5 ** -np.arange(60.0)  # 1 to 4e-11
_WIDEN = 1.5  # times the variance that was seen: a proposal should be wider than its target


def temper(log_tilt: np.ndarray, log_base: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the draws for the farthest target on the way from the base to the tilted density, and how far that is.

    The targets are ``base * tilt^power``; a draw has ``log_tilt`` = log tilted density - log base, and ``log_base`` = log
    base - log of the density it was drawn from. The power is the largest (of a grid, at most 1) that leaves an
    effective sample size of `least`. The first proposal may be thousands of nats from its target; being the same for
    all rounds, the path keeps the modes that a fit to the best draws would lose.
    """
    n = len(log_tilt)
    power, left = np.full(n, _POWERS[-1]), np.arange(n)
    for p in _POWERS:
        enough = effective_sample_size(p * log_tilt[left] + log_base[left]) >= least
        power[left[enough]] = p
        left = left[~enough]
        if not len(left):
            break
    log_w = power[:, None] * log_tilt + log_base
    top = log_w.max(axis=1, keepdims=True)
    w = np.exp(log_w - np.where(np.isfinite(top), top, 0.0))
    return w / np.maximum(w.sum(axis=1, keepdims=True), 1e-300), power


def fit(
    problem: Problem,
    base: Proposal,
    u: np.ndarray,
    w: np.ndarray,
    power: np.ndarray,
    log_base: np.ndarray,
    gappy: np.ndarray,
    least: float,
) -> Proposal:
    """A proposal from draws (n, s, D) with weights (n, s) that sum to 1 and were tempered by `power`.

    Two tenths stay with `base`, so that whatever the fit missed can still be met (half where draws may have no weight at
    all, the rows `gappy`, and where the function itself draws: what is rare there may come from anywhere in the cavity, and the
    best proposal is about half way between base and target). No power changes a weight of
    nothing; where the others are fewer than `least` their spread says little, and is widened towards that of the
    base, whose weights are `log_base`.
    """
    columns = continuous_columns(problem)
    n, d = len(u), len(columns)
    tables = tuple(
        _refit_table(t, u[:, :, p.columns.start], w) for p, t in zip(problem.discrete, base.tables, strict=True)
    )
    if not d:
        return base._replace(tables=tables)
    v = u[..., columns]
    mean = np.einsum("ns,nsd->nd", w, v)
    centred = v - mean[:, None]
    whole = np.einsum("ns,nsd,nse->nde", w, centred, centred)
    size = 1 / np.maximum((w * w).sum(axis=1), 1e-300)
    scarce = np.where(gappy, np.clip(1 - size / least, 0.0, 1.0), 0.0)
    few = np.flatnonzero(scarce > 0)
    if len(few):
        known = np.maximum(size[few] - 1, 0.0)[:, None, None]  # one goes for the mean
        shrunk = (known * whole[few] + (d + 2) * _base_covariance(v[few], log_base[few])) / (known + d + 2)
        whole[few] += scarce[few][:, None, None] * (shrunk - whole[few])
    whole = whole + _floor(whole, mean)
    root = np.linalg.cholesky(whole)
    z = np.linalg.solve(root, np.swapaxes(centred, 1, 2)).swapaxes(1, 2)  # whitened
    means, covariances, shares = _local_parts(z, w)
    covariances += scarce[:, None, None, None] * (np.eye(d) - covariances)
    local_means = mean[:, None] + means @ np.swapaxes(root, 1, 2)
    local_roots = root[:, None] @ np.linalg.cholesky(2 * covariances)
    means = np.concatenate([mean[:, None], mean[:, None], local_means], axis=1)
    # far from the target (a small power) the widest part strides ahead
    stride = np.sqrt(2 * _WIDEN * np.minimum(1 / power, 16.0))
    wide = np.stack([stride, 2.5 * stride], axis=1)  # the second for tails that fall off slower than a Gaussian's
    roots = np.concatenate([wide[:, :, None, None] * root[:, None], local_roots], axis=1)
    kept = np.where(gappy | problem.sampler.stochastic, 0.5, 0.2)[:, None]
    fitted = np.concatenate([np.full((n, 1), 0.25), np.full((n, 1), 0.0625), 0.6875 * shares], axis=1)
    shares = np.concatenate([kept * base.weights, (1 - kept) * fitted], axis=1)
    inverses = np.linalg.inv(roots)
    if base.means.shape[1]:
        means, roots = np.concatenate([base.means, means], axis=1), np.concatenate([base.roots, roots], axis=1)
        inverses = np.concatenate([base.inverses, inverses], axis=1)
    return Proposal(shares, base.products, means, roots, inverses, tables)


def _local_parts(z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (n, K, d), covariances (n, K, d, d) and shares (n, K) of clusters of whitened weighted points."""
    n, s, d = z.shape
    # centres by systematic resampling, then two rounds of moving each to the mean of the points nearest to it
    steps = np.broadcast_to((np.arange(_LOCAL) + 0.5) / _LOCAL, (n, _LOCAL))
    order = np.argsort(z[..., 0], axis=1)  # sorted, so that the centres spread over the points
    cumulative = np.cumsum(np.take_along_axis(w, order, axis=1), axis=1)
    at = np.minimum((cumulative[:, None, :] < steps[:, :, None]).sum(axis=-1), s - 1)
    centres = np.take_along_axis(z, np.take_along_axis(order, at, axis=1)[..., None], axis=1)
    member = np.zeros((n, s, _LOCAL))
    share = np.zeros((n, _LOCAL))
    for _ in range(2):
        distance = (centres**2).sum(-1)[:, None, :] - 2 * z @ np.swapaxes(centres, 1, 2)
        nearest = distance.argmin(axis=-1)
        member = (nearest[:, :, None] == np.arange(_LOCAL)) * w[:, :, None]  # (n, s, K)
        share = member.sum(axis=1)
        moved = np.swapaxes(member, 1, 2) @ z / np.maximum(share, 1e-300)[:, :, None]
        centres = np.where((share > 0)[:, :, None], moved, centres)
    scatter = np.empty(
        (n, _LOCAL, d, d)
    )  # about each centre: a difference of squares would not be positive where it is far
    for k in range(_LOCAL):
        centred = z - centres[:, k, None]
        scatter[:, k] = np.swapaxes(centred * member[:, :, k, None], 1, 2) @ centred
    # each cluster is rounded by d + 2 points of its own mean size, or, if it has hardly more itself, of the scatter
    # within all of them: parts may differ in size by orders of magnitude
    known = share**2 / np.maximum((member**2).sum(axis=1), 1e-300)
    own = scatter / np.maximum(share, 1e-300)[:, :, None, None]
    size = np.maximum(np.einsum("nkii->nk", own) / d, 0.0)[:, :, None, None] * np.eye(d)
    within = scatter.sum(axis=1, keepdims=True)
    known = known[:, :, None, None]
    covariance = (known * own + (d + 2) * np.where(known > d + 2, size, within)) / (known + d + 2)
    covariance = covariance + 1e-10 * np.eye(d)
    return centres, covariance, share / share.sum(axis=1, keepdims=True)


def _base_covariance(v: np.ndarray, log_base: np.ndarray) -> np.ndarray:
    """Of draws (n, s, d) weighted back to the base."""
    p = np.exp(log_base - log_base.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    centred = v - np.einsum("ns,nsd->nd", p, v)[:, None]
    return np.einsum("ns,nsd,nse->nde", p, centred, centred)


def _refit_table(table: np.ndarray, values: np.ndarray, w: np.ndarray) -> np.ndarray:
    seen = np.stack([(w * (values == k)).sum(axis=1) for k in range(table.shape[1])], axis=1)
    return 0.7 * seen + 0.3 * table


def _floor(covariance: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """A ridge of a rounding error's size: points may lie on a line."""
    d = covariance.shape[-1]
    size = np.diagonal(covariance, axis1=-2, axis2=-1) * 1e-9 + 1e-24 * (1 + mean**2)
    return size[:, :, None] * np.eye(d)
