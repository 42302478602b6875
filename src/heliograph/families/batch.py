"""The algebra of natural parameters: a product of messages adds them, a quotient subtracts them, a power scales them.

Nothing here knows which family it is; what each family answers for itself is in `base`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from heliograph.errors import ImproperError, ModelError, UnsupportedError
from heliograph.families.points import Points, divided, locations, multiplied, or_none, plate_index
from heliograph.numerics.checks import as_real, short

__all__ = ["Batch"]


class Batch:
    """A batch of members of one exponential family: natural parameters, and point masses among them.

    `naturals` holds one float64 array per natural parameter, each of shape ``(*shape, *event)``. All zeros is the
    *uniform* message, the constant 1. `point` is None, or an array that holds the location where an entry is a
    *point mass* and NaN where it is not; the natural parameters of such an entry are 0.
    """

    __slots__ = ("naturals", "point")

    naturals: tuple[np.ndarray, ...]
    point: Points

    ranks: ClassVar[tuple[int, ...]] = ()  # trailing event axes of each natural parameter
    point_rank: ClassVar[int] = 0  # trailing event axes of a value of the variable

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def from_naturals(cls, naturals: tuple[np.ndarray, ...], point: Points = None) -> Self:
        """Wrap arrays as they are, without checks: the way the algebra makes its results."""
        self = _new(cls)
        _set_naturals(self, naturals)
        _set_point(self, point)
        return self

    def _init(self, naturals: tuple[np.ndarray, ...], point: Points = None) -> None:
        _set_naturals(self, naturals)
        _set_point(self, point)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is a value and cannot be changed; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is a value and cannot be changed; make a new one")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_naturals, (self.naturals, self.point)

    @classmethod
    def with_points(cls, naturals: tuple[np.ndarray, ...], point: np.ndarray) -> Self:
        """Natural parameters as they are, but a point mass where `point` is not NaN."""
        is_point = ~np.isnan(point) if not cls.point_rank else ~np.isnan(point[..., 0])
        return (
            cls.from_naturals(cls._cleared(naturals, is_point), point)
            if is_point.any()
            else cls.from_naturals(naturals)
        )

    @classmethod
    def with_points_at(cls, is_point: np.ndarray, value: np.ndarray, naturals: tuple[np.ndarray, ...]) -> Self:
        """Natural parameters as they are, but a point mass at `value` where `is_point` is true."""
        if not is_point.any():
            return cls.from_naturals(naturals)
        point = np.where(_beside(is_point, cls.point_rank), value, np.nan)
        return cls.from_naturals(cls._cleared(naturals, is_point), point)

    @classmethod
    def _cleared(cls, naturals: tuple[np.ndarray, ...], is_point: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple([np.where(_beside(is_point, r), 0.0, a) for a, r in zip(naturals, cls.ranks, strict=True)])

    @classmethod
    def uniform(cls, shape: tuple[int, ...] | int = ()) -> Self:
        """The constant 1 over a plate of this shape."""
        return cls._zeros(shape)

    @classmethod
    def _zeros(cls, shape: tuple[int, ...] | int, *event: int) -> Self:
        """All natural parameters 0; `event` is the length of a vector or the number of categories."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return cls.from_naturals(tuple([np.zeros((*shape, *event * rank)) for rank in cls.ranks]))

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
            index = plate_index(index, self.ndim)
        point = None if self.point is None else self.point[index]
        return self.from_naturals(tuple([a[index] for a in self.naturals]), or_none(point))

    def reshape(self, *shape: int | tuple[int, ...]) -> Self:
        """The same distributions in a plate of another shape."""
        new = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        return self._map(lambda a, rank: a.reshape((*new, *a.shape[a.ndim - rank :])))  # type: ignore[misc]

    def broadcast_to(self, shape: tuple[int, ...]) -> Self:
        """The same distributions repeated to a larger plate, without copying."""
        return self._map(lambda a, rank: np.broadcast_to(a, (*shape, *a.shape[a.ndim - rank :])))

    def _map(self, f: Callable[[np.ndarray, int], np.ndarray]) -> Self:
        point = None if self.point is None else f(self.point, self.point_rank)
        return self.from_naturals(tuple(f(a, r) for a, r in zip(self.naturals, self.ranks, strict=True)), point)

    def where(self, condition: np.ndarray, other: Self) -> Self:
        """The entries of this plate where `condition` holds, of the other elsewhere; the three broadcast.

        >>> from heliograph.families import Gaussian
        >>> Gaussian([1.0, 2.0], 1.0).where(np.array([True, False]), Gaussian(0.0, 3.0))
        Gaussian[mean 1., variance 1., mean 0., variance 3.]
        """
        naturals = tuple(
            np.where(_beside(condition, r), a, b)
            for a, b, r in zip(self.naturals, other.naturals, self.ranks, strict=True)
        )
        if self.point is None and other.point is None:
            return self.from_naturals(naturals)
        first = naturals[0]
        shape = first.shape[: first.ndim - self.ranks[0] + self.point_rank]
        here, there = locations(self.point, shape), locations(other.point, shape)
        return self.from_naturals(naturals, or_none(np.where(_beside(condition, self.point_rank), here, there)))

    @classmethod
    def join(cls, parts: Sequence[Self], rows: Sequence[Any] | None = None, n: int | None = None) -> Self:
        """Several plates as one along their first axis.

        Parameters
        ----------
        parts
            Plates of one family, all of their axes but the first alike.
        rows
            Where the entries of each part go (index arrays or slices, later ones replacing earlier); in order if None.
        n
            The length of the result, which `rows` must cover; the sum of the lengths of the parts if None.
        """
        kinds = {type(m) for m in parts}
        if len(kinds) != 1:
            names = ", ".join(sorted(k.__name__ for k in kinds)) or "none at all"
            raise UnsupportedError(f"concatenate joins messages of one family, and was given {names}")

        def laid_out(arrays: list[np.ndarray]) -> np.ndarray:
            if rows is None:
                return np.concatenate(arrays)
            out = np.empty((sum(map(len, parts)) if n is None else n, *arrays[0].shape[1:]))
            for at, a in zip(rows, arrays, strict=True):
                out[at] = a
            return out

        kind = kinds.pop()
        naturals = tuple([laid_out([m.naturals[k] for m in parts]) for k in range(len(kind.ranks))])
        if all(m.point is None for m in parts):
            return kind.from_naturals(naturals)
        return kind.from_naturals(naturals, laid_out([m._locations() for m in parts]))

    # ---- algebra ------------------------------------------------------------------------------------------------
    def __mul__(self, other: Self) -> Self:
        self._check_same("*", other)
        naturals = tuple([a + b for a, b in zip(self.naturals, other.naturals)])  # noqa: B905 (one family)
        if self.point is None and other.point is None:
            return self.from_naturals(naturals)
        return self.with_points(naturals, multiplied(type(self).__name__, self._locations(), other._locations()))

    def __truediv__(self, other: Self) -> Self:
        self._check_same("/", other)
        naturals = tuple([a - b for a, b in zip(self.naturals, other.naturals)])  # noqa: B905 (one family)
        if self.point is None and other.point is None:
            return self.from_naturals(naturals)
        return self.with_points(naturals, divided(type(self).__name__, self._locations(), other._locations()))

    def _check_same(self, what: str, other: Batch) -> None:
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
            naturals = tuple([a * _beside(e, r) for a, r in zip(self.naturals, self.ranks, strict=True)])
        else:
            naturals = tuple([a * e for a in self.naturals])
        if self.point is None:
            return self.from_naturals(naturals)
        if np.any(self.is_point & (e < 0)):
            raise ImproperError(f"a point-mass {type(self).__name__} has no negative power")
        keep = np.broadcast_to(e > 0, np.broadcast_shapes(self.shape, e.shape))
        return self.with_points(naturals, np.where(_beside(keep, self.point_rank), self.point, np.nan))

    def without(self, rows: np.ndarray) -> Self:
        """The same entries but NaN, no answer at all, where `rows` is true.

        Such an entry passes through the algebra as NaN, is not proper, and leaves its neighbours alone.
        """
        naturals = [np.where(_beside(rows, r), np.nan, a) for a, r in zip(self.naturals, self.ranks, strict=True)]
        if self.point is None:
            return self.from_naturals(tuple(naturals))
        point = np.where(_beside(rows, self.point_rank), np.nan, self.point)
        return self.from_naturals(tuple(naturals), or_none(point))

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
        return self._everywhere([a == 0 for a in self.naturals]) & ~self.is_point

    @property
    def finite(self) -> np.ndarray:
        """Where every natural parameter is a finite number: an entry that is not is no answer at all."""
        return self._everywhere([np.isfinite(a) for a in self.naturals])

    def _everywhere(self, holds: Sequence[np.ndarray]) -> np.ndarray:
        """Where a statement about each number of each natural parameter holds for all of them."""
        whole = np.ones(holds[0].shape[: holds[0].ndim - self.ranks[0]], dtype=bool)
        for a, rank in zip(holds, self.ranks, strict=True):
            whole &= a.all(axis=tuple(range(a.ndim - rank, a.ndim))) if rank else a
        return whole

    def _locations(self) -> np.ndarray:
        """Where the point masses lie, as an array also where there are none."""
        first = self.naturals[0]
        return locations(self.point, first.shape[: first.ndim - self.ranks[0] + self.point_rank])

    def _or_at_points(self, values: np.ndarray, there: Any, rank: int = 0) -> np.ndarray:
        """`values`, but `there` at the point masses; `rank` is the number of their trailing event axes."""
        return values if self.point is None else np.where(_beside(self.is_point, rank), there, values)


_new = object.__new__
_set_naturals = Batch.naturals.__set__  # type: ignore[attr-defined]  # the slots' own setters: past __setattr__
_set_point = Batch.point.__set__  # type: ignore[union-attr]


def _beside(a: np.ndarray, rank: int) -> np.ndarray:
    """An array over the plate, to stand beside one with `rank` event axes."""
    return a.reshape(a.shape + (1,) * rank) if rank else a
