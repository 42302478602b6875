"""A message as a value: one object is a whole plate of exponential-family distributions.

`Family` is the base class of all families. The algebra that is the same for all of them is in `batch`, quantiles and intervals
are in `reading`; what stands here each family answers for itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from heliograph.errors import ImproperError, ModelError
from heliograph.families.points import or_none
from heliograph.families.reading import Reading
from heliograph.numerics.checks import as_real, check_fit, check_rng, in_words, short

__all__ = ["Discrete", "Family", "concatenate", "positive_pair", "stored"]

_LEAST = float(np.nextafter(-1.0, 0.0))


def stored(parameter: np.ndarray) -> np.ndarray:
    """``parameter - 1``, the natural parameter, never rounded down to -1, which would be improper."""
    return np.maximum(parameter - 1.0, _LEAST)


def positive_pair(family: str, name: str, a: Any, other: str, b: Any, naturals: str) -> tuple[np.ndarray, np.ndarray]:
    """Two parameters as arrays of one shape, finite and positive; `naturals` is what to give `from_naturals` otherwise."""
    a, b = as_real(f"a {family}'s {name}", a), as_real(f"a {family}'s {other}", b)
    check_fit(family, name, a, other, b)
    a, b = np.broadcast_arrays(a, b)
    if not ((a > 0) & (b > 0) & np.isfinite(a) & np.isfinite(b)).all():
        raise ModelError(
            f"a {family} needs finite positive {name} and {other}, not {name} {short(a)} and {other} {short(b)}; "
            f"for an improper message use {family}.from_naturals({naturals}"
        )
    return a, b


class Family(Reading):
    """A batch of distributions of one exponential family, in natural parameters.

    An entry that is neither a point mass nor uniform and has no finite integral is *improper*: an honest value of the
    algebra (a quotient of two beliefs often is one), read as ``exp(naturals . statistics)``, that can be multiplied and
    divided but not sampled.
    """

    __slots__ = ()

    chart: ClassVar[str] = "identity"  # the axis on which it is charted: identity, log, logit or simplex
    statistics: ClassVar[tuple[str, ...]] = ()  # what multiplies each natural parameter, in words
    discrete: ClassVar[bool] = False  # the variable has finitely many values
    gaussian: ClassVar[bool] = False  # the mean and the (co)variance of the variable say everything
    parameters: ClassVar[tuple[str, ...]] = ("mean", "variance")  # attributes that say everything, for `repr`
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)  # between which every value (or entry of it) lies
    values: ClassVar[str] = "at a finite number"  # where a value may lie, in words
    unsampled: ClassVar[str] = "uniform or improper"  # the entries that cannot be sampled; "" if there are none

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def point_mass(cls, value: Any) -> Self:
        """All mass at `value`; where that is NaN (a vector: all of it), the message is uniform: nothing is known there."""
        name, rank = cls.__name__, cls.point_rank
        value = np.array(as_real(f"a {name}'s point mass", value))
        missing = np.isnan(value).all(axis=-1) if rank and value.ndim else np.isnan(value)
        if value.ndim < rank or not (cls.in_support(value) | missing).all():
            raise ModelError(f"a {name}'s point mass lies {cls.values}, not at {short(value)}")
        return cls._points_at(value, *value.shape[value.ndim - rank :])

    @classmethod
    def from_statistics(cls, *statistics: Any) -> Self:
        """The EP projection: the member with these expected sufficient statistics."""
        raise NotImplementedError  # pragma: no cover

    @classmethod
    def from_mean_variance(cls, mean: Any, variance: Any) -> Self:
        """The member with this mean and variance: a named alternative to the EP projection."""
        raise NotImplementedError  # pragma: no cover

    @classmethod
    def from_chart_moments(cls, mean: Any, variance: Any) -> Self:
        """The member with this mean and variance on the chart."""
        return cls.from_mean_variance(mean, variance)

    @classmethod
    def _points_at(cls, value: np.ndarray, *event: int) -> Self:
        """Point masses at values that were checked; `event` is as in `_zeros`."""
        plate = value.shape[: value.ndim - cls.point_rank]
        return cls.from_naturals(cls._zeros(plate, *event).naturals, or_none(value))

    def point_like(self, value: Any) -> Self:
        """Point masses at `value`, of this message's family and dimension."""
        return self.point_mass(value)

    @property
    def proper(self) -> np.ndarray:
        """Where an entry can be normalised (point masses can)."""
        raise NotImplementedError  # pragma: no cover

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def mean(self) -> np.ndarray:
        """The expectation of the variable."""
        raise NotImplementedError  # pragma: no cover

    @property
    def variance(self) -> np.ndarray:
        """The variance of the variable, component by component."""
        raise NotImplementedError  # pragma: no cover

    @property
    def mode(self) -> np.ndarray:
        """Where the density is largest, or the mean where it has no peak inside the support."""
        return self.mean

    def log_normaliser(self) -> np.ndarray:
        """``log`` of the integral (or sum) of ``exp(naturals . statistics)``.

        0 where there is none: at an improper entry, at a uniform one that is not proper (Gaussian, Gamma), at a point
        mass. A uniform entry that is proper has the size of its space: Bernoulli log 2, Categorical log K, Beta 0.
        """
        raise NotImplementedError  # pragma: no cover

    def expected_statistics(self) -> tuple[np.ndarray, ...]:
        """The expectations of the sufficient statistics, which `from_statistics` takes back."""
        raise NotImplementedError  # pragma: no cover

    def chart_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance on the chart; where that is the variable itself, its own."""
        return self.mean, self.variance

    @classmethod
    def in_support(cls, x: Any) -> np.ndarray:
        """Where a value is one that the variable can take."""
        raise NotImplementedError  # pragma: no cover

    def somewhere(self) -> np.ndarray:
        """A value inside the support, to stand where there is no point mass."""
        return np.asarray(0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """``log`` of the density (or probability) at x; where there is none, ``naturals . statistics`` of x."""
        raise NotImplementedError  # pragma: no cover

    def entropy(self) -> np.ndarray:
        """The (differential) entropy in nats."""
        raise NotImplementedError  # pragma: no cover

    def kl(self, other: Self) -> np.ndarray:
        """``KL(self || other)`` in nats; infinite where `other` cannot hold `self`, 0 where they are the same."""
        self._check_same("kl", other)
        return self._kl(other)

    def _kl(self, other: Self) -> np.ndarray:
        raise NotImplementedError  # pragma: no cover

    def sample(self, rng: np.random.Generator, n: int | tuple[int, ...] = ()) -> np.ndarray:
        """Draws of shape ``(*n, *shape, *event)``."""
        check_rng(rng)
        if self.unsampled and not np.all(self.proper):
            name = type(self).__name__
            raise ImproperError(f"cannot sample a {name} that is {self.unsampled}; give it a prior first")
        return self._draw(rng, (*((n,) if isinstance(n, int) else n), *self.shape))

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        """Draws of shape ``(*size, *event)`` of proper entries."""
        raise NotImplementedError  # pragma: no cover

    def _log_density_at_points(self, log_p: np.ndarray, x: np.ndarray) -> np.ndarray:
        """`log_p` at x, but 0 or -inf at the point masses."""
        if self.point is None:
            return log_p
        same = x == self.point
        return np.where(self.is_point, np.where(same.all(axis=-1) if self.point_rank else same, 0.0, -np.inf), log_p)

    def _kl_at_limits(self, other: Self) -> np.ndarray:
        """The KL where one of the two is no density: 0 between equal values, else infinite."""
        same = self._everywhere([a == b for a, b in zip(self.naturals, other.naturals, strict=True)])
        if self.point is not None or other.point is not None:
            x, y = np.broadcast_arrays(self._locations(), other._locations())
            equal = (x == y) | (np.isnan(x) & np.isnan(y))
            same &= equal.all(axis=-1) if self.point_rank else equal
        return np.where(same, 0.0, np.inf)

    def parameters_text(self) -> str:
        """The parameters of one entry in a few words, for `repr`."""
        return ", ".join(f"{name.removesuffix('_parameter')} {short(getattr(self, name))}" for name in self.parameters)

    def __repr__(self) -> str:
        return _described(self)


class Discrete(Family):
    """A family of finitely many values, whose probabilities `p` are its expected statistics too."""

    __slots__ = ()
    discrete = True
    parameters = ("p",)
    unsampled = ""

    @property
    def p(self) -> np.ndarray:
        """The probability of 1, or those of all categories along the last axis."""
        raise NotImplementedError  # pragma: no cover

    @classmethod
    def from_statistics(cls, p: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The EP projection: the member with these probabilities."""
        return cls(p)  # pyright: ignore[reportCallIssue]  (every one of them is made of its probabilities)

    @classmethod
    def from_mean_variance(cls, mean: Any, variance: Any = None) -> Self:
        """The member with these probabilities, which decide the variance too."""
        return cls.from_statistics(mean)

    @property
    def mean(self) -> np.ndarray:
        """The probabilities."""
        return self.p

    def expected_statistics(self) -> tuple[np.ndarray, ...]:
        """The probabilities."""
        return (self.p,)


def concatenate(messages: Sequence[Family]) -> Family:
    """Join plates of one family along their first axis."""
    if not isinstance(messages, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ModelError(f"concatenate takes a list of variables or of messages, not {in_words(messages)}")
    return Family.join(messages)


def _described(message: Family) -> str:
    """All entries of a small plate; of a large one the first, the last, and how many are out of the ordinary."""
    name = type(message).__name__
    if message.size == 0:
        return f"{name}(shape={message.shape})"
    if message.ndim == 0:
        return f"{name}({_entry(message)})"
    if message.size <= 4 and message.ndim == 1:
        return f"{name}[{', '.join(_entry(message[i]) for i in range(message.size))}]"
    flat = message.reshape((message.size,))
    n_point, n_improper = int(message.is_point.sum()), int((~message.proper & ~message.is_uniform).sum())
    extra = (f", {n_point} point masses" if n_point else "") + (f", {n_improper} improper" if n_improper else "")
    return f"{name}[shape={message.shape}: {_entry(flat[0])} ... {_entry(flat[-1])}{extra}]"


def _entry(message: Family) -> str:
    if message.is_point:
        return f"point {short(message.point)}"
    if message.is_uniform:
        return "uniform"
    return message.parameters_text() + ("" if message.proper else ", improper")
