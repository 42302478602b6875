"""A message as a value: one object is a whole plate of exponential-family distributions.

`Family` is the only base class of the package. It holds what is the same for every family, the algebra of
natural parameters: a product of messages adds them, a quotient subtracts them, a power scales them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from heliograph.errors import ContradictionError, ImproperError, ModelError, UnsupportedError
from heliograph.numerics.checks import as_real, short

__all__ = ["Family", "concatenate", "stored"]

_LEAST = float(np.nextafter(-1.0, 0.0))


def stored(parameter: np.ndarray) -> np.ndarray:
    """``parameter - 1``, the natural parameter, never rounded down to -1, which would be improper."""
    return np.maximum(parameter - 1.0, _LEAST)


class Family:
    """A batch of distributions of one exponential family, in natural parameters.

    `naturals` holds one float64 array per natural parameter, each of shape ``(*shape, *event)``. All zeros is the
    *uniform* message, the constant 1. `point` is None, or an array that holds the location where an entry is a
    *point mass* and NaN where it is not; the natural parameters of such an entry are 0. An entry that is neither
    and has no finite integral is *improper*: an honest value of the algebra (a quotient of two beliefs often is
    one), read as ``exp(naturals . statistics)``, that can be multiplied and divided but not sampled.
    """

    __slots__ = ("naturals", "point")

    naturals: tuple[np.ndarray, ...]
    point: np.ndarray | None

    chart: ClassVar[str] = "identity"  # the axis on which a kernel embeds it: identity, log, logit or simplex
    ranks: ClassVar[tuple[int, ...]] = ()  # trailing event axes of each natural parameter
    point_rank: ClassVar[int] = 0  # trailing event axes of a value of the variable
    statistics: ClassVar[tuple[str, ...]] = ()  # what multiplies each natural parameter, in words

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def from_naturals(cls, naturals: tuple[np.ndarray, ...], point: np.ndarray | None = None) -> Self:
        """Wrap arrays as they are, without checks: the way the algebra makes its results."""
        self = _new(cls)
        _set_naturals(self, naturals)
        _set_point(self, point)
        return self

    def _init(self, naturals: tuple[np.ndarray, ...], point: np.ndarray | None = None) -> None:
        _set_naturals(self, naturals)
        _set_point(self, point)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is a value and cannot be changed; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is a value and cannot be changed; make a new one")

    def __reduce__(self) -> Any:
        return type(self).from_naturals, (self.naturals, self.point)

    @classmethod
    def uniform(cls, shape: tuple[int, ...] | int = (), *event: int) -> Self:
        """The constant 1 over a plate of this shape."""
        raise NotImplementedError  # pragma: no cover

    @classmethod
    def point_mass(cls, value: Any) -> Self:
        """All mass at `value`; NaN entries become uniform (nothing is known there)."""
        raise NotImplementedError  # pragma: no cover

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
        raise NotImplementedError  # pragma: no cover

    def as_uniform(self) -> Self:
        """The uniform message of the same shape."""
        return self.from_naturals(tuple(np.zeros_like(a) for a in self.naturals))

    # ---- shape --------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the plate, event axes left out."""
        a, rank = self.naturals[0], self.ranks[0]
        return a.shape[: a.ndim - rank] if rank else a.shape

    @property
    def ndim(self) -> int:
        """The number of plate axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of distributions in the plate."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"a single {type(self).__name__} has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Self:
        """Entries of the plate, as NumPy indexes an array of that shape."""
        if self.ranks[0]:
            index = _within(index, self.ndim)
        point = None if self.point is None else self.point[index]
        return self.from_naturals(tuple([a[index] for a in self.naturals]), _settle(point))

    def reshape(self, *shape: int | tuple[int, ...]) -> Self:
        """The same distributions in a plate of another shape."""
        new = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return self._map(lambda a, rank: a.reshape((*new, *a.shape[a.ndim - rank :])))  # type: ignore[misc]

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same distributions repeated to a larger plate, without copying."""
        return self._map(lambda a, rank: np.broadcast_to(a, (*shape, *a.shape[a.ndim - rank :])))

    def _map(self, f: Any) -> Self:
        point = None if self.point is None else f(self.point, self.point_rank)
        return self.from_naturals(tuple(f(a, r) for a, r in zip(self.naturals, self.ranks, strict=True)), point)

    # ---- algebra ------------------------------------------------------------------------------------------------
    def __mul__(self, other: Self) -> Self:
        self._check_same("*", other)
        naturals = tuple([a + b for a, b in zip(self.naturals, other.naturals)])  # noqa: B905 (one family)
        if self.point is None and other.point is None:
            return self.from_naturals(naturals)
        return self._with_points(naturals, _multiply_points(self, other))

    def __truediv__(self, other: Self) -> Self:
        self._check_same("/", other)
        naturals = tuple([a - b for a, b in zip(self.naturals, other.naturals)])  # noqa: B905 (one family)
        if self.point is None and other.point is None:
            return self.from_naturals(naturals)
        return self._with_points(naturals, _divide_points(self, other))

    def _check_same(self, what: str, other: Any) -> None:
        """Raise unless `other` is a message of the same family and dimension, in a plate that fits."""
        if type(self) is not type(other):
            raise UnsupportedError(
                f"{what} takes two messages of one family, not a {type(self).__name__} and a {type(other).__name__}"
            )
        a, b, rank = self.naturals[0].shape, other.naturals[0].shape, self.ranks[0]
        if a == b:
            return
        if rank and a[-rank:] != b[-rank:]:
            raise ModelError(
                f"{what} takes two {type(self).__name__} messages of one dimension, not {a[-1]} and {b[-1]}"
            )
        try:
            np.broadcast_shapes(a, b)
        except ValueError:
            raise ModelError(f"{what}: plates of shapes {self.shape} and {other.shape} do not fit together") from None

    def __pow__(self, exponent: float | np.ndarray) -> Self:
        e = as_real(f"the power of a {type(self).__name__}", exponent)
        if not np.isfinite(e).all():
            raise ModelError(f"the power of a {type(self).__name__} must be finite, not {short(e)}")
        if e.ndim:
            naturals = tuple(
                [a * e.reshape(e.shape + (1,) * r) for a, r in zip(self.naturals, self.ranks, strict=True)]
            )
        else:
            naturals = tuple([a * e for a in self.naturals])
        if self.point is None:
            return self.from_naturals(naturals)
        if np.any(self.is_point & (e < 0)):
            raise ImproperError(f"a point-mass {type(self).__name__} has no negative power")
        keep = np.broadcast_to(e > 0, np.broadcast_shapes(self.shape, e.shape))
        keep = keep.reshape(keep.shape + (1,) * self.point_rank)
        return self._with_points(naturals, np.where(keep, self.point, np.nan))

    @classmethod
    def _with_points(cls, naturals: tuple[np.ndarray, ...], point: np.ndarray) -> Self:
        is_point = ~np.isnan(point) if not cls.point_rank else ~np.isnan(point[..., 0])
        if not is_point.any():
            return cls.from_naturals(naturals)
        cleared = []
        for a, rank in zip(naturals, cls.ranks, strict=True):
            mask = is_point.reshape(is_point.shape + (1,) * rank)
            cleared.append(np.where(mask, 0.0, a))
        return cls.from_naturals(tuple(cleared), point)

    def without(self, rows: np.ndarray) -> Self:
        """The same entries but NaN, no answer at all, where `rows` is true.

        Such an entry passes through the algebra as NaN, is not proper, and leaves its neighbours alone.
        """
        naturals = tuple(
            [
                np.where(rows.reshape(rows.shape + (1,) * r), np.nan, a)
                for a, r in zip(self.naturals, self.ranks, strict=True)
            ]
        )
        if self.point is None:
            return self.from_naturals(naturals)
        keep = ~rows.reshape(rows.shape + (1,) * self.point_rank)
        return self.from_naturals(naturals, _settle(np.where(keep, self.point, np.nan)))

    # ---- what kind of value -------------------------------------------------------------------------------------
    @property
    def is_point(self) -> np.ndarray:
        """Where an entry is a point mass."""
        if self.point is None:
            return np.zeros(self.shape, dtype=bool)
        return ~np.isnan(self.point[..., 0] if self.point_rank else self.point)

    @property
    def is_uniform(self) -> np.ndarray:
        """Where an entry is the constant 1."""
        flat = np.ones(self.shape, dtype=bool)
        for a, rank in zip(self.naturals, self.ranks, strict=True):
            flat &= (a == 0).all(axis=tuple(range(a.ndim - rank, a.ndim))) if rank else a == 0
        return flat & ~self.is_point

    @property
    def proper(self) -> np.ndarray:
        """Where an entry can be normalised (point masses can)."""
        raise NotImplementedError  # pragma: no cover

    @property
    def mean(self) -> np.ndarray:
        """The expectation of the variable."""
        raise NotImplementedError  # pragma: no cover

    @property
    def variance(self) -> np.ndarray:
        """The variance of the variable, component by component."""
        raise NotImplementedError  # pragma: no cover

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
        """Mean and variance on the chart."""
        raise NotImplementedError  # pragma: no cover

    @classmethod
    def in_support(cls, x: Any) -> np.ndarray:
        """Where a value is one that the variable can take."""
        raise NotImplementedError  # pragma: no cover

    def log_density(self, x: Any) -> np.ndarray:
        """``log`` of the density (or probability) at x; where there is none, ``naturals . statistics`` of x."""
        raise NotImplementedError  # pragma: no cover

    def entropy(self) -> np.ndarray:
        """The (differential) entropy in nats."""
        raise NotImplementedError  # pragma: no cover

    def kl(self, other: Self) -> np.ndarray:
        """``KL(self || other)`` in nats; infinite where `other` cannot hold `self`, 0 where they are the same."""
        raise NotImplementedError  # pragma: no cover

    def sample(self, rng: np.random.Generator, n: int | tuple[int, ...] = ()) -> np.ndarray:
        """Draws of shape ``(*n, *shape, *event)``."""
        raise NotImplementedError  # pragma: no cover

    def _kl_at_limits(self, other: Self) -> np.ndarray:
        """The KL where one of the two is no density: 0 between equal values, else infinite."""
        same = np.ones(np.broadcast_shapes(self.shape, other.shape), dtype=bool)
        for a, b, rank in zip(self.naturals, other.naturals, self.ranks, strict=True):
            equal = a == b
            same &= equal.all(axis=tuple(range(-rank, 0))) if rank else equal
        if self.point is not None or other.point is not None:
            x, y = np.broadcast_arrays(_points_of(self), _points_of(other))
            equal = (x == y) | (np.isnan(x) & np.isnan(y))
            same &= equal.all(axis=-1) if self.point_rank else equal
        return np.where(same, 0.0, np.inf)

    def __repr__(self) -> str:
        name = type(self).__name__
        if self.size == 0:
            return f"{name}(shape={self.shape})"
        if self.size <= 4 and self.ndim <= 1:
            parts = [self[i]._text() for i in range(self.size)] if self.ndim else [self._text()]
            return f"{name}({', '.join(parts)})" if self.ndim == 0 else f"{name}[{', '.join(parts)}]"
        first, last = self.reshape((self.size,))[0], self.reshape((self.size,))[-1]
        n_point, n_improper = int(self.is_point.sum()), int((~self.proper & ~self.is_uniform).sum())
        extra = (f", {n_point} point masses" if n_point else "") + (f", {n_improper} improper" if n_improper else "")
        return f"{name}[shape={self.shape}: {first._text()} ... {last._text()}{extra}]"

    def _text(self) -> str:
        """One entry in a few words, for `repr`."""
        if self.is_point:
            return f"point {short(self.point)}"
        if self.is_uniform:
            return "uniform"
        return self._parameters_text() + ("" if self.proper else ", improper")

    def _parameters_text(self) -> str:
        raise NotImplementedError  # pragma: no cover


_new = object.__new__
_set_naturals = Family.naturals.__set__  # type: ignore[attr-defined]  # the slots' own setters: past __setattr__
_set_point = Family.point.__set__  # type: ignore[union-attr]


def concatenate(messages: Sequence[Family]) -> Family:
    """Join plates of one family along their first axis."""
    kinds = {type(m) for m in messages}
    if len(kinds) != 1:
        names = ", ".join(sorted(k.__name__ for k in kinds)) or "none at all"
        raise UnsupportedError(f"concatenate joins messages of one family, and was given {names}")
    kind = kinds.pop()
    naturals = tuple(np.concatenate([m.naturals[k] for m in messages]) for k in range(len(kind.ranks)))
    if all(m.point is None for m in messages):
        return kind.from_naturals(naturals)
    points = [m.point if m.point is not None else np.full(_point_shape(m), np.nan) for m in messages]
    return kind.from_naturals(naturals, np.concatenate(points))


def _within(index: Any, ndim: int) -> tuple[Any, ...]:
    """An index that stays on the plate axes: event axes follow them, and are not to be reached."""
    index = index if isinstance(index, tuple) else (index,)
    used = 0
    for i in index:
        mask = isinstance(i, (np.ndarray, list)) and np.asarray(i).dtype == bool
        used += np.ndim(i) if mask else 0 if i is None or i is Ellipsis else 1
    if used > ndim:
        raise IndexError(f"{used} indices for a plate of {ndim} axes; use .marginal or .mean for parts of one entry")
    at = next((k for k, i in enumerate(index) if i is Ellipsis), None)
    return index if at is None else (*index[:at], *(slice(None),) * (ndim - used), *index[at + 1 :])


def _settle(point: np.ndarray | None) -> np.ndarray | None:
    return None if point is None or np.isnan(point).all() else np.asarray(point)


def _point_shape(m: Family) -> tuple[int, ...]:
    if m.point is not None:
        return m.point.shape
    a, rank = m.naturals[0], m.ranks[0]
    event = a.shape[a.ndim - rank :] if rank else ()
    return (*m.shape, *event[: m.point_rank])


def _points_of(m: Family) -> np.ndarray:
    return m.point if m.point is not None else np.full(_point_shape(m), np.nan)


def _multiply_points(a: Family, b: Family) -> np.ndarray:
    x, y = np.broadcast_arrays(_points_of(a), _points_of(b))
    clash = ~np.isnan(x) & ~np.isnan(y) & (x != y)
    if clash.any():
        raise ContradictionError(
            f"two point-mass {type(a).__name__} messages disagree ({x[clash][0]:g} and {y[clash][0]:g}): their product "
            "is zero everywhere"
        )
    return np.where(np.isnan(x), y, x)


def _divide_points(a: Family, b: Family) -> np.ndarray:
    x, y = np.broadcast_arrays(_points_of(a), _points_of(b))
    if (~np.isnan(y) & (x != y)).any():
        raise ImproperError(f"cannot divide a {type(a).__name__} message by a point mass somewhere else")
    return np.where(x == y, np.nan, x)  # a point mass divided by itself is uniform
