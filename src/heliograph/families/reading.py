"""What a reader asks of a belief: standard deviations, quantiles, intervals, probabilities and a plot.

`Reading` answers for every family from two functions of its scalar members, `_cdf` and `_quantile`. Vectors are read component by
component, through `marginals`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from heliograph.errors import ModelError, UnsupportedError
from heliograph.families.batch import Batch
from heliograph.families.tables import MOST_ROWS, html_table
from heliograph.numerics.checks import as_real, short

__all__ = ["Interval", "Reading", "central_interval", "wanted_quantiles"]


class Interval(NamedTuple):
    """The two ends of an interval, entry by entry."""

    lower: np.ndarray
    upper: np.ndarray


def wanted_quantiles(q: Any) -> np.ndarray:
    """The probabilities that quantiles are asked for; other numbers are refused."""
    q = as_real("quantile: q", q)
    if not ((q >= 0) & (q <= 1)).all():
        raise ModelError(f"a quantile is asked for a probability between 0 and 1, not {short(q)}")
    return q


def central_interval(quantile: Callable[[Any], np.ndarray], probability: Any) -> Interval:
    """The interval that holds this probability, as much of the rest below it as above, by the `quantile` of a belief."""
    if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0 < probability < 1:
        raise ModelError(f"an interval holds a probability between 0 and 1, not {probability!r}")
    lower, upper = quantile([(1 - probability) / 2, (1 + probability) / 2])
    return Interval(lower, upper)


class Reading(Batch):
    """Quantiles, intervals and cumulative probabilities of a batch."""

    __slots__ = ()

    @property
    def sd(self) -> np.ndarray:
        """The standard deviation of the variable, component by component; NaN where the entry is improper.

        >>> from heliograph import Gaussian
        >>> print(Gaussian(0.0, 4.0).sd)
        2.0
        """
        variance = np.asarray(cast(Any, self).variance)
        return np.sqrt(np.where(variance >= 0, variance, np.nan))

    def marginals(self) -> Reading:
        """The distributions of the components of a vector as a batch of scalars; a batch of scalars is its own."""
        return self

    def quantile(self, q: Any) -> np.ndarray:
        """The values below which the variable lies with probability `q`, of shape ``(*q.shape, *shape, *event)``.

        NaN where an entry is no distribution. Of a discrete variable, the least value whose cumulative probability reaches `q`.

        >>> from heliograph import Gaussian
        >>> Gaussian(1.0, 4.0).quantile([0.5, 0.975]).round(2)
        array([1.  , 4.92])
        """
        q = wanted_quantiles(q)
        one = self.marginals()
        q = q.reshape(q.shape + (1,) * one.ndim)
        found = np.where(_distributed(one), one._quantile(q), np.nan)
        return found if one.point is None else np.where(one.is_point, one.point, found)

    def interval(self, probability: Any = 0.9) -> Interval:
        """The central interval that holds this probability: as much lies below it as above.

        >>> from heliograph import Gaussian
        >>> lower, upper = Gaussian(0.0, 1.0).interval(0.9)
        >>> print(f"{lower:.3f} {upper:.3f}")
        -1.645 1.645
        """
        return central_interval(self.quantile, probability)

    def cdf(self, x: Any) -> np.ndarray:
        """The probability that the variable is at most `x`, component by component; NaN where an entry is no distribution.

        >>> from heliograph import Gamma
        >>> print(f"{Gamma(1.0, 2.0).cdf(0.5):.4f}")
        0.6321
        """
        x = as_real("cdf: x", x)
        one = self.marginals()
        try:
            x, proper = np.broadcast_arrays(x, _distributed(one))
        except ValueError:
            raise ModelError(f"cdf: x of shape {x.shape} does not fit a plate of shape {one.shape}") from None
        found = np.where(proper & ~np.isnan(x), one._cdf(x), np.nan)
        return found if one.point is None else np.where(one.is_point, (x >= one.point) * 1.0, found)

    def plot(self, ax: Any = None, names: Sequence[str] | None = None) -> Any:
        """Draw the densities (or probabilities) of up to ten entries with matplotlib, and return the axes.

        `ax` are matplotlib's axes to draw on, `names` the entries' labels.
        """
        from heliograph.families.plotting import draw_marginals

        return draw_marginals(cast(Any, self), ax, names)

    def _repr_html_(self) -> str:
        return html_table(("entry", type(self).__name__), _described(cast(Any, self)), total=self.size)

    def _quantile(self, q: np.ndarray) -> np.ndarray:
        raise UnsupportedError(f"a {type(self).__name__} has no quantiles: its values have no order; read its mean")

    def _cdf(self, x: np.ndarray) -> np.ndarray:
        raise UnsupportedError(f"a {type(self).__name__} has no cdf: its values have no order; read its mean")


def _described(batch: Any) -> list[tuple[str, str]]:
    """The first entries of a batch, each in a few words."""
    if not batch.shape:
        return [("", repr(batch))]
    flat, shape = batch.reshape((batch.size,)), cast("tuple[int, ...]", batch.shape)
    shown = range(min(batch.size, MOST_ROWS))
    return [(", ".join(str(i) for i in np.unravel_index(k, shape)), repr(flat[k])) for k in shown]


def _distributed(one: Reading) -> np.ndarray:
    """Where an entry of scalars is a distribution with a density."""
    return cast(Any, one).proper
