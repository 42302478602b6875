"""The Wishart prior of a precision matrix as a hyper-parameter."""

from __future__ import annotations

import numpy as np

from heliograph.graph.hyper import HyperPrior
from heliograph.numerics.gamma_function import trigamma
from heliograph.numerics.special import gammaln, psi

__all__ = ["wishart_prior"]


def wishart_prior(dof: float, scale: np.ndarray) -> HyperPrior:
    """Precision matrices ``W ~ Wishart(dof, scale)`` of mean ``dof scale``, by Bartlett's decomposition.

    With ``scale = A A'`` it is ``W = A T T' A'`` for a lower triangle T of independent entries: Gaussian ones below the diagonal,
    and on it the roots of chi-squared numbers of dof, dof - 1, ... degrees of freedom, of which u holds the logarithms.

    >>> prior = wishart_prior(5.0, np.eye(1))  # one number: a Gamma(5 / 2, rate 1 / 2)
    >>> from heliograph.families import Gamma
    >>> u = np.array([0.3])
    >>> w = prior.value(u)[0, 0]
    >>> bool(np.isclose(prior.log_density(u), Gamma(2.5, 0.5).log_density(w) + np.log(2 * w)))
    True
    """
    d = len(scale)
    root = np.linalg.cholesky(scale)
    row, column = np.tril_indices(d)
    diagonal = row == column
    k = dof - np.arange(d)  # degrees of freedom of each diagonal entry
    constant = np.log(2.0) * (1.0 - 0.5 * k) - gammaln(0.5 * k)

    def value(u: np.ndarray) -> np.ndarray:
        lower = np.zeros((*u.shape[:-1], d, d))
        lower[..., row, column] = np.where(diagonal, np.exp(np.where(diagonal, np.clip(u, -150.0, 150.0), 0.0)), u)
        half = root @ lower
        return half @ np.swapaxes(half, -1, -2)

    def log_density(u: np.ndarray) -> np.ndarray:
        logs, others = u[..., diagonal], u[..., ~diagonal]
        on = constant + k * logs - 0.5 * np.exp(2.0 * np.minimum(logs, 150.0))
        return on.sum(axis=-1) - 0.5 * (others**2 + np.log(2 * np.pi)).sum(axis=-1)

    centre, width = np.zeros(len(row)), np.ones(len(row))
    centre[diagonal] = 0.5 * (psi(0.5 * k) + np.log(2.0))  # of log T, half the log of a chi-squared number
    width[diagonal] = np.minimum(0.5 * np.sqrt(trigamma(0.5 * k)), 5.0)
    return HyperPrior(f"wishart({dof:g}, {d} x {d})", (d, d), centre, width, value, log_density)
