"""A message as a value: one object is a whole plate of exponential-family distributions.

`Family` is the only base class of the package. It holds what is the same for every family, the algebra of
natural parameters: a product of messages adds them, a quotient subtracts them, a power scales them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from heliograph.errors import ContradictionError, ImproperError

__all__ = ["Family", "concatenate"]


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

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def from_naturals(cls, naturals: tuple[np.ndarray, ...], point: np.ndarray | None = None) -> Self:
        """Wrap arrays as they are, without checks: the way the algebra makes its results."""
        self = object.__new__(cls)
        object.__setattr__(self, "naturals", naturals)
        object.__setattr__(self, "point", point)
        return self

    def _init(self, naturals: Iterable[np.ndarray], point: np.ndarray | None = None) -> None:
        object.__setattr__(self, "naturals", tuple(naturals))
        object.__setattr__(self, "point", point)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is a value and cannot be changed; make a new one")

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
        return int(np.prod(self.shape, dtype=int))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"a single {type(self).__name__} has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Self:
        """Entries of the plate, as NumPy indexes an array of that shape."""
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in [i for i in index if i is Ellipsis] and any(r for r in (*self.ranks, self.point_rank)):
            raise IndexError("an Ellipsis could reach into the event axes; index the plate axes by name")
        point = None if self.point is None else self.point[index]
        return self.from_naturals(tuple(np.asarray(a[index]) for a in self.naturals), _settle(point))

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
        if type(self) is not type(other):
            return NotImplemented
        naturals = tuple(a + b for a, b in zip(self.naturals, other.naturals, strict=True))
        if self.point is None and other.point is None:
            return self.from_naturals(naturals)
        return self._with_points(naturals, _multiply_points(self, other))

    def __truediv__(self, other: Self) -> Self:
        if type(self) is not type(other):
            return NotImplemented
        naturals = tuple(a - b for a, b in zip(self.naturals, other.naturals, strict=True))
        if self.point is None and other.point is None:
            return self.from_naturals(naturals)
        return self._with_points(naturals, _divide_points(self, other))

    def __pow__(self, exponent: float | np.ndarray) -> Self:
        e = np.asarray(exponent, dtype=float)
        naturals = tuple(
            a * e.reshape(e.shape + (1,) * r) for a, r in zip(self.naturals, self.ranks, strict=True)
        )
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
        """``log`` of the integral of ``exp(naturals . statistics)``; 0 where that is uniform, improper or a point."""
        raise NotImplementedError  # pragma: no cover

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
            return f"point {_short(self.point)}"
        if self.is_uniform:
            return "uniform"
        return self._parameters_text() + ("" if self.proper else ", improper")

    def _parameters_text(self) -> str:
        raise NotImplementedError  # pragma: no cover


def concatenate(messages: Sequence[Family]) -> Family:
    """Join plates of one family along their first axis."""
    kinds = {type(m) for m in messages}
    if len(kinds) != 1:
        raise TypeError(f"cannot concatenate messages of different families: {sorted(k.__name__ for k in kinds)}")
    kind = kinds.pop()
    naturals = tuple(np.concatenate([m.naturals[k] for m in messages]) for k in range(len(kind.ranks)))
    if all(m.point is None for m in messages):
        return kind.from_naturals(naturals)
    points = [m.point if m.point is not None else np.full(_point_shape(m), np.nan) for m in messages]
    return kind.from_naturals(naturals, np.concatenate(points))


def _short(value: Any) -> str:
    return np.array2string(np.asarray(value), precision=4, threshold=6, separator=", ")


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
        i = tuple(int(k[0]) for k in np.nonzero(clash))
        raise ContradictionError(
            f"two point-mass {type(a).__name__} messages disagree ({x[i]} and {y[i]}): their product is zero everywhere"
        )
    return np.where(np.isnan(x), y, x)


def _divide_points(a: Family, b: Family) -> np.ndarray:
    x, y = np.broadcast_arrays(_points_of(a), _points_of(b))
    if (~np.isnan(y) & (x != y)).any():
        raise ImproperError(f"cannot divide a {type(a).__name__} message by a point mass somewhere else")
    return np.where(x == y, np.nan, x)  # a point mass divided by itself is uniform
