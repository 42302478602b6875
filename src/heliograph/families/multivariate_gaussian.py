"""Gaussian messages on vectors."""

# A family meets only itself, and has statistics of its own.
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

from typing import Any, Self

import numpy as np

from heliograph.errors import ModelError
from heliograph.families.base import Family
from heliograph.families.gaussian import Gaussian
from heliograph.families.symmetric import checked, inverted
from heliograph.numerics.checks import as_real, short
from heliograph.numerics.logarithms import LOG_2PI
from heliograph.numerics.triangular import cholesky, gram, inverse_of_lower, log_diagonal, times, transposed_times

__all__ = ["MultivariateGaussian"]


class MultivariateGaussian(Family):
    """``N(x; mean, covariance)`` on vectors, kept as ``exp(shift'x - x' precision x / 2)``.

    Uniform: shift and precision 0 (its mean is NaN, its covariance infinite on the diagonal and NaN beside it). Point
    mass: all mass at one vector, covariance 0. Improper: a precision that is not positive definite (read like uniform).

    >>> MultivariateGaussian([1.0, 2.0], covariance=np.eye(2)) * MultivariateGaussian([3.0, 2.0], precision=np.eye(2))
    MultivariateGaussian(mean [2., 2.], variance [0.5, 0.5])
    """

    __slots__ = (
        "_covariance",
        "_factor",
        "_half",
        "_mean",
        "_root",
    )  # each kept once computed: a value does not change
    gaussian = True
    ranks = (1, 2)
    point_rank = 1
    values = "at a whole finite vector (all of its entries NaN, or none)"
    statistics = ("x", "x x'")

    _factor: tuple[np.ndarray, np.ndarray]  # where the precision is positive definite, and its Cholesky factor
    _root: tuple[np.ndarray, ...]
    _half: np.ndarray  # the inverse of the Cholesky factor, so covariance = half' half
    _mean: np.ndarray
    _covariance: np.ndarray

    def __init__(self, mean: Any, covariance: Any = None, *, precision: Any = None) -> None:
        if (covariance is None) == (precision is None):
            raise ModelError("a MultivariateGaussian needs a mean and either a covariance or a precision")
        name = "covariance" if precision is None else "precision"
        matrix = as_real(f"a MultivariateGaussian's {name}", covariance if precision is None else precision)
        mean = as_real("a MultivariateGaussian's mean", mean)
        if not np.isfinite(mean).all():
            raise ModelError(f"a MultivariateGaussian needs a finite mean, not {short(mean)}")
        if mean.ndim < 1 or matrix.ndim < 2 or matrix.shape[-2:] != (mean.shape[-1],) * 2:
            raise ModelError(
                f"a MultivariateGaussian with a mean of shape {mean.shape} needs a {name} that ends in two axes of the "
                f"mean's length, not one of shape {matrix.shape}"
            )
        if precision is None:
            matrix, *root = inverted(matrix, name)
            shift = transposed_times(root[1], times(root[1], mean))
            kept = "_root", tuple(root)
        else:
            matrix, lower = checked(np.array(matrix), name)
            shift = times(matrix, mean)
            kept = "_factor", (np.ones(matrix.shape[:-2], dtype=bool), lower)
        shape, d = shift.shape[:-1], shift.shape[-1]
        if matrix.shape[:-2] != shape:
            self._init((shift, np.array(np.broadcast_to(matrix, (*shape, d, d)))))
            return
        self._init((shift, matrix))
        object.__setattr__(self, *kept)

    # ---- making -------------------------------------------------------------------------------------------------
    @classmethod
    def uniform(cls, shape: tuple[int, ...] | int = (), dimension: int = 1) -> Self:
        """The constant 1 on vectors of length `dimension`."""
        return cls._zeros(shape, dimension)

    @classmethod
    def from_mean_variance(cls, mean: Any, variance: Any) -> Self:
        """The member with this mean, these variances, and no correlation."""
        variance = np.asarray(variance, dtype=float)
        return cls(mean, variance[..., None] * np.eye(variance.shape[-1]))

    @classmethod
    def from_statistics(cls, first: Any, second: Any) -> Self:
        """The EP projection: the member with ``E x = first`` and ``E x x' = second``."""
        first = np.asarray(first, dtype=float)
        if first.ndim < 1:
            raise ModelError("a MultivariateGaussian's mean is a vector, not a number")
        return cls(first, np.asarray(second, dtype=float) - first[..., :, None] * first[..., None, :])

    @classmethod
    def from_chart_moments(cls, mean: Any, variance: Any) -> Self:
        """The member with this mean, and this covariance (or, without correlation, these variances)."""
        mean, variance = np.asarray(mean, dtype=float), np.asarray(variance, dtype=float)
        return cls(mean, variance) if variance.ndim > mean.ndim else cls.from_mean_variance(mean, variance)

    def reshape(self, *shape: int | tuple[int, ...]) -> Self:
        """The same distributions in a plate of another shape, with what was computed of them."""
        made = super().reshape(*shape)
        matrix = made.naturals[1].shape
        if hasattr(self, "_root"):
            object.__setattr__(made, "_root", tuple(a.reshape(matrix) for a in self._root))
        if hasattr(self, "_factor"):
            good, lower = self._factor
            object.__setattr__(made, "_factor", (good.reshape(made.shape), lower.reshape(matrix)))
        return made

    @property
    def root(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Triangular matrices R with ``covariance = R R'``, and their inverses, where it was made of covariances."""
        return getattr(self, "_root", None)

    # ---- reading ------------------------------------------------------------------------------------------------
    @property
    def dimension(self) -> int:
        """The length of the vector."""
        return self.naturals[0].shape[-1]

    @property
    def shift(self) -> np.ndarray:
        """Precision times mean."""
        return self.naturals[0]

    @property
    def precision(self) -> np.ndarray:
        """The inverse of the covariance; infinite on the diagonal at a point mass."""
        if self.point is None:
            return self.naturals[1]
        certain = np.where(np.eye(self.dimension, dtype=bool), np.inf, 0.0)
        return np.where(self.is_point[..., None, None], certain, self.naturals[1])

    def cholesky(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the precision is positive definite, and its Cholesky factor (the identity elsewhere)."""
        try:
            return self._factor
        except AttributeError:
            object.__setattr__(self, "_factor", cholesky(self.naturals[1]))
            return self._factor

    def whitener(self) -> np.ndarray:
        """The matrix ``half`` with ``covariance = half' half`` (the identity where there is no covariance)."""
        try:
            return self._half
        except AttributeError:
            object.__setattr__(self, "_half", inverse_of_lower(self.cholesky()[1]))
            return self._half

    @property
    def proper(self) -> np.ndarray:
        """Where the precision is positive definite, or the entry is a point mass."""
        soft = np.ones(self.shape, dtype=bool) if self.root is not None else self.cholesky()[0]
        return soft if self.point is None else soft | self.is_point

    @property
    def mean(self) -> np.ndarray:
        """The mean vector; NaN where the message is uniform or improper."""
        try:
            return self._mean
        except AttributeError:
            pass
        soft, half = self.cholesky()[0], self.whitener()
        mean = transposed_times(half, times(half, self.naturals[0]))
        if not soft.all():
            mean = np.where(soft[..., None], mean, np.nan)
        mean = self._or_at_points(mean, self.point, 1)
        object.__setattr__(self, "_mean", mean)
        return mean

    @property
    def covariance(self) -> np.ndarray:
        """The covariance; infinite on the diagonal where the message is uniform or improper, 0 at a point mass."""
        try:
            return self._covariance
        except AttributeError:
            pass
        soft, covariance = self.cholesky()[0], gram(self.whitener())
        if not soft.all():
            nothing = np.where(np.eye(self.dimension, dtype=bool), np.inf, np.nan)
            covariance = np.where(soft[..., None, None], covariance, nothing)
        covariance = self._or_at_points(covariance, 0.0, 2)
        object.__setattr__(self, "_covariance", covariance)
        return covariance

    @property
    def variance(self) -> np.ndarray:
        """The diagonal of the covariance."""
        return np.diagonal(self.covariance, axis1=-2, axis2=-1)

    def marginal(self, index: Any) -> Any:
        """The marginal of one component (a `Gaussian`) or of several (a `MultivariateGaussian`).

        >>> MultivariateGaussian([1.0, 2.0], covariance=[[2.0, 1.0], [1.0, 3.0]]).marginal(1)
        Gaussian(mean 2., variance 3.)
        """
        soft = self.cholesky()[0]
        mean, covariance = np.where(soft[..., None], self.mean, 0.0), self.covariance
        point = None if self.point is None else self.point[..., index]
        if isinstance(index, (int, np.integer)):
            one = Gaussian(mean[..., index], np.where(soft, covariance[..., index, index], np.inf))
            return one if point is None else Gaussian.from_naturals(one.naturals, point)
        index = np.arange(self.dimension)[index]
        covariance = covariance[..., index[:, None], index]
        if not soft.all():
            covariance = np.where(soft[..., None, None], covariance, np.eye(len(index)))
        several = type(self)(mean[..., index], covariance) ** np.where(soft, 1.0, 0.0)  # nothing known stays uniform
        return several if point is None else self.from_naturals(several.naturals, point)

    def expected_statistics(self) -> tuple[np.ndarray, np.ndarray]:
        """``E x`` and ``E x x'``."""
        mean, covariance = self.mean, self.covariance
        return mean, covariance + mean[..., :, None] * mean[..., None, :]

    def somewhere(self) -> np.ndarray:
        """The origin."""
        return np.zeros(self.dimension)

    @classmethod
    def in_support(cls, x: Any) -> np.ndarray:
        """Where a vector is finite."""
        return np.asarray(np.isfinite(as_real("in_support: x", x)).all(axis=-1))

    # ---- densities ----------------------------------------------------------------------------------------------
    def log_normaliser(self) -> np.ndarray:
        """``log`` of the integral of ``exp(shift'x - x' precision x / 2)``; 0 where uniform, improper or a point."""
        soft, lower = self.cholesky()
        white = times(self.whitener(), self.naturals[0])
        return np.where(soft, 0.5 * ((white**2).sum(-1) + self.dimension * LOG_2PI) - log_diagonal(lower), 0.0)

    def log_density(self, x: Any) -> np.ndarray:
        """``log N(x)``; a uniform or improper entry is read as ``exp(shift'x - x' precision x / 2)``."""
        x = as_real("log_density: x", x)
        soft, lower = self.cholesky()
        white = transposed_times(lower, x - np.where(soft[..., None], self.mean, 0.0))
        log_p = -0.5 * ((white**2).sum(-1) + self.dimension * LOG_2PI) + log_diagonal(lower)
        if not np.all(soft):
            shift, precision = self.naturals
            plain = (shift * x).sum(-1) - 0.5 * np.einsum("...i,...ij,...j->...", x, precision, x)
            log_p: np.ndarray = np.where(soft, log_p, plain)
        return self._log_density_at_points(log_p, x)

    def entropy(self) -> np.ndarray:
        """``-E log N(x)`` in nats; -inf at a point mass, NaN where there is no distribution."""
        soft, lower = self.cholesky()
        h = np.where(soft, 0.5 * self.dimension * (LOG_2PI + 1) - log_diagonal(lower), np.nan)
        return self._or_at_points(h, -np.inf)

    def _kl(self, other: Self) -> np.ndarray:
        soft1, lower1 = self.cholesky()
        soft2, lower2 = other.cholesky()
        both = soft1 & soft2
        if both.size == 1 and both.all():  # one vector: the engine's question after every sweep
            return np.full(self.shape, _kl_of_one(self, other))
        # lower2' (covariance1) lower2 = r' r for r = lower1^-1 lower2: its trace and determinant stay positive
        r = self.whitener() @ lower2
        gap = self.mean - other.mean
        if not both.all():
            gap = np.where(both[..., None], gap, 0.0)
        white = transposed_times(lower2, gap)
        log_ratio = log_diagonal(lower1) - log_diagonal(lower2)
        kl = 0.5 * ((r * r).sum((-1, -2)) - self.dimension + (white * white).sum(-1)) + log_ratio
        kl = np.maximum(kl, 0.0)  # rounding may take it below
        return kl if both.all() else np.where(both, kl, self._kl_at_limits(other))

    def marginals(self) -> Gaussian:
        """The components one by one, along a last axis of the plate."""
        variance = np.where(self.proper[..., None], self.variance, np.inf)
        return Gaussian.from_mean_variance(np.where(np.isinf(variance), 0.0, self.mean), variance)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> np.ndarray:
        white = rng.standard_normal((*size, self.dimension))
        noise = transposed_times(self.whitener(), white)
        return self.mean + self._or_at_points(noise, 0.0, 1)


def _kl_of_one(a: MultivariateGaussian, b: MultivariateGaussian) -> float:
    """`MultivariateGaussian.kl` of one proper vector from another, without the overhead of a batch."""
    d = a.dimension
    lower1, lower2 = a.cholesky()[1].reshape(d, d), b.cholesky()[1].reshape(d, d)
    r = a.whitener().reshape(d, d) @ lower2
    white = (a.mean - b.mean).reshape(d) @ lower2
    log_ratio = np.log(lower1.diagonal() / lower2.diagonal()).sum()
    return max(float(0.5 * (np.vdot(r, r) - d + white @ white) + log_ratio), 0.0)
