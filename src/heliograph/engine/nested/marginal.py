# pyright: basic
"""The posterior of a hyper-parameter: weighted values, read like a member of a family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heliograph.families.reading import Interval, central_interval, wanted_quantiles
from heliograph.numerics.checks import as_real, check_rng, short

__all__ = ["Marginal"]


class Marginal:
    """Values of a hyper-parameter with weights, entry by entry of its shape."""

    def __init__(self, name: str, values: np.ndarray, weights: np.ndarray) -> None:
        """`values` has the nodes along its first axis; the weights of the nodes sum to 1."""
        self.name = name
        self.values = values
        self.weights = weights

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the hyper-parameter."""
        return self.values.shape[1:]

    @property
    def mean(self) -> np.ndarray:
        """The posterior mean."""
        return np.tensordot(self.weights, self.values, axes=1)

    @property
    def variance(self) -> np.ndarray:
        """The posterior variance."""
        return np.tensordot(self.weights, (self.values - self.mean) ** 2, axes=1)

    @property
    def sd(self) -> np.ndarray:
        """The posterior standard deviation."""
        return np.sqrt(self.variance)

    def __getitem__(self, index: Any) -> Marginal:
        index = index if isinstance(index, tuple) else (index,)
        return Marginal(self.name, self.values[(slice(None), *index)], self.weights)

    def quantile(self, q: Any) -> np.ndarray:
        """The values below which it lies with probability `q`, of shape ``(*q.shape, *shape)``."""
        q = wanted_quantiles(q)
        flat = self.values.reshape(len(self.weights), -1)
        found = [np.interp(q.reshape(-1), middle, x) for x, middle in (self._sorted(column) for column in flat.T)]
        return np.stack(found, axis=-1).reshape((*q.shape, *self.shape))

    def cdf(self, x: Any) -> np.ndarray:
        """The probability of values up to `x`."""
        wanted = np.broadcast_to(as_real("cdf: x", x), np.broadcast_shapes(np.shape(x), self.shape))
        flat = np.broadcast_to(self.values, (len(self.weights), *wanted.shape)).reshape(len(self.weights), -1)
        pairs = zip(wanted.reshape(-1), flat.T, strict=True)
        found = [np.interp(w, *self._sorted(column), left=0.0, right=1.0) for w, column in pairs]
        return np.array(found).reshape(wanted.shape)

    def _sorted(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values in their order, and the probability below each, half its own weight included."""
        order = np.argsort(column, kind="stable")
        weights = self.weights[order]
        return column[order], np.cumsum(weights) - 0.5 * weights

    def interval(self, probability: float = 0.9) -> Interval:
        """The central interval that holds it with this probability."""
        return central_interval(self.quantile, probability)

    def sample(self, rng: np.random.Generator, n: int | tuple[int, ...] = ()) -> np.ndarray:
        """Draws of shape ``(*n, *shape)``, by the inverse of the cumulative distribution; of an array, whole nodes."""
        check_rng(rng)
        size = (n,) if isinstance(n, int) else n
        if not self.shape:
            return self.quantile(rng.random(size))
        chosen = rng.choice(len(self.weights), size=int(np.prod(size)), p=self.weights)
        return self.values[chosen].reshape((*size, *self.shape))

    def plot(self, ax: Any = None, names: Sequence[str] | None = None) -> Any:
        """Draw the densities of the entries, on matplotlib's axes `ax` if given."""
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        flat = self.values.reshape(len(self.weights), -1)
        for k, column in enumerate(flat.T):
            x, below = self._sorted(column)
            ends = np.interp([0.001, 0.999], below, x)
            edges = np.linspace(ends[0], ends[1], 42)
            density = np.diff(np.interp(edges, x, below)) / np.diff(edges)
            label = self.name if flat.shape[1] == 1 else f"{self.name}[{k}]"
            ax.plot(0.5 * (edges[1:] + edges[:-1]), density, label=label if names is None else names[k])
        ax.set_ylabel("density")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        lower, upper = self.interval(0.9)
        return f"Marginal({self.name!r}, mean {short(self.mean)}, sd {short(self.sd)}, 90 % {short(lower)} to {short(upper)})"
