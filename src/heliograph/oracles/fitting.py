"""Re-fitting a proposal to where the weight was seen: tempered moments, then local parts."""

from __future__ import annotations

import numpy as np

from heliograph.oracles.diagnostics import effective_sample_size
from heliograph.oracles.problem import Problem
from heliograph.oracles.proposal import Proposal, _columns

__all__ = ["fit", "temper"]

_LOCAL = 12  # Gaussians placed where the weight is, so that a ring or two modes are followed
_WIDEN = 1.5  # times the variance that was seen: a proposal should be wider than its target


def temper(log_weights: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """The largest power of the weights (at most 1) that leaves an effective sample size of `least`, and those weights.

    A first proposal may be a thousand nats away from its target; the power says how far to go in this round.
    """
    top = log_weights.max(axis=1, keepdims=True)
    spread = np.where(np.isfinite(top), log_weights - np.where(np.isfinite(top), top, 0.0), 0.0)
    low, high = np.zeros(len(spread)), np.ones(len(spread))
    power = high.copy()
    for _ in range(40):
        scaled = np.where(np.isfinite(spread), spread * power[:, None], -np.inf)
        enough = effective_sample_size(scaled) >= least
        low, high = np.where(enough, power, low), np.where(enough, high, power)
        power = np.where(enough & (power == 1.0), 1.0, np.sqrt(np.maximum(low, 1e-12) * high))
    power = np.where(low > 0, low, 1e-12)
    w = np.exp(np.where(np.isfinite(spread), spread * power[:, None], -np.inf))
    # very far away, a crowd of bad draws outweighs the few good ones at such a power: take the best few alike
    few = max(1, int(least))
    threshold = np.partition(spread, -few, axis=1)[:, [-few]]
    best = (spread >= threshold) & np.isfinite(spread)
    w = np.where((power < 0.01)[:, None], best, w)
    return w / w.sum(axis=1, keepdims=True), power


def fit(
    rng: np.random.Generator, problem: Problem, base: Proposal, u: np.ndarray, w: np.ndarray, power: np.ndarray
) -> Proposal:
    """A proposal from draws (n, s, D) with weights (n, s) that sum to 1 and were tempered by `power`.

    Two tenths stay with `base`, so that whatever the fit missed can still be met.
    """
    columns = _columns(problem)
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
    whole = whole + _floor(whole, mean)
    root = np.linalg.cholesky(whole)
    z = np.linalg.solve(root, np.swapaxes(centred, 1, 2)).swapaxes(1, 2)  # whitened
    means, covariances, shares = _local_parts(rng, z, w)
    local_means = mean[:, None] + means @ np.swapaxes(root, 1, 2)
    local_roots = root[:, None] @ np.linalg.cholesky(_WIDEN * covariances)
    means = np.concatenate([mean[:, None], mean[:, None], local_means], axis=1)
    # far from the target (a small power) the widest part strides ahead
    stride = np.sqrt(2 * _WIDEN * np.minimum(1 / power, 16.0))
    wide = np.stack([stride, 2.5 * stride], axis=1)  # the second for tails that fall off slower than a Gaussian's
    roots = np.concatenate([wide[:, :, None, None] * root[:, None], local_roots], axis=1)
    shares = np.concatenate([0.2 * base.weights, np.full((n, 1), 0.2), np.full((n, 1), 0.05), 0.55 * shares], axis=1)
    inverses = np.linalg.inv(roots)
    if base.means.shape[1]:
        means, roots = np.concatenate([base.means, means], axis=1), np.concatenate([base.roots, roots], axis=1)
        inverses = np.concatenate([base.inverses, inverses], axis=1)
    return Proposal(shares, base.products, means, roots, inverses, tables)


def _local_parts(rng: np.random.Generator, z: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (n, K, d), covariances (n, K, d, d) and shares (n, K) of clusters of whitened weighted points."""
    n, s, d = z.shape
    # centres by systematic resampling, then two rounds of moving each to the mean of the points nearest to it
    steps = (np.arange(_LOCAL) + rng.random((n, 1))) / _LOCAL
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
    squares = (z[..., :, None] * z[..., None, :]).reshape(n, s, d * d)
    scatter = (np.swapaxes(member, 1, 2) @ squares).reshape(n, _LOCAL, d, d)
    scatter = scatter - share[:, :, None, None] * centres[..., :, None] * centres[..., None, :]
    # each cluster borrows from the whole as if it had seen d + 2 more points of bandwidth h
    h2 = (4 / (_LOCAL * (d + 2))) ** (2 / (d + 4))
    known = share**2 / np.maximum((member**2).sum(axis=1), 1e-300)
    per_unit = known / np.maximum(share, 1e-300)
    covariance = scatter * per_unit[:, :, None, None] + (d + 2) * h2 * np.eye(d)
    covariance = covariance / (known + d + 2)[:, :, None, None]
    return centres, covariance, share / share.sum(axis=1, keepdims=True)


def _refit_table(table: np.ndarray, values: np.ndarray, w: np.ndarray) -> np.ndarray:
    seen = np.stack([(w * (values == k)).sum(axis=1) for k in range(table.shape[1])], axis=1)
    return 0.7 * seen + 0.3 * table


def _floor(covariance: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """A ridge of a rounding error's size: points may lie on a line."""
    d = covariance.shape[-1]
    size = np.diagonal(covariance, axis1=-2, axis2=-1) * 1e-9 + 1e-24 * (1 + mean**2)
    return size[:, :, None] * np.eye(d)
