"""Widths of the kernels: the median heuristic of the paper's appendix, and grids for a selection.

The heuristic looks at the incoming messages only. A selection among the kernels of a grid needs targets and is done elsewhere
(`heliograph.paper.batch`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heliograph.errors import ModelError
from heliograph.kernels.embeddings import Embedding, Incoming, embed
from heliograph.kernels.expected_product import ExpectedProduct
from heliograph.kernels.inner_products import squared_distances, tuple_products, tuple_squared_norms
from heliograph.kernels.joint_gaussian import JointGaussian
from heliograph.kernels.mean_variance import MeanVariance
from heliograph.kernels.product import Product
from heliograph.kernels.sum import Sum

__all__ = ["heuristic", "joint_grid", "mean_variances", "median_distance2", "median_gaps2", "median_heuristic"]

_ROWS = 1000  # rows that a median is taken over: a million pairs


def mean_variances(incoming: Incoming | Embedding) -> np.ndarray:
    """The mean variance of the messages in each dimension, ``(c,)``: the appendix's inner widths.

    A dimension of point masses only has none; there the spread of their locations is taken, or 1 if they agree.
    """
    rows = embed(incoming)
    present = np.ones(rows.mean.shape, bool) if rows.absent is None else ~rows.absent
    count = np.maximum(present.sum(0), 1)
    variance = (rows.variance * present).sum(0) / count
    centre = (rows.mean * present).sum(0) / count
    spread = ((rows.mean - centre) ** 2 * present).sum(0) / count
    return np.where(variance > 0, variance, np.where(spread > 0, spread, 1.0))


def median_distance2(incoming: Incoming | Embedding, width2: np.ndarray) -> float:
    """The median of ``||mu_r - mu_s||^2`` over all pairs of tuples, each with itself included as in the paper."""
    rows = _thinned(embed(incoming))
    norms = tuple_squared_norms(rows, width2)
    median = float(np.median(squared_distances(norms, norms, tuple_products(rows, rows, width2))))
    return median if median > 0 else 1.0  # more than half of the tuples are the same one


def median_heuristic(
    incoming: Incoming | Embedding, factor: float = 1.0, axis: str = "identity", how: str = "moments"
) -> JointGaussian:
    """The paper's kernel with the appendix's widths: mean variances inside, the median squared distance outside.

    The authors' program took half of that median, ``factor=0.5``.
    """
    rows = embed(incoming, axis, how)
    width2 = mean_variances(rows)
    return JointGaussian(_floats(width2), factor * median_distance2(rows, width2), axis, how)


def heuristic(name: str, incoming: Incoming | Embedding, factor: float = 1.0) -> Any:
    """A kernel of any kind with widths from the messages alone.

    ``"joint_gaussian"`` as `median_heuristic`; ``"mean_variance"`` with the median squared gap of each number;
    ``"expected_product"``, ``"product"`` and ``"sum"`` with `factor` times the mean variances.
    """
    rows = embed(incoming)
    if name == "joint_gaussian":
        return median_heuristic(rows, factor)
    if name == "mean_variance":
        return MeanVariance(_floats(factor * median_gaps2(rows.vectors())))
    width2 = factor * mean_variances(rows)
    if name == "expected_product":
        return ExpectedProduct(_floats(width2))
    nested = tuple(_floats(width2[span]) for span in rows.spans)
    if name == "product":
        return Product(nested)
    if name == "sum":
        return Sum(nested)
    raise ModelError(
        f"there is no kernel named {name!r}; there are joint_gaussian, mean_variance, expected_product, product and sum"
    )


def median_gaps2(values: np.ndarray) -> np.ndarray:
    """The median squared difference between rows in each column, ``(k,)``; of the unequal pairs if most are equal."""
    values = values[_thin(len(values))]
    out = []
    for column in values.T:
        gaps2 = (column[:, None] - column[None, :]) ** 2
        median = float(np.median(gaps2))
        if median == 0 and gaps2.any():
            median = float(np.median(gaps2[gaps2 > 0]))
        out.append(median if median > 0 else 1.0)
    return np.array(out)


def joint_grid(
    incoming: Incoming | Embedding,
    inner: Sequence[float] = (0.1, 0.3, 1.0),
    outer: Sequence[float] = (1.0, 4.0, 16.0),
    how: str = "moments",
) -> list[JointGaussian]:
    """Kernels to choose from: `inner` times the mean variances, `outer` times the median squared distance.

    Widths well below the mean variance with a wide outer kernel do best on exact labels, and the median heuristic
    itself (1, 1) is among them.
    """
    rows = embed(incoming, how=how)
    base = mean_variances(rows)
    kernels = []
    for a in inner:
        gamma2 = median_distance2(rows, a * base)
        kernels += [JointGaussian(_floats(a * base), b * gamma2, how=how) for b in outer]
    return kernels


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(v) for v in values)


def _thin(n: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(int)) if n else np.zeros(0, int)


def _thinned(rows: Embedding) -> Embedding:
    return rows if len(rows) <= _ROWS else rows[_thin(len(rows))]
