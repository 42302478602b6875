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

__all__ = ["Chart", "Moments", "Unchanged"]

Moments = tuple[np.ndarray, ...]  # a reference: chart mean and variance (n,), or what stands for them in other families


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


class Unchanged:
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
