"""What every chart does: for values of the variable, and for members of the family.

A *value* x has real coordinates u. A *member* is compared with a reference: on the chart of its family (the line, ``log
x``, ``logit p``) it has a mean and a variance, and the correction that makes it of the reference is ``d1 = (mean -
mean_r) / sd_r`` and ``d2 = log(variance / variance_r)``. Vectors are whitened by the symmetric root of the reference's
covariance, with the matrix logarithm for d2; Bernoulli and Categorical members differ by log odds, a Dirichlet by the
logarithms of its concentrations. Every real correction gives a member of the family, so no prediction can leave it.

A reference is a tuple of arrays, made by `Chart.moments` from a message or computed elsewhere; here nothing is asked of
it but to be proper.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from heliograph.families.base import Family

__all__ = ["FAR", "BaseChart", "Chart", "DensityChart", "Moments", "Unchanged"]

Moments = tuple[np.ndarray, ...]  # a reference: chart mean and variance (n,), or what stands for them in other families
FAR = 40.0  # on the log odds, of a point mass at 0 or 1


class Chart(Protocol):
    """One family on its chart; plates of members have shape (n,)."""

    n_outputs: int  # q, the length of a correction
    scalar: bool  # the correction is (d1, d2)

    # ---- values ---------------------------------------------------------------------------------------------------
    def coordinates(self, x: ArrayLike) -> np.ndarray:
        """The coordinates u of values; infinite on the edge of the support, where the family has one."""
        ...

    def value(self, u: ArrayLike) -> np.ndarray:
        """The reverse of `coordinates`, kept inside the open support by rounding."""
        ...

    def inside(self, x: ArrayLike) -> np.ndarray:
        """The nearest values inside the open support: a true value next to its edge may have rounded onto it."""
        ...

    def log_jacobian(self, u: ArrayLike) -> np.ndarray:
        """``log |dx / du|``."""
        ...

    # ---- members --------------------------------------------------------------------------------------------------
    def moments(self, message: Any) -> Moments:
        """A proper message as a reference."""
        ...

    def plain(self, n: int) -> Moments:
        """The reference where there is none: corrections of it are the member's own coordinates."""
        ...

    def features(self, message: Any) -> np.ndarray:
        """What a regression sees of a proper message, ``(n, k)``: its centre and log spread on the chart.

        Not the exact chart moments, where those are expensive: any smooth coordinates with the same meaning will do.
        """
        ...

    def point_features(self, message: Any) -> np.ndarray:
        """What a regression sees of point masses, ``(n, k)``: where they are."""
        ...

    def charted(self, message: Any) -> np.ndarray:
        """Where (n,) bool a message has features: it is proper, and no coordinate of it is infinite."""
        ...

    def information_share(self, message: Any, cavity: Any) -> np.ndarray:
        """The share of the information of ``message * cavity`` that the message brings, as far as both are proper."""
        ...

    def gap(self, moments: Moments, reference: Moments) -> np.ndarray:
        """The correction that makes a member with these `moments` of the reference, ``(n, q)``."""
        ...

    def belief(self, target: np.ndarray, reference: Moments) -> Any:
        """The reverse of `gap`; always a proper member of the family."""
        ...

    def weights(self, target: np.ndarray, reference: Moments) -> np.ndarray:
        """``(n, q)``: the expected KL of errors with variances v in the correction is ``sum_j weights_j v_j``.

        Half the diagonal of the Fisher information in the correction's coordinates.
        """
        ...

    def noise(self, belief: Any, covariance: np.ndarray, reference: Moments) -> np.ndarray:
        """Variances ``(n, q)`` of the correction, from a covariance of the chart coordinates (delta method)."""
        ...


class DensityChart(Chart, Protocol):
    """A family whose messages are densities of the coordinates, as quadrature on the chart sees them.

    Called at every message: log densities leave out their constants, and nothing is checked.
    """

    n_coordinates: int  # how many numbers the variable is
    gaussian: bool  # the moments on the chart are those of the EP projection

    def log_density(self, message: Any, u: np.ndarray) -> np.ndarray:
        """The log density of u at ``(k, n)``, or ``(k, n, d)`` for a vector, without its constant."""
        ...

    def log_constant(self, message: Any) -> np.ndarray:
        """The constant that `log_density` leaves out."""
        ...

    def project(self, u: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Chart moments of the EP projection of weighted positions ``(k, n)``: by its own statistics, not the chart's."""
        ...


class BaseChart:
    """What most charts do with members."""

    def point_features(self, message: Family) -> np.ndarray:
        """The mean on the chart."""
        return message.chart_moments()[0].reshape(len(message), -1)

    def charted(self, message: Family) -> np.ndarray:
        """Where the message is proper."""
        return message.proper

    def information_share(self, message: Family, cavity: Family) -> np.ndarray:
        """By how much the message makes the variance on the chart smaller."""
        return np.abs(1.0 - (message * cavity).chart_moments()[1] / cavity.chart_moments()[1])


class Unchanged(BaseChart):
    """The coordinates of a value are the value itself."""

    def coordinates(self, x: ArrayLike) -> np.ndarray:
        """The value."""
        return np.asarray(x)

    def value(self, u: ArrayLike) -> np.ndarray:
        """The value."""
        return np.asarray(u)

    def inside(self, x: ArrayLike) -> np.ndarray:
        """The value: the support has no edge."""
        return np.asarray(x)
