"""The axis on which an oracle walks for each family: real coordinates, densities on them, and the projection back.

A Gaussian is walked on the real line, a Gamma on ``log x``, a Beta on ``logit p``, a Dirichlet on log ratios. All is
computed from the coordinate, so a probability that rounds to 1 has lost nothing. Coordinates always carry a last axis
of length D. Statistics are taken relative to a `centre` and `scale` of the row, so that a narrow belief far from 0
keeps its digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import special

from heliograph.families import Family

__all__ = [
    "Axis",
    "Line",
    "Projection",
    "Values",
    "at_points",
    "columns",
    "errors_of",
    "half_trace",
    "log_gamma_draws",
    "matrix_of",
    "sandwich",
]


class Projection(NamedTuple):
    """Expected statistics turned into a belief, with their errors carried along."""

    belief: Family  # (n,)
    errors: tuple[np.ndarray, ...]  # like expected_statistics()
    covariance: np.ndarray  # (n, q, q), of the plain expected statistics, flattened
    chart_covariance: np.ndarray  # (n, r, r)
    expected_kl: np.ndarray  # (n,)
    sound: np.ndarray  # (n,) bool: the statistics are those of some member of the family


class Axis(Protocol):
    """One family seen by an oracle; those that are not discrete are also a `Line`, the discrete ones `Values`."""

    n_coordinates: int  # D
    n_uniforms: int  # how many uniform numbers one draw takes
    n_statistics: int  # q
    discrete: bool

    def value(self, u: np.ndarray) -> np.ndarray:
        """The variable itself, ``(..., D) -> (...)`` or ``(..., d)``, kept inside the open support."""
        ...

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Back again; a value that rounded onto the edge of the support is moved inside."""
        ...

    def log_message(self, message: Any, u: np.ndarray) -> np.ndarray:
        """``log m(x)`` for a plate (n,) at coordinates (n, s, D), in the measure of the variable."""
        ...

    def log_jacobian(self, u: np.ndarray) -> np.ndarray:
        """``log |dx / du|``."""
        ...

    # (the scale is the standard deviation of the coordinates; for a Gamma it is log E x - E log x)
    def statistics(self, u: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Standardised sufficient statistics (n, s, q)."""
        ...

    def project(
        self, expected: np.ndarray, covariance: np.ndarray, centre: np.ndarray, scale: np.ndarray
    ) -> Projection:
        """The belief with these expected standardised statistics (n, q) whose errors have this covariance."""
        ...


class Line(Axis, Protocol):
    """A family with a density on real coordinates."""

    linear: bool  # a draw is a linear map of normal numbers

    def draw(self, message: Any, uniforms: np.ndarray) -> np.ndarray:
        """Coordinates (n, s, D) of draws from proper messages, by inversion of uniforms (n, s, n_uniforms)."""
        ...

    def moments(self, message: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean (n, D) and covariance (n, D, D) of the coordinates under a proper message."""
        ...

    def broaden(self, message: Any, factor: float) -> Family:
        """The same centre with `factor` times the variance, or nearly."""
        ...


class Values(Axis, Protocol):
    """A family of finitely many values."""

    def probabilities(self, message: Any) -> np.ndarray:
        """The chance of every value, (n, number of values)."""
        ...


def columns(a: np.ndarray) -> np.ndarray:
    """(n,) -> (n, 1), to stand beside samples (n, s)."""
    return a[:, None]


def sandwich(j: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """``J C J'``: an error seen through a linear map."""
    return j @ covariance @ np.swapaxes(j, -1, -2)


def matrix_of(rows: list[list[Any]]) -> np.ndarray:
    """Rows of (n,) arrays -> (n, r, c)."""
    return np.stack([np.stack(np.broadcast_arrays(*row), axis=-1) for row in rows], axis=-2)


def errors_of(covariance: np.ndarray) -> np.ndarray:
    """Standard errors from a covariance."""
    return np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0))


def half_trace(information: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Expected KL of an error with `covariance` where the statistics themselves have covariance `information`."""
    return 0.5 * np.einsum("nii->n", np.linalg.solve(information, covariance))


def log_gamma_draws(shape: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """``log`` of standard Gamma draws by inversion, right also where the draw itself underflows."""
    x = special.gammaincinv(shape, uniforms)
    small = x < 1e-280
    lower = (np.log(uniforms) + special.gammaln(shape + 1)) / shape  # P(shape, x) -> x^shape / Gamma(shape + 1)
    return np.where(small, lower, np.log(np.where(small, 1.0, x)))


def at_points(message: Family, x: np.ndarray, log_p: np.ndarray) -> np.ndarray:
    """`log_p`, but 0 or -inf at the entries that are point masses."""
    if message.point is None:
        return log_p
    here = np.where(x == columns(message.point), 0.0, -np.inf)
    return np.where(columns(message.is_point), here, log_p)
