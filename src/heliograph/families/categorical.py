"""Categorical messages: a distribution over K unordered values."""

# A family meets only itself, and has statistics of its own.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from typing import Any, Self

import numpy as np

from heliograph.errors import ContradictionError, ImproperError, ModelError
from heliograph.families.base import Discrete
from heliograph.numerics.checks import as_real, short
from heliograph.numerics.logarithms import log_or_minus_inf
from heliograph.numerics.special import entr

__all__ = ["Categorical"]


class Categorical(Discrete):
    """Probability ``p[k]`` of category k, kept as ``exp(log_p[k])``, of which only the ratios matter.

    Uniform: all categories alike; being a distribution on K values it is also proper, and its normaliser is K. Point
    mass: certainty of one category, named by its index, which is also what a p with a single non-zero entry becomes.
    Some categories may be impossible (``log_p`` -inf): a product keeps them so, and dividing 0 by 0 leaves 0. No
    entry is ever improper.

    >>> Categorical([0.5, 0.25, 0.25]) * Categorical([0.5, 0.5, 0.0])
    Categorical(p [0.6667, 0.3333, 0.    ])
    >>> Categorical([[0.0, 1.0], [0.5, 0.5]])
    Categorical[point 1., uniform]
    """

    __slots__ = ()
    chart = "simplex"
    ranks = (1,)
    point_rank = 0
    statistics = ("[x = k]",)

    def __init__(self, p: Any) -> None:
        p = as_real("a Categorical's probabilities", p)
        if p.ndim < 1 or p.shape[-1] < 1:
            raise ModelError("a Categorical needs a vector of probabilities along its last axis")
        total = p.sum(axis=-1, keepdims=True)
        # 1e-6: probabilities typed with six digits pass, a vector of counts or a forgotten category does not
        if not ((p >= 0).all() and (np.abs(total - 1.0) <= 1e-6).all()):
            raise ModelError(
                f"a Categorical needs probabilities that are not negative and sum to 1, not {short(p)}; "
                "divide weights by their sum"
            )
        made = self._settled(log_or_minus_inf(p / total))
        self._init(made.naturals, made.point)

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def _settled(cls, log_p: np.ndarray, point: np.ndarray | None = None) -> Self:
        """Turn an entry with one possible category into a point mass, and refuse one with none."""
        possible = log_p != -np.inf  # true of NaN, which is no contradiction but no answer
        if possible.all():
            return cls.from_naturals((log_p,), point)
        count = possible.sum(axis=-1)
        if (count == 0).any():
            raise ContradictionError("the product of Categorical messages leaves no category possible")
        single = count == 1
        if single.any() and log_p.shape[-1] > 1:
            held = np.where(single, possible.argmax(axis=-1), np.nan)
            point = held if point is None else np.where(single, held, point)
            log_p = np.where(single[..., None], 0.0, log_p)
        return cls.from_naturals((log_p,), point)

    @classmethod
    def from_log_p(cls, log_p: Any, *, strict: bool = True) -> Self:
        """From logarithms of probabilities, known up to a constant each; -inf means impossible.

        NaN and +inf are an error, or with ``strict=False`` make an entry of NaN.
        """
        log_p = np.array(as_real("a Categorical's log probabilities", log_p))
        if not (log_p < np.inf).all():
            if not strict:
                return cls._settled(np.where((log_p < np.inf).all(axis=-1, keepdims=True), log_p, np.nan))
            raise ModelError(f"a Categorical's log probabilities must be below infinity, not {short(log_p)}")
        return cls._settled(log_p)

    @classmethod
    def from_log_weights(cls, log_weights: Any, *, strict: bool = True) -> Self:
        """The same from the logarithms of weights, the largest of which becomes 0."""
        log_weights = np.asarray(log_weights, dtype=float)
        return cls.from_log_p(log_weights - log_weights.max(axis=-1, keepdims=True), strict=strict)

    @classmethod
    def uniform(cls, shape: tuple[int, ...] | int = (), n_categories: int = 2) -> Self:
        """The constant 1 on `n_categories` categories."""
        return cls._zeros(shape, n_categories)

    @classmethod
    def point_mass(cls, value: Any, n_categories: int) -> Self:
        """Certainty of category `value`, an index below `n_categories`; NaN entries become uniform."""
        value = np.array(as_real("a Categorical's point mass", value))
        if not (cls.in_support(value, n_categories) | np.isnan(value)).all():
            raise ModelError(
                f"a Categorical's value is a whole number from 0 to {n_categories - 1}, not {short(value)}"
            )
        return cls._points_at(value, n_categories)

    def point_like(self, value: Any) -> Self:
        """Certainty of the categories `value`, of as many as this message has."""
        return self.point_mass(value, self.n_categories)

    # ---- algebra: impossible categories need care, all else is the base's -----------------------------------------
    def __mul__(self, other: Self) -> Self:
        out = super().__mul__(other)
        if np.isfinite(out.naturals[0]).all() and out.point is None:
            return out
        if out.point is not None:
            for m in (self, other):
                if (_log_p_at(m.naturals[0], out.point) == -np.inf).any():
                    raise ContradictionError("a point-mass Categorical meets a message that holds it impossible")
        return self._settled(out.naturals[0], out.point)

    def __truediv__(self, other: Self) -> Self:
        self._check_same("/", other)
        b = other.naturals[0]
        if np.isfinite(b).all():
            return super().__truediv__(other)
        impossible = b == -np.inf
        a = self.naturals[0]
        kept = impossible & (a > -np.inf) & ~self.is_point[..., None]
        if kept.any() or (self.point is not None and (_log_p_at(b, self.point) == -np.inf).any()):
            raise ImproperError("cannot divide a Categorical message by one that holds impossible what it allows")
        return super().__truediv__(other.from_naturals((np.where(impossible, 0.0, b),), other.point))

    def __pow__(self, exponent: float | np.ndarray) -> Self:
        impossible = self.naturals[0] == -np.inf
        if not impossible.any():
            return super().__pow__(exponent)
        e = np.asarray(exponent, dtype=float)[..., None]
        if (impossible & (e < 0)).any():
            raise ImproperError("a Categorical with impossible categories has no negative power")
        out = self.from_naturals((np.where(impossible, 0.0, self.naturals[0]),), self.point)
        out = Discrete.__pow__(out, exponent)
        return self.from_naturals((np.where(impossible & (e > 0), -np.inf, out.naturals[0]),), out.point)

    @property
    def finite(self) -> np.ndarray:
        """Where every natural parameter is a number; a category may be impossible, with a logarithm of -inf."""
        return self._everywhere([self.naturals[0] < np.inf])

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def n_categories(self) -> int:
        """The number of categories."""
        return self.naturals[0].shape[-1]

    @property
    def log_p(self) -> np.ndarray:
        """The logarithm of `p`, normalised; -inf where impossible."""
        log_p = self.naturals[0] - _log_sum(self.naturals[0])[..., None]
        if self.point is None:
            return log_p
        return np.where(self.is_point[..., None], np.where(self._one_hot(), 0.0, -np.inf), log_p)

    @property
    def p(self) -> np.ndarray:
        """The probabilities, along the last axis."""
        log_p = self.naturals[0]
        p = np.exp(log_p - log_p.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return p if self.point is None else np.where(self.is_point[..., None], self._one_hot(), p)

    def _one_hot(self) -> np.ndarray:
        assert self.point is not None
        return np.arange(self.n_categories) == self.point[..., None]

    @property
    def variance(self) -> np.ndarray:
        """The variance of the one-hot vector, ``p (1 - p)``."""
        p = self.p
        return p * (1.0 - p)

    @property
    def is_uniform(self) -> np.ndarray:
        """Where all categories are alike."""
        log_p = self.naturals[0]
        return (log_p == log_p[..., :1]).all(axis=-1) & ~self.is_point

    @property
    def proper(self) -> np.ndarray:
        """Everywhere: K values always have a finite sum. Only an entry of NaN is no distribution."""
        return np.asarray(~np.isnan(self.naturals[0]).any(axis=-1))

    @classmethod
    def in_support(cls, x: Any, n_categories: float = np.inf) -> np.ndarray:
        """Where a value is a whole number from 0, below `n_categories` if that is given."""
        x = as_real("in_support: x", x)
        return (x >= 0) & (x < n_categories) & (x < np.inf) & (x == np.floor(x))

    # ---- densities ----------------------------------------------------------------------------------------------
    def log_normaliser(self) -> np.ndarray:
        """``log sum_k exp(log_p[k])`` of the parameters as stored, so log K where uniform; 0 at a point mass."""
        n = _log_sum(self.naturals[0])
        return self._or_at_points(n, 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """``log p[x]`` for category indices x; -inf elsewhere."""
        x = as_real("log_density: x", x)
        ok = self.in_support(x, self.n_categories)
        return np.where(ok, _log_p_at(self.log_p, np.where(ok, x, 0.0)), -np.inf)

    def entropy(self) -> np.ndarray:
        """``-sum p log p`` in nats; 0 at a point mass."""
        return entr(self.p).sum(axis=-1)

    def _kl(self, other: Self) -> np.ndarray:
        p, log_p, log_q = self.p, self.log_p, other.log_p
        held = np.broadcast_to(p > 0, np.broadcast_shapes(p.shape, log_q.shape))
        gap = np.where(held, log_p, 0.0) - np.where(held, log_q, 0.0)
        terms = np.where(held, np.where(held, p, 1.0) * gap, 0.0)
        return np.maximum(terms.sum(axis=-1), 0.0)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        edges = np.cumsum(self.p, axis=-1)[..., :-1]
        return (rng.random(size)[..., None] >= edges).sum(axis=-1)


def _log_sum(log_p: np.ndarray) -> np.ndarray:
    top = log_p.max(axis=-1, keepdims=True)
    return top[..., 0] + np.log(np.exp(log_p - top).sum(axis=-1))


def _log_p_at(log_p: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Entry ``index`` of each vector; 0 where the index is NaN."""
    shape = np.broadcast_shapes(log_p.shape[:-1], np.shape(index))
    index = np.broadcast_to(index, shape)
    known = ~np.isnan(index)
    at = np.where(known, index, 0.0).astype(int)[..., None]
    found = np.take_along_axis(np.broadcast_to(log_p, (*shape, log_p.shape[-1])), at, axis=-1)[..., 0]
    return np.where(known, found, 0.0)
