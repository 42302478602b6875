"""Gaussian-process classification with a probit link by hand: parallel EP in the whitened form."""

import numpy as np
import scipy.linalg as sl
from scipy.special import log_ndtr


def expectation_propagation(kernel, y, change=1e-6, most=200):
    """Mean, variances and sweeps; ``B = I + S^(1/2) K S^(1/2)`` is all that is ever factorised."""
    n = len(y)
    sign = 2 * y - 1
    tau, nu = np.zeros(n), np.zeros(n)
    mean, variance = np.zeros(n), np.diag(kernel).copy()
    for sweep in range(1, most + 1):
        cavity_v = 1 / (1 / variance - tau)
        cavity_m = cavity_v * (mean / variance - nu)
        z = sign * cavity_m / np.sqrt(1 + cavity_v)
        ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
        m = cavity_m + sign * cavity_v * ratio / np.sqrt(1 + cavity_v)
        v = cavity_v - cavity_v**2 * ratio * (z + ratio) / (1 + cavity_v)
        tau = np.maximum(1 / v - 1 / cavity_v, 1e-300)
        nu = m / v - cavity_m / cavity_v
        root = np.sqrt(tau)
        b = root[:, None] * kernel * root
        b[np.diag_indices(n)] += 1
        lower = sl.cholesky(b, lower=True, overwrite_a=True)
        half = sl.solve_triangular(lower, root[:, None] * kernel, lower=True)
        new_v = np.diag(kernel) - np.einsum("ij,ij->j", half, half)
        new_m = kernel @ nu - half.T @ (half @ nu)
        moved = 0.5 * (new_v / variance - 1 - np.log(new_v / variance) + (new_m - mean) ** 2 / variance)
        mean, variance = new_m, new_v
        if moved.max() < change or sweep == most:
            break
    return mean, variance, sweep
