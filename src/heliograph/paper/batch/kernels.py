"""Kernels on messages, chosen by leave-one-out from a grid of widths and ridges: by random features, or incomplete Cholesky.

Random features: widths by the leave-one-out error of a grid on some of the rows with half of the features, then the ridge with
all of both (the closed form, so both are exact, not resampled). The authors' program chose for each output apart, from another
grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from heliograph.families import Gaussian
from heliograph.families.coordinates import logs_of, statistics_of
from heliograph.kernels import Sum, embed, heuristic, joint_grid, mean_variances, median_distance2
from heliograph.paper.batch.messages import Labelled
from heliograph.regression import ridge
from heliograph.regression.incomplete_cholesky import factorise, features

__all__ = [
    "HOUSE",
    "PROGRAM",
    "RIDGES",
    "Candidate",
    "Chosen",
    "Grid",
    "Sizes",
    "Trained",
    "by_cholesky",
    "by_features",
    "decoded",
    "encoded",
    "kernel_grid",
    "random_map",
    "select",
]

Predict = Callable[[dict[str, Any]], Gaussian]
_SELECTED_ON = 2000  # rows that widths are selected on
RIDGES = tuple(10.0**k for k in range(-12, 1))
_WIDEST = 40.0  # |log variance| beyond which a prediction is cut, so that it stays a belief


class Grid(NamedTuple):
    """What is chosen from: multiples of the heuristic widths, and ridges."""

    inner: tuple[float, ...]  # of kernels of two stages
    outer: tuple[float, ...]
    ridges: tuple[float, ...]
    apart: bool = False  # whether every output has a kernel, a map and a ridge of its own


HOUSE = Grid((0.03, 0.1, 0.3, 1.0), (0.3, 1.0, 4.0), RIDGES)
_PROGRAM = (0.1, 0.2, 1 / 3, 0.5, 1.0, 2.0, 5.0, 10.0)
PROGRAM = Grid(_PROGRAM, _PROGRAM, (1e-4, 1e-3, 1e-2, 1e-1, 1.0), apart=True)
# kernels with widths of one kind
_WIDTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


class Sizes(NamedTuple):
    """How large the regressions are."""

    D_in: int = 500
    D_out: int = 1000
    rank: int = 500  # of an incomplete Cholesky factorisation
    n_trees: int = 64
    max_iter: int = 1000  # of the network's training


class Trained(NamedTuple):
    """A method that has learned, and what it chose on the way."""

    predict: Predict  # a row whose numbers are those of no belief is NaN
    chosen: Any


class Candidate(NamedTuple):
    """A kernel of a grid."""

    kernel: Any
    widths: dict[str, float]  # as multiples of the heuristic ones
    on_edge: tuple[str, ...]  # the names of the widths that are the first or last of their axis


class Chosen(NamedTuple):
    """What a selection found for some of the outputs."""

    map: Any
    ridge: float
    candidate: Candidate
    on_edge: tuple[str, ...]

    def state(self) -> dict[str, Any]:
        """For the JSON."""
        return {
            "kernel": self.map.kernel.state(),
            "widths": self.candidate.widths,
            "ridge": self.ridge,
            "on_edge": list(self.on_edge),
            "features": self.map.n_features,
        }


def encoded(belief: Gaussian, target: str = "log") -> np.ndarray:
    """Beliefs as (mean, log variance), or as expected statistics (mean, mean square)."""
    return (logs_of if target == "log" else statistics_of)(Gaussian).encode(belief)


def decoded(y: np.ndarray, target: str = "log") -> Gaussian:
    """Beliefs from predicted numbers; NaN where no belief has such statistics."""
    if target == "log":
        return Gaussian(y[:, 0], np.exp(np.clip(y[:, 1], -_WIDEST, _WIDEST)))
    belief, valid = statistics_of(Gaussian).decode(y, 1)
    assert isinstance(belief, Gaussian)
    nothing = belief.from_naturals(tuple(np.where(valid, a, np.nan) for a in belief.naturals))
    assert isinstance(nothing, Gaussian)
    return nothing


# ---- the grids -------------------------------------------------------------------------------------------------------
def kernel_grid(name: str, incoming: Any, grid: Grid = HOUSE, how: str = "moments") -> list[Candidate]:
    """Kernels of a kind to choose from, around their heuristic widths."""
    if name == "joint_gaussian":
        kernels = joint_grid(incoming, grid.inner, grid.outer, how=how)
        return [_two(kernel, grid, a, b) for kernel, (a, b) in zip(kernels, _pairs(grid), strict=True)]
    if name == "sum_of_gaussians":
        return [_two(kernel, grid, a, b) for kernel, (a, b) in zip(_sums(incoming, grid), _pairs(grid), strict=True)]
    return [Candidate(heuristic(name, incoming, f), {"width": f}, _ends(width=(f, _WIDTHS))) for f in _WIDTHS]


def _pairs(grid: Grid) -> list[tuple[float, float]]:
    return list(product(grid.inner, grid.outer))


def _two(kernel: Any, grid: Grid, inner: float, outer: float) -> Candidate:
    ends = _ends(inner=(inner, grid.inner), outer=(outer, grid.outer))
    return Candidate(kernel, {"inner": inner, "outer": outer}, ends)


def _ends(**axes: tuple[float, Sequence[float]]) -> tuple[str, ...]:
    return tuple(name for name, (value, axis) in axes.items() if value in (axis[0], axis[-1]))


def _sums(incoming: Any, grid: Grid) -> list[Sum]:
    rows = embed(incoming)
    base = mean_variances(rows)
    kernels = []
    for inner in grid.inner:
        width2 = [inner * base[span] for span in rows.spans]
        gamma2 = [median_distance2(rows.message(k), w) for k, w in enumerate(width2)]
        nested = tuple(tuple(float(v) for v in w) for w in width2)
        kernels += [Sum(nested, tuple(outer * g for g in gamma2)) for outer in grid.outer]
    return kernels


# ---- random features -------------------------------------------------------------------------------------------------
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
    """The log mean squared leave-one-out error for every ridge and output."""
    s = ridge.spectrum(x, y)
    return np.array([np.log((ridge.leave_one_out(s, r) ** 2).mean(0)) for r in ridges])


def select(
    rng: np.random.Generator, candidates: Sequence[Candidate], data: Labelled, y: np.ndarray, sizes: Sizes, grid: Grid
) -> list[Chosen]:
    """Features of the kernel with the least leave-one-out error and the best ridge for them, for all outputs or for each."""
    some = data.rows(slice(0, _SELECTED_ON))
    seed = int(rng.integers(2**62))
    scores = []
    for candidate in candidates:  # the same draws for each, so that luck does not choose
        half = random_map(np.random.default_rng(seed), candidate.kernel, sizes, 0.5)
        scores.append(_loo_scores(half.features(some.incoming), y[: len(some)], grid.ridges))
    by_kernel = np.array(scores)  # (candidates, ridges, outputs)
    groups = [[j] for j in range(y.shape[1])] if grid.apart else [list(range(y.shape[1]))]
    found = []
    for outputs in groups:
        best = candidates[int(by_kernel[:, :, outputs].sum(axis=2).min(axis=1).argmin())]
        made = random_map(rng, best.kernel, sizes)
        (chosen, *_), several = grid.ridges, len(grid.ridges) > 1
        if several:
            again = _loo_scores(made.features(data.incoming), y[:, outputs], grid.ridges)
            chosen = grid.ridges[int(again.sum(axis=1).argmin())]
        ends = best.on_edge + (_ends(ridge=(chosen, grid.ridges)) if several else ())
        found.append(Chosen(made, chosen, best, ends))
    return found


def by_features(name: str, grid: Grid = HOUSE, target: str = "log", how: str = "moments") -> Callable[..., Trained]:
    """Ridge regression on random features of the best kernel of a grid."""

    def fit(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Trained:
        y = encoded(data.belief, target)
        found = select(rng, kernel_grid(name, data.incoming, grid, how), data, y, sizes, grid)
        parts = np.split(y, len(found), axis=1)
        weights = [
            ridge.fit(c.map.features(data.incoming), part, c.ridge) for c, part in zip(found, parts, strict=True)
        ]

        def predict(incoming: dict[str, Any]) -> Gaussian:
            columns = [c.map.features(incoming) @ w for c, w in zip(found, weights, strict=True)]
            return decoded(np.concatenate(columns, axis=1), target)

        chosen = [c.state() for c in found]
        return Trained(predict, chosen if grid.apart else chosen[0])

    return fit


# ---- incomplete Cholesky ---------------------------------------------------------------------------------------------
def by_cholesky(name: str) -> Callable[..., Trained]:
    """Kernel ridge regression on an incomplete Cholesky factor of the best kernel of a grid."""

    def fit(rng: np.random.Generator, data: Labelled, sizes: Sizes) -> Trained:
        """Widths and ridge by a hold-out fifth, then all rows with the winner."""
        y = encoded(data.belief)
        best, chosen = _held_out(rng, kernel_grid(name, data.incoming), data, y, sizes.rank)
        kernel = best.kernel
        rows = embed(data.incoming, kernel.axis, kernel.how)
        x, pivots, corner = _factor(kernel, rows, sizes.rank)
        weights, centres = ridge.fit(x, y, chosen), rows[pivots]

        def predict(incoming: dict[str, Any]) -> Gaussian:
            cross = kernel.gram(embed(incoming, kernel.axis, kernel.how), centres)
            return decoded(features(corner, cross) @ weights)

        ends = [*best.on_edge, *_ends(ridge=(chosen, RIDGES))]
        said = {"kernel": kernel.state(), "widths": best.widths, "ridge": chosen, "on_edge": ends, "rank": len(pivots)}
        return Trained(predict, said)

    return fit


def _held_out(
    rng: np.random.Generator, candidates: Sequence[Candidate], data: Labelled, y: np.ndarray, rank: int
) -> tuple[Candidate, float]:
    """The kernel and the ridge with the least error on a fifth of the rows."""
    held = rng.permutation(len(data)) < len(data) // 5
    best: tuple[float, Candidate, float] | None = None
    for candidate in candidates:
        kernel = candidate.kernel
        rows = embed(data.incoming, kernel.axis, kernel.how)
        x, pivots, corner = _factor(kernel, rows[~held], rank)
        x_held = features(corner, kernel.gram(rows[held], rows[~held][pivots]))
        s = ridge.spectrum(x, y[~held])
        for r in RIDGES:
            w = s.right.T @ ((np.sqrt(s.values2) / (s.values2 + r))[:, None] * s.turned)
            score = float(np.log(((y[held] - x_held @ w) ** 2).mean(0)).sum())
            if best is None or score < best[0]:
                best = score, candidate, r
    assert best is not None
    return best[1], best[2]


def _factor(kernel: Any, rows: Any, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    diagonal = np.full(len(rows), kernel.gram(rows[:1])[0, 0])  # of Gaussian kernels: the same for every row
    f = factorise(diagonal, lambda i: kernel.gram(rows, rows[i : i + 1])[:, 0], rank)
    return f.factor, f.pivots, f.factor[f.pivots]
