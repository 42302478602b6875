"""Weighted sums that grow chunk by chunk, in the log domain: all that importance sampling has to remember.

The memory is that of the sums, whatever the number of draws: the largest log weight so far, sums of ``w``, ``w t`` and
(for pseudo-random draws) ``w^2``, ``w^2 t``, ``w^2 t t'`` relative to it, and the largest weights for the tail.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["FIRST", "Estimate", "Sums", "add", "empty_sums", "estimate"]

FIRST = 1024  # draws of a row from which the units of its statistics are taken


class Sums(NamedTuple):
    """Arrays that `add` changes in place."""

    count: np.ndarray  # (n,)
    impossible: np.ndarray  # (n,) draws with no weight at all: what came out is not what was seen
    offset: np.ndarray  # (n,), the largest log weight so far
    w: np.ndarray  # (R, n)
    wt: np.ndarray  # (R, n, Q)
    w2: np.ndarray  # (n,)
    w2t: np.ndarray  # (n, Q)
    w2tt: tuple[np.ndarray, ...]  # (n, q, q) for each block of statistics
    unit: np.ndarray  # (n, Q), weighted mean size of each statistic in the first draws; NaN before
    tails: (
        np.ndarray
    )  # (n, 1 + number of blocks, M + 1), the largest log weights, alone and times each block's statistics
    blocks: tuple[slice, ...]


class Estimate(NamedTuple):
    """Self-normalised estimates with their errors."""

    mean: np.ndarray  # (n, Q)
    covariances: tuple[np.ndarray, ...]  # (n, q, q) for each block
    log_z: np.ndarray  # (n,)
    log_z_error: np.ndarray  # (n,)
    ess: np.ndarray  # (n,)


def empty_sums(n: int, blocks: tuple[slice, ...], n_replicates: int, n_tail: int) -> Sums:
    """Nothing drawn yet."""
    width = max((b.stop for b in blocks), default=0)
    squares = tuple(np.zeros((n, b.stop - b.start, b.stop - b.start)) for b in blocks) if n_replicates == 1 else ()
    return Sums(
        count=np.zeros(n),
        impossible=np.zeros(n),
        offset=np.full(n, -np.inf),
        w=np.zeros((n_replicates, n)),
        wt=np.zeros((n_replicates, n, width)),
        w2=np.zeros(n),
        w2t=np.zeros((n, width)),
        w2tt=squares,
        unit=np.full((n, width), np.nan),
        tails=np.full((n, max(1, len(blocks)), n_tail + 1), -np.inf),
        blocks=blocks,
    )


def add(
    sums: Sums, rows: np.ndarray, first: int, log_weights: np.ndarray, statistics: np.ndarray, n_replicates: int = 1
) -> None:
    """Add draws of some rows, log weights (r, s) and statistics (r, s, Q), to as many replicates from the `first` on."""
    old = sums.offset[rows]
    top = np.maximum(old, log_weights.max(axis=1))
    live = np.isfinite(top)
    safe = np.where(live, top, 0.0)
    shrink = np.where(live, np.exp(np.where(np.isfinite(old), old, -np.inf) - safe), 1.0)
    sums.offset[rows] = top
    w = np.exp(log_weights - safe[:, None])  # at most 1
    sums.count[rows] += log_weights.shape[1]
    sums.impossible[rows] += np.isneginf(log_weights).sum(axis=1)
    sums.w[:, rows] *= shrink
    sums.wt[:, rows] *= shrink[:, None]
    r, s, q = statistics.shape
    apart = w.reshape(r, n_replicates, 1, s // n_replicates)
    own = slice(first, first + n_replicates)
    sums.w[own, rows] += apart.sum(axis=(2, 3)).T
    wt = apart @ statistics.reshape(r, n_replicates, s // n_replicates, q)  # (r, replicates, 1, Q)
    sums.wt[own, rows] += np.swapaxes(wt[:, :, 0], 0, 1)
    w2 = w * w
    sums.w2[rows] = sums.w2[rows] * shrink**2 + w2.sum(axis=1)
    if sums.w2tt:
        shrink2 = (shrink**2)[:, None]
        sums.w2t[rows] = sums.w2t[rows] * shrink2 + (w2[:, None, :] @ statistics)[:, 0]
        weighted = w[:, :, None] * statistics
        for block, total in zip(sums.blocks, sums.w2tt, strict=True):
            part = weighted[:, :, block]
            total[rows] = total[rows] * shrink2[:, None] + np.swapaxes(part, 1, 2) @ part
    _keep_largest(sums, rows, w, log_weights, statistics)


def estimate(sums: Sums) -> Estimate:
    """The estimates so far: eq. (2), divided by the sum of the weights.

    The errors are those of a ratio (delta method): from the draws themselves where they are independent, from the
    spread of the replicates where they are not.
    """
    total = sums.w.sum(axis=0)
    live = total > 0
    w = np.where(live, total, 1.0)
    mean = sums.wt.sum(axis=0) / w[:, None]
    n = np.maximum(sums.count, 2.0)
    covariances = []
    n_replicates = len(sums.w)
    if n_replicates == 1:
        for block, squares in zip(sums.blocks, sums.w2tt, strict=True):
            mu, cross = mean[:, block], sums.w2t[:, block]
            c = squares - mu[:, :, None] * cross[:, None, :] - cross[:, :, None] * mu[:, None, :]
            c = c + sums.w2[:, None, None] * mu[:, :, None] * mu[:, None, :]
            covariances.append(c / (w**2)[:, None, None] * (n / (n - 1))[:, None, None])
        relative = np.maximum(n * sums.w2 / w**2 - 1, 0.0) / (n - 1)
    else:
        # for the mean taken out; what 16 replicates say of their own spread is uncertain by a third, both ways
        correct = n_replicates / (n_replicates - 1)
        residual = (sums.wt - mean * sums.w[:, :, None]) / w[:, None]  # (R, n, Q)
        for block in sums.blocks:
            r = residual[:, :, block]
            covariances.append(correct * np.einsum("rni,rnj->nij", r, r))
        relative = correct * ((sums.w / w - 1 / n_replicates) ** 2).sum(axis=0)
    log_z = np.where(live, sums.offset + np.log(w) - np.log(n), -np.inf)
    ess = np.where(live, w**2 / np.where(live, sums.w2, 1.0), 0.0)
    return Estimate(mean, tuple(covariances), log_z, np.where(live, np.sqrt(relative), np.inf), ess)


def _keep_largest(sums: Sums, rows: np.ndarray, w: np.ndarray, log_weights: np.ndarray, statistics: np.ndarray) -> None:
    """The largest weights, and the largest weights times the size of a port's statistics.

    A weight may be harmless and its product with a statistic not: an expectation can rest on a few draws far out.
    """
    size = np.abs(statistics)
    new = np.isnan(sums.unit[rows, 0])
    if new.any():
        p = w[new, :FIRST] + 1e-12  # all alike where nothing has a weight
        unit = (p[:, None, :] @ size[new, :FIRST])[:, 0] / p.sum(axis=1)[:, None]
        sums.unit[rows[new]] = np.maximum(unit, 1e-100)
    size /= sums.unit[rows][:, None]
    keep = sums.tails.shape[2]
    for k in range(sums.tails.shape[1]):
        here = log_weights
        if k:
            here = log_weights + np.log(size[:, :, sums.blocks[k - 1]].sum(axis=-1) + 1e-300)
        both = np.concatenate([sums.tails[rows, k], here], axis=1)
        sums.tails[rows, k] = np.partition(both, both.shape[1] - keep, axis=1)[:, -keep:]
