"""A Gaussian process on landmarks: any number of labels at the cost of some hundred.

The landmarks are rows chosen by pivoted Cholesky. With ``phi(x) = L^-1 k(landmarks, x)``, L the factor of their
covariance, a label is ``phi(x) . w`` plus a remainder of variance ``1 - |phi(x)|^2`` (in units of the signal) which is its
own: with it as part of each label's noise (FITC) the weights have a Gaussian posterior, kept in square-root form
(`bayesian_linear.py`), and the variance of a prediction is ``1 - |phi|^2 + phi' S phi``: what the landmarks do not
explain stays in the variance. If all labels are landmarks this is the exact process.

A `Landmarks` has what `gaussian_process.predict` and `choose` look at (widths, inputs, weights, inverse_lower, jitter), so
both serve it as they are, at a cost that depends on the number of landmarks only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from heliograph.numerics.blas_threads import one_blas_thread
from heliograph.numerics.chunks import chunks
from heliograph.numerics.triangular import known_part, leading_cholesky
from heliograph.regression import bayesian_linear
from heliograph.regression.incomplete_cholesky import factorise
from heliograph.regression.labelled_rows import LabelledRows
from heliograph.regression.landmark_choice import choose_landmarks, worth
from heliograph.regression.squared_exponential import LEAST_SIGNAL, Widths, admit, correlations, departs

__all__ = ["Landmarks", "append", "condition", "leave_one_out", "rebuild"]

_CHUNK = 2048  # labels whose features are made at once


@dataclass(frozen=True, eq=False)
class Landmarks:
    """A posterior process on landmarks: what prediction and the next update need."""

    widths: Widths
    inputs: np.ndarray  # (M, k) the landmarks
    labels: LabelledRows  # all N
    left: np.ndarray  # (N,) what the landmarks did not explain of each when it was taken in
    jitter: float  # relative noise of every label
    corner: np.ndarray  # (M, M) Cholesky factor of the landmarks' correlations
    posteriors: tuple[bayesian_linear.Posterior, ...]  # of the weights: one, or one for each output with label noise
    chosen: np.ndarray  # (M,) which of the labelled rows the landmarks are

    def __len__(self) -> int:
        return self.inputs.shape[0]

    @property
    def lower(self) -> tuple[bayesian_linear.Posterior, ...]:
        """As many as there are different variances."""
        return self.posteriors

    @cached_property
    def inverse_corner(self) -> np.ndarray:
        """``L^-1``."""
        return np.tril(lapack.dtrtri(self.corner, lower=1)[0])  # type: ignore[attr-defined]

    @cached_property
    def weights(self) -> np.ndarray:
        """``(M, q)``: with them a mean is a product with the correlations with the landmarks."""
        return self.inverse_corner.T @ np.concatenate([p.mean for p in self.posteriors], axis=1)

    @cached_property
    def inverse_lower(self) -> np.ndarray:
        """``(f, M, M)``: H with ``|H c|^2`` what is known of a row of correlations c.

        The variance ``1 - |phi|^2 + phi' A^-1 phi`` is ``1 - phi' (I - A^-1) phi``, and the bracket has eigenvalues
        in [0, 1), so its own factor times ``L^-1`` makes the same product as for an exact process.
        """
        with one_blas_thread():
            return np.stack([known_part(p.factor, self.inverse_corner) for p in self.posteriors])


def condition(
    widths: Widths, labels: LabelledRows, limit: int = 400, profile: bool = True, least: float | None = None
) -> Landmarks:
    """The process given N labelled rows, on at most `limit` landmarks; O(N M^2).

    `least` is the share of a row's variance that must be unexplained for it to become one; None is what `worth` says.
    """
    labels = labels.checked(widths)
    widths = admit(widths, labels.inputs)
    least = worth(widths, labels.noise) if least is None else least
    return _profiled(_filled(widths, labels, choose_landmarks(widths, labels.inputs, limit, least)), profile)


def rebuild(widths: Widths, labels: LabelledRows, chosen: np.ndarray, left: np.ndarray) -> Landmarks:
    """The process with the landmarks `chosen` and the unexplained variances `left` of its labels; O(N M^2).

    The widths are taken as they are. Equal to the process that was saved up to rounding.
    """
    return _filled(widths, labels, chosen, left)


def _filled(widths: Widths, labels: LabelledRows, chosen: np.ndarray, left: np.ndarray | None = None) -> Landmarks:
    """All labels on given landmarks; `left` is what these leave unexplained of each, if that is known."""
    corner, chosen = _corner(widths, labels.inputs, chosen)
    q = labels.targets.shape[1]
    posteriors = (bayesian_linear.prior(len(chosen), q, 1.0, 1.0),)
    if labels.noise is not None:
        posteriors = (bayesian_linear.prior(len(chosen), 1, 1.0, 1.0),) * q
    none = labels.at(slice(0))
    known = Landmarks(widths, labels.inputs[chosen], none, np.zeros(0), widths.noise, corner, posteriors, chosen)
    for part in chunks(len(labels.inputs), _CHUNK):
        known = _add(known, labels.at(part), None if left is None else left[part])
    return known


def append(known: Landmarks, labels: LabelledRows, limit: int = 400, profile: bool = True) -> Landmarks:
    """The process after k more labelled rows: O(k M^2), and O(k N M) for those that become landmarks.

    A row becomes a landmark where the others leave too much of it unexplained, as long as there are fewer than `limit`.
    The unexplained variances of earlier labels are kept, which are too large rather than too small.
    """
    labels = labels.checked(known.widths)
    away = departs(known.widths, labels.inputs)
    if (away is not None and away.any()) or (labels.noise is None) != (known.labels.noise is None):
        return condition(known.widths, known.labels.joined(labels), limit, profile)
    least = worth(known.widths, known.labels.noise)
    new = _worst(known, labels.inputs, limit - len(known), least)
    if len(new):
        known = _settle(known, labels.inputs[new], len(known.labels.inputs) + new)
    return _profiled(_add(known, labels), profile)


def leave_one_out(known: Landmarks) -> tuple[np.ndarray, np.ndarray]:
    """Residual ``(N, q)`` of each label predicted from all the others, and the variance of that residual."""
    phi, targets = _features(known, known.labels.inputs), known.labels.targets
    residual, variance = np.empty(targets.shape), np.empty(targets.shape)
    for f, posterior in enumerate(known.posteriors):
        columns = slice(None) if len(known.posteriors) == 1 else slice(f, f + 1)
        noise = _noise(known, known.labels, known.left, f)
        mean, spread = bayesian_linear.predict(posterior, phi)
        kept = np.maximum(1 - spread / noise, 1e-12)[:, None]  # one less the leverage: 0 only where noise is
        residual[:, columns] = (targets[:, columns] - mean) / kept
        variance[:, columns] = known.widths.signal[columns] * (noise[:, None] / kept)
    return residual, variance


def _features(known: Landmarks, rows: np.ndarray) -> np.ndarray:
    """``phi(x)`` of rows, ``(n, M)``."""
    return correlations(known.widths, rows, known.inputs) @ known.inverse_corner.T


def _noise(known: Landmarks, labels: LabelledRows, left: np.ndarray, f: int) -> np.ndarray:
    """The whole noise ``(n,)`` of some labels at one output, over its signal: `left` is what landmarks leave unexplained."""
    return known.jitter + labels.relative_noise(known.widths, f) + left


def _add(known: Landmarks, labels: LabelledRows, left: np.ndarray | None = None) -> Landmarks:
    """Condition on labels, with the landmarks there are."""
    phi = _features(known, labels.inputs)
    # rounding may leave -1e-16 at a landmark
    own_left = np.maximum(1 - np.einsum("nm,nm->n", phi, phi), 0.0) if left is None else left
    posteriors = []
    for f, posterior in enumerate(known.posteriors):
        columns = slice(None) if len(known.posteriors) == 1 else slice(f, f + 1)
        noise = _noise(known, labels, own_left, f)
        posteriors.append(bayesian_linear.update(posterior, phi, labels.targets[:, columns], noise))
    return replace(
        known,
        labels=known.labels.joined(labels),
        left=np.concatenate([known.left, own_left]),
        posteriors=tuple(posteriors),
    )


def _worst(known: Landmarks, inputs: np.ndarray, limit: int, least: float) -> np.ndarray:
    """Choose rows to make landmarks, the worst explained first."""
    if limit <= 0:
        return np.zeros(0, dtype=int)
    phi = _features(known, inputs)
    left = np.maximum(1 - np.einsum("nm,nm->n", phi, phi), 0.0)
    some = np.flatnonzero(left > least)
    x, phi = inputs[some], phi[some]

    def column(i: int) -> np.ndarray:
        return correlations(known.widths, x, x[i : i + 1])[:, 0] - phi @ phi[i]

    found = factorise(left[some], column, limit, 0.0 if not len(some) else least / float(left[some].max()))
    return some[found.pivots]


def _settle(known: Landmarks, new: np.ndarray, numbers: np.ndarray) -> Landmarks:
    """Make rows landmarks: one more feature each, for the labels that there are already.

    The new features of old labels are at most the root of the noise these were given, so the normal equations lose
    no digits here.
    """
    w = known.widths
    m, k = len(known), len(new)
    side = _features(known, new)  # (k, M)
    block = correlations(w, new, new)
    np.fill_diagonal(block, 1.0)
    corner = np.zeros((m + k, m + k))
    corner[:m, :m], corner[m:, :m] = known.corner, side
    corner[m:, m:] = np.linalg.cholesky(block - side @ side.T)
    inverse = lapack.dtrtri(corner[m:, m:], lower=1)[0]  # type: ignore[attr-defined]
    f = len(known.posteriors)
    old_new = np.zeros((f, m, k))
    new_new = np.stack([np.eye(k)] * f)
    new_y = [np.zeros((k, p.n_outputs)) for p in known.posteriors]
    for part in chunks(len(known.labels.inputs), _CHUNK):
        labels = known.labels.at(part)
        phi = _features(known, labels.inputs)
        fresh = (correlations(w, labels.inputs, new) - phi @ side.T) @ np.tril(inverse).T  # (n, k)
        for j in range(f):
            columns = slice(None) if f == 1 else slice(j, j + 1)
            weighted = fresh / _noise(known, labels, known.left[part], j)[:, None]
            old_new[j] += phi.T @ weighted
            new_new[j] += fresh.T @ weighted
            new_y[j] += weighted.T @ labels.targets[:, columns]
    posteriors = tuple(
        bayesian_linear.widen(p, old_new[j], new_new[j], new_y[j]) for j, p in enumerate(known.posteriors)
    )
    inputs, chosen = np.concatenate([known.inputs, new]), np.concatenate([known.chosen, numbers])
    return replace(known, inputs=inputs, corner=corner, posteriors=posteriors, chosen=chosen)


def _corner(widths: Widths, inputs: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The landmarks' factor; the last ones are left out should it fail by rounding."""
    c = correlations(widths, inputs[chosen], inputs[chosen])
    np.fill_diagonal(c, 1.0)
    lower = leading_cholesky(c)
    return lower, chosen[: len(lower)]


def _profiled(known: Landmarks, profile: bool) -> Landmarks:
    """Signal variances at their best value, which without label noise is in closed form."""
    n = len(known.labels.inputs)
    if not profile or known.labels.noise is not None or not n:
        return known
    p = known.posteriors[0]
    left = p.triangle[p.n_features :, p.n_features :]
    signal = np.maximum((left**2).sum(axis=0) / n, LEAST_SIGNAL)
    return replace(known, widths=known.widths._replace(signal=signal))
