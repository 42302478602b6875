"""A mixture of members of one family: what is left of a belief when numbers that it depends on are integrated over.

It is read like a member (moments, quantiles, samples), and it is no message: there is no algebra of mixtures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.base import Family
from heliograph.families.multivariate_gaussian import MultivariateGaussian
from heliograph.families.reading import Interval, central_interval, wanted_quantiles
from heliograph.numerics.checks import check_rng, in_words, short

__all__ = ["Mixture"]

_HALVINGS = 60  # of the interval that holds a quantile
_ROUNDING = 1e-6  # of the sum of weights
_OUTSIDE = 1e-12  # probability that is left outside it


class Mixture:
    """A batch of mixtures with common weights: component k has weight ``weights[k]`` in every entry.

    >>> from heliograph.families import Gaussian
    >>> both = Mixture(np.array([0.5, 0.5]), Gaussian([-1.0, 1.0], 1.0))
    >>> float(both.mean), float(both.variance)
    (0.0, 2.0)
    """

    def __init__(self, weights: np.ndarray, components: Family) -> None:
        """`components` has the components along its first axis."""
        if not isinstance(components, Family):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ModelError(f"the components of a mixture are messages of one family, not {in_words(components)}")
        if components.ndim < 1 or components.shape[0] != len(weights):
            raise ModelError(f"{len(weights)} weights do not fit components of shape {components.shape}")
        if not abs(float(np.sum(weights)) - 1.0) < _ROUNDING:
            raise ModelError(f"the weights of a mixture sum to {float(np.sum(weights)):g}, not to 1")
        self.weights = np.asarray(weights, dtype=float)
        self.components = components

    # ---- shape --------------------------------------------------------------------------------------------------
    @property
    def family(self) -> type[Family]:
        """The family of the components."""
        return type(self.components)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the batch."""
        return self.components.shape[1:]

    @property
    def ndim(self) -> int:
        """The number of axes of the batch."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(np.prod(self.shape))

    @property
    def discrete(self) -> bool:
        """Whether the variable has finitely many values."""
        return self.components.discrete

    @property
    def ranks(self) -> tuple[int, ...]:
        """The axes of the natural parameters of one entry."""
        return self.components.ranks

    @property
    def point_rank(self) -> int:
        """The number of axes of one value."""
        return self.components.point_rank

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single mixture has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Mixture:
        index = cast("tuple[Any, ...]", index if isinstance(index, tuple) else (index,))
        return Mixture(self.weights, self.components[(slice(None), *index)])

    def reshape(self, *shape: Any) -> Mixture:
        """The same entries in another shape."""
        full = cast("tuple[int, ...]", shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape)
        if -1 in full:
            raise ModelError("reshape of a mixture takes whole shapes, not -1")
        return Mixture(self.weights, self.components.reshape((len(self.weights), *full)))

    # ---- moments ------------------------------------------------------------------------------------------------
    def _averaged(self, values: np.ndarray) -> np.ndarray:
        return np.tensordot(self.weights, values, axes=1)

    @property
    def mean(self) -> np.ndarray:
        """The expectation of the variable."""
        return self._averaged(np.asarray(self.components.mean))

    @property
    def variance(self) -> np.ndarray:
        """The variance: that inside the components, and that between their means."""
        apart = np.asarray(self.components.mean) - self.mean
        return self._averaged(np.asarray(self.components.variance) + apart**2)

    @property
    def sd(self) -> np.ndarray:
        """The standard deviation."""
        return np.sqrt(self.variance)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the components of a vector."""
        if not isinstance(self.components, MultivariateGaussian):
            raise ModelError(f"a mixture of {self.family.__name__} members has variances, and no covariance")
        apart = self.components.mean - self.mean
        return self._averaged(self.components.covariance + apart[..., :, None] * apart[..., None, :])

    def projected(self) -> Family:
        """The member of the family with the same mean and variance (or covariance)."""
        spread = self.covariance if isinstance(self.components, MultivariateGaussian) else self.variance
        return self.family.from_mean_variance(self.mean, spread)

    @property
    def is_point(self) -> np.ndarray:
        """Where all components are one point mass."""
        return np.asarray(self.components.is_point.all(axis=0))

    @property
    def point(self) -> np.ndarray | None:
        """The values of point masses, NaN elsewhere."""
        return None if self.components.point is None else self.components.point[0]

    @property
    def proper(self) -> np.ndarray:
        """Where every component is a distribution."""
        return np.asarray(self.components.proper.all(axis=0))

    def marginals(self) -> Mixture:
        """The components of vectors one by one."""
        return Mixture(self.weights, self.components.marginals())  # type: ignore[arg-type]

    # ---- probabilities ------------------------------------------------------------------------------------------
    def cdf(self, x: Any) -> np.ndarray:
        """The probability of values up to `x`, of the broadcast shape."""
        return self._averaged(self.components.cdf(x))

    def log_density(self, x: Any) -> np.ndarray:
        """``log`` of the density (or probability) at `x`."""
        with np.errstate(divide="ignore"):
            log_p = np.asarray(self.components.log_density(x))
            top = np.max(log_p, axis=0)
            safe = np.where(np.isfinite(top), top, 0.0)
            return safe + np.log(self._averaged(np.exp(log_p - safe)))

    def quantile(self, q: Any) -> np.ndarray:
        """The values below which the variable lies with probability `q`, of shape ``(*q.shape, *shape, *event)``."""
        q = wanted_quantiles(q)
        one = self.marginals()
        found = [one._one_quantile(float(p)) for p in q.reshape(-1)]
        return np.stack(found).reshape((*q.shape, *one.shape))

    def _one_quantile(self, q: float) -> np.ndarray:
        """By bisection between the least and the largest quantile of a component."""
        if q in (0.0, 1.0):
            ends = self.components.quantile(q)
            return np.min(ends, axis=0) if q == 0.0 else np.max(ends, axis=0)
        each = self.components.quantile(q)
        low, high = np.asarray(np.min(each, axis=0)), np.asarray(np.max(each, axis=0))
        if self.discrete:
            return np.where(self.cdf(low) >= q - _OUTSIDE, low, high)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def interval(self, probability: Any = 0.9) -> Interval:
        """The central interval that holds the variable with this probability."""
        return central_interval(self.quantile, probability)

    def sample(self, rng: np.random.Generator, n: int | tuple[int, ...] = ()) -> np.ndarray:
        """Draws of shape ``(*n, *shape, *event)``; in every draw all entries come from one component."""
        check_rng(rng)
        size = (n,) if isinstance(n, int) else n
        total = int(np.prod(size))
        chosen = rng.choice(len(self.weights), size=total, p=self.weights)
        draws = np.asarray(self.components[chosen].sample(rng))
        return draws.reshape((*size, *draws.shape[1:]))

    def plot(self, ax: Any = None, names: Sequence[str] | None = None) -> Any:
        """Draw the densities of the first entries, on matplotlib's axes `ax` if given."""
        from heliograph.families.plotting import draw_marginals

        return draw_marginals(self, ax, names)

    def __repr__(self) -> str:
        mean, sd = short(self.mean), short(self.sd)
        return f"Mixture of {len(self.weights)} {self.family.__name__}(mean {mean}, sd {sd})"
