"""Posterior moments of small models by brute force: a grid over standard normals, for one to three unknowns."""

import numpy as np
from scipy.special import logsumexp

REACH = 7.0  # standard deviations of the prior


def grid(n_unknowns):
    """Points and log weights of independent standard normals on an even grid, precise to 1e-10 for smooth densities."""
    n = {1: 4001, 2: 301, 3: 81}[n_unknowns]
    line = np.linspace(-REACH, REACH, n)
    points = np.stack(np.meshgrid(*[line] * n_unknowns, indexing="ij"), axis=-1).reshape(-1, n_unknowns)
    log_weight = -0.5 * (points**2).sum(axis=1) + n_unknowns * (np.log(line[1] - line[0]) - 0.5 * np.log(2 * np.pi))
    return points, log_weight


def moments(points, log_weight, quantities):
    """Means and sds of the columns of `quantities`, and the log of the total weight."""
    log_total = logsumexp(log_weight)
    w = np.exp(log_weight - log_total)
    mean = w @ quantities
    sd = np.sqrt(w @ (quantities - mean) ** 2)
    return mean, sd, log_total


def agree(posterior, variables, mean, sd, z=0.02, ratio=0.03):
    """Means within `z` posterior sds, and sds within a share `ratio`."""
    assert posterior.converged, posterior.status
    found = np.array([float(posterior[v].mean) for v in variables])
    spread = np.array([float(posterior[v].variance) for v in variables]) ** 0.5
    assert (np.abs(found - mean) <= z * sd).all(), (found, mean, sd)
    assert (np.abs(spread / sd - 1) <= ratio).all(), (spread, sd)
