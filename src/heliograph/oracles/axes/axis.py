"""The interface of axes, on which oracles integrate: real coordinates, densities on them, and the projection back.

A Gaussian is integrated over the real line, a Gamma over ``log x``, a Beta on ``logit p``, a Dirichlet on log ratios. All is
computed from the coordinate, so a probability that rounds to 1 has lost nothing. Coordinates always carry a last axis
of length D. Statistics are taken relative to a `centre` and `scale` of the row, so that a narrow belief far from 0
keeps its digits.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from heliograph.families import Family

__all__ = ["Axis", "Line", "Projection", "Values"]


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
    scale_is_log_gap: bool  # the scale of a frame is log E x - E log x, not the deviation of the coordinates
    edge_depth: (
        float  # how far beyond the last double a value on an edge of the support may lie on the axis; 0: no edges
    )
    largest: float  # the largest value that counts as a number

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

    def edge(self, x: np.ndarray) -> np.ndarray:
        """-1 or 1 where a value has rounded onto the lower or upper edge of the support, else 0."""
        ...

    def log_highest(self, message: Any) -> np.ndarray:
        """The largest log density (n,) that a message has anywhere; infinite where that is not known."""
        ...

    def falls_off(self, message: Any) -> np.ndarray:
        """Where (n,) bool a message has no mass at an infinite value."""
        ...

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

    def mode(self, message: Any) -> np.ndarray:
        """Where (n,) on its one coordinate a message is largest, in the measure of the variable; an end if at an end."""
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
