"""The regressions of the appendix's table, and ours: each learns beliefs of z in batch and predicts beliefs.

All but `kjit (text)` regress on (mean, log variance), as the authors' program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from heliograph.paper.batch.kernels import HOUSE, PROGRAM, Sizes, Trained, by_cholesky, by_features, decoded, encoded
from heliograph.paper.batch.learned import learned
from heliograph.paper.batch.messages import Labelled
from heliograph.paper.rivals.forest import ForestLearner
from heliograph.paper.rivals.forests import ExtraTrees, RandomForest
from heliograph.paper.rivals.heess2013 import HeessNetwork
from heliograph.paper.rivals.summaries import summarise

__all__ = ["KERNELS", "METHODS", "columns_of", "train", "with_mode_value"]


# ---- trees and networks ----------------------------------------------------------------------------------------------
def with_mode_value(incoming: dict[str, Any]) -> dict[str, Any]:
    """Add the factor's value at the mode to the columns that Eslami's trees see."""
    return {**incoming, "factor at the mode": expit(incoming["z"].mean)}


def columns_of(incoming: dict[str, Any]) -> np.ndarray:
    """What trees and networks see of a tuple: location and log spread of each message."""
    rows = summarise(incoming)
    return rows.values[:, rows.essential]


def _on_columns(make: Callable[[Sizes, int], Any]) -> Callable[..., Trained]:
    def fit(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Trained:
        model = make(sizes, int(rng.integers(2**31)))
        model.fit(columns_of(data.incoming), encoded(data.belief))
        return Trained(lambda incoming: decoded(model.predict(columns_of(incoming))[0]), None)

    return fit


def _eslami(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Trained:
    forest = ForestLearner(sizes.n_trees)
    forest.fit(rng, "z", with_mode_value(data.incoming), encoded(data.belief))
    return Trained(lambda incoming: decoded(forest.predict(with_mode_value(incoming))[0]), None)


# ---- ours ------------------------------------------------------------------------------------------------------------
def _ours(n_labels: int | None, reference: str = "auto") -> Callable[..., Trained]:
    def fit(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Trained:
        model = learned(data, n_labels, reference)
        return Trained(lambda incoming: model.predict(incoming).belief, {"labels": model.n_labels})

    return fit


KERNELS = ("mean variance", "expected product", "sum of expected products", "product of expected products")
# the paper's operator in batch: the text has expected statistics and exact embeddings, and no grid, so it has ours; the program has
# a grid of its own for each output, and no ridge below 1e-4
METHODS: dict[str, Callable[..., Trained]] = {
    "mean variance": by_features("mean_variance"),
    "expected product": by_features("expected_product"),
    "sum of expected products": by_features("sum"),
    "product of expected products": by_features("product"),
    "kjit (text)": by_features("joint_gaussian", HOUSE, "statistics", "exact"),
    "kjit (program)": by_features("joint_gaussian", PROGRAM),
    "kjit (house)": by_features("joint_gaussian"),
    "cholesky sum of gaussians": by_cholesky("sum_of_gaussians"),
    "cholesky joint gaussian": by_cholesky("joint_gaussian"),
    "random forest": _on_columns(lambda sizes, seed: RandomForest(sizes.n_trees, random_state=seed)),
    "extra trees": _on_columns(lambda sizes, seed: ExtraTrees(sizes.n_trees, random_state=seed)),
    "eslami forest": _eslami,
    "neural": _on_columns(lambda sizes, seed: HeessNetwork(max_iter=sizes.max_iter, random_state=seed)),
    "learned": _ours(None),
    "learned 100": _ours(100),
    "learned bare": _ours(None, "none"),
    "learned bare 100": _ours(100, "none"),
}


def train(method: str, rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Trained:
    """Let a method learn labelled messages."""
    return METHODS[method](rng, data, sizes)
