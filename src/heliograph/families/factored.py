"""A Gaussian vector whose Cholesky factor is known already: a solver that has factored a precision need not do it again."""

from __future__ import annotations

import numpy as np

from heliograph.families.multivariate_gaussian import MultivariateGaussian

__all__ = ["factored_gaussian"]

_PROPER = np.ones(1, dtype=bool)
_PROPER.flags.writeable = False  # one for all


def factored_gaussian(
    shift: np.ndarray, precision: np.ndarray, upper: np.ndarray, root: np.ndarray, mean: np.ndarray
) -> MultivariateGaussian:
    """A plate of one vector, from what a solver has at hand.

    Parameters
    ----------
    shift, precision
        The natural parameters, (d,) and (d, d).
    upper
        U with ``U'U`` the precision, (d, d), zeros below its diagonal.
    root
        The inverse of U, (d, d).
    mean
        The solution of ``precision mean = shift``, (d,).

    >>> two = np.array([[2.0]])
    >>> factored_gaussian(np.array([4.0]), two * two, two, 1.0 / two, np.array([1.0]))
    MultivariateGaussian[mean [1.], variance [0.25]]
    """
    made = MultivariateGaussian.from_naturals((shift[None], precision[None]))
    object.__setattr__(made, "_factor", (_PROPER, upper.T[None]))  # kept as if they had been computed from the value
    object.__setattr__(made, "_half", root.T[None])
    object.__setattr__(made, "_mean", mean[None])
    return made
