"""Exact Gaussian process regression: squared exponential with a width per input, several outputs, labels with noise.

`Widths` holds the parameters chosen by evidence, `Process` the quantities that prediction needs. Zero mean; all outputs share
the widths and each has its own signal variance; the noise is relative to the signal, and a label may bring a noise variance of
its own. Inputs are rows of numbers. A column that never varied is dropped (its width is infinite), and a row that departs from
the constant is predicted with the variance of the prior: nothing is known there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

from heliograph.errors import ModelError
from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.numerics.chunks import CHUNK, chunks
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.squared_exponential import (
    LEAST_SIGNAL,
    Widths,
    admit,
    correlations,
    departs,
    start_widths,
)

__all__ = [
    "Process",
    "Widths",
    "append",
    "choose",
    "condition",
    "correlations",
    "leave_one_out",
    "log_evidence",
    "predict",
    "start_widths",
]


@dataclass(frozen=True, eq=False)
class Process:
    """A posterior process: its parameters, its points and the factor of their covariance."""

    widths: Widths
    labels: LabelledRows
    jitter: float  # relative noise actually on the diagonal: `widths.noise`, or more where Cholesky failed
    lower: np.ndarray  # (f, N, N) Cholesky factors of the covariance over the signal; f is 1, or q with label noise
    weights: np.ndarray  # (N, q) inverse of that covariance times the targets

    def __len__(self) -> int:
        return len(self.labels.inputs)

    @property
    def inputs(self) -> np.ndarray:
        """The labelled rows ``(N, k)``."""
        return self.labels.inputs

    @cached_property
    def inverse_lower(self) -> np.ndarray:
        """``(f, N, N)``: with it a plate's variances are one matrix product."""
        return np.stack([np.tril(_inverse(lower)) for lower in self.lower]) if len(self) else self.lower


def condition(widths: Widths, labels: LabelledRows, profile: bool = True) -> Process:
    """The process given N labelled rows; N may be 0.

    Without label noise the signal variances are profiled again on these labels, unless `profile` is False; with it they
    are kept.
    """
    labels = labels.checked(widths)
    widths = admit(widths, labels.inputs)
    c = correlations(widths, labels.inputs, labels.inputs)
    np.fill_diagonal(c, 1.0)
    lower, jitter = _factors(c, widths, labels)
    return _finish(widths, labels, jitter, lower, profile)


def append(process: Process, labels: LabelledRows, profile: bool = True) -> Process:
    """The process after k more labelled rows, by a block update of the factor: O(k N^2) instead of O(N^3)."""
    widths = process.widths
    labels = labels.checked(widths)
    together = process.labels.joined(labels)
    away = departs(widths, labels.inputs)
    grew = away is not None and away.any()
    n_factors = 1 if together.noise is None else labels.targets.shape[1]
    if grew or n_factors != len(process.lower) or process.jitter > widths.noise:
        return condition(widths, together, profile)
    cross = correlations(widths, process.inputs, labels.inputs)
    block = correlations(widths, labels.inputs, labels.inputs)
    np.fill_diagonal(block, 1.0)
    n, k = cross.shape
    lower = np.zeros((n_factors, n + k, n + k))
    for f in range(n_factors):
        extra = labels.relative_noise(widths, f)
        side = solve_triangular(process.lower[f], cross, lower=True, check_finite=False) if n else cross
        corner, info = _cholesky(block + np.diag(process.jitter + extra) - side.T @ side)
        if info:
            return condition(widths, together, profile)
        lower[f, :n, :n] = process.lower[f]
        lower[f, n:, :n] = side.T
        lower[f, n:, n:] = corner
    return _finish(widths, together, process.jitter, lower, profile)


def predict(process: Process, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the noise-free outputs, both ``(n, q)``, by matrix products in chunks of 512 rows."""
    rows = np.asarray(rows, dtype=float)
    signal = process.widths.signal
    mean = np.zeros((len(rows), signal.size))
    relative = np.ones((len(rows), len(process.lower)))
    if len(process):
        with one_blas_thread():
            for part in chunks(len(rows), CHUNK):
                c = correlations(process.widths, rows[part], process.inputs)
                np.matmul(c, process.weights, out=mean[part])
                for f, inverse in enumerate(process.inverse_lower):
                    half = c @ inverse.T
                    relative[part, f] -= np.einsum("nd,nd->n", half, half)
    return mean, np.maximum(relative, 0.0) * signal  # rounding may leave -1e-16 at a point that is known


def choose(
    process: Process,
    rows: np.ndarray,
    weights: np.ndarray | None = None,
    tolerance: float = 0.0,
    limit: int | None = None,
) -> np.ndarray:
    """Numbers of the rows to label at once, in order: a pivoted Cholesky, which needs none of the labels.

    Takes the row of largest ``sum_q weights[i, q] variance[i, q]``, conditions the others' variances on it, and
    repeats until all are at most `tolerance` or `limit` are taken. Without weights the variance is measured in units
    of the signal.
    """
    rows = np.asarray(rows, dtype=float)
    weights = np.broadcast_to(
        1 / process.widths.signal if weights is None else weights, (len(rows), len(process.widths.signal))
    )
    limit = len(rows) if limit is None else min(limit, len(rows))
    # conditioning only ever lowers a variance, so a row below the tolerance is never taken
    open_rows = np.flatnonzero((weights * predict(process, rows)[1]).sum(1) > tolerance)
    pivots = _Pivots(process, rows[open_rows])
    weights = weights[open_rows]
    taken: list[int] = []
    while len(taken) < min(limit, len(open_rows)):
        score = (weights * pivots.variances()).sum(1)
        score[taken] = -np.inf  # its own label is coming, however small the tolerance
        i = int(np.argmax(score))
        if not score[i] > tolerance:
            break
        pivots.take(i)
        taken.append(i)
    return open_rows[taken]


def leave_one_out(process: Process) -> tuple[np.ndarray, np.ndarray]:
    """Residual ``(N, q)`` of each label predicted from all the others, and the variance of that residual."""
    inverse_diagonal = np.stack([(inverse**2).sum(0) for inverse in process.inverse_lower], axis=1)  # (N, f)
    return process.weights / inverse_diagonal, process.widths.signal / inverse_diagonal


def log_evidence(process: Process) -> np.ndarray:
    """``log p(targets)`` of each output, ``(q,)``."""
    n, signal = len(process), process.widths.signal
    log_det = 2 * np.log(np.diagonal(process.lower, axis1=1, axis2=2)).sum(1)
    fit = (process.labels.targets * process.weights).sum(0) / signal
    return -0.5 * (fit + log_det + n * np.log(2 * np.pi * signal))


class _Pivots:
    """Residual variances of candidate rows while some are taken as if labelled."""

    def __init__(self, process: Process, rows: np.ndarray) -> None:
        self.process, self.rows = process, rows
        c = correlations(process.widths, rows, process.inputs)
        self.halves = [c @ inverse.T for inverse in process.inverse_lower]  # f arrays (n, N)
        self.columns = [np.zeros((len(rows), 0)) for _ in self.halves]  # f arrays (n, number taken), with room to grow
        self.n_taken = 0
        self.relative = np.stack([np.maximum(1 - (h**2).sum(1), 0.0) for h in self.halves], axis=1)  # (n, f)

    def take(self, i: int) -> None:
        """Condition on row i."""
        c = correlations(self.process.widths, self.rows, self.rows[i : i + 1])[:, 0]
        for f, half in enumerate(self.halves):
            done = self.columns[f][:, : self.n_taken]
            column = c - half @ half[i] - done @ done[i]
            column /= np.sqrt(self.relative[i, f] + self.process.jitter)
            if self.n_taken == self.columns[f].shape[1]:
                room = np.zeros((len(self.rows), max(8, self.n_taken)))
                self.columns[f] = np.concatenate([self.columns[f], room], axis=1)
            self.columns[f][:, self.n_taken] = column
            self.relative[:, f] = np.maximum(self.relative[:, f] - column**2, 0.0)
        self.n_taken += 1

    def variances(self) -> np.ndarray:
        return self.relative * self.process.widths.signal


def _cholesky(a: np.ndarray) -> tuple[np.ndarray, int]:
    """The lower factor, and 0 or where it failed."""
    return lapack.dpotrf(a, lower=1, clean=1)  # type: ignore[attr-defined]


def _inverse(lower: np.ndarray) -> np.ndarray:
    return lapack.dtrtri(lower, lower=1)[0]  # type: ignore[attr-defined]


def _factors(c: np.ndarray, widths: Widths, labels: LabelledRows) -> tuple[np.ndarray, float]:
    """Cholesky factors of the covariance over the signal; the noise times 10 as often as it fails."""
    n = len(c)
    n_factors = 1 if labels.noise is None else widths.signal.size
    jitter = widths.noise
    while True:
        lower = np.zeros((n_factors, n, n))
        for f in range(n_factors if n else 0):
            factor, info = _cholesky(c + np.diag(jitter + labels.relative_noise(widths, f)))
            if info:
                break
            lower[f] = factor
        else:
            return lower, jitter
        jitter *= 10
        if jitter > 1:
            raise ModelError("the covariance of a process cannot be factored; its inputs are not finite numbers")


def _finish(widths: Widths, labels: LabelledRows, jitter: float, lower: np.ndarray, profile: bool) -> Process:
    targets = labels.targets
    n, q = targets.shape
    weights = np.zeros((n, q))
    for f in range(len(lower) if n else 0):
        columns = slice(None) if len(lower) == 1 else slice(f, f + 1)
        half = solve_triangular(lower[f], targets[:, columns], lower=True, check_finite=False)
        weights[:, columns] = solve_triangular(lower[f], half, lower=True, trans=1, check_finite=False)
    if profile and labels.noise is None and n:
        signal = np.maximum((targets * weights).sum(0) / n, LEAST_SIGNAL)
        widths = widths._replace(signal=signal)
    return Process(widths, labels, jitter, lower, weights)
