"""The regressions of the appendix's table, and ours: each learns beliefs of z in batch and predicts beliefs.

All regress on (mean, log variance), as the authors' program. Kernels on random features share one way to choose: widths
by the leave-one-out error of a grid on some of the rows with half of the features, then the ridge with all of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from heliograph.families import Gaussian
from heliograph.families.coordinates import logs_of
from heliograph.kernels import Sum, embed, heuristic, joint_grid, mean_variances, median_distance2
from heliograph.paper.batch.learned import learned
from heliograph.paper.batch.messages import Labelled
from heliograph.paper.rivals.forest import ForestLearner
from heliograph.paper.rivals.forests import ExtraTrees, RandomForest
from heliograph.paper.rivals.heess2013 import HeessNetwork
from heliograph.paper.rivals.summaries import summarise
from heliograph.regression import ridge
from heliograph.regression.incomplete_cholesky import factorise, features

__all__ = [
    "RIDGES",
    "METHODS",
    "Sizes",
    "Trained",
    "columns_of",
    "decoded",
    "encoded",
    "kernel_grid",
    "random_map",
    "select_map",
    "train",
    "with_mode_value",
]

Predict = Callable[[dict[str, Any]], Gaussian]
_SELECTED_ON = 2000  # rows that widths are selected on
# of the heuristic widths: kernels of two stages have these nine, all others these eleven, wide enough for none to end on an edge
_INNER, _OUTER = (0.03, 0.1, 0.3), (0.3, 1.0, 4.0)
_WIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
RIDGES = tuple(10.0**k for k in range(-12, 1))
_WIDEST = 40.0  # |log variance| beyond which a prediction is cut, so that it stays a belief


class Sizes(NamedTuple):
    """How large the regressions are."""

    D_in: int = 500
    D_out: int = 1000
    rank: int = 500  # of an incomplete Cholesky factorisation
    n_trees: int = 64
    max_iter: int = 1000  # of the network's training


class Trained(NamedTuple):
    """A method that has learned, and what it chose on the way."""

    predict: Predict
    chosen: dict[str, Any] | None


def encoded(belief: Gaussian) -> np.ndarray:
    """Beliefs as (mean, log variance)."""
    return logs_of(Gaussian).encode(belief)


def decoded(y: np.ndarray) -> Gaussian:
    """Beliefs from predicted (mean, log variance)."""
    return Gaussian(y[:, 0], np.exp(np.clip(y[:, 1], -_WIDEST, _WIDEST)))


# ---- kernels on random features --------------------------------------------------------------------------------------
def kernel_grid(name: str, incoming: Any) -> list[Any]:
    """Kernels of a kind to choose from, around their heuristic widths."""
    if name == "joint_gaussian":
        return joint_grid(incoming, _INNER, _OUTER)
    if name == "sum_of_gaussians":
        rows = embed(incoming)
        base = mean_variances(rows)
        kernels = []
        for inner in _INNER:
            width2 = [inner * base[span] for span in rows.spans]
            gamma2 = [median_distance2(rows.message(k), w) for k, w in enumerate(width2)]
            nested = tuple(tuple(float(v) for v in w) for w in width2)
            kernels += [Sum(nested, tuple(outer * g for g in gamma2)) for outer in _OUTER]
        return kernels
    return [heuristic(name, incoming, factor) for factor in _WIDTHS]


def random_map(rng: np.random.Generator, kernel: Any, sizes: Sizes, share: float = 1.0) -> Any:
    """Random features of a kernel, about `share` times D_out of them in all."""
    n = int(share * sizes.D_out)
    if kernel.name == "joint_gaussian":
        return kernel.features(rng, n, int(share * sizes.D_in))
    if kernel.name == "sum":
        return kernel.features(rng, n // 2)
    if kernel.name == "product":
        return kernel.features(rng, int(np.sqrt(n)))  # all pairs of one feature of each message
    return kernel.features(rng, n)


def _loo_scores(x: np.ndarray, y: np.ndarray, ridges: Sequence[float]) -> np.ndarray:
    """The sum over outputs of the log mean squared leave-one-out error for every ridge."""
    s = ridge.spectrum(x, y)
    return np.array([np.log((ridge.leave_one_out(s, r) ** 2).mean(0)).sum() for r in ridges])


def select_map(
    rng: np.random.Generator,
    kernels: Sequence[Any],
    data: Labelled,
    sizes: Sizes,
    ridges: Sequence[float] = RIDGES,
) -> tuple[Any, float]:
    """Features of the kernel with the least leave-one-out error, and the best ridge for them."""
    some = data.rows(slice(0, _SELECTED_ON))
    seed = int(rng.integers(2**62))
    y = encoded(some.belief)
    scores = []
    for kernel in kernels:  # the same draws for each, so that luck does not choose
        chosen_map = random_map(np.random.default_rng(seed), kernel, sizes, 0.5)
        scores.append(_loo_scores(chosen_map.features(some.incoming), y, ridges).min())
    best = random_map(rng, kernels[int(np.argmin(scores))], sizes)
    if len(ridges) == 1:
        return best, ridges[0]
    return best, ridges[int(np.argmin(_loo_scores(best.features(data.incoming), encoded(data.belief), ridges)))]


def _on_features(name: str) -> Callable[..., Trained]:
    def fit(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Trained:
        feature_map, chosen = select_map(rng, kernel_grid(name, data.incoming), data, sizes)
        weights = ridge.fit(feature_map.features(data.incoming), encoded(data.belief), chosen)
        chosen_by = {"kernel": feature_map.kernel.state(), "ridge": chosen, "features": feature_map.n_features}
        return Trained(lambda incoming: decoded(feature_map.features(incoming) @ weights), chosen_by)

    return fit


# ---- kernels by incomplete Cholesky ----------------------------------------------------------------------------------
def _on_cholesky(name: str) -> Callable[..., Trained]:
    def fit(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Trained:
        """Widths and ridge by a hold-out fifth, then all rows with the winner."""
        y = encoded(data.belief)
        held = rng.permutation(len(data)) < len(data) // 5
        best: tuple[float, Any, float] | None = None
        for kernel in kernel_grid(name, data.incoming):
            rows = embed(data.incoming, kernel.axis, kernel.how)
            x, pivots, corner = _factor(kernel, rows[~held], sizes.rank)
            x_held = features(corner, kernel.gram(rows[held], rows[~held][pivots]))
            s = ridge.spectrum(x, y[~held])
            for r in RIDGES:
                w = s.right.T @ ((np.sqrt(s.values2) / (s.values2 + r))[:, None] * s.turned)
                score = float(np.log(((y[held] - x_held @ w) ** 2).mean(0)).sum())
                if best is None or score < best[0]:
                    best = score, kernel, r
        assert best is not None
        _, kernel, chosen = best
        rows = embed(data.incoming, kernel.axis, kernel.how)
        x, pivots, corner = _factor(kernel, rows, sizes.rank)
        weights, centres = ridge.fit(x, y, chosen), rows[pivots]

        def predict(incoming: dict[str, Any]) -> Gaussian:
            cross = kernel.gram(embed(incoming, kernel.axis, kernel.how), centres)
            return decoded(features(corner, cross) @ weights)

        return Trained(predict, {"kernel": kernel.state(), "ridge": chosen, "rank": len(pivots)})

    return fit


def _factor(kernel: Any, rows: Any, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    diagonal = np.full(len(rows), kernel.gram(rows[:1])[0, 0])  # of Gaussian kernels: the same for every row
    f = factorise(diagonal, lambda i: kernel.gram(rows, rows[i : i + 1])[:, 0], rank)
    return f.factor, f.pivots, f.factor[f.pivots]


# ---- trees and networks ----------------------------------------------------------------------------------------------
def with_mode_value(incoming: dict[str, Any]) -> dict[str, Any]:
    """The factor's value at the mode joins what Eslami's trees see."""
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


METHODS: dict[str, Callable[..., Trained]] = {
    "mean variance": _on_features("mean_variance"),
    "expected product": _on_features("expected_product"),
    "sum of expected products": _on_features("sum"),
    "product of expected products": _on_features("product"),
    "kjit": _on_features("joint_gaussian"),
    "cholesky sum of gaussians": _on_cholesky("sum_of_gaussians"),
    "cholesky joint gaussian": _on_cholesky("joint_gaussian"),
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
