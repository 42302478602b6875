"""Priors of matrices that are integrated over, correlations and precisions, on an unconstrained scale."""

from __future__ import annotations

import numpy as np

from heliograph.graph.hyper import HyperPrior
from heliograph.numerics.gamma_function import trigamma
from heliograph.numerics.special import betaln, gammaln, psi

__all__ = ["lkj_prior", "wishart_prior"]

Array = np.ndarray


def lkj_prior(dimension: int, concentration: float) -> HyperPrior:
    """Correlation matrices R with a density in proportion to ``det(R) ** (concentration - 1)``.

    The numbers are ``tanh(u)`` of the partial correlations given all earlier components, which are independent Beta variables on
    (-1, 1) under this prior (Lewandowski, Kurowicka and Joe 2009).
    """
    row, column = np.tril_indices(dimension, -1)
    b = concentration + 0.5 * (dimension - 2 - column)
    constant = -(2 * b - 1) * np.log(2.0) - betaln(b, b)

    def value(u: Array) -> Array:
        partial = np.zeros((*u.shape[:-1], dimension, dimension))
        partial[..., row, column] = np.tanh(u)
        lower = np.zeros_like(partial)
        left = np.ones(partial.shape[:-1])  # what is left of each row's unit length
        for k in range(dimension):
            lower[..., k] = partial[..., k] * np.sqrt(left)
            lower[..., k, k] = np.sqrt(left[..., k])
            left = np.maximum(left - lower[..., k] ** 2, 0.0)  # rounding may pass 0
        return lower @ np.swapaxes(lower, -1, -2)

    def log_density(u: Array) -> Array:
        log_rest = 2.0 * (np.log(2.0) - np.logaddexp(u, -u))  # log(1 - tanh(u)^2)
        return (b * log_rest + constant).sum(axis=-1)

    n = len(row)
    width = np.full(n, 1.0 / np.sqrt(max(2.0 * concentration - 1.0, 1.0)))
    return HyperPrior(
        f"lkj({dimension}, {concentration:g})", (dimension, dimension), np.zeros(n), width, value, log_density
    )


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
