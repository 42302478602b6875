"""Pictures of an integration over hyper-parameters; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Protocol

import numpy as np

__all__ = ["plot_integration"]


class Explored(Protocol):
    """The part of an `Integration` that is drawn."""

    @property
    def names(self) -> tuple[str, ...]:
        """The hyper-parameters."""
        ...

    @property
    def points(self) -> dict[str, np.ndarray]:
        """Their values at the points."""
        ...

    @property
    def u(self) -> np.ndarray:
        """The points on the unconstrained scale."""
        ...

    @property
    def log_density(self) -> np.ndarray:
        """The log density at the points."""
        ...


def plot_integration(explored: Explored, axes: Any = None) -> Any:
    """The explored points: log density against the coordinate of one dimension, scatter plots for pairs of more."""
    u, value = explored.u, explored.log_density - explored.log_density.max()
    d = u.shape[1]
    pairs = [(0, None)] if d == 1 else list(combinations(range(d), 2))
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(1, len(pairs), figsize=(3.4 * len(pairs), 3.2), squeeze=False, layout="constrained")[1][
            0
        ]
    panels = np.atleast_1d(axes).reshape(-1)
    labels = _labels(explored)
    for ax, (i, j) in zip(panels, pairs, strict=False):
        if j is None:
            order = np.argsort(u[:, i])
            ax.plot(u[order, i], value[order], marker="o", linewidth=0.8)
            ax.set_ylabel("log density")
        else:
            drawn = ax.scatter(u[:, i], u[:, j], c=np.maximum(value, -8.0), s=24)
            ax.set_ylabel(labels[j])
            ax.figure.colorbar(drawn, ax=ax, label="log density")
        ax.set_xlabel(labels[i])
    return axes


def _labels(explored: Explored) -> list[str]:
    """A label for every unconstrained coordinate."""
    sizes = [max(1, int(np.prod(explored.points[n].shape[1:]))) for n in explored.names]
    if sum(sizes) != explored.u.shape[1]:  # a correlation matrix has fewer coordinates than entries
        return [f"coordinate {k}" for k in range(explored.u.shape[1])]
    each = zip(explored.names, sizes, strict=True)
    return [f"{n} (unconstrained)" if s == 1 else f"{n}[{k}] (unconstrained)" for n, s in each for k in range(s)]
