"""The appendix on random features: how well they stand for each kernel, and what inner and outer features buy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heliograph.families import Gaussian
from heliograph.kernels import (
    ExpectedProduct,
    JointGaussian,
    MeanVariance,
    Product,
    Sum,
    joint_grid,
    median_distance2,
    median_heuristic,
)
from heliograph.paper.batch.kernels import PROGRAM, RIDGES, decoded, encoded
from heliograph.paper.batch.messages import Labelled, labelled_messages, log_kl_of
from heliograph.paper.columns import published
from heliograph.paper.exp1.parts import FULL as EXP1_FULL
from heliograph.paper.exp1.parts import QUICK as EXP1_QUICK
from heliograph.paper.running.parts import Outcome, Part, plain_settings
from heliograph.regression import ridge

__all__ = [
    "FULL",
    "QUICK",
    "approximation",
    "assemble",
    "beyond",
    "effects",
    "gaussian_messages",
    "grid_row",
    "headlines",
    "kernel_named",
    "parts_of",
]

WIDTH2 = 3.0  # the appendix's kernel parameter

FULL: dict[str, Any] = {
    "methods": (
        "expected product",
        "mean variance",
        "sum of expected products",
        "product of expected products",
        "joint gaussian",
    ),
    "D": (50, 100, 200, 500, 1000, 2000, 5000),
    "n_messages": 300,
    "n_trials": 10,
    "D_in": (25, 50, 100, 200, 500, 1000),
    "D_out": (25, 50, 100, 200, 500, 1000),
    "n_grid_trials": 20,
    "n_train": 2000,
    "n_test": 1000,
    "messages": EXP1_FULL["exact"],
    # whether more than 1,000 features help: experiment 1's messages of both kinds
    "beyond": (250, 500, 1000, 2000),
    "beyond_D_in": 500,
    "beyond_trials": 3,
    "beyond_train": EXP1_FULL["n_train"],
    "beyond_test": EXP1_FULL["n_test"],
    "beyond_messages": {against: EXP1_FULL[against] for against in ("sampled", "exact")},
}
QUICK: dict[str, Any] = {
    **FULL,
    "D": (50, 100, 200, 500, 1000),
    "n_messages": 150,
    "D_in": (25, 100, 400),
    "D_out": (25, 100, 400),
    "n_grid_trials": 8,
    "n_train": 800,
    "n_test": 600,
    "messages": EXP1_QUICK["exact"],
    "beyond_trials": 1,
    "beyond_train": 2500,
    "beyond_test": 1000,
    "beyond_messages": {against: EXP1_QUICK[against] for against in ("sampled", "exact")},
}


def gaussian_messages(rng: np.random.Generator, n: int) -> Gaussian:
    """The appendix's messages: means N(0, 9), variances Gamma(3, 1/4) in shape and rate."""
    return Gaussian(3.0 * rng.standard_normal(n), rng.gamma(3.0, 4.0, n))


def kernel_named(name: str, incoming: Sequence[Gaussian]) -> Any:
    """The kernel of that name at the appendix's width; tuples of two messages where it needs two."""
    nested = ((WIDTH2,),) * len(incoming)
    kernels: dict[str, Any] = {
        "expected product": ExpectedProduct((WIDTH2,)),
        "mean variance": MeanVariance((9.0, 48.0)),  # the variances of the means and of the variances
        "sum of expected products": Sum(nested),
        "product of expected products": Product(nested),
        "joint gaussian": JointGaussian((WIDTH2,), median_distance2(incoming[:1], np.array([WIDTH2]))),
    }
    return kernels[name]


def _features(rng: np.random.Generator, kernel: Any, D: int) -> Any:
    if kernel.name == "joint_gaussian":
        return kernel.features(rng, D, D)
    if kernel.name == "sum":
        return kernel.features(rng, D // 2)
    return kernel.features(rng, int(np.sqrt(D))) if kernel.name == "product" else kernel.features(rng, D)


# ---- parts -----------------------------------------------------------------------------------------------------------
def approximation(method: str, seed: int, D: Sequence[int], n_messages: int, n_trials: int) -> dict[str, Any]:
    """Errors of the approximate kernel matrix for growing numbers of features, means over the trials."""
    draw = np.random.default_rng([seed, 0])
    n_ports = 2 if method.endswith("products") else 1
    incoming = [gaussian_messages(draw, n_messages) for _ in range(n_ports)]
    kernel = kernel_named(method, incoming)
    exact = kernel.gram(incoming)
    errors = np.empty((len(D), n_trials, 3))
    for i, size in enumerate(D):
        for t in range(n_trials):
            x = _features(np.random.default_rng([seed, 1, size, t]), kernel, size).features(incoming)
            gap = np.abs(x @ x.T - exact)
            errors[i, t] = gap.mean(), gap.max(), np.sqrt((gap**2).sum())
    mean = errors.mean(axis=1)
    return {
        "D": [int(d) for d in D],
        **{name: mean[:, k].tolist() for k, name in enumerate(("mean_abs_error", "max_abs_error", "frobenius"))},
    }


def grid_row(
    D_in: int,
    seed: int,
    D_out: Sequence[int],
    n_messages: int,
    n_trials: int,
    n_train: int,
    n_test: int,
    messages: Mapping[str, int],
) -> dict[str, Any]:
    """For one number of inner features: Frobenius error and error of batch learning for each number of outer ones."""
    incoming = [gaussian_messages(np.random.default_rng([seed, 0]), n_messages)]
    kernel = median_heuristic(incoming)
    exact = kernel.gram(incoming)
    data, test = labelled_messages(seed, n_train=n_train, n_test=n_test, **messages)
    (batch,) = joint_grid(data.incoming, inner=(0.1,), outer=(1.0,))
    y = encoded(data.belief)
    frobenius, mean_log_kl = [], []
    for n_outer in D_out:
        gaps = []
        for t in range(n_trials):
            x = kernel.features(np.random.default_rng([seed, 2, D_in, n_outer, t]), n_outer, D_in).features(incoming)
            gaps.append(np.linalg.norm(x @ x.T - exact))
        frobenius.append(float(np.mean(gaps)))
        feature_map = batch.features(np.random.default_rng([seed, 3, D_in, n_outer]), n_outer, D_in)
        mean_log_kl.append(_score(feature_map, data, test, y, RIDGES))
    return {"frobenius": frobenius, "mean_log_kl": mean_log_kl}


def _score(feature_map: Any, data: Labelled, test: Labelled, y: np.ndarray, ridges: Sequence[float]) -> float:
    """Mean log KL on test messages, with the ridge of the least leave-one-out error."""
    s = ridge.spectrum(feature_map.features(data.incoming), y)
    scores = [np.log((ridge.leave_one_out(s, r) ** 2).mean(0)).sum() for r in ridges]
    best = ridges[int(np.argmin(scores))]
    weights = s.right.T @ ((np.sqrt(s.values2) / (s.values2 + best))[:, None] * s.turned)
    return float(log_kl_of(test.belief, decoded(feature_map.features(test.incoming) @ weights)).mean())


def beyond(
    against: str,
    seed: int,
    D_out: Sequence[int],
    D_in: int,
    n_trials: int,
    n_train: int,
    n_test: int,
    messages: Mapping[str, int],
) -> dict[str, Any]:
    """Mean log KL of batch learning for more and more outer features, each trial with features of its own.

    The kernel has the heuristic's widths, which are those that the authors' program chose inside; the ridges are the
    program's against sampled labels, and go on to 1e-12 against exact ones.
    """
    data, test = labelled_messages(seed, n_train=n_train, n_test=n_test, **messages)
    kernel = median_heuristic(data.incoming)
    ridges = PROGRAM.ridges if against == "sampled" else RIDGES
    y = encoded(data.belief)
    scores = [
        [
            _score(kernel.features(np.random.default_rng([seed, 5, n, t]), n, D_in), data, test, y, ridges)
            for t in range(n_trials)
        ]
        for n in D_out
    ]
    return {"D_out": [int(n) for n in D_out], "mean_log_kl": scores}


def parts_of(settings: Mapping[str, Any], seed: int) -> list[Part]:
    """A kernel each, a row of the grid each, and two kinds of labels beyond 1,000 features."""
    shared = {"seed": seed, "n_messages": settings["n_messages"]}
    own = {"D": settings["D"], "n_trials": settings["n_trials"]}
    made = [Part(f"features {m}", approximation, {**shared, **own, "method": m}) for m in settings["methods"]]
    own = {k: settings[k] for k in ("D_out", "n_train", "n_test", "messages")}
    own["n_trials"] = settings["n_grid_trials"]
    made += [Part(f"features D_in {d}", grid_row, {**shared, **own, "D_in": d}) for d in settings["D_in"]]
    size = {k: settings[f"beyond_{k}"] for k in ("D_in",)}
    size |= {f"n_{k}": settings[f"beyond_{k}"] for k in ("trials", "train", "test")}
    size |= {"seed": seed, "D_out": settings["beyond"]}
    return made + [
        Part(f"features beyond {against}", beyond, {**size, "against": against, "messages": messages})
        for against, messages in settings["beyond_messages"].items()
    ]


def assemble(settings: Mapping[str, Any], seed: int, results: Mapping[str, dict[str, Any]]) -> Outcome:
    """Kernels, the grid, and more features than 1,000."""
    methods = {m: results[f"features {m}"] for m in settings["methods"] if f"features {m}" in results}
    series: dict[str, Any] = {m: {k: np.array(v) for k, v in row.items()} for m, row in methods.items()}
    # an interrupted run: the rows of the grid that are there
    D_in = [d for d in settings["D_in"] if f"features D_in {d}" in results]
    grid: dict[str, Any] = {"D_in": D_in, "D_out": list(settings["D_out"])}
    for what in ("frobenius", "mean_log_kl"):
        grid[what] = [results[f"features D_in {d}"][what] for d in D_in]
    series["grid"] = {k: np.array(v) for k, v in grid.items()}
    wider = {
        a: results[f"features beyond {a}"] for a in settings["beyond_messages"] if f"features beyond {a}" in results
    }
    json = {"experiment": "features", "settings": plain_settings(settings, seed), "methods": methods}
    return Outcome({**json, "grid": grid, "beyond": wider, "paper": published("features")}, series)


def effects(grid: Mapping[str, Any], what: str) -> tuple[float, float] | None:
    """By what factor an error falls from the fewest to the most D_in, and D_out, averaged over the other on a log scale."""
    table = np.array(grid[what], dtype=float)
    if table.ndim != 2 or min(table.shape) < 2:
        return None
    by_in, by_out = np.log(table[0] / table[-1]).mean(), np.log(table[:, 0] / table[:, -1]).mean()
    return float(np.exp(by_in)), float(np.exp(by_out))


def headlines(json: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is shown as a spread over seeds."""
    found: dict[str, dict[str, Any]] = {}
    for method, row in json["methods"].items():
        most = row["max_abs_error"]
        found[method] = {"largest error, fewest features": most[0], "most features": most[-1]}
    both = effects(json["grid"], "frobenius")
    if both is not None:
        found["grid"] = {"Frobenius falls by D_in, times": both[0], "by D_out, times": both[1]}
    for against, row in json["beyond"].items():
        mean = dict(zip(row["D_out"], np.mean(row["mean_log_kl"], axis=1).tolist(), strict=True))
        found.setdefault("beyond 1,000", {}).update({f"{against}: D_out = {n}": x for n, x in mean.items()})
    return found
