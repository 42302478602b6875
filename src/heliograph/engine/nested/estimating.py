"""An estimate of the error of an integration: how far other densities that go through the same points would move it."""

from __future__ import annotations

import numpy as np

from heliograph.engine.nested.integrating import ABOVE, Whole
from heliograph.engine.nested.records import Error

__all__ = ["estimated_error"]

# nats by which the log density may be off where nothing is known, far beyond the points: it has to fall there, which the process
# does not know. Chosen on 104 random densities of one to three log scales; docs/hyperparameters.md has how it does on others
_UNKNOWN = 0.5
# of the estimate for standard deviations, which was 1.6 times their error in the median: chosen on 220 other random densities
_SMALLER = 0.75
_MOST = 2100  # nodes of a region: of more every second one, or every third, ...


def estimated_error(whole: Whole) -> Error:
    """What the log evidence, the means and the standard deviations may be off by, as the surrogate's own uncertainty has it.

    To first order each is a weighted sum of what the log density is off by at the nodes, of which the process knows the covariance.
    The mass is off by half the variance of a log density besides, as the mean of a log-normal variable is.
    """
    if not all(r.above < ABOVE for r in whole.regions):  # the process is not one that these values come from
        return Error(np.inf, np.inf, np.inf)
    weights, u = whole.weights, whole.u
    d = u.shape[1]
    mean = weights @ u
    sd = np.sqrt(weights @ (u - mean) ** 2)
    q = ((u - mean) / sd).T
    shares = weights * np.concatenate([np.ones((1, len(u))), q, 0.5 * (q**2 - 1.0)])
    variance, start, gained = np.zeros(len(shares)), 0, 0.0
    for r in whole.regions:
        n = len(r.nodes.z)
        step = -(-n // _MOST)
        part = step * shares[:, start : start + n : step]
        z = r.nodes.z[::step]
        sd = r.surrogate.sd(z)
        part = part * np.minimum(1.0, _UNKNOWN / np.maximum(sd, 1e-12))
        gained += 0.5 * step * float(weights[start : start + n : step] @ np.minimum(sd, _UNKNOWN) ** 2)
        variance += r.surrogate.variance_of(part, z)
        start += n
    error = np.sqrt(variance)
    return Error(float(error[0]) + gained, float(error[1 : 1 + d].max()), _SMALLER * float(error[1 + d :].max()))
