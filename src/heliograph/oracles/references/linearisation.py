"""Iterated posterior linearisation: the reference belief of a deterministic factor of several unknown numbers.

The function is replaced by the line that fits it best over sigma points (three Gauss-Hermite nodes a coordinate), with
the misfit as noise; then everything is Gaussian on the charts. The first fit is over the cavity, six more over the last
reference of the inputs, each averaged half and half with the one before.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from heliograph.families.charts import DensityChart, density_chart_of
from heliograph.oracles.references.output import Output, output_of
from heliograph.oracles.references.record import Question, Reference, values

__all__ = ["Linearised", "blocks_of", "charts_of", "joint_moments", "linearise", "several_unknown"]

_PASSES = 7
_MOST_COORDINATES = 5  # 3^5 = 243 sigma points a pass


class _Fit(NamedTuple):
    """``output = slope' x + offset + noise``."""

    slope: np.ndarray  # (n, k)
    offset: np.ndarray  # (n,)
    noise: np.ndarray  # (n,) variance


class _Update(NamedTuple):
    """What the fitted line and the output's message make of the cavity."""

    mean: np.ndarray  # (n, k)
    covariance: np.ndarray  # (n, k, k)
    out_mean: np.ndarray  # (n,)
    out_variance: np.ndarray  # (n,)
    predicted: tuple[np.ndarray, np.ndarray]  # of the output from the cavity alone
    site: tuple[np.ndarray, np.ndarray, np.ndarray]  # shift, precision, log height of the output's message


class Linearised(NamedTuple):
    """What iterated linearisation makes of a plate."""

    update: _Update
    summaries: np.ndarray  # (n, 4)
    n_evaluations: int


def several_unknown(question: Question) -> Reference | None:
    """Reference beliefs of an unknown input or of the output; None if there are too many unknown numbers."""
    out, to = output_of(question.out), question.to
    blocks, k = blocks_of(question.unknown)
    if k > _MOST_COORDINATES:
        return None
    found = linearise(question, out)
    update = found.update
    if to in blocks:
        block = blocks[to]
        at = block.start if charts_of(question.unknown)[to].scalar else block
        moments = update.mean[:, at], update.covariance[:, at, at]
    else:
        moments = update.out_mean, update.out_variance
    log_z = _log_z(update) - out.log_constant() if to is None else None
    return Reference(moments, found.summaries, log_z, np.zeros(len(update.mean)), found.n_evaluations)


def linearise(question: Question, out: Output) -> Linearised:
    """Seven passes over a plate; `out` is the output's message on its chart."""
    m, s = joint_moments(question.unknown)
    k = m.shape[1]
    points, weights = _sigma_points(k)
    mean, covariance, fit, first, out_at = m, s, None, None, None
    for _ in range(_PASSES):
        new = _fit(question, out, mean, covariance, points, weights)
        fit = new if fit is None else _Fit(*(0.5 * (a + b) for a, b in zip(fit, new, strict=True)))
        update = _update(m, s, fit, out, out_at)
        first = first or (fit, update)
        mean, covariance, out_at = update.mean, update.covariance, update.out_mean
    assert fit is not None and first is not None
    summaries = np.stack([*_surprise(*first), _residual(fit, update)], axis=1)
    return Linearised(update, summaries, _PASSES * len(m) * len(points))


def charts_of(unknown: Mapping[str, Any]) -> dict[str, DensityChart]:
    """The chart of each unknown input."""
    found = {port: density_chart_of(message) for port, message in unknown.items()}
    return {port: chart for port, chart in found.items() if chart is not None}


def blocks_of(unknown: Mapping[str, Any]) -> tuple[dict[str, slice], int]:
    """Where each unknown input stands among all unknown numbers, and how many these are."""
    blocks, k = {}, 0
    charts = charts_of(unknown)
    for port in unknown:
        blocks[port] = slice(k, k + charts[port].n_coordinates)
        k = blocks[port].stop
    return blocks, k


def joint_moments(unknown: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Mean ``(n, k)`` and covariance ``(n, k, k)`` of all unknown numbers on their charts, from their messages."""
    blocks, k = blocks_of(unknown)
    charts = charts_of(unknown)
    n = len(next(iter(unknown.values())))
    mean, covariance = np.zeros((n, k)), np.zeros((n, k, k))
    for port, message in unknown.items():
        chart, block = charts[port], blocks[port]
        at = block.start if chart.scalar else block
        mean[:, at], covariance[:, at, at] = message.chart_moments() if chart.scalar else chart.moments(message)
    return mean, covariance


def _sigma_points(k: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = np.array([-np.sqrt(3.0), 0.0, np.sqrt(3.0)]), np.array([1 / 6, 2 / 3, 1 / 6])
    chosen = np.array(list(product(range(3), repeat=k)))
    return x[chosen], w[chosen].prod(axis=1)


def _fit(
    question: Question,
    out: Output,
    mean: np.ndarray,
    covariance: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
) -> _Fit:
    n, size = len(mean), len(points)
    root = np.linalg.cholesky(covariance)
    deviations = points @ np.swapaxes(root, 1, 2)  # (n, p, k)
    x = (mean[:, None] + deviations).reshape(n * size, -1)
    inputs = {port: np.repeat(a, size, axis=0) for port, a in question.constants.items()}
    blocks, _ = blocks_of(question.unknown)
    for port, chart in charts_of(question.unknown).items():
        inputs[port] = chart.value(x[:, blocks[port].start if chart.scalar else blocks[port]])
    value, _ = values(question, inputs, n * size)
    y = out.look(value.reshape(n, size).T)[0].T
    y_mean = y @ weights
    gap = y - y_mean[:, None]
    variance = gap**2 @ weights
    cross = np.einsum("np,npk->nk", gap * weights, deviations)
    slope = np.linalg.solve(covariance, cross[..., None])[..., 0]
    noise = np.maximum(variance - (slope * cross).sum(axis=1), 0.0)
    return _Fit(slope, y_mean - (slope * mean).sum(axis=1), noise)


def _update(m: np.ndarray, s: np.ndarray, fit: _Fit, out: Output, out_at: np.ndarray | None) -> _Update:
    """The Kalman step against the cavity, in natural parameters of the output: a uniform message is no special case."""
    sa = np.einsum("nij,nj->ni", s, fit.slope)
    ey = (fit.slope * m).sum(axis=1) + fit.offset
    cy = np.maximum((fit.slope * sa).sum(axis=1) + fit.noise, 1e-12 * (1 + ey**2))  # a flat function has no spread
    shift, precision, height = out.site(ey if out_at is None else out_at)
    growth = 1.0 + precision * cy
    mean = m + sa * ((shift - precision * ey) / growth)[:, None]
    covariance = s - sa[:, :, None] * sa[:, None, :] * (precision / growth)[:, None, None]
    return _Update(mean, covariance, (ey + cy * shift) / growth, cy / growth, (ey, cy), (shift, precision, height))


def _log_z(update: _Update) -> np.ndarray:
    (ey, cy), (shift, precision, height) = update.predicted, update.site
    growth = 1.0 + precision * cy
    return height - 0.5 * np.log(growth) + (shift * ey - 0.5 * precision * ey**2 + 0.5 * shift**2 * cy) / growth


def _residual(fit: _Fit, update: _Update) -> np.ndarray:
    """Log share of what the line does not explain in all the spread of the output that is left to explain."""
    _, cy = update.predicted
    return np.log(fit.noise / (cy + _message_variance(update)) + 1e-3)


def _message_variance(update: _Update) -> np.ndarray:
    _, cy = update.predicted
    return 1.0 / np.maximum(update.site[1], 1e-6 / cy)  # a message a thousand times wider than what it meets is flat


def _surprise(fit: _Fit, update: _Update) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    (ey, cy), (shift, precision, _) = update.predicted, update.site
    vo = _message_variance(update)
    z = (shift - precision * ey) * vo / np.sqrt(cy + vo)
    return z, np.log(cy / vo), _residual(fit, update)
